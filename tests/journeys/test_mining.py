"""Mining through the commands: an earlier run's near misses, killed and resumed, skipped, judged, and exported."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hatchway.config import load_recipe
from hatchway.data.engagements import Part
from hatchway.data.store import write_store
from hatchway.errors import ArtefactError
from hatchway.job import index_run, train_run
from hatchway.randomness import stream
from hatchway.training.mining.mined_set import read_mined
from hatchway.training.run_folder import RunFolder

RECIPE = """
seed = 4

[model]
dimension = 8

[negatives]
uniform = 20

[mining]
first_rank = 11
last_rank = 45
warm_up_epochs = 0.5

[training]
epochs = 3
batch = 64
checkpoint_steps = 10
validate_epochs = 0
select = "last"
"""


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store in which buyers come back to wood or to metal, a recipe, and an earlier run with its bundle."""
    folder = tmp_path_factory.mktemp("mining")
    rng = stream(1, "mining journey")
    buyers = np.repeat(np.arange(200), 10)
    items = rng.integers(0, 50, len(buyers)) + 50 * (buyers % 2)
    items[1::10] = items[::10]  # everybody comes back once
    events = pl.DataFrame(
        {
            "buyer": [f"b{buyer}" for buyer in buyers],
            "item": [f"i-{item}" for item in items],
            "event": ["message"] * len(buyers),
            "time": 1_760_000_000 + np.arange(len(buyers)) * 600,
        }
    )
    wood = [f"i-{item}" for item in range(50)]
    catalogue = pl.DataFrame(
        {
            "item": [*wood, *(f"i-{item}" for item in range(50, 100))],
            "title": [f"{'wood' if item < 50 else 'metal'} chair {item}" for item in range(100)],
        }
    )
    write_store(folder / "store", events.lazy(), catalogue)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    index_run(train_run(folder / "store", folder / "base", load_recipe(folder / "recipe.toml")))
    return folder


def recipe(place: Path) -> tuple[object, ...]:
    """Name the recipe."""
    return ("--recipe", place / "recipe.toml")


def command(*arguments: object) -> list[str]:
    """Spell the program as a process of its own."""
    return [sys.executable, "-m", "hatchway.cli.main", *map(str, arguments)]


@pytest.fixture(scope="module", name="mined")
def _mined(place: Path) -> Path:
    """Train once on what the earlier run nearly took for the positive."""
    train_run(place / "store", place / "mined", load_recipe(place / "recipe.toml"), mine_from=place / "base")
    return place / "mined"


def test_the_record_says_how_it_went(place: Path, mined: Path) -> None:
    """Mined, refused by reason, short, and how many a positive has in a step; the log counts the same."""
    about = json.loads((mined / "mining.json").read_text())
    record, figures = about["record"], about["record"]["figures"]
    run = RunFolder.open(mined)
    assert (record["status"], run.record.mine_from) == ("mined", "../base")
    assert about["from_step"] == 12.5 // 1 + 1  # half of 25 steps, rounded up
    positives = len(run.log().engagements.positives(Part.TRAIN))
    found = read_mined(mined / "mined.parquet")
    assert figures["positives"] == positives == len(found) == 1600
    assert figures["unasked"] == 200  # everybody's first has no context
    assert figures["by_number"] == np.bincount(found.numbers, minlength=3).tolist()
    assert figures["short"] == sum(figures["by_number"][:2])
    assert figures["looked_at"] == figures["mined"] + sum(figures["refused"].values())
    assert figures["refused"]["engaged"] > 20
    assert figures["effective_per_positive"] == pytest.approx(figures["mined"] / positives) == 1.75
    assert set(found.ranks.tolist()) <= set(range(11, 46))
    assert record["index"]["day"] == "2025-10-23"
    assert load_recipe(mined / "settings.toml").mining.last_rank == 45
    lines = [json.loads(line) for line in (mined / "log.jsonl").read_text().splitlines()]
    columns = [line["columns"] for line in lines if "columns" in line]
    assert columns[-1]["mined"] == pytest.approx(1.75, abs=0.1)
    assert columns[0]["mined"] < 1  # most of the first twenty steps are the warm-up


