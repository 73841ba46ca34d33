"""Items that a row's buyer is known to have engaged with are no negatives for that row."""

import torch
from torch import Tensor

from hatchway.negatives.ledger import Ledger, Masked
from hatchway.negatives.matching import matching_columns
from hatchway.negatives.sources import Reason


def engaged_columns(ledger: Ledger, known_items: Tensor, known_offsets: Tensor) -> Masked:
    """Find the columns that hold an item which the row's buyer is known to have engaged with.

    Args:
        ledger: the batch's columns.
        known_items: [K] int64, the rows' known items one row after another.
        known_offsets: [B + 1] int64, where each row's known items begin.

    Returns:
        Coordinates with reason ``ENGAGED``; a pair may come twice when the buyer engaged twice, and
        :func:`~hatchway.negatives.ledger.with_masked` keeps one.
    """
    rows = torch.repeat_interleave(
        torch.arange(len(known_offsets) - 1, device=known_items.device), known_offsets.diff()
    )
    rows, columns = matching_columns(ledger.items, known_items, rows)
    return Masked(rows, columns, torch.full_like(rows, Reason.ENGAGED, dtype=torch.int8))
