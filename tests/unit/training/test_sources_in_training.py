"""Sources in a training: every one runs, resumes to the bit, and is switched off with a line where there is nothing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from hatchway.config import RunSettings, load_recipe, write_recipe
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.data.store import write_store
from hatchway.errors import ArtefactError, DataError, SettingsError
from hatchway.job import train_run
from hatchway.negatives.ledger import Ledger
from hatchway.negatives.queue import Queue
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import Source
from hatchway.report.negatives import account_of
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import Batch, epoch_batches
from hatchway.training.checkpoint import checkpoints
from hatchway.training.loop import train
from hatchway.training.settings import TrainingSettings
from hatchway.training.sources import negatives_of
from hatchway.training.step import Negatives, batch_loss

MODEL = ModelSettings(kind="factorisation", dimension=8)
SETTINGS = TrainingSettings(epochs=2, batch=32, checkpoint_steps=5, table_rate=0.3)
EVERYTHING = NegativesSettings(
    uniform=8,
    popularity=8,
    beta=0.5,
    per_row=1.5,
    per_row_from="popularity",
    queue=48,
    queue_warmup=3,
    impressions=2,
    impressions_weight=0.5,
    mined=1,
    positive="count",
)
MIXTURES = {
    "popularity": NegativesSettings(in_batch=False, uniform=0, popularity=16),
    "by row": NegativesSettings(in_batch=False, uniform=0, per_row=4.5),
    "queue": NegativesSettings(uniform=0, queue=64, queue_warmup=2),
    "impressions": NegativesSettings(in_batch=False, uniform=0, impressions=3),
    "mined alone": NegativesSettings(in_batch=False, uniform=0, mined=2),
    "distinct": NegativesSettings(uniform=16, distinct=True, queue=32, queue_warmup=2),
    "everything": EVERYTHING,
    "everything, distinct": EVERYTHING.model_copy(update={"distinct": True}),
    "everything, yi": EVERYTHING.model_copy(update={"positive": "yi"}),
}


def lists(log: Log, seed: int) -> RowTable:
    """Give every engagement row up to three items at random."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, len(log.engagements))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return RowTable.from_offsets(offsets, rng.integers(0, len(log.catalogue), int(offsets[-1])))


@pytest.fixture(name="shown")
def _shown(log: Log) -> Log:
    """Return the log with impressions."""
    return replace(log, impressions=lists(log, 1))


def run(log: Log, folder: Path, settings: NegativesSettings, *, resume: bool = False) -> TwoTower:
    """Train a fresh model."""
    folder.mkdir(exist_ok=True)
    model = build_model(log.catalogue, len(log.buyers), MODEL, seed=3)
    train(model, log, folder, settings=SETTINGS, negatives=settings, seed=3, resume=resume, mined=lists(log, 2))
    return model


def batch_of(log: Log, epoch: int = 0) -> Batch:
    """Return the first batch of an epoch."""
    positives = log.engagements.positives(Part.TRAIN)
    batches = epoch_batches(log.engagements, positives, batch=32, history=2, mask_days=30, seed=1, epoch=epoch)
    return next(iter(batches))


def dying_after(steps: int) -> Callable[..., torch.Tensor]:
    """Return a step that kills the run after so many."""
    done = 0

    def step(*arguments: Any) -> torch.Tensor:
        nonlocal done
        done += 1
        if done > steps:
            raise KeyboardInterrupt
        return batch_loss(*arguments)

    return step


