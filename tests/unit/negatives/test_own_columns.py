"""Own columns of a small batch, worked by hand: what is masked and why, what is counted how, what is refused."""

import math

import numpy as np
import pytest
import torch

from hatchway.data.row_table import RowTable
from hatchway.errors import DataError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.counting import PositiveCorrection
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, account, draw_ledger, with_own_masked
from hatchway.negatives.mined import Mined
from hatchway.negatives.own_columns import OwnDraw
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.sources import Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

COUNTS = torch.tensor([3, 2, 1, 0])
NOTHING = RowTable.from_offsets(np.zeros(1, np.int64), np.zeros(0, np.int64))
SHARED: list[SharedSource] = [InBatch(ExactCounts(COUNTS)), Uniform(4, 2)]
BY_ROW = PerRow(UniformDistribution(4), 1.5, Source.UNIFORM)
POSITIVES = torch.tensor([0, 0, 1])
ITEMS = torch.tensor([0, 0, 1, 3, 0])
KINDS = torch.tensor([1, 1, 1, 2, 2], dtype=torch.int8)
OWN_DRAWS = [
    OwnDraw(Mined(NOTHING, weight=0.5), torch.tensor([[3, 0], [2, 2], [-1, -1]])),
    OwnDraw(Impressions(NOTHING, 1), torch.tensor([[3], [1], [0]])),
    OwnDraw(BY_ROW, torch.tensor([[3, 2], [0, -1], [3, 3]])),
]


def ledger(correction: PositiveCorrection) -> Ledger:
    """Account for three rows: mined, shown, drawn."""
    return account(POSITIVES, ITEMS, KINDS, SHARED, correction, own=OWN_DRAWS)


def reasons(made: Ledger) -> list[list[int]]:
    """Return the reasons of the own columns."""
    return made.own_masked.tolist()


SAME, OWNED = int(Reason.SAME_ITEM), int(Reason.OWN)


def test_what_stands_twice_stands_once() -> None:
    """Row 0: the mined 0 is its positive, the shown and the drawn 3 are mined already. Row 1: the second 2."""
    assert reasons(ledger("uncorrected")) == [[0, SAME, OWNED, OWNED, 0], [0, OWNED, 0, SAME, 0], [0] * 5]
    assert reasons(ledger("count")) == [[0, SAME, OWNED, OWNED, 0], [0, OWNED, 0, 0, 0], [0] * 5]
    assert reasons(ledger("yi")) == reasons(ledger("count")), "a drawn copy of the positive stays, one on purpose never"


def test_shared_copies_of_what_a_row_has_on_purpose_are_masked() -> None:
    """Row 0 has 3 (column 3), row 1 has 1 (column 2), row 2 has 0 (columns 0, 1 and 4); others keep their columns."""
    masked = ledger("count").masked
    found = {
        (int(row), int(column)): Reason(int(reason))
        for row, column, reason in zip(masked.rows, masked.columns, masked.reasons, strict=True)
    }
    own = {pair for pair, reason in found.items() if reason is Reason.OWN}
    assert own == {(0, 3), (1, 2), (2, 0), (2, 1), (2, 4)}
    assert {pair for pair, reason in found.items() if reason is Reason.POSITIVE} == {(0, 0), (1, 1), (2, 2)}
    assert len(found) == 8


def test_the_expected_copies_of_drawn_columns_add_up_with_the_shared_ones() -> None:
    """T = 6, B = 3, U = 2, K = 1.5, N = 4: n(3) = 2/4 + 1.5/4, n(2) = 2·1/5 + 2/4 + 1.5/4, wherever they stand."""
    made = ledger("count")
    assert made.log_count.exp().tolist() == pytest.approx([2.075, 2.075, 1.675, 0.875, 2.075])
    own = made.own_log_count.exp()
    assert own[:, :3].tolist() == [[1, 1, 1]] * 3, "on purpose: n = 1"
    assert own[0, 3:].tolist() == pytest.approx([0.875, 1.275])
    # The positive of row 1 is item 0: n = 1 + 2·2/5 + 2/4 + 1.5/4, for itself and for its copy.
    assert made.positive_log_count.exp().tolist() == pytest.approx([2.675, 2.675, 2.275])
    assert own[1].tolist() == pytest.approx([1, 1, 1, 2.675, 1])
    assert bool(torch.isfinite(made.own_log_count).all())


def test_yi_counts_own_copies_on_average() -> None:
    """By hand, n(0) = 3·3/6 + 2/4 + 1.5/4, for the positive and for a drawn copy."""
    made = ledger("yi")
    assert made.positive_log_count.exp().tolist() == pytest.approx([2.375, 2.375, 1.875])
    assert float(made.own_log_count[1, 3].exp()) == pytest.approx(2.375)


def test_down_weights_and_sources_are_of_their_columns() -> None:
    """Half a column for the mined ones, a whole one for the others."""
    made = ledger("count")
    assert made.own_log_weight[0].exp().tolist() == pytest.approx([0.5, 0.5, 1, 1, 1])
    assert made.own_sources[0].tolist() == [
        Source.MINED,
        Source.MINED,
        Source.IMPRESSIONS,
        Source.UNIFORM,
        Source.UNIFORM,
    ]


