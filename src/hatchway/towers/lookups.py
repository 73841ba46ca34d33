"""What a training step looked up in a table, and the gradient that came back: the raw material of a row-wise update.

Autograd's own gradient of a look-up lists a (row, vector) pair for every row that was looked up; of bags, where many
rows share a gradient, that is mostly copying. Where an optimiser takes a table over
(:meth:`hatchway.towers.tables.Table.owned_by`), the gradients that arrived are kept as they are, with the rows and
factors, and the sum by table row is made once, over all look-ups of the step, when the rows are updated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from hatchway.compiled import CompiledInAnyOrder, at_once, parts_of, suits

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LookedUp:
    """One look-up of K rows of a table, after its gradient arrived.

    Attributes:
        rows: [K] int64 rows of the table.
        gradient: [M, d], of what was returned.
        places: [K] int64, the row of ``gradient`` that belongs to each; None where it is its own (M = K).
        factors: [K] float32, what each was multiplied with; None for 1.
    """

    rows: Tensor
    gradient: Tensor
    places: Tensor | None = None
    factors: Tensor | None = None

    def pairs(self) -> tuple[Tensor, Tensor]:
        """Return the [K] rows and their [K, d] gradients."""
        values = self.gradient if self.places is None else self.gradient[self.places]
        return self.rows, values if self.factors is None else values * self.factors[:, None]


class LookUp(torch.autograd.Function):
    """``weight[rows]``, whose gradient goes to a list instead of the weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor, seen: list[LookedUp]) -> Tensor:
        """Return [*rows.shape, d]."""
        ctx.rows, ctx.seen = rows, seen
        return functional.embedding(rows, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        """Keep the gradient."""
        ctx.seen.append(LookedUp(ctx.rows.reshape(-1), gradient.reshape(-1, gradient.shape[-1])))
        return None, None, None


class LookUpBags(torch.autograd.Function):
    """The sum, with factors, of the rows of each bag, whose gradient goes to a list instead of the weight."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, rows: Tensor, offsets: Tensor, factors: Tensor | None, seen: list[LookedUp]
    ) -> Tensor:
        """Return [B, d]."""
        ctx.save_for_backward(weight, rows, offsets, factors)
        ctx.seen = seen
        return functional.embedding_bag(
            rows, weight, offsets, mode="sum", per_sample_weights=factors, include_last_offset=True
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None, Tensor | None, None]:
        """Keep the gradient; the factors' own is returned."""
        weight, rows, offsets, factors = ctx.saved_tensors
        places = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=rows.device), offsets.diff())
        ctx.seen.append(LookedUp(rows, gradient, places, factors))
        of_factors = _dot_products(weight, rows, gradient, places) if ctx.needs_input_grad[3] else None
        return None, None, None, of_factors, None


def _dot_products(weight: Tensor, rows: Tensor, gradient: Tensor, places: Tensor) -> Tensor:
    """Return ``weight[rows[k]] · gradient[places[k]]``, [K]."""
    if weight.dtype != torch.float32 or not suits(weight, rows):
        return (weight[rows] * gradient[places]).sum(1)
    out = weight.new_empty(len(rows))
    vectors, at, others, back, dots = (x.detach().contiguous().numpy() for x in (weight, rows, gradient, places, out))
    at_once(lambda _, begin, end: _dots(vectors, at, others, back, dots, begin, end), parts_of(len(rows), 4096))
    return out


@CompiledInAnyOrder
def _dots(weight: Float32, rows: Int64, gradient: Float32, places: Int64, out: Float32, begin: int, end: int) -> None:
    for k in range(begin, end):
        vector, other = weight[rows[k]], gradient[places[k]]
        total = np.float32(0.0)
        for x in range(len(vector)):
            total += vector[x] * other[x]
        out[k] = total
