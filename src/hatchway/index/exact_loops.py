"""The two loops of exact search: which scores of a tile can still matter, and the best k of those, scored exactly.

Between them lies the proof. A tile's scores are quick and slightly wrong; ``scan`` lets through all that a bound on the
error cannot rule out, and ``settle`` decides by the exact score. Nothing is decided by a score that may be wrong.
"""

import numpy as np
import numpy.typing as npt

from hatchway.compiled import Compiled, CompiledInAnyOrder
from hatchway.index.protocol import Float32, Int64, Mask

Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
Float64 = npt.NDArray[np.float64]

NOWHERE = np.int64(2**62)
"""The position of an empty place, which stands after every other."""

_GROUP, _GROUP_BF16 = 32, 64
"""Scores looked at together: a few vector instructions find out that none of them matters."""


@Compiled
def scan(scores: Float32, thresholds: Float32, columns: Int32, ends: Int64) -> None:
    """List, for each row, the columns whose score reaches the row's threshold.

    Args:
        scores: [b, t].
        thresholds: [b]; -inf lets everything through, whatever the scores are.
        columns: [b * t + 1], written: the columns of row 0, then those of row 1, …, ascending.
        ends: [b], written: where each row's columns end.
    """
    rows, width = scores.shape
    found = 0
    for row in range(rows):
        threshold, line = thresholds[row], scores[row]
        if threshold == -np.inf:
            for column in range(width):
                columns[found] = column
                found += 1
            ends[row] = found
            continue
        for begin in range(0, width, _GROUP):
            end = begin + _GROUP
            if end <= width:
                highest = line[begin]
                for column in range(begin, begin + _GROUP):
                    highest = max(highest, line[column])
                if highest < threshold:
                    continue
            for column in range(begin, min(end, width)):
                columns[found] = column  # written over where it was none
                found += int(line[column] >= threshold)
        ends[row] = found


@Compiled
def scan_bf16(scores: Int16, thresholds: Float32, columns: Int32, ends: Int64) -> None:
    """Do what :func:`scan` does with [b, t] scores in bf16, given as the whole numbers that their bits spell.

    Bits of positive numbers are in the numbers' order, those of negative ones in the opposite order. Where the
    threshold is not positive, all bits but the sign are turned round: then negative numbers are in order, and positive
    ones, all of which reach it, are above them.
    """
    rows, width = scores.shape
    bits = thresholds.view(np.uint32)
    found: int = 0
    for row in range(rows):
        line = scores[row]
        # The threshold is rounded down, so that no score is lost: a positive one by cutting digits off, the size of a
        # negative one by rounding it up. Zero is taken as minus zero, the last of the zeros.
        size, turned, least = bits[row] & np.uint32(0x7FFFFFFF), np.int16(0), np.int16(-0x8000)
        if thresholds[row] > 0:
            least = np.int16(size >> np.uint32(16))
        elif thresholds[row] > -np.inf:
            turned = np.int16(0x7FFF)
            least = np.int16(-1 - ((np.int64(size) + 0xFFFF) >> 16))
        for begin in range(0, width, _GROUP_BF16):
            end = begin + _GROUP_BF16
            if end <= width:
                highest = np.int16(-0x8000)
                for column in range(begin, begin + _GROUP_BF16):
                    highest = max(highest, np.int16(line[column] ^ turned))
                if highest < least:
                    continue
            for column in range(begin, min(end, width)):
                columns[found] = column  # written over where it was none
                found += int(np.int16(line[column] ^ turned) >= least)
        ends[row] = found


@CompiledInAnyOrder
def settle(
    vectors: Float32,
    queries: Float64,
    without: Mask,
    first: int,
    columns: Int32,
    ends: Int64,
    best: Float32,
    places: Int64,
) -> None:
    """Score a tile's listed columns exactly and keep the best k of each query, of this tile and those before.

    Each query's k places are a heap whose root is the worst: the lowest score and, of equal ones, the last position.
    Positions arrive in ascending order, so one that only ties with the root stands behind it and is dropped.

    Args:
        vectors: [M, d].
        queries: [b, d].
        without: [M], True for positions that are kept out; or of length 0.
        first: the position of the tile's column 0.
        columns: the listed columns, query after query, ascending.
        ends: [b], where each query's columns end.
        best: [b, k] scores, changed; -inf in empty places.
        places: [b, k] positions, changed; :data:`NOWHERE` in empty places.
    """
    dimension, size = vectors.shape[1], best.shape[1]
    begin = 0
    for query in range(len(ends)):
        asked, scores, positions = queries[query], best[query], places[query]
        for at in range(begin, ends[query]):
            position = first + columns[at]
            if len(without) > 0 and without[position]:
                continue
            vector = vectors[position]
            total = 0.0
            for number in range(dimension):
                total += np.float64(vector[number]) * asked[number]
            score = np.float32(total)
            if score < scores[0] or (score == scores[0] and position > positions[0]):
                continue
            place = 0  # the root goes; what is worse than the new one moves up
            while True:
                below = 2 * place + 1
                if below >= size:
                    break
                other = below + 1
                if other < size and (
                    scores[other] < scores[below]
                    or (scores[other] == scores[below] and positions[other] > positions[below])
                ):
                    below = other
                if scores[below] > score or (scores[below] == score and positions[below] < position):
                    break
                scores[place], positions[place] = scores[below], positions[below]
                place = below
            scores[place], positions[place] = score, position
        begin = ends[query]


@CompiledInAnyOrder
def scores_of(vectors: Float32, queries: Float32, rows: Int64, scores: Float32) -> None:
    """Score each query with its own rows exactly.

    Args:
        vectors: [N, d].
        queries: [q, d].
        rows: [q, c] row numbers, or -1.
        scores: [q, c], written; -inf where the row is -1.
    """
    dimension = vectors.shape[1]
    asked = np.empty(dimension, np.float64)
    for query in range(len(queries)):
        asked[:] = queries[query]
        for place in range(rows.shape[1]):
            row = rows[query, place]
            total = -np.inf
            if row >= 0:
                total = 0.0
                vector = vectors[row]
                for number in range(dimension):
                    total += np.float64(vector[number]) * asked[number]
            scores[query, place] = np.float32(total)