def test_screens_mask_own_columns_but_no_copy_of_the_positive() -> None:
    """The first reason stays; whether a copy of the positive stays is the correction's to say."""
    made = with_own_masked(ledger("count"), torch.ones(3, 5, dtype=torch.bool), Reason.ENGAGED)
    gone = int(Reason.ENGAGED)
    assert reasons(made) == [[gone, SAME, OWNED, OWNED, gone], [gone, OWNED, gone, 0, 0], [0, 0, gone, gone, gone]]


def test_de_duplicated_columns_hold_each_item_once() -> None:
    """Drawn items that are shared columns, or were drawn for the row already, are repeats; n is a chance."""
    items = torch.tensor([0, 1, 3])
    own = [OwnDraw(BY_ROW, torch.tensor([[3, 2], [2, 2], [1, -1]]))]
    made = account(POSITIVES, items, KINDS[:3], SHARED, "count", own=own, distinct=True)
    again = int(Reason.REPEAT)
    assert made.own_masked.tolist() == [[again, 0], [0, again], [SAME, 0]]
    # Item 2: in none of two others of five left with chance 3/5, of two uniform draws 9/16, of 1.5 by row 3/4 · 7/8.
    absent = 3 / 5 * 9 / 16 * 3 / 4 * 7 / 8
    assert float(made.own_log_count[0, 1].exp()) == pytest.approx(1 - absent)
    assert made.positive_log_count.tolist() == [0, 0, 0]
    assert set(zip(made.masked.rows.tolist(), made.masked.columns.tolist(), strict=True)) == {(0, 0), (1, 0), (2, 1)}
    assert not made.carried


def test_rows_that_have_no_negative_left_are_counted_and_teach_nothing() -> None:
    """Row 0 sees its own positive everywhere, row 1 has one candidate: the mean is over both all the same."""
    shared: list[SharedSource] = [Uniform(4, 2)]
    own = [OwnDraw(Mined(NOTHING), torch.tensor([[0], [3]]))]
    made = account(
        torch.tensor([0, 0]),
        torch.tensor([0, 0]),
        torch.tensor([2, 2], dtype=torch.int8),
        shared,
        "uncorrected",
        own=own,
    )
    assert made.rows_without_negatives.tolist() == [True, False]
    query = torch.tensor([[2.0], [1.0]], requires_grad=True)
    positive = torch.tensor([[1.0], [1.0]], requires_grad=True)
    mined = torch.tensor([[[5.0]], [[1.0]]])
    columns = torch.ones(2, 1)
    losses = sampled_softmax(query, positive, columns, made, own=mined, reduction="none")
    assert losses.tolist() == pytest.approx([0, math.log(2)])
    loss = sampled_softmax(query, positive, columns, made, own=mined)
    assert float(loss.detach()) == pytest.approx(math.log(2) / 2)
    loss.backward()
    assert query.grad is not None
    assert positive.grad is not None
    assert query.grad[0].tolist() == positive.grad[0].tolist() == [0.0]
    assert float(positive.grad[1]) != 0


def test_a_buyer_who_engaged_with_everything_leaves_the_row_without_negatives() -> None:
    """Shared and own ones masked: nothing hangs, nothing is NaN, and the row is counted."""
    made = draw_ledger(torch.tensor([2, 0]), SHARED, torch_stream(1), "uncorrected", own=[BY_ROW])
    everything = torch.zeros_like(made.own_items, dtype=torch.bool)
    everything[0] = True
    made = with_own_masked(made, everything, Reason.ENGAGED)
    assert not made.own_stands[0].any()


def test_columns_of_other_rows_are_refused() -> None:
    """A source that gives columns for two rows of three."""
    with pytest.raises(DataError, match=r"mined gave own columns of shape \(2, 1\); allowed: \[B, H\] with B = 3"):
        account(POSITIVES, ITEMS, KINDS, SHARED, "count", own=[OwnDraw(Mined(NOTHING), torch.tensor([[1], [2]]))])


def test_two_ranks_are_one() -> None:
    """Each rank with its rows and all ranks' in-batch columns: losses are those of one process with all rows.

    With own columns beside, which must go to the row that they are of.
    """
    generator = torch_stream(4)
    positives = torch.tensor([0, 1, 0, 2])
    vectors = torch.randn(4, 5, generator=generator)
    query = torch.randn(4, 5, generator=generator)
    mined = torch.tensor([[3, 1], [2, -1], [2, 3], [0, 1]])
    shared: list[SharedSource] = [InBatch(ExactCounts(COUNTS))]
    corrections: tuple[PositiveCorrection, ...] = ("uncorrected", "count", "yi")
    for correction in corrections:
        together: list[torch.Tensor] = []
        apart: list[torch.Tensor] = []
        for ranks, rows in ((1, 4), (2, 2)):
            for rank in range(ranks):
                mine = slice(rank * rows, rank * rows + rows)
                made = account(
                    positives[mine],
                    positives,
                    torch.ones(4, dtype=torch.int8),
                    shared,
                    correction,
                    own=[OwnDraw(Mined(NOTHING), mined[mine])],
                    global_batch=4,
                    first=rank * rows,
                )
                assert made.carried
                loss = sampled_softmax(
                    query[mine],
                    vectors[positives[mine]],
                    vectors[positives],
                    made,
                    own=vectors[mined[mine].clamp(min=0)],
                    reduction="none",
                )
                (together if ranks == 1 else apart).append(loss)
        torch.testing.assert_close(torch.cat(apart), torch.cat(together))
