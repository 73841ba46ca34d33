"""Blocks of the sampled softmax by a matrix unit, in tiles that stay in the first-level cache.

Where products cost next to nothing, memory is what costs: the logits of a block do not fit into any near cache, even as
bf16. So nothing of them is kept. They are made once for the rows' sums, and once more for the gradients.
"""

from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from hatchway.compiled.llvm import REGISTER
from hatchway.compiled.matrix_unit import SQUARE, present
from hatchway.losses.block_rows import Adjustments, Rows, enough, joined, up
from hatchway.losses.matrix_unit_loops import TILE, Given, Memory, work_through

_MOST_ROWS = 8 * SQUARE
"""Columns and their gradient come from memory once a block; its exponentials must stay in the second-level cache."""


def suitable(query: Tensor, columns: Tensor, products: str) -> bool:
    """Whether to use the unit: there is enough to do, bf16 will do, and there is a unit."""
    return products == "bf16" and enough(query, columns) and present()


class MatrixUnitRows:
    """The work on blocks of rows, with bf16 products; each thread has memory of its own.

    Args:
        query: [B, d] float32.
        columns: [C, d] float32.
        bias: [C] float32, added to every row.
        threads: how many work at once.
        gradients: whether they will be asked for.

    Attributes:
        grain: the first row of a thread is a multiple of it; nobody else may work on the rows up to the next one.
    """

    grain = SQUARE

    def __init__(self, query: Tensor, columns: Tensor, bias: Tensor, threads: int, *, gradients: bool) -> None:
        (batch, width), number = query.shape, len(columns)
        most, deep, whole = min(_MOST_ROWS, up(batch, SQUARE)), up(width, SQUARE), up(number, TILE)
        rounded = pad(columns.bfloat16(), (0, deep - width, 0, whole - number))
        panels = rounded.view(-1, SQUARE, deep // 2, 2).transpose(1, 2).contiguous().view(torch.int32)
        flat = rounded.view(-1, 2, deep).transpose(1, 2).contiguous().view(torch.int32) if gradients else panels[:0]
        start = pad(bias, (0, whole - number), value=-torch.inf)
        arrays = query.contiguous(), panels.flatten(), flat.flatten(), start
        self._given = cast("Given", tuple(array.numpy() for array in arrays))
        self._grad_query = query.new_zeros(up(batch, SQUARE) if gradients else 0, deep)
        self._grad_columns = [columns.new_zeros(whole // TILE, deep, TILE) for _ in range(threads if gradients else 0)]

        def memory() -> Memory:
            rounded, by_row, by_pair, turned = (
                query.new_empty(size // 2, dtype=torch.int32)
                for size in (most * deep, SQUARE * TILE, most * TILE, most * deep)
            )
            logits, lane_peak, lane_total, top = (
                query.new_empty(size) for size in (SQUARE * TILE, most * REGISTER, most * REGISTER, most)
            )
            arrays = rounded, logits, by_row, by_pair, turned, lane_peak, lane_total, top
            return cast("Memory", tuple(array.numpy() for array in arrays))

        self._memory = [memory() for _ in range(threads)]
        self._shape, self._gradients = (batch, width, number), gradients

    def work(self, thread: int, begin: int, end: int, rows: Rows, adjustments: Adjustments) -> None:
        """Do all that there is to do about some rows; see :class:`hatchway.losses.block_rows.Rows`."""
        grad_columns = self._grad_columns[thread] if self._gradients else self._grad_query
        gradients = self._grad_query.view(-1).numpy(), grad_columns.view(-1).numpy(), self._gradients
        work_through(self._given, rows.arrays(), adjustments.arrays(), self._memory[thread], *gradients, begin, end)

    def made(self) -> tuple[Tensor, Tensor]:
        """Return the gradients of query and columns, when all rows are done."""
        batch, width, number = self._shape
        total = joined(self._grad_columns)
        return self._grad_query[:batch, :width], total[:, :width].transpose(1, 2).flatten(0, 1)[:number]
