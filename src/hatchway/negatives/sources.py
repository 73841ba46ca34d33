"""The sources of negatives by name, the reasons a candidate is masked, and what a shared source must answer."""

from enum import IntEnum
from typing import Protocol

import torch
from torch import Tensor


class Source(IntEnum):
    """What put a column there."""

    IN_BATCH = 1
    UNIFORM = 2


class Reason(IntEnum):
    """Why a candidate may not stand as a negative for a row."""

    POSITIVE = 1
    """The very column that carries the row's own positive."""
    SAME_ITEM = 2
    """Another copy of the row's positive (an accidental hit)."""
    ENGAGED = 3
    """The buyer is known to have engaged with it."""


class SharedSource(Protocol):
    """A source whose columns all rows of a batch share."""

    @property
    def source(self) -> Source:
        """Which source this is."""
        ...

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:
        """Return the item rows of this source's columns, [M] int64, for a batch with ``positives`` [B] int64."""
        ...

    def expected_others(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item among this source's columns, given a row whose positive is another item.

        Args:
            items: [M] int64 item rows.
            batch: B.

        Returns:
            [M] float64. Columns that carry a row's own positive are not counted as this source's.
        """
        ...

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item, beside the positive itself, given a row whose positive is this very item."""
        ...

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item among all columns, own positives too, knowing nothing of the row."""
        ...