def test_killed_with_signal_9_and_resumed_gives_the_same_bytes(place: Path, mined: Path) -> None:
    """Killed while it learns from mined items, resumed when the earlier run is gone: they were mined once and kept."""
    shutil.copytree(place / "base", place / "gone")
    train = ("train", place / "store", *recipe(place), "--quiet", "--out", place / "killed")
    killed = subprocess.Popen(command(*train, "--mine-from", place / "gone"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list((place / "killed" / "checkpoints").glob("step-*/state.json"))) < 2:
        assert killed.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    shutil.rmtree(place / "gone")
    subprocess.run(command("train", place / "store", "--out", place / "killed", "--resume"), check=True)
    for name in ("model/weights.safetensors", "mined.parquet"):
        assert (place / "killed" / name).read_bytes() == (mined / name).read_bytes(), name


def test_what_cannot_be_mined_leaves_the_run_that_it_would_have_been(
    place: Path, mined: Path, hatchway: Callable[..., Any]
) -> None:
    """No index there: the reason is recorded and said, and the weights are those of a run that never asked."""
    arguments = ("train", place / "store", *recipe(place), "--out", place / "fallen", "--mine-from", place / "nowhere")
    ended = hatchway(*arguments)
    assert ended.code == 0
    said = f"mining was skipped (missing): {place / 'nowhere'} has no bundle to mine with"
    assert said in ended.out
    assert said in ended.err
    about = json.loads((place / "fallen" / "mining.json").read_text())
    assert (about["record"]["status"], about["record"]["reason"], about["set_sha256"]) == ("skipped", "missing", "")
    weights = [(place / run / "model/weights.safetensors").read_bytes() for run in ("fallen", "base", "mined")]
    assert weights[0] == weights[1] != weights[2]
    refused = hatchway("export", place / "fallen", "--out", place / "nothing", "--triplets")
    assert (refused.code, said in refused.err) == (2, True)


def test_the_near_misses_are_near(place: Path, mined: Path) -> None:
    """By the log's own truth: most of them are of the positive's own half; of random items only half are."""
    run = RunFolder.open(mined)
    log, found = run.log(), read_mined(mined / "mined.parquet")
    halves = (log.catalogue.frame["title"].str.starts_with("wood")).to_numpy()
    places = np.repeat(np.arange(len(found)), np.diff(found.offsets))[found.reasons == 0]
    same = halves[found.items[found.reasons == 0]] == halves[log.engagements.items[found.rows[places]]]
    assert same.mean() > 0.65


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (("--set", "negatives.mined=0"), "negatives.mined = 0 uses none"),
        (("--set", "mining.warm_up_epochs=3"), "from step 75 on, and the run has 75"),
        (("--set", "mining.first_rank=600"), "no rank is left"),
        (("--set", "mining.firstrank=5"), "did you mean 'first_rank'"),
    ],
)
def test_what_no_step_would_use_is_refused(
    place: Path, extra: tuple[str, ...], says: str, hatchway: Callable[..., Any]
) -> None:
    """Before the folder is claimed."""
    train = ("train", place / "store", *recipe(place), "--out", place / "refused", "--mine-from", place / "base")
    ended = hatchway(*train, *extra)
    assert (ended.code, says in ended.err) == (2, True), ended.err
    assert not (place / "refused").exists()


def test_a_resumed_run_mines_with_what_it_was_begun_with(
    place: Path, mined: Path, hatchway: Callable[..., Any]
) -> None:
    """The same is fine, another is named and refused; so is a judge without anything to judge."""
    train = ("train", place / "store", "--out", mined, "--resume")
    assert hatchway(*train, "--mine-from", place / "base").code == 0
    ended = hatchway(*train, "--mine-from", place / "other")
    assert (ended.code, "--mine-from ../other (as seen from it) and was begun with ../base" in ended.err) == (2, True)
    ended = hatchway("train", place / "store", "--out", place / "new", "--mine-judge", place / "base")
    assert (ended.code, "--mine-from RUN" in ended.err) == (2, True)


def test_a_set_that_changed_is_not_trained_on(place: Path, mined: Path, tmp_path: Path) -> None:
    """A resumed run with other negatives would be another run."""
    shutil.copytree(place, tmp_path / "place", ignore=shutil.ignore_patterns("killed", "gone", "fallen"))
    copy = tmp_path / "place" / "mined"
    shutil.rmtree(copy / "model")
    (copy / "mined.parquet").write_bytes((copy / "mined.parquet").read_bytes()[:-1] + b"!")
    with pytest.raises(ArtefactError, match=r"mined\.parquet is not the file that was written"):
        train_run(tmp_path / "place" / "store", copy, load_recipe(copy / "settings.toml"), resume=True)


