"""Items that a row's buyer is known to have engaged with are no negatives for that row."""

import torch
from torch import Tensor

from hatchway.errors import DataError
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

    Raises:
        DataError: the offsets do not divide the known items among the ledger's rows.
    """
    _check(ledger, known_items, known_offsets)
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

    Raises:
        DataError: the offsets do not divide the known items among the ledger's rows.
    """
    _check(ledger, known_items, known_offsets)
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


def _check(ledger: Ledger, known_items: Tensor, known_offsets: Tensor) -> None:
    """Refuse offsets with which a row would read what is not there."""
    rows, items = len(ledger.positives), len(known_items)
    if (
        known_offsets.shape != (rows + 1,)
        or (int(known_offsets[0]), int(known_offsets[-1])) != (0, items)
        or (rows and int(known_offsets.diff().min()) < 0)
    ):
        raise DataError(
            f"known_offsets has shape {tuple(known_offsets.shape)} and goes from "
            f"{known_offsets[:1].tolist()} to {known_offsets[-1:].tolist()}; allowed: [B + 1] = ({rows + 1},), from 0 "
            f"to the number of known items, {items}, never falling"
        )


def _rows_of(offsets: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())
