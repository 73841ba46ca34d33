"""The loops of :mod:`~.tiled_rows`, compiled, and what is written out in them."""

import numpy as np
import numpy.typing as npt

from hatchway.compiled import CompiledInAnyOrder, exponential, pair, stretch_ahead, widest, written_out
from hatchway.compiled.llvm import REGISTER
from hatchway.compiled.register_exponentials import round_exponentials, sum_exponentials
from hatchway.compiled.register_tiles import HEIGHT, LANES, TILE, add_columns, add_rows, score
from hatchway.losses.block_rows import Coordinates, RowArrays
from hatchway.losses.lanes import begin_lanes, join_lanes, largest_of_lanes
from hatchway.losses.softmax_rows import back, exponentials_over, ordered, own_exponentials_over

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Elements = npt.NDArray[np.float32] | npt.NDArray[np.int32]
Given = tuple[Float32, Elements, Elements, Float32, int, int]
Memory = tuple[Elements, Float32, Elements, Elements, Float32, Elements, Float32, Float32]


@written_out
def _fill_panel(query: Float32, panel: Elements, high: int, count: int, pack: int) -> None:
    """Write the block's rows in the order in which :func:`score` reads them; rows beyond the last are 0."""
    batch, width = query.shape
    for i in range(high * HEIGHT):
        begin = i // HEIGHT * HEIGHT * count + i % HEIGHT
        for k in range(count):
            one = query[i, k * pack] if i < batch and k * pack < width else np.float32(0.0)
            two = query[i, k * pack + 1] if i < batch and k * pack + 1 < width else np.float32(0.0)
            panel[begin + k * HEIGHT] = one if pack == 1 else pair(one, two)


