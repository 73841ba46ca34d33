"""A schedule of negatives in training: what each step draws, how it is accounted for, and what is written down."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchway.config import load_recipe, write_recipe
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import SettingsError
from hatchway.how_many.schedule import ScheduleSettings
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.ledger import Ledger
from hatchway.negatives.scheduled import own_at_share, shared_at_share
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import Batch, epoch_batches
from hatchway.training.checkpoint import checkpoints
from hatchway.training.loop import train
from hatchway.training.settings import TrainingSettings
from hatchway.training.sources import negatives_of
from hatchway.training.step import batch_loss

STEPS = 101
SCHEDULE = ScheduleSettings(k=4)  # a quarter at step 0, all at 10, five eighths at 55, a quarter at 100


def batch_of(log: Log, size: int = 64) -> Batch:
    """Return a batch of training positives."""
    rows = log.engagements.positives(Part.TRAIN)
    return next(epoch_batches(log.engagements, rows, batch=size, history=0, mask_days=30.0, seed=1, epoch=0))


def ledger_of(log: Log, settings: NegativesSettings, step: int) -> Ledger:
    """Draw one step's ledger."""
    return negatives_of(settings, log, seed=5, dimension=8, steps=STEPS).ledger(batch_of(log), 0, step)


def same(one: Ledger, other: Ledger) -> bool:
    """Compare everything that a loss sees of two ledgers."""
    names = ("items", "sources", "log_count", "positive_log_count", "own_items", "own_log_count", "own_masked")
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize(("step", "draws"), [(0, 50), (10, 200), (55, 125), (100, 50)])
@pytest.mark.parametrize("more", [{}, {"distinct": True}, {"positive": "count"}])
def test_a_step_is_that_of_a_run_with_so_many_draws(log: Log, step: int, draws: int, more: dict[str, object]) -> None:
    """Columns and their expected counts are those without a schedule, with the step's number of draws."""
    scheduled = NegativesSettings.parse({"uniform": 200, "popularity": 40, "schedule": {"k": 4}} | more)
    plain = NegativesSettings.parse({"uniform": draws, "popularity": draws // 5} | more)
    assert same(ledger_of(log, scheduled, step), ledger_of(log, plain, step))


@pytest.mark.parametrize(("step", "k"), [(0, 1), (5, 2.5), (10, 4), (55, 2.5), (77, 1 + 3 * 23 / 90), (100, 1)])
def test_draws_by_row_follow_a_real_number(log: Log, step: int, k: float) -> None:
    """A row has ⌊K⌋ or ⌈K⌉ draws, K on average, and the expected count of an item of K draws from 40 is K/40."""
    settings = NegativesSettings(in_batch=False, uniform=0, per_row=4, schedule=SCHEDULE)
    source = negatives_of(settings, log, seed=5, dimension=8, steps=STEPS)
    batch = batch_of(log, 360)
    numbers = torch.stack([(source.ledger(batch, epoch, step).own_items >= 0).sum(1) for epoch in range(20)])
    assert set(numbers.unique().tolist()) <= {math.floor(k + 1e-9), math.ceil(k - 1e-9)}
    fraction = k - math.floor(k)
    deviation = math.sqrt(fraction * (1 - fraction) / numbers.numel())
    assert float(numbers.double().mean()) == pytest.approx(k, abs=5 * deviation + 1e-9)
    ledger = source.ledger(batch, 0, step)
    stands = ledger.own_items >= 0
    assert ledger.own_log_count[stands].exp().tolist() == pytest.approx([k / 40] * int(stands.sum()), rel=1e-5)


def test_what_is_not_drawn_stays(log: Log) -> None:
    """In-batch columns, the queue and mined items are as many at every step; impressions follow the schedule."""
    rows = len(log.engagements)
    table = RowTable.from_offsets(np.arange(rows + 1) * 6, np.tile(np.arange(6), rows))
    settings = NegativesSettings(uniform=200, queue=500, mined=2, schedule=SCHEDULE)
    source = negatives_of(settings, log, seed=5, dimension=8, mined=table, steps=STEPS)
    impressions = Impressions(table, 4, 0.5)
    shared, own = shared_at_share(source.shared, 0.25), own_at_share([*source.own, impressions], 0.25)
    assert shared[0] is source.shared[0]
    assert shared[2] is source.shared[2] is source.queue
    assert own[0] is source.own[0]
    kept = torch.arange(50)
    drawn = own[1].draw(torch.full((50,), 30), kept, torch_stream(1, "few"))
    assert (drawn >= 0).sum(1).tolist() == [1] * 50
    assert (own[1].source, own[1].log_weight) == (Source.IMPRESSIONS, impressions.log_weight)


def test_a_source_without_draws_stays_without() -> None:
    """Some draws are one at least at every step; none are none, also where there is nothing that could be drawn."""
    sources = [Uniform(40, 3), Uniform(40, 0), Uniform(40, 0, torch.zeros(40, dtype=torch.bool))]
    assert [source.draw(torch.arange(2), torch_stream(1)).tolist() for source in shared_at_share(sources, 0.1)][1:] == [
        [],
        [],
    ]
    assert len(shared_at_share(sources, 0.1)[0].draw(torch.arange(2), torch_stream(1))) == 1


def test_a_real_number_of_impressions_is_a_fair_choice() -> None:
    """Of a list of five, 2.5 are taken on average, each item as often as any other, none twice in a row."""
    rows = 20_000
    table = RowTable.from_offsets(np.arange(rows + 1) * 5, np.tile(np.arange(5), rows))
    source = Impressions(table, 4).resized(2.5)
    drawn = source.draw(torch.full((rows,), 9), torch.arange(rows), torch_stream(2, "choice"))
    numbers = (drawn >= 0).sum(1)
    assert set(numbers.tolist()) == {2, 3}
    assert float(numbers.double().mean()) == pytest.approx(2.5, abs=5 * 0.5 / math.sqrt(rows))
    taken = torch.bincount(drawn[drawn >= 0], minlength=5).double()
    assert taken.tolist() == pytest.approx([rows / 2] * 5, abs=5 * math.sqrt(rows) / 2)
    ordered = drawn.sort(1).values
    assert not bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any())


def test_lists_shorter_than_the_number_are_taken_whole() -> None:
    """A row with one shown item has one column, one without has none."""
    table = RowTable.from_offsets(np.array([0, 1, 1, 4]), np.array([7, 1, 2, 3]))
    drawn = Impressions(table, 3).resized(2.5).draw(torch.zeros(3).long(), torch.arange(3), torch_stream(2, "short"))
    assert drawn[0].tolist() == [7, *[-1] * (drawn.shape[1] - 1)]
    assert bool((drawn[1] == -1).all())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"uniform": 0, "schedule": {"k": 4}}, "schedule has nothing to work on"),
        ({"per_row": 20, "schedule": {"k": 4}}, r"per_row = 20 and schedule\.k = 4"),
        ({"schedule": {"k": 4, "turning": 0.2}}, "did you mean 'turning_point'"),
        ({"schedule": {"shape": "fixed", "decline": "cosine"}}, "go with shape adaptive"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, object], said: str) -> None:
    """Each is named, with what would be right."""
    with pytest.raises(SettingsError, match=said):
        NegativesSettings.parse(settings)


