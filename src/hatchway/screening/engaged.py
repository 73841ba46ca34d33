"""Items that a row's buyer is known to have engaged with are no negatives for that row."""

import torch
from torch import Tensor

from hatchway.negatives.ledger import Ledger, Masked
from hatchway.negatives.matching import matching_columns, matching_pairs
from hatchway.negatives.sources import Reason


def engaged_columns(ledger: Ledger, known_items: Tensor, known_offsets: Tensor) -> Masked:
    """Find the columns that hold an item which the row's buyer is known to have engaged with.

    Args:
        ledger: the batch's columns.
        known_items: [K] int64, the rows' known items one row after another.
        known_offsets: [B + 1] int64, where each row's known items begin.

    Returns:
        Coordinates with reason ``ENGAGED``, sorted by row and column, each pair once however often the buyer engaged.
    """
    rows, columns = matching_pairs(ledger.items, known_items, known_offsets)
    return Masked(rows, columns, torch.full_like(rows, Reason.ENGAGED, dtype=torch.int8))


def engaged_own(ledger: Ledger, known_items: Tensor, known_offsets: Tensor) -> Tensor:
    """Find the rows' own columns that hold an item which the row's buyer is known to have engaged with.

    Args:
        ledger: the batch's columns.
        known_items: [K] int64, the rows' known items one row after another.
        known_offsets: [B + 1] int64, where each row's known items begin.

    Returns:
        [B, H] bool, for :func:`~hatchway.negatives.ledger.with_own_masked`.
    """
    found = torch.zeros_like(ledger.own_items, dtype=torch.bool)
    rows, columns = torch.nonzero(ledger.own_stands, as_tuple=True)
    if not len(rows) or not len(known_items):
        return found
    # A row and an item make one number, so that the join of items serves for pairs.
    wide = 1 + int(torch.maximum(ledger.own_items.max(), known_items.max()))
    mine = rows * wide + ledger.own_items[rows, columns]
    _, places = matching_columns(mine, _rows_of(known_offsets) * wide + known_items)
    found[rows[places], columns[places]] = True
    return found


def _rows_of(offsets: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())
