"""What a batch's positives are expected to hold, each question named apart so that none is mistaken for another."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from torch import Tensor


class Frequency(Protocol):
    """Copies of an item among the positives of a batch. All answers are float64 on the items' device.

    Columns that keep every copy are corrected by the expected number of copies. Columns that are de-duplicated hold an
    item once or not at all, and are corrected by the chance of being in at all: ``1 - exp(log_absent_...)``. Sources
    that draw independently add up their logarithms of absence.

    Item rows are those of one catalogue. Where every item has a value of its own, a row outside the catalogue is
    refused (DataError). A sketch cannot tell: its hashes have no last item.
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


class LearnedFrequency(Frequency, Protocol):
    """A frequency that is learned from the positives as they pass."""

    def update(self, positives: Tensor) -> None:
        """Take in one (global) batch of positives, [B] int64 item rows, copies and all. Once a step, before reading."""
        ...

    def grow(self, catalogue: int) -> None:
        """Go over to a larger catalogue of ``catalogue`` items, whose first rows are those of the present one."""
        ...

    def merge(self, others: Sequence[Self]) -> None:
        """Take in what other ranks learned from *other* positives; each class says what the result then estimates."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return everything that later answers depend on, by name.

        These are the tensors themselves, as in ``Module.state_dict()``: write or clone them before the next update.
        """
        ...

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state` returned; later updates and answers are then the same to the last bit."""
        ...