def test_a_schedule_needs_the_length_of_the_run(log: Log) -> None:
    """Without it nobody knows where a step is."""
    with pytest.raises(SettingsError, match="over 0 steps"):
        negatives_of(NegativesSettings(schedule=SCHEDULE), log, seed=5, dimension=8)


def test_a_recipe_says_it(tmp_path: Path) -> None:
    """It is written into settings.toml and read back, and can be set from the command line."""
    settings = load_recipe(None, ["negatives.schedule.k=20", "negatives.schedule.decline=cosine"])
    assert settings.negatives.schedule == ScheduleSettings(k=20, decline="cosine")
    (tmp_path / "settings.toml").write_text(write_recipe(settings))
    assert load_recipe(tmp_path / "settings.toml") == settings


@pytest.mark.parametrize(
    ("settings", "bounds"),
    [
        ({"alpha": 0}, True),
        ({"positive": "yi"}, True),
        ({"alpha": 0, "per_row": 2.5, "uniform": 0}, True),
        ({}, False),
        ({"positive": "count"}, False),
        ({"alpha": 0, "queue": 100}, False),
        ({"alpha": 0, "distinct": True}, False),
    ],
)
def test_when_the_loss_bounds_the_information(log: Log, settings: dict[str, object], bounds: bool) -> None:
    """Only where positive and negatives are scored alike, and every negative is drawn at random and fresh."""
    source = negatives_of(NegativesSettings.parse(settings), log, seed=5, dimension=8)
    assert source.bounds_information is bounds


