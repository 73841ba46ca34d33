"""Columns that hold what the buyer is known to have engaged with."""

import pytest
import torch

from hatchway.errors import DataError
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.ledger import account, with_masked
from hatchway.negatives.uniform import Uniform
from hatchway.screening.engaged import engaged_columns, engaged_own

KINDS = torch.full((4,), 2, dtype=torch.int8)


def test_every_copy_is_found_for_the_right_row() -> None:
    """Row 0 knows items 4 and 9 (not a column), row 1 nothing, row 2 item 5, engaged with twice."""
    ledger = account(torch.tensor([0, 1, 2]), torch.tensor([5, 4, 5, 6]), KINDS, [Uniform(10, 4)], "uncorrected")
    found = engaged_columns(ledger, torch.tensor([4, 9, 5, 5]), torch.tensor([0, 2, 2, 4]))
    joined = with_masked(ledger, found).masked
    assert list(zip(joined.rows.tolist(), joined.columns.tolist(), strict=True)) == [(0, 1), (2, 0), (2, 2)]
    assert joined.counts() == {"engaged": 3}


def test_a_buyer_who_engaged_with_everything_leaves_only_the_positive() -> None:
    """All candidates masked: the row's loss is 0 and it pulls nothing."""
    ledger = account(torch.tensor([0]), torch.tensor([1, 2, 3, 1]), KINDS, [Uniform(4, 4)], "uncorrected")
    ledger = with_masked(ledger, engaged_columns(ledger, torch.arange(4), torch.tensor([0, 4])))
    vectors = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    loss = sampled_softmax(vectors[:1], vectors[1:2], vectors, ledger)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert vectors.grad is not None
    assert float(vectors.grad.abs().max()) == 0.0


@pytest.mark.parametrize("offsets", [[0, 1], [0, 1, 2, 4, 4], [0, 2, 1, 4], [1, 2, 3, 4], [0, 1, 2, 3], [0, 1, 2, 5]])
def test_offsets_that_do_not_divide_the_known_items_are_refused(offsets: list[int]) -> None:
    """Of another batch, falling, or not of all known items: a loop would read beyond their end."""
    ledger = account(torch.tensor([0, 1, 2]), torch.tensor([5, 4, 5, 6]), KINDS, [Uniform(10, 4)], "uncorrected")
    for find in (engaged_columns, engaged_own):
        with pytest.raises(DataError, match=r"allowed: \[B \+ 1\] = \(4,\), from 0 to the number of known items, 4"):
            find(ledger, torch.tensor([4, 9, 5, 5]), torch.tensor(offsets))
