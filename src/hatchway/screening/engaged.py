"""Items that a row's buyer is known to have engaged with are no negatives for that row."""

import torch
from torch import Tensor

from hatchway.negatives.ledger import Ledger, Masked, matching_columns
from hatchway.negatives.sources import Reason


def engaged_columns(ledger: Ledger, known_items: Tensor, known_offsets: Tensor, catalogue: int) -> Masked:
    """Find the columns that hold an item which the row's buyer is known to have engaged with.

    Args:
        ledger: the batch's columns.
        known_items: [K] int64, the rows' known items one row after another.
        known_offsets: [B + 1] int64, where each row's known items begin.
        catalogue: N, the number of items.

    Returns:
        Coordinates with reason ``ENGAGED``; a pair may come twice when the buyer engaged twice, and
        :func:`~hatchway.negatives.ledger.with_masked` keeps one.
    """
    rows = torch.repeat_interleave(
        torch.arange(len(known_offsets) - 1, device=known_items.device), known_offsets.diff()
    )
    # Few of the items that buyers know are columns of this batch; a look-up drops the others before the join.
    is_column = torch.zeros(catalogue, dtype=torch.bool, device=known_items.device)
    is_column[ledger.items] = True
    kept = is_column[known_items]
    rows, columns = matching_columns(ledger.items, known_items[kept], rows[kept])
    return Masked(rows, columns, torch.full_like(rows, Reason.ENGAGED, dtype=torch.int8))
