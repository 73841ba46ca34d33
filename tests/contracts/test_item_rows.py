"""Whatever has a value for each item of a catalogue: rows of another one are refused, by all in the same words."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.given import GivenFrequency
from hatchway.frequency.living import LivingOnly
from hatchway.frequency.protocol import Frequency
from hatchway.frequency.running import RunningCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.negatives.distribution import Distribution, UniformDistribution
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import PopularityDistribution
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import Source
from hatchway.randomness import torch_stream

COUNTS = torch.tensor([5, 3, 0, 2])
LIVING = torch.tensor([True, True, False, True])

DISTRIBUTIONS: dict[str, Callable[[], Distribution]] = {
    "uniform": lambda: UniformDistribution(4),
    "uniform over the living": lambda: UniformDistribution(4, LIVING),
    "popularity": lambda: PopularityDistribution(COUNTS),
    "popularity of the living": lambda: PopularityDistribution(COUNTS, 0.5, LIVING),
}

FREQUENCIES: dict[str, Callable[[], Frequency]] = {
    "exact": lambda: ExactCounts(COUNTS),
    "given": lambda: GivenFrequency.from_counts(counts=COUNTS),
    "running": lambda: RunningCounts(4),
    "streaming": lambda: StreamingFrequency(StreamingSettings(), 4, 1, use_compiled=False),
    "the living, of a sketch": lambda: LivingOnly(CountMin(CountMinSettings(), 4, 1), LIVING),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("row", [4, -1, 2**40])
def test_a_distribution_refuses_rows_of_another_catalogue(name: str, row: int) -> None:
    """Neither the chance of any item, nor that of the last one for −1; and so does every account that asks it."""
    distribution = DISTRIBUTIONS[name]()
    message = f"item row {row} is not in the catalogue of 4 items"
    for shape in ((3,), (1, 3)):
        with pytest.raises(DataError, match=message):
            distribution.chance(torch.tensor([0, row, 1]).view(shape))
    positives = torch.tensor([0, row])
    shared = SharedDraws(distribution, 3, Source.UNIFORM)
    with pytest.raises(DataError, match=message):
        draw_ledger(positives, [shared], torch_stream(1), "count")
    own = [PerRow(distribution, 2.5, Source.UNIFORM)]
    with pytest.raises(DataError, match=message):
        draw_ledger(positives, [], torch_stream(1), "yi", own=own)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_answers_for_every_row_of_its_own(name: str) -> None:
    """The chances of the whole catalogue sum to 1, in any shape, and no rows have no chances."""
    distribution = DISTRIBUTIONS[name]()
    assert float(distribution.chance(torch.arange(4)).sum()) == pytest.approx(1.0)
    assert torch.equal(distribution.chance(torch.arange(4).view(2, 2)).view(-1), distribution.chance(torch.arange(4)))
    assert distribution.chance(torch.arange(0)).tolist() == []
    drawn = torch.bincount(distribution.sample(500, torch_stream(2)), minlength=4)
    assert torch.equal(drawn > 0, distribution.chance(torch.arange(4)) > 0)


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("row", [4, -1])
def test_a_frequency_refuses_rows_of_another_catalogue(name: str, row: int) -> None:
    """Whatever is asked."""
    frequency = FREQUENCIES[name]()
    items = torch.tensor([0, row])
    asked: list[Callable[[Tensor, int], Tensor]] = [
        frequency.others,
        frequency.others_of_positive,
        frequency.whole_batch,
        frequency.log_absent_others,
        frequency.log_absent_whole_batch,
    ]
    for ask in asked:
        with pytest.raises(DataError, match=f"item row {row} is not in the catalogue of 4 items"):
            ask(items, 3)


@pytest.mark.parametrize(
    "positives", [torch.tensor([0, 4]), torch.tensor([-1]), torch.tensor([0], dtype=torch.int32), torch.zeros(1, 1)]
)
def test_running_counts_take_in_nothing_of_a_batch_that_is_none(positives: Tensor) -> None:
    """A refused batch leaves the counts as they were."""
    frequency = RunningCounts(4)
    frequency.update(torch.tensor([3, 3]))
    with pytest.raises(DataError, match=r"is not in the catalogue of 4 items|allowed: \[B\] int64 item rows"):
        frequency.update(positives)
    assert frequency.counts.tolist() == [0, 0, 0, 2]


def test_counts_and_flags_of_another_kind_are_refused() -> None:
    """Numbers in place of flags, a table in place of one count an item, and counts that have no sum."""
    numbers = torch.tensor([1, 1, 0, 1])
    with pytest.raises(SettingsError, match=r"dtype torch.int64; allowed: one flag an item, \(4,\) bool"):
        UniformDistribution(4, numbers)
    with pytest.raises(SettingsError, match=r"dtype torch.int64; allowed: one flag an item, \(4,\) bool"):
        PopularityDistribution(COUNTS, 0.5, numbers)
    with pytest.raises(SettingsError, match=r"counts have shape \(2, 2\); allowed: one an item"):
        PopularityDistribution(COUNTS.view(2, 2))
    with pytest.raises(SettingsError, match="their sum is not"):
        PopularityDistribution(torch.full((3,), 1e308, dtype=torch.float64), 1.0)