def test_mined_columns_bound_nothing(log: Log) -> None:
    """They are there on purpose."""
    rows = len(log.engagements)
    table = RowTable.from_offsets(np.arange(rows + 1), np.zeros(rows, np.int64))
    source = negatives_of(NegativesSettings(alpha=0), log, seed=5, dimension=8, mined=table)
    assert not source.bounds_information


class KilledError(Exception):
    """Stands for a kill signal in mid-run."""


def run(log: Log, folder: Path, *, resume: bool = False) -> TwoTower:
    """Train for 48 steps with a schedule that goes up to four draws a row and sixty shared ones."""
    folder.mkdir(exist_ok=True)
    model = build_model(log.catalogue, len(log.buyers), ModelSettings(kind="factorisation", dimension=8), seed=3)
    train(
        model,
        log,
        folder,
        settings=TrainingSettings(epochs=4, batch=32, checkpoint_steps=5, table_rate=0.3),
        negatives=NegativesSettings(in_batch=False, uniform=60, per_row=4, alpha=0, schedule=SCHEDULE),
        seed=3,
        resume=resume,
    )
    return model


def test_a_killed_run_resumes_its_schedule(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights to the bit, and the same draws, as if it had never been killed."""
    whole = run(log, tmp_path / "whole")
    steps = 0

    def dying(*arguments: object) -> Tensor:
        nonlocal steps
        steps += 1
        if steps > 17:
            raise KilledError
        return batch_loss(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("hatchway.training.loop.batch_loss", dying)
    with pytest.raises(KilledError):
        run(log, tmp_path / "killed")
    monkeypatch.setattr("hatchway.training.loop.batch_loss", batch_loss)
    assert checkpoints(tmp_path / "killed" / "checkpoints")[-1].name == "step-00000015"
    resumed = run(log, tmp_path / "killed", resume=True)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_the_log_says_where_the_schedule_stands(log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """K of the line's last step, how many negatives the average row had, and the bound that follows from the loss."""
    with caplog.at_level("INFO", "hatchway"):
        run(log, tmp_path)
    said = [record.getMessage() for record in caplog.records if "information_bound" in record.getMessage()]
    assert len(said) == 1, "the bound has its caveat beside it, once"
    assert "where labels are clean and negatives are drawn as positives are" in said[0]
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in lines] == [20, 40, 48]
    # Step 20 is the 20th of 48, 19/47 of the way.
    assert [line["k"] for line in lines] == pytest.approx([1 + 3 * (1 - s / 47) / 0.9 for s in (19, 39, 47)])
    for line in lines:
        assert 0 < line["negatives"] < sum(line["columns"].values())
        assert line["information_bound"] == pytest.approx(math.log(line["negatives"] + 1) - line["loss"])
    assert lines[0]["negatives"] > lines[1]["negatives"] > lines[2]["negatives"]