@pytest.mark.parametrize("name", MIXTURES)
def test_killed_and_resumed_is_the_same_to_the_bit(
    shown: Log, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the sources: queue, tables and draws go on where they were, in the middle of the second epoch."""
    whole = run(shown, tmp_path / "whole", MIXTURES[name])
    with monkeypatch.context() as killed:
        killed.setattr("hatchway.training.loop.batch_loss", dying_after(17))
        with pytest.raises(KeyboardInterrupt):
            run(shown, tmp_path / "killed", MIXTURES[name])
    resumed = run(shown, tmp_path / "killed", MIXTURES[name], resume=True)
    for key, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[key]), key
    last = [checkpoints(tmp_path / part / "checkpoints")[-1] / "state.safetensors" for part in ("whole", "killed")]
    assert last[0].read_bytes() == last[1].read_bytes()
    assert ("queue.vectors" in load_file(last[0])) == (MIXTURES[name].queue > 0)


@pytest.mark.parametrize("queue", [0, 32])
def test_a_checkpoint_without_this_queue_is_refused(log: Log, tmp_path: Path, queue: int) -> None:
    """To go on with an empty queue, or with a part of one, would be another run."""
    run(log, tmp_path, NegativesSettings(uniform=4, queue=queue))
    with pytest.raises(ArtefactError, match=r"state\.safetensors.*queue"):
        run(log, tmp_path, MIXTURES["queue"], resume=True)


def same(one: Ledger, other: Ledger) -> bool:
    """Say whether two ledgers have the same draws."""
    return torch.equal(one.items[32:], other.items[32:]) and torch.equal(one.own_items, other.own_items)


def test_draws_are_a_function_of_seed_epoch_step_and_rank(log: Log) -> None:
    """Each of the four changes them; the same four give the same again, in another object."""
    batch = batch_of(log)
    settings = EVERYTHING.model_copy(update={"impressions": 0, "queue": 0})

    def ledger(seed: int = 1, epoch: int = 2, step: int = 30, rank: int = 0) -> Ledger:
        made = negatives_of(settings, log, seed=seed, dimension=8, mined=lists(log, 2))
        return replace(made, rank=rank).ledger(batch, epoch, step)

    assert same(ledger(), ledger())
    assert not same(ledger(), ledger(seed=2))
    assert not same(ledger(), ledger(epoch=3))
    assert not same(ledger(), ledger(step=31))
    assert not same(ledger(), ledger(rank=1))


def sources_in(negatives: Negatives, batch: Batch) -> set[Source]:
    """Return the sources of a step's columns."""
    ledger = negatives.ledger(batch, 0, 0)
    return {Source(int(s)) for s in [*ledger.sources.unique(), *ledger.own_sources.unique()]}


def test_every_source_of_the_settings_is_in_the_ledger(shown: Log) -> None:
    """And none that is not asked for; the queue only when there is something in it."""
    batch = batch_of(shown)
    made = negatives_of(EVERYTHING, shown, seed=1, dimension=8, mined=lists(shown, 2))
    assert sources_in(made, batch) == set(Source) - {Source.QUEUE}
    for _ in range(3):
        assert made.queue is not None
        made.queue.enqueue(batch.positives, torch.zeros(len(batch.positives), 8))
    assert sources_in(made, batch) == set(Source)
    plain = negatives_of(NegativesSettings(), shown, seed=1, dimension=8)
    assert sources_in(plain, batch) == {Source.IN_BATCH, Source.UNIFORM}


def test_every_number_by_row_is_a_real_one(log: Log) -> None:
    """Draws, impressions and mined items of a row alike: the whole number below it, or with its fraction one more."""
    rows = len(log.engagements)
    table = RowTable.from_offsets(np.arange(rows + 1) * 5, np.tile(np.arange(5), rows))
    settings = NegativesSettings(uniform=0, per_row=1.75, impressions=2.5, mined=0.25)
    assert NegativesSettings.parse(settings.model_dump(mode="json")) == settings
    shown = replace(log, impressions=table)
    made = negatives_of(settings, shown, seed=1, dimension=8, mined=table)
    batch, found = batch_of(shown), []
    kinds = (Source.UNIFORM, Source.IMPRESSIONS, Source.MINED)
    for step in range(100):
        ledger = made.ledger(batch, 0, step)
        there = torch.where(ledger.own_items >= 0, ledger.own_sources, -1)
        found.append(torch.stack([(there == kind).sum(1) for kind in kinds]))
    numbers = torch.cat(found, 1).double()
    assert [sorted(set(of_one.tolist())) for of_one in numbers] == [[1, 2], [2, 3], [0, 1]]
    assert numbers.mean(1).tolist() == pytest.approx([1.75, 2.5, 0.25], abs=5 * 0.5 / len(numbers[0]) ** 0.5)


def test_popularity_is_that_of_the_training_positives(log: Log) -> None:
    """Counts of validation and test leak into no draw and no correction."""
    made = negatives_of(NegativesSettings(in_batch=False, uniform=0, popularity=1, beta=1), log, seed=1, dimension=8)
    e = log.engagements
    training = np.bincount(e.items[e.positives(Part.TRAIN)], minlength=len(log.catalogue))
    chance = made.shared[0].expected_others(torch.arange(len(log.catalogue)), 32)
    assert chance.tolist() == pytest.approx((training / training.sum()).tolist())


def test_the_queue_is_filled_after_the_loss(log: Log) -> None:
    """A row's own vector of this step is no negative of this step; it is one of the next, without gradient."""
    made = negatives_of(NegativesSettings(uniform=4, queue=64, queue_warmup=0), log, seed=1, dimension=8)
    model = build_model(log.catalogue, len(log.buyers), MODEL, seed=3)
    batch = batch_of(log)
    seen = []

    def loss(query: torch.Tensor, positive: torch.Tensor, columns: torch.Tensor, ledger: Ledger, *_: Any) -> Any:
        assert made.queue is not None
        seen.append((made.queue.filled, columns[ledger.sources == Source.QUEUE], positive))
        return (query * positive).sum() + columns.sum()

    for step in range(2):
        ledger = made.ledger(batch, 0, step)
        batch_loss(model, loss, batch, ledger, None, made.queue)  # type: ignore[arg-type]
    assert [filled for filled, *_ in seen] == [0, 32]
    assert len(seen[0][1]) == 0
    torch.testing.assert_close(seen[1][1].flip(0), seen[0][2].detach())


def test_a_batch_has_the_vectors_of_its_items(shown: Log) -> None:
    """Shared, own and de-duplicated columns, in the ledger's order; absent and masked own ones are 0."""
    model = build_model(shown.catalogue, len(shown.buyers), MODEL, seed=3)
    batch = batch_of(shown)
    for settings in (NegativesSettings(uniform=8), EVERYTHING, MIXTURES["everything, distinct"]):
        made = negatives_of(settings, shown, seed=1, dimension=8, mined=lists(shown, 2))
        if made.queue is not None:
            for _ in range(3):
                made.queue.enqueue(batch.positives, model.item(batch.positives))
        ledger = made.ledger(batch, 0, 1)
        checked: list[bool] = []

        def loss(
            query: torch.Tensor,
            positive: torch.Tensor,
            columns: torch.Tensor,
            ledger: Ledger,
            weight: torch.Tensor | None,
            own: torch.Tensor | None,
            checked: list[bool] = checked,
        ) -> torch.Tensor:
            torch.testing.assert_close(positive, model.item(batch.positives))
            torch.testing.assert_close(columns, model.item(ledger.items))
            assert (own is None) == (ledger.own_items.shape[1] == 0)
            if own is not None:
                wanted = model.item(ledger.own_items.clamp(min=0).flatten()).view(own.shape)
                torch.testing.assert_close(own, wanted * ledger.own_stands[:, :, None])
            checked.append(True)
            return query.sum()

        batch_loss(model, loss, batch, ledger, None, made.queue)  # type: ignore[arg-type]
        assert checked == [True]


def test_impressions_that_are_not_there_are_off_with_a_line(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """Where they would be the only source, the settings are refused instead."""
    with caplog.at_level("INFO", "hatchway"):
        made = negatives_of(NegativesSettings(impressions=2), log, seed=1, dimension=8)
    assert [source.source for source in made.own] == []
    assert "negatives.impressions is off" in caplog.text
    with pytest.raises(SettingsError, match="the only source"):
        negatives_of(MIXTURES["impressions"], log, seed=1, dimension=8)


def test_a_mined_table_of_another_log_is_refused(log: Log) -> None:
    """Its rows would be other buyers' contexts."""
    table = RowTable.from_offsets(np.array([0, 1]), np.array([3]))
    with pytest.raises(DataError, match="the mined table has 1 rows and the log 480 engagements"):
        negatives_of(NegativesSettings(), log, seed=1, dimension=8, mined=table)


def test_the_engaged_are_masked_among_own_columns_too(log: Log) -> None:
    """A buyer's engagement before the row is no negative, mined or drawn; copies of the positive are."""
    batch = batch_of(log)
    row = int(batch.known_offsets.diff().argmax())
    known = batch.known_items[batch.known_offsets[row] : batch.known_offsets[row + 1]]
    items = known[known != batch.positives[row]].unique()[:2]
    begin = np.zeros(len(log.engagements), np.int64)
    end = begin.copy()
    end[batch.rows[row]] = len(items)
    made = negatives_of(NegativesSettings(), log, seed=1, dimension=8, mined=RowTable(begin, end, items.numpy()))
    ledger = made.ledger(batch, 0, 0)
    assert sorted(ledger.own_items[row].tolist()) == sorted([*items.tolist(), *[-1] * (2 - len(items))])
    assert not ledger.own_stands.any()
    assert ledger.masked_counts()["engaged"] >= len(items)


def test_the_settings_survive_being_written(tmp_path: Path) -> None:
    """Every setting of the negatives, each with a value that is not its default."""
    changed = NegativesSettings(
        **EVERYTHING.model_dump() | {"in_batch": False, "distinct": True, "alpha": 0.25, "mined_weight": 0.125}
    )
    default = NegativesSettings().model_dump()
    # Those of other rooms go together, and their own tests write them.
    others = {"frequency", "streaming", "count_min", "schedule"}
    assert {name for name, value in changed.model_dump().items() if value == default[name]} <= others
    path = tmp_path / "recipe.toml"
    path.write_text(write_recipe(RunSettings(negatives=changed)))
    assert load_recipe(path).negatives == changed


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": 1.5}, r"beta = 1\.5"),
        ({"per_row": -1}, "per_row = -1"),
        ({"per_row": float("nan")}, "per_row = nan"),
        ({"mined_weight": 0}, "mined_weight = 0"),
        ({"per_row_from": "unigram"}, "'uniform' or 'popularity'"),
        ({"queue": 5, "in_batch": False, "uniform": 0}, "never alone"),
        ({"in_batch": False, "uniform": 0}, "only where negatives.mined is given"),
        ({"popularty": 5}, "did you mean 'popularity'"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: Mapping[str, Any], message: str) -> None:
    """The message has the value and what is allowed."""
    with pytest.raises(SettingsError, match=message):
        NegativesSettings.parse(values)


def test_mined_items_alone_need_a_table(log: Log) -> None:
    """Where nothing was mined there is nothing to learn from, and the message says what would help."""
    alone = MIXTURES["mined alone"]
    with pytest.raises(SettingsError, match=r"mined is the only source.*an earlier model to mine with"):
        negatives_of(alone, log, seed=1, dimension=8)
    source = negatives_of(alone, log, seed=1, dimension=8, mined=lists(log, 2))
    assert (len(source.shared), len(source.own)) == (0, 1)


def test_a_queue_needs_no_in_batch_columns(log: Log, tmp_path: Path) -> None:
    """Beside uniform draws alone it is a source like any other."""
    run(log, tmp_path, NegativesSettings(in_batch=False, uniform=8, queue=32, queue_warmup=0))
    state = load_file(checkpoints(tmp_path / "checkpoints")[-1] / "state.safetensors")
    assert isinstance(negatives_of(NegativesSettings(queue=3), log, seed=1, dimension=8).queue, Queue)
    assert bool((state["queue.items"] >= 0).all())
    assert bool((state["queue.vectors"].abs().sum(1) > 0).all())


def test_a_run_on_a_log_with_impressions(tmp_path: Path) -> None:
    """From the store's events to the columns of the run's log, and to the words of its report."""
    rng = np.random.default_rng(2)
    buyers, sessions, shown = np.repeat(np.arange(30), 40), np.arange(1_200) // 8, np.arange(1_200) % 8 != 7
    events = pl.DataFrame(
        {
            "buyer": buyers,
            "item": rng.integers(0, 40, 1_200),
            "event": np.where(shown, "impression", "save"),
            "session": [f"s{session}" for session in sessions],
            "time": 1_750_000_000 + np.arange(1_200) * 60,
        }
    )
    store = write_store(tmp_path / "store", events.lazy())
    settings = RunSettings.parse(
        {
            "split": {"protocol": "none"},
            "model": {"kind": "factorisation", "dimension": 4},
            "negatives": {"uniform": 8, "impressions": 3, "queue": 16, "queue_warmup": 2},
            "training": {"epochs": 3, "batch": 16},
        }
    )
    folder = train_run(store, tmp_path / "run", settings)
    assert any(note.startswith("impressions: 150 of 150 training engagements") for note in folder.record.notes)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    columns = lines[0]["columns"]
    assert set(columns) == {"in_batch", "uniform", "queue", "impressions"}
    assert 2.5 < columns["impressions"] <= 3
    assert columns["uniform"] == 8
    assert {line["rows_without_negatives"] for line in lines} == {0.0}
    account = account_of(lines)
    assert account is not None
    assert {part.name for part in account.sources} == {"in-batch", "uniform", "queue", "impressions"}
    assert all(part.meaning for part in (*account.sources, *account.masked))
