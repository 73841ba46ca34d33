"""Cells of vectors by direction: spherical k-means, whose every assignment is an exact search for the best centre."""

import numpy as np
import numpy.typing as npt

from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Float32, Int64
from hatchway.randomness import stream

_POINTS_PER_CELL = 64
"""Vectors for each cell that the centres are found from; more cost time and change recall by less than 0.1 %."""

_ROUNDS = 10
_SMALLEST = np.float32(1e-30)


def centres_of(vectors: Float32, rows: Int64, cells: int, seed: int) -> Float32:
    """Return the centres of ``cells`` cells, [cells, d] float32, of length 1 (0 where all vectors are zero).

    Each round gives every sampled vector the centre with which its dot product is highest, and moves each centre to the
    mean direction of its vectors (Dhillon and Modha 2001). A centre without vectors goes to where one fits worst.

    Args:
        vectors: [N, d].
        rows: [M] the rows to be sorted into cells.
        cells: how many, at most M.
        seed: which vectors are sampled, and where the centres start.
    """
    random = stream(seed, "index", "cells")
    sampled = np.sort(random.choice(len(rows), size=min(len(rows), cells * _POINTS_PER_CELL), replace=False))
    points = _directions(vectors[rows[sampled]])
    centres = points[np.sort(random.choice(len(points), size=cells, replace=False))]
    for _ in range(_ROUNDS):
        found = ExactIndex(centres).search(points, 1)
        nearest = found.rows[:, 0]
        order = np.argsort(nearest, kind="stable")
        filled, starts = np.unique(nearest[order], return_index=True)
        centres = centres.copy()
        centres[filled] = _directions(np.add.reduceat(points[order], starts, axis=0, dtype=np.float64))
        empty = np.setdiff1d(np.arange(cells), filled)
        centres[empty] = points[np.argsort(found.scores[:, 0], kind="stable")[: len(empty)]]
    return centres


def cells_of(vectors: Float32, centres: Float32) -> Int64:
    """Return the cell of each of the [M, d] vectors, [M] int64: the centre with the highest dot product."""
    return ExactIndex(centres).search(vectors, 1).rows[:, 0]


def _directions(vectors: npt.NDArray[np.floating]) -> Float32:
    """Return vectors of length 1 in the same directions; zero vectors stay."""
    wide = vectors.astype(np.float64)
    longest = np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), _SMALLEST)
    shortened: Float32 = (wide / longest).astype(np.float32)
    return shortened
