"""The loops of :mod:`~.matrix_unit_rows`, compiled, and what is written out in them."""

import numpy as np
import numpy.typing as npt

from hatchway.compiled import CompiledInAnyOrder, pair, widest, written_out
from hatchway.compiled.llvm import REGISTER
from hatchway.compiled.matrix_unit import SQUARE, begin_products, end_products, multiply
from hatchway.compiled.register_exponentials import round_exponentials, sum_exponentials
from hatchway.losses.block_rows import Coordinates, RowArrays
from hatchway.losses.lanes import begin_lanes, join_lanes

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Given = tuple[Float32, Int32, Int32, Float32]
Sparse = tuple[Int64, Int64, Float32]
Memory = tuple[Int32, Float32, Int32, Int32, Int32, Float32, Float32, Float32]

TILE = 256
"""Columns of a tile, whole SQUAREs: the first-level cache holds SQUARE rows of logits, exponentials and the columns."""


@written_out
def _fill(query: Float32, rounded: Int32, deep: int) -> None:
    """Write the block's rows as bf16; rows beyond the last, and places beyond the width, are 0."""
    batch, width = query.shape
    rounded[:] = 0
    for i in range(batch):
        for k in range(0, width - 1, 2):
            rounded[(i * deep + k) // 2] = pair(query[i, k], query[i, k + 1])
        if width % 2:
            rounded[(i * deep + width) // 2] = pair(query[i, width - 1], np.float32(0.0))


@written_out
def _fill_turned(query: Float32, scale: Float32, turned: Int32, half: int) -> None:
    """Write the block's rows, each times its factor, as columns; two rows to an element, ``half`` of these to a row."""
    batch, width = query.shape
    turned[:] = 0
    for i in range(0, batch, 2):
        below = min(i + 1, batch - 1)
        other = scale[below] if i + 1 < batch else np.float32(0.0)
        for k in range(width):
            turned[k * half + i // 2] = pair(query[i, k] * scale[i], query[below, k] * other)


@written_out
def _by_square(
    rows: Int64, columns: Int64, values: Float32, first: int, high: int, tiles: int
) -> tuple[Int64, Int64, Float32]:
    """Sort coordinates by tile, and by SQUARE of rows in it; rows are counted from ``first``.

    Return where each of these begins in the rest, which are places in a SQUARE's logits, and what is added there.
    """
    starts = np.zeros(high * tiles + 1, np.int64)
    for at in range(len(columns)):
        starts[columns[at] // TILE * high + (rows[at] - first) // SQUARE + 1] += 1
    for cell in range(high * tiles):
        starts[cell + 1] += starts[cell]
    places, added, free = np.empty(len(columns), np.int64), np.empty(len(columns), np.float32), starts.copy()
    for at in range(len(columns)):
        row, column = rows[at] - first, columns[at]
        cell = column // TILE * high + row // SQUARE
        places[free[cell]], added[free[cell]] = row % SQUARE * TILE + column % TILE, values[at]
        free[cell] += 1
    return starts, places, added


@written_out
def _score(given: Given, memory: Memory, sparse: Sparse, tile: int, square: int, high: int, count: int) -> None:
    """Make the logits of a SQUARE of rows and a TILE of columns; ``count`` elements are as wide as a vector."""
    (_, panels, _, bias), (rounded, logits, _, _, _, _, _, _) = given, memory
    starts, places, added = sparse
    for n in range(0, TILE, SQUARE):
        row, column = square * SQUARE, tile * TILE + n
        at, other = row * count, column * count
        multiply(rounded, at, count, panels, other, SQUARE, count, bias, column, 0, logits, n, TILE)
    cell = tile * high + square
    for at in range(starts[cell], starts[cell + 1]):
        logits[places[at]] += added[at]


@written_out
def _block_forward(
    given: Given, memory: Memory, sparse: Sparse, own: Float32, others: Float32, high: int, count: int
) -> None:
    """Sum a block's exponentials, tile by tile, and leave the rows' peaks in memory."""
    (_, logits, _, _, _, lane_peak, lane_total, peak) = memory
    begin_lanes(own, lane_peak, lane_total)
    for tile in range(len(given[3]) // TILE):
        for square in range(high):
            _score(given, memory, sparse, tile, square, high, count)
            first = square * SQUARE
            for i in range(min(SQUARE, len(own) - first)):
                sum_exponentials(logits, i * TILE, TILE, lane_peak, lane_total, (first + i) * REGISTER)
    join_lanes(own, lane_peak, lane_total, others, peak)


@written_out
def _block_back(
    given: Given, memory: Memory, sparse: Sparse, grad_query: Float32, grad_columns: Float32, high: int, count: int
) -> None:
    """Make a block's logits once more, and multiply their exponentials into the gradients, tile by tile."""
    (_, _, flat, bias), (_, logits, by_row, by_pair, turned, _, _, peak) = given, memory
    deep, half, wide = 2 * count, high * SQUARE // 2, TILE // 2
    for tile in range(len(bias) // TILE):
        for square in range(high):
            _score(given, memory, sparse, tile, square, high, count)
            for i in range(0, SQUARE, 2):
                row = square * SQUARE + i
                round_exponentials(logits, i * TILE, TILE, TILE, peak, row, by_row, i * wide, by_pair, row * wide)
            for n in range(0, deep, SQUARE):
                # To what is there: the gradient of these rows, by the columns of the tiles before.
                at, out = tile * wide * deep + n, square * SQUARE * deep + n
                multiply(by_row, 0, wide, flat, at, deep, wide, grad_query, out, deep, grad_query, out, deep)
        for n in range(0, TILE, SQUARE):
            for k in range(0, deep, SQUARE):
                at, out = k * half, (tile * deep + k) * TILE + n
                multiply(turned, at, half, by_pair, n, TILE, half, grad_columns, out, TILE, grad_columns, out, TILE)


@CompiledInAnyOrder
def work_through(
    given: Given,
    rows: RowArrays,
    coordinates: Coordinates,
    memory: Memory,
    grad_query: Float32,
    grad_columns: Float32,
    gradients: bool,
    begin: int,
    end: int,
) -> None:
    """Compute sums of exponentials, and gradients where they are wanted, of the rows from ``begin`` to ``end``.

    Args:
        given: query [B, d]; columns as bf16, in panels of SQUARE, and flat, two neighbours to an element; bias, of
            whole TILEs, −inf where there is no column.
        rows: own [B, 1 + H], others, peak, weight and scale [B]; all but own and weight are made, own is changed.
        coordinates: rows, columns and values of what is added to logits, by row.
        memory: of the thread; the last has a place for every row of a block.
        grad_query: flat, of whole SQUAREs of rows, and of numbers in a row.
        grad_columns: of the thread, of whole TILEs, whose columns are side by side.
        gradients: whether they are wanted.
        begin: a multiple of SQUARE.
        end: the same, or B.
    """
    widest()
    query, (own, others, peak, weight, scale) = given[0], rows
    (rounded, _, _, _, turned, _, _, top), (places, columns, values) = memory, coordinates
    deep, most = (query.shape[1] + SQUARE - 1) // SQUARE * SQUARE, len(top)
    low = np.searchsorted(places, begin)
    begin_products()
    for start in range(begin, end, most):
        stop = min(start + most, end)
        high, after = (stop - start + SQUARE - 1) // SQUARE, low + np.searchsorted(places[low:], stop)
        tiles = len(given[3]) // TILE
        sparse = _by_square(places[low:after], columns[low:after], values[low:after], start, high, tiles)
        low = after
        _fill(query[start:stop], rounded, deep)
        _block_forward(given, memory, sparse, own[start:stop], others[start:stop], high, deep // 2)
        peak[start:stop] = top[: stop - start]
        if gradients:
            for i in range(start, stop):
                scale[i] = weight[i] / (others[i] + own[i, 0])
            _fill_turned(query[start:stop], scale[start:stop], turned, high * SQUARE // 2)
            _block_back(given, memory, sparse, grad_query[start * deep :], grad_columns, high, deep // 2)
            for i in range(start, stop):
                grad_query[i * deep : (i + 1) * deep] *= scale[i]
    end_products()
