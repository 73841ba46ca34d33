"""Blocks of the sampled softmax in tiles that stay in the second-level cache, multiplied by functions of our own.

For processors on which :mod:`hatchway.compiled.register_tiles` is quicker than PyTorch. A tile of logits becomes
exponentials where it was made, over the largest logit that its row has had so far; what the largest of the whole row
changes about that is a factor a row and tile, on the way back into the gradients. A library's products write and read
each block six times through slower caches, and copy the columns anew for each of them.
"""

from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from hatchway.compiled.llvm import REGISTER
from hatchway.compiled.register_tiles import HEIGHT, LANES, TILE, quicker
from hatchway.losses.block_rows import Adjustments, Rows, enough, joined, up
from hatchway.losses.tile_loops import Given, Memory, work_through

_MOST_ROWS = 8 * HEIGHT
"""The gradient of the columns is read and written once a block, and beyond this many rows that is next to nothing."""

_BUFFER_BYTES = 32 * 2**20
"""Blocks of many columns have fewer rows, so that the exponentials of all threads together stay within this."""


def suitable(query: Tensor, columns: Tensor, products: str) -> bool:
    """Whether to work in tiles: there is enough to do, and that is quicker here."""
    return enough(query, columns) and quicker(products)


class TiledRows:
    """The work on blocks of rows; each thread has memory of its own.

    Args:
        query: [B, d] float32.
        columns: [C, d] float32.
        bias: [C] float32, added to every row.
        threads: how many work at once.
        products: "float32" or "bf16".
        gradients: whether they will be asked for.

    Attributes:
        grain: the first row of a thread is a multiple of it; nobody else may work on the rows up to the next one.
    """

    grain = HEIGHT

    def __init__(
        self, query: Tensor, columns: Tensor, bias: Tensor, threads: int, products: str, *, gradients: bool
    ) -> None:
        (batch, width), number = query.shape, len(columns)
        pack, kind = (2, torch.int32) if products == "bf16" else (1, torch.float32)  # numbers in an element
        within = _BUFFER_BYTES // (4 * threads * max(number, 1)) // HEIGHT * HEIGHT
        most = max(HEIGHT, min(_MOST_ROWS, within, up(batch, HEIGHT)))
        deep, count, tiles = up(width, LANES), up(width, 2) // pack, -(-number // TILE)
        whole = pad(columns.bfloat16() if pack == 2 else columns, (0, deep - width, 0, -number % LANES))
        panels = whole.view(-1, LANES, deep // pack, pack)[:, :, :count].transpose(1, 2).contiguous()
        panels = flat = panels.view(kind).flatten()
        if gradients:
            flat = whole.view(-1, pack, deep).transpose(1, 2).contiguous().view(kind).flatten()
        start = pad(bias, (0, -number % LANES), value=-torch.inf)
        arrays = query.contiguous(), panels, flat, start
        self._given = cast("Given", (*(array.numpy() for array in arrays), pack, number))
        kept, made = (tiles, threads) if gradients else (0, 0)
        self._grad_query = query.new_zeros(up(batch, HEIGHT) if gradients else 0, deep)
        self._grad_columns = [columns.new_zeros(number + HEIGHT, deep) for _ in range(made)]
        tile = most * TILE

        def memory() -> Memory:
            logits = query.new_empty(tile * (kept if kept and pack == 1 else 1))
            by_row, by_pair = query.new_empty(2, tile * kept // 2, dtype=kind) if pack == 2 else (logits, logits)
            panel, scaled = (query.new_empty(size // pack, dtype=kind) for size in (most * count * pack, most * deep))
            lane_peak, lane_total = query.new_empty(2, most * REGISTER)
            arrays = panel, logits, by_row, by_pair, query.new_empty(tiles, most), scaled, lane_peak, lane_total
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
        return self._grad_query[:batch, :width], joined(self._grad_columns)[:number, :width]
