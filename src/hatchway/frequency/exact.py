"""Exact counts of the training positives, for an epoch that shuffles them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.frequency.absence import log_absent
from hatchway.frequency.item_rows import of_items


@dataclass(frozen=True)
class ExactCounts:
    """Counts c(j) of T positives that are shuffled every epoch.

    A batch is a draw *without* replacement from the T positives, so another row's positive is j with chance
    ``c(j) / (T - 1)`` when this row's is not j, and ``(c(j) - 1) / (T - 1)`` when it is.

    Attributes:
        counts: [N] int64, positives per item row.
    """

    counts: Tensor

    def __post_init__(self) -> None:
        """Refuse counts that are no counts."""
        if self.counts.ndim != 1 or self.counts.is_floating_point():
            raise DataError(
                f"counts have shape {tuple(self.counts.shape)} and dtype {self.counts.dtype}; "
                "allowed: one whole number per item row, [N] int64"
            )
        if len(self.counts) and int(self.counts.min()) < 0:
            raise DataError(f"the smallest count is {int(self.counts.min())}; counts are never negative")

    @cached_property
    def total(self) -> int:
        """T, the number of positives."""
        return int(self.counts.sum())

    def _of(self, items: Tensor) -> Tensor:
        return self._counts_of(items).to(torch.float64)

    def _counts_of(self, items: Tensor) -> Tensor:
        return of_items(self.counts, items)

    def others(self, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) c(j) / (T - 1)``; see :class:`~hatchway.frequency.protocol.Frequency`.

        >>> ExactCounts(torch.tensor([3, 1, 0])).others(torch.tensor([0, 1, 2]), batch=2)
        tensor([1.0000, 0.3333, 0.0000], dtype=torch.float64)
        """
        return (batch - 1) * self._of(items) / max(self.total - 1, 1)

    def others_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) (c(j) - 1) / (T - 1)``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return (batch - 1) * (self._of(items) - 1).clamp(min=0) / max(self.total - 1, 1)

    def whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """``B c(j) / T``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return batch * self._of(items) / max(self.total, 1)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """``ln [C(T - 1 - c(j), B - 1) / C(T - 1, B - 1)]``; see :class:`~hatchway.frequency.protocol.Frequency`.

        >>> ExactCounts(torch.tensor([3, 1, 0])).log_absent_others(torch.tensor([1, 2]), batch=2).exp()
        tensor([0.6667, 1.0000], dtype=torch.float64)
        """
        # An item with all T positives has no row whose positive is another; clamped so that the answer is still -inf.
        counts = self._counts_of(items).clamp(max=max(self.total - 1, 0))
        return log_absent(counts, max(self.total - 1, 0), batch - 1)

    def log_absent_whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """``ln [C(T - c(j), B) / C(T, B)]``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return log_absent(self._counts_of(items), self.total, batch)