@written_out
def _tile_by_tile(columns: Int64, tiles: int) -> tuple[Int64, Int64]:
    """Return the order that sorts coordinates by tile, and where in it each tile begins."""
    starts = np.zeros(tiles + 1, np.int64)
    for at in range(len(columns)):
        starts[columns[at] // TILE + 1] += 1
    for tile in range(tiles):
        starts[tile + 1] += starts[tile]
    order, free = np.empty(len(columns), np.int64), starts.copy()
    for at in range(len(columns)):
        tile = columns[at] // TILE
        order[free[tile]] = at
        free[tile] += 1
    return order, starts


@written_out
def _score_tile(given: Given, panel: Elements, logits: Float32, place: int, first: int, high: int, count: int) -> None:
    """Multiply the block's rows with a tile's columns; what the next tile needs comes from memory meanwhile."""
    _, panels, _, bias, _, number = given
    for n in range(0, min(TILE, number - first), LANES):
        following, part = (first + TILE + n) * count, high * HEIGHT * LANES
        stretch_ahead(panels, following, following + LANES * count)
        following = place + high * HEIGHT * (TILE + n)
        stretch_ahead(logits, following, min(following + part, len(logits)))
        for m in range(0, high * HEIGHT, HEIGHT):
            out = place + m * TILE + n
            score(panel, m * count, panels, (first + n) * count, count, logits, out, bias, first + n)


@written_out
def _exponentials_in_place(
    logits: Float32, place: int, wide: int, others: Float32, peak: Float32, so_far: Float32
) -> None:
    """Turn a tile's logits into exponentials over the largest that their row has had ``so_far``, and add them up."""
    for i in range(len(others)):
        row = logits[place + i * TILE : place + i * TILE + wide]
        top = ordered(peak[i])
        for j in range(wide):
            top = max(top, ordered(row[j]))
        largest = back(top)
        others[i] = others[i] * np.exp(peak[i] - largest) + exponentials_over(row, largest)
        peak[i] = so_far[i] = largest


@written_out
def _exponentials_apart(
    logits: Float32,
    by_row: Elements,
    by_pair: Elements,
    place: int,
    wide: int,
    so_far: Float32,
    memory: Memory,
    rows: int,
) -> None:
    """Add up a tile's exponentials in lanes, and write them as bf16 twice, by row and by pair of rows.

    Pairs of rows beyond the last, ``rows``, are 0.
    """
    lane_peak, lane_total = memory[6], memory[7]
    for i in range(rows):
        sum_exponentials(logits, i * TILE, wide, lane_peak, lane_total, i * REGISTER)
        so_far[i] = largest_of_lanes(lane_peak, i)
    so_far[rows:] = np.inf
    if len(by_row) > 0:
        size = len(so_far) * TILE // 2
        stretch_ahead(by_row, place, place + size)
        stretch_ahead(by_pair, place, place + size)
        for i in range(0, len(so_far), 2):
            at = place + i * TILE // 2
            round_exponentials(logits, i * TILE, TILE, wide, so_far, i, by_row, at, by_pair, at)


@written_out
def _block_forward(
    given: Given, own: Float32, others: Float32, peak: Float32, coordinates: Coordinates, memory: Memory, kept: bool
) -> None:
    """Turn a block's logits into exponentials, tile by tile; rows of coordinates are counted from the block's first."""
    (_, _, _, _, pack, number), (panel, logits, by_row, by_pair, peaks, _, lane_peak, lane_total) = given, memory
    rows, columns, values = coordinates
    high, count = (len(own) + HEIGHT - 1) // HEIGHT, len(panel) // (peaks.shape[1])
    tile_size = high * HEIGHT * TILE
    order, starts = _tile_by_tile(columns, len(peaks))
    begin_lanes(own, lane_peak, lane_total)
    for i in range(len(own)):
        others[i], peak[i] = np.float32(0.0), lane_peak[i * REGISTER]
    for tile in range(len(peaks)):
        first = tile * TILE
        wide = min(TILE, number - first)
        place = tile * tile_size if kept and pack == 1 else 0
        _score_tile(given, panel, logits, place, first, high, count)
        for at in order[starts[tile] : starts[tile + 1]]:
            logits[place + rows[at] * TILE + columns[at] - first] += values[at]
        if pack == 1:
            _exponentials_in_place(logits, place, wide, others, peak, peaks[tile])
            for i in range(len(own), high * HEIGHT):  # rows beyond the last must be nothing, times anything
                logits[place + i * TILE : place + i * TILE + wide] = np.float32(0.0)
        else:
            whole = (wide + LANES - 1) // LANES * LANES
            _exponentials_apart(
                logits, by_row, by_pair, tile * tile_size // 2, whole, peaks[tile, : high * HEIGHT], memory, len(own)
            )
    if pack == 1:
        for i in range(len(own)):
            others[i] += own_exponentials_over(own[i], peak[i])
    else:
        join_lanes(own, lane_peak, lane_total, others, peak)


@written_out
def _scale_rows(query: Float32, scale: Float32, scaled: Elements, deep: int, pack: int) -> None:
    """Write the block's rows, each times a factor, in elements; two rows to an element where they are bf16."""
    batch, width = query.shape
    for i in range(0, batch, pack):
        below = min(i + 1, batch - 1)  # beyond the last row the factor is 0
        begin = i // pack * deep
        row = scaled[begin : begin + width]
        for k in range(width):
            one, two = query[i, k] * scale[i], query[below, k] * scale[i + 1]
            row[k] = one if pack == 1 else pair(one, two)


@written_out
def _add_tile_to_columns(
    by_pair: Elements,
    scaled: Elements,
    grad_columns: Float32,
    place: int,
    first: int,
    wide: int,
    high: int,
    deep: int,
    pack: int,
) -> None:
    """Multiply a tile's exponentials with the rows into the gradient of its columns."""
    for j in range(0, wide, HEIGHT):
        for n in range(0, deep, LANES):
            out = (first + j) * deep + n
            add_columns(by_pair, place + j, scaled, n, high * HEIGHT // pack, grad_columns, out, deep)


@written_out
def _block_back(
    given: Given,
    query: Float32,
    peak: Float32,
    factor: Float32,
    memory: Memory,
    grad_query: Float32,
    grad_columns: Float32,
) -> None:
    """Multiply a block's exponentials into the gradients, tile by tile.

    ``scaled`` are the rows of ``query`` as the tile needs them: times their factor, and what became of their largest.
    """
    (_, _, columns, _, pack, number), (_, _, by_row, by_pair, peaks, scaled, _, _) = given, memory
    batch, width = query.shape
    deep, high = (width + LANES - 1) // LANES * LANES, (batch + HEIGHT - 1) // HEIGHT
    tile_size = high * HEIGHT * TILE // pack
    scale = np.zeros(high * HEIGHT + 1, np.float32)
    scaled[:] = 0
    for tile in range(len(peaks)):
        first, place = tile * TILE, tile * tile_size
        wide = min(TILE, number - first)
        for i in range(batch):
            scale[i] = exponential(peaks[tile, i] - peak[i]) * factor[i]
        _scale_rows(query, scale, scaled, deep, pack)
        count = (wide + pack - 1) // pack
        for m in range(high):
            # What the next tile needs comes from memory meanwhile.
            part = tile_size // high
            following = place + tile_size + m * part
            stretch_ahead(by_row, following, following + part)
            if pack == 2:
                stretch_ahead(by_pair, following, following + part)
            part = TILE * deep // high + 1
            following = (first + TILE) * deep + m * part
            stretch_ahead(grad_columns, following, following + part)
            stretch_ahead(columns, following // pack, (following + part) // pack)
            for n in range(0, deep, LANES):
                rows, out = place + m * HEIGHT * TILE // pack, m * HEIGHT * deep + n
                add_rows(
                    by_row, rows, columns, first // pack * deep + n, count, grad_query, out, deep, scale, m * HEIGHT
                )
        _add_tile_to_columns(by_pair, scaled, grad_columns, place, first, wide, high, deep, pack)


@CompiledInAnyOrder
def work_through(
    given: Given,
    rows: RowArrays,
    coordinates: Coordinates,
    memory: Memory,
    grad_query: Float32,
    grad_columns: Float32,
    kept: bool,
    begin: int,
    end: int,
) -> None:
    """Compute exponentials, and gradients where ``kept``, of the rows from ``begin`` to ``end``.

    Args:
        given: query [B, d]; columns in panels of LANES and, flat, as they are, in elements; bias, of whole LANES; how
            many numbers an element has; C.
        rows: own [B, 1 + H], others, peak, weight and scale [B]; all but own and weight are made, own is changed.
        coordinates: rows, columns and values of what is added to logits, by row.
        memory: of the thread; a block has as many rows as ``peaks`` is wide.
        grad_query: flat, of whole HEIGHTs of rows and whole LANES.
        grad_columns: of the thread, the same.
        kept: whether gradients are wanted.
        begin: a multiple of HEIGHT.
        end: the same, or B.
    """
    widest()
    (query, _, _, _, pack, _), (own, others, peak, weight, scale), (panel, _, _, _, peaks, _, _, _) = (
        given,
        rows,
        memory,
    )
    places, columns, values = coordinates
    most, deep = peaks.shape[1], (query.shape[1] + LANES - 1) // LANES * LANES
    low = np.searchsorted(places, begin)
    for start in range(begin, end, most):
        stop = min(start + most, end)
        high = low + np.searchsorted(places[low:], stop)
        _fill_panel(query[start:stop], panel, (stop - start + HEIGHT - 1) // HEIGHT, len(panel) // most, pack)
        here = (places[low:high] - start, columns[low:high], values[low:high])
        _block_forward(given, own[start:stop], others[start:stop], peak[start:stop], here, memory, kept)
        low = high
        if kept:
            for i in range(start, stop):
                scale[i] = weight[i] / (others[i] + own[i, 0])
            out = grad_query[start * deep :]
            _block_back(given, query[start:stop], peak[start:stop], scale[start:stop], memory, out, grad_columns)
