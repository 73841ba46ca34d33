"""The ledger's account of a small batch, worked by hand."""

import math

import pytest
import torch

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives import matching
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Masked, account, draw_ledger, with_masked
from hatchway.negatives.matching import matching_columns
from hatchway.negatives.sources import Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

COUNTS = torch.tensor([3, 2, 1, 0])
SOURCES: list[SharedSource] = [InBatch(ExactCounts(COUNTS)), Uniform(4, 2)]
POSITIVES = torch.tensor([0, 0, 1])
ITEMS = torch.tensor([0, 0, 1, 3, 0])
KINDS = torch.tensor([1, 1, 1, 2, 2], dtype=torch.int8)


def pairs(rows: torch.Tensor, columns: torch.Tensor) -> set[tuple[int, int]]:
    """Return coordinates as pairs."""
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def test_shared_sources_add_up() -> None:
    """T = 6, B = 3, U = 2, N = 4: n(0) = 2·3/5 + 2/4, n(1) = 2·2/5 + 2/4, n(3) = 2/4."""
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "uncorrected")
    assert ledger.log_count.exp().tolist() == pytest.approx([1.7, 1.7, 1.3, 0.5, 1.7])
    assert ledger.positive_log_count.tolist() == [0, 0, 0]


def test_uncorrected_masks_the_positive_and_its_copies() -> None:
    """Rows 0 and 1 hold item 0: columns 0, 1 and 4 are theirs; row 2 holds item 1: column 2."""
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "uncorrected")
    assert pairs(ledger.masked.rows, ledger.masked.columns) == {(0, 0), (0, 1), (0, 4), (1, 0), (1, 1), (1, 4), (2, 2)}
    assert ledger.masked.counts() == {"positive": 3, "same_item": 4}
    assert len(ledger.copy_rows) == 0


def test_count_keeps_the_copies_under_the_count_given_the_row() -> None:
    """By hand, n(positive) = 1 + (B−1)(c−1)/(T−1) + U/N: 1 + 2·2/5 + 2/4 for item 0 and 1 + 2·1/5 + 2/4 for item 1."""
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "count")
    assert ledger.positive_log_count.exp().tolist() == pytest.approx([2.3, 2.3, 1.9])
    assert pairs(ledger.masked.rows, ledger.masked.columns) == {(0, 0), (1, 1), (2, 2)}
    assert pairs(ledger.copy_rows, ledger.copy_columns) == {(0, 1), (0, 4), (1, 0), (1, 4)}


def test_yi_corrects_the_positive_like_any_column() -> None:
    """By hand, n = B·c/T + U/N: 3·3/6 + 2/4 for item 0, 3·2/6 + 2/4 for item 1, 2/4 for item 3."""
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "yi")
    assert ledger.log_count.exp().tolist() == pytest.approx([2.0, 2.0, 1.5, 0.5, 2.0])
    assert ledger.positive_log_count.exp().tolist() == pytest.approx([2.0, 2.0, 1.5])
    assert pairs(ledger.masked.rows, ledger.masked.columns) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize("given", [[(2, 3), (2, 3), (0, 2), (0, 1)], [(0, 1), (0, 2), (1, 1), (2, 3)]])
