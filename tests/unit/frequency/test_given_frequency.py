"""Numbers of one kind are not taken for another's."""

import pytest
import torch

from hatchway.errors import DataError
from hatchway.frequency.given import GivenFrequency
from hatchway.frequency.running import RunningCounts

EVERY = torch.arange(3)


def test_three_kinds_of_the_same_knowledge_agree() -> None:
    """Counts, chances and expected copies of one distribution give one answer."""
    counts = GivenFrequency.from_counts(counts=torch.tensor([6, 3, 1]))
    chances = GivenFrequency.from_chances(chances=torch.tensor([0.6, 0.3, 0.1]))
    expected = GivenFrequency.from_expected(expected=torch.tensor([4.8, 2.4, 0.8]), batch=8)
    for frequency in (counts, chances, expected):
        assert frequency.others(EVERY, 11).tolist() == pytest.approx([6, 3, 1], rel=1e-6)
        assert frequency.whole_batch(EVERY, 10).tolist() == pytest.approx([6, 3, 1], rel=1e-6)
        assert frequency.log_absent_others(EVERY, 3).exp().tolist() == pytest.approx([0.16, 0.49, 0.81], rel=1e-6)


def test_the_wrong_kind_is_refused_with_the_right_name() -> None:
    """Each of the other two kinds, given to each constructor."""
    counts, chances, expected = torch.tensor([60, 30, 10]), torch.tensor([0.6, 0.3, 0.1]), torch.tensor([4.8, 2.4, 0.8])
    with pytest.raises(DataError, match="from_chances"):
        GivenFrequency.from_counts(counts=chances)
    with pytest.raises(DataError, match="from_expected"):
        GivenFrequency.from_counts(counts=expected)
    with pytest.raises(DataError, match="sum to 100"):
        GivenFrequency.from_chances(chances=counts)
    with pytest.raises(DataError, match="sum to 8"):
        GivenFrequency.from_chances(chances=expected)
    for wrong in (counts, chances):
        with pytest.raises(DataError, match="a sum equal to the batch"):
            GivenFrequency.from_expected(expected=wrong, batch=8)


def test_numbers_that_are_neither_are_refused() -> None:
    """Below 0, infinite, tables, and nothing at all."""
    with pytest.raises(DataError, match=r"hold -0\.1"):
        GivenFrequency.from_chances(chances=torch.tensor([0.5, -0.1]))
    with pytest.raises(DataError, match="0 or more"):
        GivenFrequency.from_counts(counts=torch.tensor([float("inf")]))
    with pytest.raises(DataError, match="one number an item"):
        GivenFrequency.from_chances(chances=torch.ones(2, 2))
    with pytest.raises(DataError, match="all counts are 0"):
        GivenFrequency.from_counts(counts=torch.zeros(4, dtype=torch.int64))


def test_running_counts_are_exact_shares() -> None:
    """Five positives, two of item 1; item 2 has not been seen."""
    running = RunningCounts(3)
    running.update(torch.tensor([1, 0, 0]))
    running.update(torch.tensor([0, 1]))
    assert running.counts.tolist() == [3, 2, 0]
    assert running.chances(EVERY).tolist() == pytest.approx([0.6, 0.4, 0.1])
