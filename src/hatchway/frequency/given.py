"""A frequency that is known beforehand, with one name for each kind of number, so that none is taken for another."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.frequency.independent import IndependentRows
from hatchway.frequency.item_rows import of_items

_SLACK = 1e-4
"""How far a sum may be from what it should be: float32 sums over a catalogue are no better."""


@dataclass(frozen=True)
class GivenFrequency(IndependentRows):
    """Chances per draw that somebody knows: the shares of a log, a logging policy's propensities, a sampler's own.

    Made by the constructor that names what the numbers are; each refuses what can only be another's.

    Attributes:
        table: [N] float64, the chance that one positive is the item.
    """

    table: Tensor

    @classmethod
    def from_counts(cls, *, counts: Tensor) -> Self:
        """Take whole counts, [N]: the chance is the share. For a shuffled epoch ``ExactCounts`` is exact.

        Raises:
            DataError: the counts are not whole numbers of at least 0, or all are 0.

        >>> GivenFrequency.from_counts(counts=torch.tensor([3, 1])).table
        tensor([0.7500, 0.2500], dtype=torch.float64)
        """
        values = _checked(counts, "counts")
        if bool((values != values.round()).any()):
            raise DataError(
                f"counts hold {float(values[values != values.round()][0])}, which is no whole number; chances per draw "
                "go to from_chances, expected copies a batch to from_expected"
            )
        if not float(values.sum()):
            raise DataError("all counts are 0, so no item has a chance")
        return cls(values / values.sum())

    @classmethod
    def from_chances(cls, *, chances: Tensor) -> Self:
        """Take chances per draw, [N]: each the chance that *one* positive is the item; they sum to 1 at most.

        Raises:
            DataError: a chance is below 0, or they sum to more than 1.
        """
        values = _checked(chances, "chances")
        if (total := float(values.sum())) > 1 + _SLACK:
            raise DataError(
                f"chances per draw sum to {total:.6g}; allowed: at most 1. Counts go to from_counts, expected copies a "
                "batch to from_expected"
            )
        return cls(values)

    @classmethod
    def from_expected(cls, *, expected: Tensor, batch: int) -> Self:
        """Take the expected copies of every item in a batch of ``batch`` positives, [N]; they sum to ``batch``.

        Raises:
            DataError: an expected number is below 0, or they sum to something else.
        """
        values = _checked(expected, "expected copies")
        if batch < 1 or abs(float(values.sum()) / batch - 1) > _SLACK:
            raise DataError(
                f"expected copies sum to {float(values.sum()):.6g} and the batch is {batch}; allowed: a sum equal to "
                "the batch, 1 or more. Counts go to from_counts, chances per draw to from_chances"
            )
        return cls(values / batch)

    def chances(self, items: Tensor) -> Tensor:
        """Return the chance that one positive is the item, [M] float64."""
        return of_items(self.table, items)


def _checked(values: Tensor, name: str) -> Tensor:
    """Return the values in float64 if each could be a count or a chance."""
    if values.ndim != 1 or values.dtype in (torch.bool, torch.complex64, torch.complex128):
        raise DataError(
            f"{name} have shape {tuple(values.shape)} and dtype {values.dtype}; allowed: one number an item, [N]"
        )
    wide = values.to(torch.float64)
    if not bool((torch.isfinite(wide) & (wide >= 0)).all()):
        raise DataError(f"{name} hold {float(wide[~(torch.isfinite(wide) & (wide >= 0))][0])}; allowed: 0 or more")
    return wide
