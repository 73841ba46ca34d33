"""What is given of a batch to whoever works on blocks of its rows, and what is kept of each row."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import suits


def up(number: int, grain: int) -> int:
    """Return the least multiple of ``grain`` that is no less."""
    return -(-number // grain) * grain


Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Coordinates = tuple[Int64, Int64, Float32]
RowArrays = tuple[Float32, Float32, Float32, Float32, Float32]

_LEAST_ROWS, _LEAST_COLUMNS = 512, 1024
"""Below, what is done once a call and once a block is not yet little beside the products."""

_WIDTHS = range(16, 257)
"""Of narrower vectors most of a register would be empty; of wider ones a tile's columns fill the cache."""


def joined(parts: list[Tensor]) -> Tensor:
    """Add up what threads have made, in the first one's memory; the others' is given back on the way."""
    total, *more = parts
    parts.clear()
    while more:
        total += more.pop()
    return total


def enough(query: Tensor, columns: Tensor) -> bool:
    """Whether compiled functions can work on blocks of these rows, and there is enough of everything for it to pay."""
    return (
        suits(query, columns)
        and query.dtype == columns.dtype == torch.float32
        and len(query) >= _LEAST_ROWS
        and len(columns) >= _LEAST_COLUMNS
        and query.shape[1] in _WIDTHS
    )


class Adjustments:
    """Sparse additions to the logits: coordinates sorted by row, each (row, column) at most once.

    Attributes:
        rows: [M] int64, ascending.
        columns: [M] int64.
        values: [M] float, −inf to mask.
    """

    def __init__(self, rows: Tensor, columns: Tensor, values: Tensor) -> None:
        self.rows = rows
        self.columns = columns
        self.values = values

    def before(self, rows: Tensor) -> list[int]:
        """Return how many coordinates stand before each of some rows."""
        return torch.searchsorted(self.rows, rows).tolist()

    def arrays(self) -> Coordinates:
        """Return rows, columns and values for a compiled function."""
        return self.rows.numpy(), self.columns.numpy(), self.values.numpy()


@dataclass(frozen=True)
class Rows:
    """Of each row of a batch, as :mod:`hatchway.losses.softmax_rows` has it for the rows of a block.

    Attributes:
        own: [B, 1 + H] logits of the positive and of the row's own columns; their exponentials afterwards.
        others: [B], made: the sum of a row's exponentials but for the positive's.
        peak: [B], made: the largest logit, over which exponentials are.
        weight: [B] of the row's loss; None where no gradients are asked for.
        scale: [B], made where there is a weight: what turns exponentials into the gradient by logits.
    """

    own: Tensor
    others: Tensor
    peak: Tensor
    weight: Tensor | None
    scale: Tensor

    def arrays(self) -> RowArrays:
        """Return them in this order for a compiled function, which does not look at a weight that is not there."""
        weight = self.others if self.weight is None else self.weight
        own, others, peak, scale = (x.numpy() for x in (self.own, self.others, self.peak, self.scale))
        return own, others, peak, weight.numpy(), scale