def test_further_masks_join_without_doubles_and_spare_the_positive(given: list[tuple[int, int]]) -> None:
    """First reason stays, pairs come once and sorted; a copy of the row's positive is not for masks to remove.

    Pairs that come in order are merged in one pass, others are sorted.
    """
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "count")
    rows, columns = torch.tensor(given).T
    more = Masked(rows, columns, torch.full((4,), Reason.ENGAGED, dtype=torch.int8))
    joined = with_masked(ledger, more)
    assert list(zip(joined.masked.rows.tolist(), joined.masked.columns.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (1, 1),
        (2, 2),
        (2, 3),
    ]
    assert joined.masked.counts() == {"positive": 3, "engaged": 2}


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        (3, 0, "a masked row is 3; the ledger has rows 0 to 2"),
        (-1, 0, "a masked row is -1"),
        (1, 5, "a masked column is 5; the ledger has columns 0 to 4"),
        (1, -1, "a masked column is -1"),
        (2**40, 2**40, f"a masked row is {2**40}"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_masks_of_another_batch_are_refused(
    row: int, column: int, message: str, compiled: bool, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled loop would write them into another row, or into somebody else's memory."""
    if not compiled:
        monkeypatch.setattr(matching, "suits", lambda *_: False)
    ledger = account(POSITIVES, ITEMS, KINDS, SOURCES, "count")
    both = torch.tensor([[0, row], [1, column]])
    rows, columns = both.flip(1) if reverse else both
    with pytest.raises(DataError, match=message):
        with_masked(ledger, Masked(rows, columns, torch.full((2,), Reason.ENGAGED, dtype=torch.int8)))
    with pytest.raises(DataError, match="2 rows, 2 columns and 1 reasons are masked"):
        with_masked(ledger, Masked(torch.zeros(2).long(), torch.arange(2), torch.ones(1, dtype=torch.int8)))


def test_a_column_that_no_source_can_draw_is_refused() -> None:
    """Item 3 has no positives, so a batch that holds it was not drawn from these counts."""
    with pytest.raises(DataError, match="item row 3, whose expected count is 0"):
        draw_ledger(torch.tensor([0, 3]), [InBatch(ExactCounts(COUNTS))], torch_stream(1), "uncorrected")


def test_a_positive_that_no_source_can_draw_has_no_correction() -> None:
    """Under ``yi`` its own count is 0 as well: ln 0 would make the loss NaN. Under ``count`` it stands for itself."""
    living = [Uniform(4, 2, torch.tensor([True, True, True, False]))]
    positives = torch.tensor([0, 3])
    with pytest.raises(DataError, match="row 1 has the positive item row 3, whose expected count is 0"):
        draw_ledger(positives, living, torch_stream(1), "yi")
    counted = draw_ledger(positives, living, torch_stream(1), "count").positive_log_count.exp()
    assert counted.tolist() == pytest.approx([1 + 2 / 3, 1.0])


def test_in_batch_comes_first() -> None:
    """Column c is row c's positive only if the in-batch columns are the first."""
    with pytest.raises(SettingsError, match="must come first"):
        draw_ledger(POSITIVES, SOURCES[::-1], torch_stream(1), "uncorrected")


@pytest.mark.parametrize("positives", [torch.tensor([[0, 1]]), torch.tensor([0.0, 1.0]), torch.tensor(1)])
def test_positives_that_are_no_list_of_item_rows_are_refused(positives: torch.Tensor) -> None:
    """With what was given; not by an operation somewhere inside."""
    with pytest.raises(DataError, match=r"positives have shape \(.*allowed: \[B\] int64 item rows"):
        draw_ledger(positives, [Uniform(5, 2)], torch_stream(1), "uncorrected")


def test_a_misspelt_switch_is_refused() -> None:
    """It would mask as one setting does, and correct the positive as another."""
    with pytest.raises(SettingsError, match="'uncorected'; allowed: uncorrected, count, yi"):
        draw_ledger(POSITIVES, SOURCES, torch_stream(1), "uncorected")  # type: ignore[arg-type]


def test_sources_are_named_in_the_ledger() -> None:
    """Three in-batch columns, then two uniform ones."""
    ledger = draw_ledger(POSITIVES, SOURCES, torch_stream(1), "uncorrected")
    assert ledger.sources.tolist() == [Source.IN_BATCH] * 3 + [Source.UNIFORM] * 2


def test_matching_columns_joins_duplicates_on_both_sides() -> None:
    """Key 7 stands in columns 0 and 2, for rows 1 and 4; key 9 stands nowhere."""
    rows, columns = matching_columns(torch.tensor([7, 5, 7]), torch.tensor([7, 9, 7]), torch.tensor([1, 2, 4]))
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(1, 0), (1, 2), (4, 0), (4, 2)]


def test_logarithms_are_of_the_expected_count_not_of_a_clipped_share() -> None:
    """At 20 million items a never-engaged item has ln n of its uniform draws alone, far below any clip at 1e-6."""
    ledger = account(
        torch.tensor([0]),
        torch.tensor([5]),
        torch.tensor([2], dtype=torch.int8),
        [InBatch(ExactCounts(torch.tensor([1_000_000, 0, 0, 0, 0, 0]))), Uniform(20_000_000, 1)],
        "uncorrected",
    )
    assert float(ledger.log_count[0]) == pytest.approx(-math.log(20_000_000), rel=1e-6)
