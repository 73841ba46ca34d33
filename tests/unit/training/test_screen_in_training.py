"""The screen in a training: every source is screened, with a reason each, counted in the log and in the report."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.config import RunSettings, load_recipe, write_recipe
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.data.store import Store, write_store
from hatchway.errors import DataError
from hatchway.job import train_run
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import Reason, Source
from hatchway.report.negatives import account_of
from hatchway.screening.screen import Screen
from hatchway.screening.settings import ScreeningSettings
from hatchway.screening.similar import SimilarItems
from hatchway.training.batches import Batch, epoch_batches
from hatchway.training.sources import negatives_of

EVERYTHING = NegativesSettings(
    uniform=30, popularity=20, per_row=6, queue=64, queue_warmup=0, impressions=3, mined=3, positive="uncorrected"
)


def lists(log: Log, seed: int) -> RowTable:
    """Give every engagement row four items at random."""
    items = np.random.default_rng(seed).integers(0, len(log.catalogue), 4 * len(log.engagements))
    return RowTable.from_offsets(np.arange(len(log.engagements) + 1) * 4, items)


def batch_of(log: Log) -> Batch:
    """Return the first batch of an epoch."""
    positives = log.engagements.positives(Part.TRAIN)
    return next(epoch_batches(log.engagements, positives, batch=64, history=2, mask_days=30, seed=1, epoch=0))


def screen_of(size: int) -> Screen:
    """Sellers in threes, photos of every fourth pair of neighbours alike, titles of items that are seven apart."""
    rows = np.arange(size)
    return Screen(
        sellers=np.where(rows % 5 == 4, -1, rows // 3),
        photos=SimilarItems.from_pairs(size, rows[:-1:4], rows[1::4]),
        titles=SimilarItems.from_pairs(size, rows[:-7], rows[7:]),
    )


def test_columns_of_every_source_are_masked_for_what_the_screen_says(log: Log) -> None:
    """Shared and own columns, by source: whatever stands is cleared by the screen; each reason has its own number."""
    log = replace(log, impressions=lists(log, 1))
    screen = screen_of(len(log.catalogue))
    made = negatives_of(EVERYTHING, log, seed=1, dimension=8, mined=lists(log, 2), screen=screen)
    batch = batch_of(log)
    assert made.queue is not None
    made.queue.enqueue(batch.positives, torch.zeros(len(batch.positives), 8))
    ledger = made.ledger(batch, 0, 1)
    assert set(ledger.sources.tolist()) == {Source.IN_BATCH, Source.UNIFORM, Source.POPULARITY, Source.QUEUE}
    reasons = np.zeros((len(batch.positives), len(ledger.items)), int)
    reasons[ledger.masked.rows, ledger.masked.columns] = ledger.masked.reasons
    positives = batch.positives[:, None].expand_as(torch.from_numpy(reasons)).numpy()
    told = screen.pairs(positives, ledger.items[None].expand(len(positives), -1).numpy())
    found = np.isin(reasons, [int(reason) for reason in screen.reasons])
    assert found.any()
    assert (reasons[found] == told[found]).all()
    # Where another reason stands it came first; where none does, the screen has nothing to say.
    others = {int(Reason.POSITIVE), int(Reason.SAME_ITEM), int(Reason.ENGAGED), int(Reason.OWN)}
    assert set(reasons[~found & (told > 0)].tolist()) <= others
    for source in set(ledger.sources.tolist()):
        assert found[:, (ledger.sources == source).numpy()].any()

    told = screen.pairs(batch.positives[:, None].expand_as(ledger.own_items).numpy(), ledger.own_items.clamp(0).numpy())
    own = ledger.own_masked.numpy()
    stands = ledger.own_stands.numpy()
    assert not (told[stands] > 0).any()
    for source in (Source.MINED, Source.IMPRESSIONS, Source.UNIFORM):
        assert np.isin(own[(ledger.own_sources == source).numpy()], [6, 7, 8]).any()
    counts = ledger.masked_counts()
    assert counts["seller"] == int((reasons == 6).sum() + (own == 6).sum())
    assert min(counts["seller"], counts["photo"], counts["title"], counts["engaged"]) > 0


def test_without_a_screen_nothing_but_the_engaged_is_masked(log: Log) -> None:
    """As it always was."""
    counts = negatives_of(NegativesSettings(), log, seed=1, dimension=8).ledger(batch_of(log), 0, 0).masked_counts()
    assert set(counts) <= {"positive", "same_item", "engaged"}


def test_a_screen_of_another_catalogue_is_refused(log: Log) -> None:
    """Its rows would be other items."""
    with pytest.raises(DataError, match="the screen is of 3 items and the catalogue has"):
        negatives_of(NegativesSettings(), log, seed=1, dimension=8, screen=Screen(sellers=np.zeros(3, np.int64)))


def store_of(folder: Path) -> Store:
    """Write a store of 24 listings that three sellers offer eight each of, two with one long title."""
    events = pl.DataFrame(
        {
            "buyer": [b for b in range(30) for _ in range(4)],
            "item": [(5 * b + 7 * n) % 24 for b in range(30) for n in range(4)],
            "event": ["save"] * 120,
            "time": [1_767_225_600 + 60 * n for n in range(120)],
        }
    )
    words = ["amber", "birch", "cedar", "delta", "ember", "flint", "grove", "haven"]
    titles = [f"{words[n % 8]} {words[n // 3]} {words[(3 * n + 1) % 8]} number{n}" for n in range(24)]
    titles[20] = titles[3] = "quilted velvet ottoman with brass feet"
    catalogue = pl.DataFrame({"item": range(24), "seller": [n % 3 for n in range(24)], "title": titles})
    return write_store(folder / "store", events.lazy(), catalogue)


def test_a_run_screens_counts_and_says_what_is_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A third of the columns are of the positive's seller; photos are absent, which is said once and written down."""
    settings = RunSettings.parse(
        {
            "model": {"kind": "factorisation", "dimension": 4},
            "negatives": {"uniform": 64},
            "training": {"epochs": 1, "batch": 16},
            "screening": {"engaged_days": 0},
        }
    )
    with caplog.at_level(logging.INFO, logger="hatchway"):
        run = train_run(store_of(tmp_path), tmp_path / "run", settings)
    said = [record.message for record in caplog.records if record.message.startswith("screening")]
    assert said == [
        "screening: the catalogue has no column 'photo', so screening.photo is off",
        "screening: 24 titles read; 1 pairs say the same",
    ]
    assert set(said) <= set(run.record.notes)
    lines = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    account = account_of([line for line in lines if "columns" in line])
    assert account is not None
    shares = {part.name: part for part in account.masked}
    assert shares["seller"].share == pytest.approx(7 / 24, abs=0.06)
    assert 0 < shares["title"].share < 0.02
    assert "engaged" not in shares
    assert all(part.meaning for part in account.masked)

    off = settings.model_copy(update={"screening": ScreeningSettings(seller=False, photo=False, title=False)})
    without = train_run(store_of(tmp_path), tmp_path / "off", off)
    assert not [line for line in without.record.notes if line.startswith("screening")]
    assert '"seller"' not in (without.path / "log.jsonl").read_text()


def test_the_settings_survive_being_written(tmp_path: Path) -> None:
    """Every setting, each with a value that is not its default."""
    changed = ScreeningSettings(
        engaged_days=3.5, seller=False, seller_share=0.5, photo=False, photo_radius=3, photo_difference=0.3,
        photo_variants=False, photo_most=7, title=False, title_threshold=0.75, title_bits=-2.5, title_most=9,
    )  # fmt: skip
    default = ScreeningSettings().model_dump()
    assert not [name for name, value in changed.model_dump().items() if value == default[name]]
    path = tmp_path / "recipe.toml"
    path.write_text(write_recipe(RunSettings(screening=changed)))
    assert load_recipe(path).screening == changed
