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

from hatchway.compiled import suits
from hatchway.compiled.register_tiles import HEIGHT, LANES, TILE, quicker
from hatchway.losses.tile_loops import Kept, Made, exponentials, multiply_back, tile_by_tile

_MOST_ROWS = 12 * HEIGHT
"""The gradient of the columns is read and written once a block, and beyond this many rows that is next to nothing."""

_BUFFER_BYTES = 32 * 2**20
"""Blocks of many columns have fewer rows, so that the exponentials of all threads together stay within this."""

_LEAST_ROWS, _LEAST_COLUMNS = 512, 1024
"""Below, what is done once a call and once a block is not yet little beside the products."""

_WIDTHS = range(LANES // 2, 257)
"""Of narrower vectors most of a register would be empty; of wider ones a tile's columns fill the cache."""


def suitable(query: Tensor, columns: Tensor, products: str) -> bool:
    """Whether to work in tiles: that is quicker here, and there is enough of everything."""
    return (
        suits(query, columns)
        and query.dtype == torch.float32
        and len(query) >= _LEAST_ROWS
        and len(columns) >= _LEAST_COLUMNS
        and query.shape[1] in _WIDTHS
        and quicker(products)
    )


def _up(number: int, grain: int) -> int:
    return -(-number // grain) * grain


class TiledRows:
    """Exponentials and gradients of a block of rows at a time; each thread has memory of its own.

    Args:
        query: [B, d] float32.
        columns: [C, d] float32.
        bias: [C] float32, added to every row.
        threads: how many work at once.
        products: "float32" or "bf16".
        gradients: whether they will be asked for.

    Attributes:
        rows: of a block, at most.
        grain: the first row of a thread is a multiple of it; nobody else may work on the rows up to the next one.
    """

    grain = HEIGHT

    def __init__(
        self, query: Tensor, columns: Tensor, bias: Tensor, threads: int, products: str, *, gradients: bool
    ) -> None:
        (batch, width), number = query.shape, len(columns)
        self._query, self._bias, self._gradients = query.contiguous(), bias.contiguous(), gradients
        self._pack = 2 if products == "bf16" else 1  # numbers in an element
        self._kind = torch.int32 if self._pack == 2 else torch.float32
        within = _BUFFER_BYTES // (4 * threads * max(number, 1)) // HEIGHT * HEIGHT
        self.rows = max(HEIGHT, min(_MOST_ROWS, within, _up(batch, HEIGHT)))
        deep, count = _up(width, LANES), _up(width, 2) // self._pack
        whole = pad(columns.bfloat16() if self._pack == 2 else columns, (0, deep - width, 0, -number % LANES))
        panels = whole.view(-1, LANES, deep // self._pack, self._pack)[:, :, :count].transpose(1, 2)
        self._panels = panels.contiguous().view(self._kind).flatten()
        self._panel = panels.new_zeros(threads, self.rows // HEIGHT, count, HEIGHT, self._pack)
        tiles = -(-number // TILE)
        tile = self.rows * TILE
        self._peaks = query.new_empty(threads, tiles, self.rows)
        self._logits = query.new_empty(threads, tile * (tiles if gradients and self._pack == 1 else 1))
        self._by_row = self._by_pair = self._logits
        if gradients:
            self._columns = whole.view(-1, self._pack, deep).transpose(1, 2).contiguous().view(self._kind).flatten()
            self._scaled = self._columns.new_zeros(threads, self.rows * deep // self._pack)
            self._grad_query = query.new_zeros(_up(batch, HEIGHT), deep)
            self._grad_columns = [columns.new_zeros(number + HEIGHT, deep) for _ in range(threads)]
        if self._pack == 2:
            self._by_row, self._by_pair = (
                torch.empty(threads, tile * tiles // 2 if gradients else 0, dtype=torch.int32) for _ in range(2)
            )

    def exponentials(
        self, thread: int, begin: int, own: Tensor, coordinates: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Compute a block's exponentials and keep them for :meth:`multiply_back`.

        ``begin`` is its first row; all else is as in :func:`hatchway.losses.softmax_rows.exponentials`.
        """
        rows, columns, values = coordinates
        query, panel = self._query[begin : begin + len(own)], self._panel[thread]
        high, count = _up(len(query), HEIGHT) // HEIGHT, panel.shape[1]
        padded = pad(query, (0, count * self._pack - query.shape[1], 0, -len(query) % HEIGHT))
        panel[:high] = padded.view(high, HEIGHT, count, self._pack).transpose(1, 2)
        others, peak = own.new_empty(len(own)), own.new_empty(len(own))
        order, starts = tile_by_tile(columns.numpy(), self._peaks.shape[1])
        made = (self._logits, self._by_row, self._by_pair, self._peaks)
        exponentials(
            (panel.view(self._kind).flatten().numpy(), count, own.numpy(), others.numpy(), peak.numpy()),
            (self._panels.numpy(), self._bias.numpy()),
            (rows.numpy()[order], columns.numpy()[order], values.numpy()[order], starts),
            cast("Made", tuple(x[thread].numpy() for x in made)),
            self._pack,
            self._gradients,
        )
        return others, peak

    def multiply_back(self, thread: int, begin: int, peak: Tensor, factor: Tensor) -> None:
        """Multiply the block's exponentials, times a factor a row, into the gradients."""
        made = (self._by_row, self._by_pair, self._peaks, self._scaled)
        multiply_back(
            (self._query[begin : begin + len(peak)].numpy(), peak.numpy(), factor.numpy()),
            cast("Kept", tuple(x[thread].numpy() for x in made)),
            self._columns.numpy(),
            len(self._bias),
            self._pack,
            self._grad_query[begin:].view(-1).numpy(),
            self._grad_columns[thread].view(-1).numpy(),
        )

    def made(self) -> tuple[Tensor, Tensor]:
        """Return the gradients of query and columns, when all blocks are done."""
        total, *more = self._grad_columns
        while more:
            total += more.pop()
        return (
            self._grad_query[: len(self._query), : self._query.shape[1]],
            total[: len(self._bias), : self._query.shape[1]],
        )