def test_triplets_are_read_by_other_libraries(place: Path, mined: Path, hatchway: Callable[..., Any]) -> None:
    """Ids, titles, scores, ranks and reasons of every positive; also of a run that mined nothing, with its bundle."""
    ended = hatchway("export", mined, "--out", place / "export", "--triplets", "--json")
    assert ended.code == 0
    (path,) = ended.json["files"]
    log, found = RunFolder.open(mined).log(), read_mined(mined / "mined.parquet")
    frame = pl.read_parquet(path)
    assert len(frame) == len(found) == 1600
    for row in (0, 1, 700, 1599):
        engagement = int(found.rows[row])
        whole = slice(int(found.offsets[row]), int(found.offsets[row + 1]))
        stands = found.reasons[whole] == 0
        told = frame.row(row, named=True)
        begin = int(log.engagements.offsets[log.engagements.buyers[engagement]])
        assert told["buyer"] == log.buyers.ids[int(log.engagements.buyers[engagement])]
        assert told["positive"] == f"i-{log.catalogue.ids[int(log.engagements.items[engagement])][2:]}"
        assert told["history"] == log.catalogue.external(log.engagements.items[begin:engagement]).to_list()
        assert told["negatives"] == log.catalogue.external(found.items[whole][stands]).to_list()
        assert told["negative_ranks"] == found.ranks[whole][stands].tolist()
        assert told["negative_scores"] == pytest.approx(found.scores[whole][stands].tolist())
        assert told["refused"] == log.catalogue.external(found.items[whole][~stands]).to_list()
        assert [title.split()[-1] for title in told["negative_titles"]] == [item[2:] for item in told["negatives"]]
    assert frame["positive_score"].null_count() == 200
    assert set(frame["refused_reasons"].explode(empty_as_null=False)) >= {"engaged", "same_item"}
    again = hatchway("export", place / "base", "--out", place / "again", "--triplets", "--quiet")
    assert again.code == 0
    assert pl.read_parquet(place / "again" / "triplets.parquet").equals(frame)
    with_bundle = hatchway("export", place / "base" / "bundle", "--out", place / "again", "--triplets")
    assert (with_bundle.code, "name the run" in with_bundle.err) == (2, True)


def test_hugging_face_datasets_loads_the_triplets(place: Path, mined: Path, hatchway: Callable[..., Any]) -> None:
    """``load_dataset("parquet", ...)`` gives the same values, the lists as lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        datasets = pytest.importorskip("datasets", reason="needs datasets; pip install 'hatchway[examples]'")
        assert hatchway("export", mined, "--out", place / "export", "--triplets", "--quiet").code == 0
        path = place / "export" / "triplets.parquet"
        loaded = datasets.load_dataset(
            "parquet", data_files=str(path), split="train", cache_dir=str(place / "cache"), keep_in_memory=True
        )
    frame = pl.read_parquet(path)
    assert loaded.column_names == frame.columns
    for row in (0, 5, 1599):
        assert loaded[row] == frame.row(row, named=True)


def test_a_judge_refuses(place: Path, mined: Path, hatchway: Callable[..., Any]) -> None:
    """The earlier run judges its own answers: what it scores above the positive is refused."""
    train = ("train", place / "store", *recipe(place), "--out", place / "judged", "--mine-from", place / "base")
    ended = hatchway(*train, "--mine-judge", place / "base", "--set", "training.epochs=1", "--json")
    assert ended.code == 0
    figures = ended.json["mining"]["record"]["figures"]
    assert figures["refused"]["judge"] > 0
    found = read_mined(place / "judged" / "mined.parquet")
    places = np.repeat(np.arange(len(found)), np.diff(found.offsets))[found.reasons == 0]
    assert (found.scores[found.reasons == 0] <= found.positive_scores[places] + 1e-6).all()


def test_the_example_of_the_document_mines(place: Path, mined: Path) -> None:
    """What docs/mining.md shows gives a table of up to four items for the rows of a log."""
    (block,) = re.findall(
        r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "mining.md").read_text("utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(block, "docs/mining.md", "exec"), names)  # noqa: S102
    log = RunFolder.open(mined).log()
    table = names["mined_table"](log, place / "base")
    assert len(table) == len(log.engagements)
    assert table.lengths.max() <= 4
