"""What a batch's positives are expected to hold, each question named apart so that none is mistaken for another."""

from typing import Protocol

from torch import Tensor


class Frequency(Protocol):
    """Copies of an item among the positives of a batch. All answers are float64 on the items' device.

    Columns that keep every copy are corrected by the expected number of copies. Columns that are de-duplicated hold an
    item once or not at all, and are corrected by the chance of being in at all: ``1 - exp(log_absent_...)``. Sources
    that draw independently add up their logarithms of absence.
    """

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

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """Return ln of the chance that the item is in none of the other ``batch - 1`` rows.

        Given that this row's positive is a different item.

        Returns:
            [M] float64, at most 0; -inf where the item cannot be absent.
        """
        ...

    def log_absent_whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """Return ln of the chance that the item is in none of the ``batch`` rows, knowing nothing of any row."""
        ...
