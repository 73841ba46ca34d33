"""Every shared source of negatives through one suite: shapes, reproducibility, frequencies that match exp(log n)."""

from collections.abc import Callable

import pytest
import torch
from scipy import stats

from hatchway.errors import SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.sources import SharedSource
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import stream, torch_stream

COUNTS = torch.tensor([400, 200, 100, 50, 25, 12, 6, 3, 2, 1, 1, 0])
POSITIVES = torch.repeat_interleave(torch.arange(len(COUNTS)), COUNTS)
BATCH = 32

SOURCES: dict[str, Callable[[], list[SharedSource]]] = {
    "in-batch": lambda: [InBatch(ExactCounts(COUNTS))],
    "uniform": lambda: [Uniform(len(COUNTS), 48)],
    "uniform over the living": lambda: [Uniform(len(COUNTS), 48, living=torch.arange(len(COUNTS)) % 3 != 1)],
    "mixture": lambda: [InBatch(ExactCounts(COUNTS)), Uniform(len(COUNTS), 48)],
}


def batch_of(step: int) -> torch.Tensor:
    """Take the first rows of a shuffle, as an epoch's first batch is."""
    order = stream(3, "shuffle", step).permutation(len(POSITIVES))[:BATCH]
    return POSITIVES[torch.from_numpy(order)]


@pytest.mark.parametrize("name", SOURCES)
def test_columns_are_items_of_the_catalogue_and_reproducible(name: str) -> None:
    """The same stream draws the same columns, another stream others; rows are valid item rows."""
    sources = SOURCES[name]()
    first, again, other = (
        draw_ledger(batch_of(0), sources, torch_stream(1, "n", step), "uncorrected").items for step in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert name == "in-batch" or not torch.equal(first, other)
    assert first.dtype == torch.int64
    assert 0 <= int(first.min()) <= int(first.max()) < len(COUNTS)


@pytest.mark.parametrize("name", SOURCES)
def test_frequencies_match_the_expected_counts(name: str) -> None:
    """Over 2,000 batches the copies of each item, in rows whose positive is another, follow exp(log n): chi-square."""
    sources = SOURCES[name]()
    seen = torch.zeros(len(COUNTS), dtype=torch.float64)
    wanted = torch.zeros(len(COUNTS), dtype=torch.float64)
    for step in range(2_000):
        positives = batch_of(step)
        ledger = draw_ledger(positives, sources, torch_stream(2, "n", step), "uncorrected")
        own = int(positives[0])
        copies = torch.bincount(ledger.items, minlength=len(COUNTS)).double()
        expected = sum(
            (source.expected_others(torch.arange(len(COUNTS)), BATCH) for source in sources), torch.zeros(len(COUNTS))
        )
        other = torch.arange(len(COUNTS)) != own
        seen[other] += copies[other]
        wanted[other] += expected[other]
        drawn = other[ledger.items]
        assert torch.allclose(ledger.log_count[drawn].exp().double(), expected[ledger.items[drawn]].double(), rtol=1e-5)
    present = wanted > 0
    assert float(seen[~present].sum()) == 0
    # Items are drawn together with a fixed total only within a batch; the variance of a count is at most its mean.
    statistic = float(((seen - wanted)[present] ** 2 / wanted[present]).sum())
    assert stats.chi2.sf(statistic, int(present.sum())) > 1e-4


@pytest.mark.parametrize("name", ["uniform", "mixture"])
def test_the_whole_catalogue_is_reached(name: str) -> None:
    """What draws over the catalogue reaches every item, the never-engaged one too."""
    sources = SOURCES[name]()
    drawn = [draw_ledger(batch_of(step), sources, torch_stream(4, step), "count").items for step in range(40)]
    assert set(torch.cat(drawn).tolist()) == set(range(len(COUNTS)))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
def test_a_batch_of_one(name: str, correction: str) -> None:
    """One row has no other rows, and everything stays finite."""
    ledger = draw_ledger(torch.tensor([2]), SOURCES[name](), torch_stream(1), correction)  # type: ignore[arg-type]
    assert bool(torch.isfinite(ledger.log_count).all())
    assert bool(torch.isfinite(ledger.positive_log_count).all())


def test_zero_uniform_draws_are_no_columns() -> None:
    """Zero draws, and a batch larger than the catalogue, are both allowed."""
    assert len(draw_ledger(torch.tensor([0]), [Uniform(3, 0)], torch_stream(1), "count").items) == 0
    assert len(draw_ledger(torch.zeros(9, dtype=torch.int64), [Uniform(3, 5)], torch_stream(1), "count").items) == 5


def test_negative_draws_and_an_empty_catalogue_are_refused() -> None:
    """The message says what is allowed."""
    with pytest.raises(SettingsError, match="0 or more draws"):
        Uniform(10, -1)
    with pytest.raises(SettingsError, match="at least one item"):
        Uniform(0, 5)


def test_uniform_draws_reach_the_living_only() -> None:
    """A listing that is not on offer is never drawn and has n = 0; the others share the draws."""
    living = torch.tensor([True, False, True, True])
    source = Uniform(4, 3_000, living)
    drawn = source.draw(torch.zeros(1, dtype=torch.int64), torch_stream(1)).bincount(minlength=4)
    assert drawn[1] == 0
    assert source.expected_others(torch.arange(4), 8).tolist() == [1_000, 0, 1_000, 1_000]
    assert stats.chisquare(drawn[living].numpy()).pvalue > 1e-4
    with pytest.raises(SettingsError, match="one flag an item"):
        Uniform(5, 1, living)
    with pytest.raises(SettingsError, match="at least one item"):
        Uniform(4, 1, torch.zeros(4, dtype=torch.bool))
