"""Item rows that are looked up in a table of one catalogue; a row of another one is refused, never answered."""

import torch
from torch import Tensor

from hatchway.errors import DataError


def check_item_rows(items: Tensor, catalogue: int) -> None:
    """Refuse item rows that are not of the catalogue.

    Indexing alone would take −1 for the last item; a constant answer would take anything.

    Args:
        items: int64 item rows of any shape.
        catalogue: N.

    Raises:
        DataError: with the first row that is not from 0 to N − 1.
    """
    if not items.numel():
        return
    least, most = torch.aminmax(items)
    if not 0 <= int(least) <= int(most) < catalogue:
        stranger = int(items[(items < 0) | (items >= catalogue)].flatten()[0])
        raise DataError(
            f"item row {stranger} is not in the catalogue of {catalogue:,} items, whose rows are 0 to {catalogue - 1}: "
            "give a number for every item of the catalogue, and item rows, not external ids"
        )


def of_items(table: Tensor, items: Tensor) -> Tensor:
    """Return ``table[items]``, looked up where the table lies and returned where the items do.

    Args:
        table: [N], one value for each item of the catalogue.
        items: int64 item rows of any shape.

    Raises:
        DataError: an item row is not in the catalogue.
    """
    check_item_rows(items, len(table))
    return table[items.to(table.device)].to(items.device)
