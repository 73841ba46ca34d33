"""Answers that follow from a chance per draw when the rows of a batch are independent of each other."""

from typing import Protocol

import torch
from torch import Tensor


class PerDraw(Protocol):
    """What :class:`IndependentRows` builds on."""

    def chances(self, items: Tensor) -> Tensor:
        """Return the chance that one positive is the item, [M] float64."""
        ...


class IndependentRows:
    """The answers of :class:`~hatchway.frequency.protocol.Frequency`, from ``chances`` of the class that inherits."""

    def others(self: PerDraw, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) q(j)``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return (batch - 1) * self.chances(items)

    def others_of_positive(self: PerDraw, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) q(j)``: the other rows do not know this row's positive."""
        return (batch - 1) * self.chances(items)

    def whole_batch(self: PerDraw, items: Tensor, batch: int) -> Tensor:
        """``B q(j)``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return batch * self.chances(items)

    def log_absent_others(self: PerDraw, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) ln(1 - q(j))``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return log_absent_draws(self.chances(items), batch - 1)

    def log_absent_whole_batch(self: PerDraw, items: Tensor, batch: int) -> Tensor:
        """``B ln(1 - q(j))``; see :class:`~hatchway.frequency.protocol.Frequency`."""
        return log_absent_draws(self.chances(items), batch)


def log_absent_draws(chances: Tensor, draws: float) -> Tensor:
    """Return ``draws * ln(1 - chance)``, and 0 where there are no draws, [M] float64."""
    return draws * torch.log1p(-chances) if draws else torch.zeros_like(chances)


def floor_of(catalogue: int, seen: int) -> float:
    """Return the chance per draw of an item that has not been seen: ``min(1 / N, 1 / (2 n))``.

    No more than an even share of the draws between the N items of the catalogue, which is all that is known before
    anything has been seen; and no more than half an occurrence among the n positives seen, so that an item seen once
    always has the larger estimate.

    >>> floor_of(catalogue=1000, seen=0), floor_of(catalogue=1000, seen=50_000)
    (0.001, 1e-05)
    """
    return 1.0 / max(catalogue, 2 * seen, 1)
