"""What a batch's positives are expected to hold, three ways, named apart so that none is mistaken for another."""

from typing import Protocol

from torch import Tensor


class Frequency(Protocol):
    """Expected copies of an item among the positives of a batch. All answers are float64 on the items' device."""

    def others(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies among the other ``batch - 1`` rows, given that this row's positive is a different item.

        Args:
            items: [M] int64 item rows.
            batch: B, the number of positives in the (global) batch.
        """
        ...

    def others_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies among the other ``batch - 1`` rows, given that this row's positive is this very item."""
        ...

    def whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies among all ``batch`` rows, knowing nothing of any row: B·q (Yi et al. 2019)."""
        ...
