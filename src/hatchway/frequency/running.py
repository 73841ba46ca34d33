"""Exact counts of a stream: one number an item, as long as the catalogue fits in memory."""

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.frequency.independent import IndependentRows, floor_of
from hatchway.frequency.item_rows import check_item_rows, of_items
from hatchway.frequency.restoring import restored


class RunningCounts(IndependentRows):
    """Counts of the positives seen so far; the rows to come are taken to be independent draws from the same shares.

    Where every epoch shuffles the same known positives, :class:`~hatchway.frequency.exact.ExactCounts` is exact.

    Args:
        catalogue: N, the number of items.
    """

    def __init__(self, catalogue: int) -> None:
        self._counts = torch.zeros(catalogue, dtype=torch.int64)

    @property
    def counts(self) -> Tensor:
        """[N] int64, positives seen of each item."""
        return self._counts

    @property
    def catalogue(self) -> int:
        """N."""
        return len(self._counts)

    def update(self, positives: Tensor) -> None:
        """Take in one batch; see :class:`~hatchway.frequency.protocol.LearnedFrequency`.

        Raises:
            DataError: the item rows are not whole numbers, or not of the catalogue.
        """
        if positives.dtype != torch.int64 or positives.ndim != 1:
            raise DataError(
                f"positives have shape {tuple(positives.shape)} and dtype {positives.dtype}; "
                "allowed: [B] int64 item rows"
            )
        check_item_rows(positives, self.catalogue)
        self._counts += torch.bincount(positives.cpu(), minlength=len(self._counts))

    def chances(self, items: Tensor) -> Tensor:
        """Return the share of the positives seen, at least :func:`~hatchway.frequency.independent.floor_of`."""
        seen = int(self._counts.sum())
        shares = of_items(self._counts, items).to(torch.float64) / max(seen, 1)
        return shares.clamp(min=floor_of(self.catalogue, seen))

    def grow(self, catalogue: int) -> None:
        """Go over to a larger catalogue, whose new items have not been seen.

        Raises:
            DataError: the catalogue would shrink.
        """
        if catalogue < self.catalogue:
            raise DataError(
                f"a catalogue of {self.catalogue:,} items cannot shrink to {catalogue:,}; rows never vanish"
            )
        self._counts = torch.cat([self._counts, self._counts.new_zeros(catalogue - self.catalogue)])

    def merge(self, others: Sequence[Self]) -> None:
        """Add the counts of other ranks, each of positives of its own."""
        self.grow(max(part.catalogue for part in (self, *others)))
        for other in others:
            self._counts[: other.catalogue] += other.counts

    def state(self) -> dict[str, Tensor]:
        """Return the counts; see :class:`~hatchway.frequency.protocol.LearnedFrequency`."""
        return {"counts": self._counts}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state` returned.

        Raises:
            ArtefactError: the state is of another catalogue.
        """
        self._counts.copy_(restored(state, self.state())["counts"])
