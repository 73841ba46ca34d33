"""Which earlier models are asked, and what is said of those that are not."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.config import RunSettings
from hatchway.data.catalogue import Catalogue
from hatchway.data.contexts import contexts_of
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import SettingsError
from hatchway.index.bundle import Bundle
from hatchway.index.model_bundle import item_vectors
from hatchway.job import index_run, train_run
from hatchway.negatives.settings import NegativesSettings
from hatchway.training.mining.earlier import Skipped, open_earlier, scores_of
from hatchway.training.mining.mine_log import Wanted, mine_log
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.run_folder import RunFolder
from hatchway.training.sources import negatives_of

DAY = 86_400
SETTINGS = MiningSettings(first_rank=3, last_rank=20)


def trained(store: Path, out: Path, **model: object) -> RunFolder:
    """Train for a moment and make the bundle."""
    settings = RunSettings.parse(
        {
            "model": {"dimension": 4, **model},
            "negatives": {"uniform": 4},
            "training": {"epochs": 1, "batch": 64, "auc_pairs": 0},
        }
    )
    run = train_run(store, out, settings)
    index_run(run)
    return run


@pytest.fixture(scope="module", name="run")
def _run(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Train once, a model that reads contexts."""
    return trained(store_path, tmp_path_factory.mktemp("earlier") / "run")


@pytest.fixture(name="copy")
def _copy(run: RunFolder, tmp_path: Path) -> Path:
    """Copy the run to a place where it can be spoilt."""
    shutil.copytree(run.path, tmp_path / "copy")
    return tmp_path / "copy"


