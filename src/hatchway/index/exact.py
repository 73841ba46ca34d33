"""Exact search: every query against every vector, in blocks, so that no [Q, N] matrix is ever whole in memory.

It is the oracle of every other index: recall is measured against it, and it has nothing that could be tuned wrongly.
"""

import numpy as np
import numpy.typing as npt
import torch

from hatchway.index.protocol import (
    Float32,
    Int64,
    Neighbours,
    checked_k,
    checked_rows,
    checked_vectors,
    in_order,
    nothing,
)

_QUERIES_AT_ONCE = 256
_VECTORS_AT_ONCE = 65_536


class ExactIndex:
    """The vectors themselves, scored one and all.

    Args:
        vectors: [N, d] item vectors; row numbers in answers are rows of this array. Not copied where it is float32.
        rows: the row numbers to be found; all where None.

    Raises:
        DataError: a vector is not finite, or a row number is out of range or there twice.
    """

    def __init__(self, vectors: npt.ArrayLike, rows: npt.ArrayLike | None = None) -> None:
        whole = checked_vectors(vectors, "item vectors")
        self._rows: Int64 = checked_rows(rows, len(whole))
        self._vectors: Float32 = whole if rows is None else whole[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def dimension(self) -> int:
        """The numbers in a vector, d."""
        return int(self._vectors.shape[1])

    def search(self, queries: npt.ArrayLike, k: int) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries, as :class:`~hatchway.index.protocol.Index` says.

        Where several rows tie for the last place, any of them may take it.
        """
        checked = checked_vectors(queries, "queries", self.dimension)
        scores, rows = nothing(len(checked), checked_k(k))
        kept = min(k, len(self))
        if kept == 0:
            return Neighbours(scores, rows)
        for begin in range(0, len(checked), _QUERIES_AT_ONCE):
            end = begin + _QUERIES_AT_ONCE
            best, positions = self._best(torch.from_numpy(checked[begin:end]), kept)
            block = in_order(best.numpy(), self._rows[positions.numpy()])
            scores[begin:end, :kept], rows[begin:end, :kept] = block
        return Neighbours(scores, rows)

    @torch.inference_mode()
    def _best(self, queries: torch.Tensor, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the [q, kept] best scores and their positions, one block of vectors after another."""
        scores = torch.empty(len(queries), 0)
        positions = torch.empty(len(queries), 0, dtype=torch.int64)
        for begin in range(0, len(self), _VECTORS_AT_ONCE):
            block = torch.from_numpy(self._vectors[begin : begin + _VECTORS_AT_ONCE])
            new_scores, new_positions = (queries @ block.T).topk(min(kept, len(block)), dim=1)
            scores = torch.cat([scores, new_scores], dim=1)
            positions = torch.cat([positions, new_positions + begin], dim=1)
            if scores.shape[1] > kept:
                scores, chosen = scores.topk(kept, dim=1)
                positions = positions.gather(1, chosen)
        return scores, positions


def true_scores(vectors: Float32, queries: Float32, rows: Int64) -> npt.NDArray[np.float64]:
    """Return the [Q, k] dot products, in float64, of each query with its own rows; -inf where the row is -1.

    Args:
        vectors: [N, d] item vectors.
        queries: [Q, d].
        rows: [Q, k] rows of ``vectors``, or -1.
    """
    gathered = vectors[np.maximum(rows, 0)].astype(np.float64)
    scores = np.einsum("qkd,qd->qk", gathered, queries.astype(np.float64))
    return np.where(rows >= 0, scores, -np.inf)
