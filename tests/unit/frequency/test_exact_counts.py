"""Exact counts: expected copies and chances of absence, against enumeration and exact whole-number arithmetic."""

import itertools
import math
from fractions import Fraction

import pytest
import torch

from hatchway.errors import DataError
from hatchway.frequency.absence import log_absent
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger

COUNTS = [3, 1, 2, 0]
POSITIVES = [0, 0, 0, 1, 2, 2]
EVERY_ITEM = torch.arange(4)


@pytest.mark.parametrize("batch", [1, 2, 4, 6])
def test_every_answer_is_the_mean_over_all_batches(batch: int) -> None:
    """All ordered batches of six positives are enumerated; copies and absences are counted in each."""
    frequency = ExactCounts(torch.tensor(COUNTS))
    batches = list(itertools.permutations(range(6), batch))
    for item in range(4):
        other = [[POSITIVES[p] for p in b[1:]] for b in batches if POSITIVES[b[0]] != item]
        own = [[POSITIVES[p] for p in b[1:]] for b in batches if POSITIVES[b[0]] == item]
        whole = [[POSITIVES[p] for p in b] for b in batches]
        at = torch.tensor([item])
        assert float(frequency.others(at, batch)) == pytest.approx(sum(b.count(item) for b in other) / len(other))
        if own:
            wanted = sum(b.count(item) for b in own) / len(own)
            assert float(frequency.others_of_positive(at, batch)) == pytest.approx(wanted)
        assert float(frequency.whole_batch(at, batch)) == pytest.approx(sum(b.count(item) for b in whole) / len(whole))
        absent = sum(item not in b for b in other) / len(other)
        assert float(frequency.log_absent_others(at, batch).exp()) == pytest.approx(absent, abs=1e-15)
        absent = sum(item not in b for b in whole) / len(whole)
        assert float(frequency.log_absent_whole_batch(at, batch).exp()) == pytest.approx(absent, abs=1e-15)


def exactly(count: int, population: int, draws: int) -> float:
    """Return ln of the chance of absence from whole numbers: a product over the fewer of the two."""
    few, many = sorted((count, draws))
    chance = Fraction(1)
    for k in range(few):
        chance *= Fraction(population - many - k, population - k)
    return math.log1p(float(chance - 1)) if chance > Fraction(1, 2) else math.log(chance)


@pytest.mark.parametrize(
    ("population", "draws"), [(40, 31), (1_000, 128), (10**6, 4_095), (10**9, 4_095), (2 * 10**10, 65_535)]
)
def test_rare_items_of_large_logs_keep_their_digits(population: int, draws: int) -> None:
    """The absence of an item with one positive in 20 thousand million is right to twelve digits, not to none."""
    counts = [0, 1, 2, 7, 9]
    found = log_absent(torch.tensor(counts), population, draws).tolist()
    assert found[0] == 0
    for count, got in zip(counts[1:], found[1:], strict=True):
        assert got == pytest.approx(exactly(count, population, draws), rel=1e-11)


def test_what_cannot_be_missed_and_batches_beyond_the_log() -> None:
    """An item is certain to be in where the rest cannot fill the batch; a batch may be larger than the log."""
    frequency = ExactCounts(torch.tensor([5, 1, 0]))
    assert frequency.log_absent_whole_batch(torch.arange(3), 2).tolist()[0] == -math.inf
    assert frequency.log_absent_whole_batch(torch.arange(3), 100).tolist() == [-math.inf, -math.inf, 0]
    assert frequency.log_absent_others(torch.arange(3), 100).tolist() == [-math.inf, -math.inf, 0]
    only = ExactCounts(torch.tensor([4, 0]))
    assert only.log_absent_others(torch.arange(2), 3).tolist() == [-math.inf, 0]
    assert ExactCounts(torch.tensor([0, 0])).log_absent_whole_batch(torch.arange(2), 3).tolist() == [0, 0]


def test_absence_is_never_more_likely_than_by_the_count() -> None:
    """The chance of being in is at most the expected copies, and close to it for a rare item."""
    frequency = ExactCounts(torch.tensor([1, 30, 2_000, 97_969]))
    inside = -torch.expm1(frequency.log_absent_others(EVERY_ITEM, 512))
    copies = frequency.others(EVERY_ITEM, 512)
    assert bool((inside <= copies * (1 + 1e-12)).all())
    assert float(inside[0]) == pytest.approx(float(copies[0]), rel=1e-12)
    assert float(inside[2]) > 0.9999
    assert float(copies[2]) == pytest.approx(511 * 2_000 / 99_999)


def test_counts_that_are_no_counts_are_refused() -> None:
    """Fractions, tables and negative counts."""
    with pytest.raises(DataError, match="float32"):
        ExactCounts(torch.tensor([0.5, 1.0]))
    with pytest.raises(DataError, match="one whole number per item row"):
        ExactCounts(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(DataError, match="-3"):
        ExactCounts(torch.tensor([1, -3]))


@pytest.mark.parametrize("row", [4, -1])
def test_an_item_row_without_a_count_is_named(row: int) -> None:
    """An external id passed for a row, or counts of another catalogue: said with the value and the range."""
    frequency = ExactCounts(torch.tensor(COUNTS))
    items = torch.tensor([0, row])
    for ask in (frequency.others, frequency.others_of_positive, frequency.log_absent_others, frequency.whole_batch):
        with pytest.raises(
            DataError, match=f"item row {row} is not in the catalogue of 4 items, whose rows are 0 to 3"
        ):
            ask(items, 3)
    with pytest.raises(DataError, match=f"item row {row} is not in the catalogue"):
        draw_ledger(items, [InBatch(frequency)], torch.Generator().manual_seed(1), "uncorrected")