def told(bundle: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite a bundle's manifest; its parts stay what they are."""
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_fresh_index_is_asked(run: RunFolder, log: Log) -> None:
    """By the run or by its bundle; the facts are those of the manifest, and it is of the training part's last day."""
    for path in (run.path, run.path / "bundle"):
        found = open_earlier(path, log, SETTINGS)
        assert not isinstance(found, Skipped)
        facts = found[1]
        assert (facts.age_days, facts.recall, facts.common_items, facts.buyers) == (0, 1.0, 40, False)
        assert facts.day == Bundle.open(run.path / "bundle").manifest.origin["day"]
        times = log.engagements.times
        assert times is not None
        assert facts.day == str(np.datetime64(int(times[log.engagements.parts == Part.TRAIN].max()), "s"))[:10]


def aged(log: Log, days: int) -> Log:
    """Move the log by days."""
    times = log.engagements.times
    assert times is not None
    return replace(log, engagements=replace(log.engagements, times=times + days * DAY))


@pytest.mark.parametrize(
    ("days", "reason"), [(-1, "later_data"), (0, None), (2, None), (3, "too_old"), (400, "too_old")]
)
def test_age_is_counted_in_days_of_the_data(run: RunFolder, log: Log, days: int, reason: str | None) -> None:
    """Two days are allowed; an index that knows what comes after this training part is not asked either."""
    found = open_earlier(run.path, aged(log, days), SETTINGS)
    assert (found.reason if isinstance(found, Skipped) else None) == reason
    if isinstance(found, Skipped):
        assert str(run.path) in found.message
    else:
        assert found[1].age_days == days
    allowed = open_earlier(run.path, aged(log, days), SETTINGS.model_copy(update={"max_index_age_days": 400}))
    assert isinstance(allowed, Skipped) == (days < 0)


def test_without_times_nobody_asks_how_old(run: RunFolder, log: Log) -> None:
    """Neither of a log without times, nor of a bundle of one; but a log with times wants to know."""
    timeless = replace(log, engagements=replace(log.engagements, times=None))
    found = open_earlier(run.path, timeless, SETTINGS)
    assert not isinstance(found, Skipped)
    assert found[1].age_days is None


@pytest.mark.parametrize(
    ("spoil", "reason", "says"),
    [
        (lambda copy: shutil.rmtree(copy / "bundle"), "missing", "make one with: hatchway index RUN"),
        (shutil.rmtree, "missing", "has no bundle"),
        (lambda copy: (copy / "bundle/item_vectors.safetensors").write_bytes(b"cut"), "damaged", "item_vectors"),
        (lambda copy: (copy / "bundle/catalogue.parquet").unlink(), "damaged", "catalogue"),
        (lambda copy: (copy / "bundle/manifest.json").write_text("{}"), "damaged", "manifest.json is damaged"),
        (lambda copy: (copy / "bundle/manifest.json").unlink(), "damaged", "no manifest.json that can be read"),
        (lambda copy: told(copy / "bundle", lambda m: m.update(items=39)), "damaged", "39"),
        (lambda copy: told(copy / "bundle", lambda m: m["origin"].pop("day")), "undated", "of which day"),
        (lambda copy: told(copy / "bundle", lambda m: m["index"].update(recall=0.89)), "low_recall", "is 0.8900"),
        (lambda copy: told(copy / "bundle", lambda m: m["index"].update(recall=None)), "low_recall", "never measured"),
        (lambda copy: (copy / "model/weights.safetensors").write_bytes(b"x"), "other_weights", "other weights"),
        (lambda copy: shutil.rmtree(copy / "model"), "other_weights", "other weights"),
        (
            lambda copy: told(copy / "bundle", lambda m: m["origin"].update(store="0" * 64)),
            "other_catalogue",
            "another store",
        ),
    ],
)
def test_what_cannot_be_believed_is_not_asked(
    copy: Path, log: Log, spoil: Callable[[Path], object], reason: str, says: str
) -> None:
    """Each fault has its word, and a sentence that says where and what to do."""
    spoil(copy)
    found = open_earlier(copy, log, SETTINGS)
    assert isinstance(found, Skipped)
    assert found.reason == reason
    assert says in found.message
    mined, record = mine_log(log, Wanted(copy, SETTINGS, seed=1))
    assert mined is None
    assert (record.status, record.reason, record.figures) == ("skipped", reason, None)
    assert record.said().startswith(f"mining was skipped ({reason.replace('_', ' ')}): ")


def test_a_cut_index_is_noticed(copy: Path, log: Log) -> None:
    """Half of the file of the index, of whatever name."""
    (path,) = (copy / "bundle").glob("index.*")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = open_earlier(copy, log, SETTINGS)
    assert isinstance(found, Skipped)
    assert found.reason == "damaged"


def test_an_index_of_other_items_is_not_asked(run: RunFolder, log: Log) -> None:
    """No id is in both catalogues."""
    frame = log.catalogue.frame.with_columns(item=pl.col("item") + 1000)
    found = open_earlier(run.path, replace(log, catalogue=Catalogue(frame)), SETTINGS)
    assert isinstance(found, Skipped)
    assert found.reason == "other_catalogue"


def test_items_are_matched_by_their_ids(run: RunFolder, log: Log) -> None:
    """In a catalogue of another order, with new items and without old ones, the same things are mined."""
    shuffled = log.catalogue.frame.reverse().filter(pl.col("item") != 17)
    new = pl.DataFrame({"item": [99], "title": ["new"], "category": ["wood"], "price": [1.0]}).cast(shuffled.schema)
    catalogue = Catalogue(pl.concat([new, shuffled]))
    moved = catalogue.rows(log.catalogue.ids)
    engagements = replace(
        log.engagements,
        items=np.where(moved >= 0, moved, 0)[log.engagements.items].astype(np.int32),
        query_items=np.append(moved, -1)[log.engagements.query_items].astype(np.int32),
    )
    other = replace(log, catalogue=catalogue, engagements=engagements)
    one, there = (open_earlier(run.path, each, SETTINGS) for each in (log, other))
    assert not isinstance(one, Skipped)
    assert not isinstance(there, Skipped)
    assert there[1].common_items == 39
    rows = log.engagements.positives(Part.TRAIN)
    spared = np.array(
        [
            17 not in (*log.engagements.items[begin : row + 1].tolist(), log.engagements.query_items[row])
            for row, begin in zip(rows, log.engagements.offsets[log.engagements.buyers[rows]], strict=True)
        ]
    )
    assert 50 < spared.sum() < len(rows)
    np.testing.assert_allclose(one[0].queries.vectors(rows)[spared], there[0].queries.vectors(rows)[spared], atol=1e-6)
    assert np.array_equal(one[0].vectors, there[0].vectors)
    assert np.array_equal(np.append(moved, -1)[one[0].here], there[0].here)


def test_a_run_knows_its_buyers_and_a_bundle_does_not(
    store_path: Path, log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Matrix factorisation asks with the buyer's vector where the run is named, and with item vectors elsewhere."""
    run = trained(store_path, tmp_path / "run", kind="factorisation")
    model, rows = run.load_model(run.log()), log.engagements.positives(Part.TRAIN)
    by_run, by_bundle = (open_earlier(path, log, SETTINGS) for path in (run.path, run.path / "bundle"))
    assert not isinstance(by_run, Skipped)
    assert not isinstance(by_bundle, Skipped)
    assert (by_run[1].buyers, by_bundle[1].buyers) == (True, False)
    with torch.no_grad():
        own = model.query(contexts_of(log.engagements, rows, 0)).numpy()
    np.testing.assert_allclose(by_run[0].queries.vectors(rows), own, atol=1e-6)
    assert len(set(by_run[0].queries.groups(rows).tolist())) == len(log.buyers)
    page = log.engagements.query_items[rows] >= 0
    expected = item_vectors(model, 40)[log.engagements.query_items[rows[page]]]
    np.testing.assert_allclose(by_bundle[0].queries.vectors(rows)[page], expected, atol=1e-6)
    # The run's store has moved on: nobody can say any more whose the buyers' vectors are.
    moved = json.loads((run.path / "run.json").read_text()) | {"store": "../gone"}
    (run.path / "run.json").write_text(json.dumps(moved))
    without = open_earlier(run.path, log, SETTINGS)
    assert not isinstance(without, Skipped)
    assert without[1].buyers is False


def test_a_second_model_judges(run: RunFolder, log: Log, tmp_path: Path) -> None:
    """It scores pairs with its own vectors; a judge that is not there skips the mining."""
    rows = log.engagements.positives(Part.TRAIN)
    found = open_earlier(run.path, log, SETTINGS)
    assert not isinstance(found, Skipped)
    earlier = found[0]
    asked = rows[earlier.queries.groups(rows) >= 0][:30]
    items = np.arange(30, dtype=np.int64)
    expected = (earlier.queries.vectors(asked) * earlier.vectors[items]).sum(1)
    np.testing.assert_allclose(scores_of(earlier)(asked, items), expected, rtol=1e-5, atol=1e-6)
    mined, record = mine_log(log, Wanted(run.path, SETTINGS, seed=1, judge=run.path))
    assert mined is not None
    assert record.judged
    # The judge is the miner itself, so it refuses exactly what scores above the positive.
    places = np.repeat(np.arange(len(mined)), np.diff(mined.offsets))
    assert (mined.scores <= mined.positive_scores[places] + 1e-6)[mined.reasons == 0].all()
    assert record.figures is not None
    assert record.figures.refused["judge"] > 20
    nobody, skipped = mine_log(log, Wanted(run.path, SETTINGS, seed=1, judge=tmp_path / "nobody"))
    assert nobody is None
    assert skipped.reason == "judge"


def test_mined_alone_needs_no_warm_up(log: Log) -> None:
    """Before they begin there would be nothing to learn from."""
    found = two_for_each(log)
    alone = NegativesSettings(in_batch=False, uniform=0, mined=2)
    assert negatives_of(alone, log, seed=1, dimension=4, mined=found).own
    with pytest.raises(SettingsError, match=r"mining\.warm_up_epochs = 0"):
        negatives_of(alone, log, seed=1, dimension=4, mined=found, mined_from=5)


def two_for_each(log: Log) -> RowTable:
    """Make a table of two items for each row."""
    return RowTable.from_offsets(np.arange(0, 2 * len(log.engagements) + 1, 2), np.tile([1, 2], len(log.engagements)))
