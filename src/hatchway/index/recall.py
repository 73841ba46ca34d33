"""How much of the exact answer an index finds, measured and not assumed."""

import numpy as np
import numpy.typing as npt

from hatchway.index.exact import true_scores
from hatchway.index.protocol import Float32, Int64, Neighbours

_QUERIES_AT_ONCE = 256


def recall_at_k(vectors: Float32, queries: Float32, found: Int64, exact: Neighbours) -> npt.NDArray[np.float64]:
    """Return, for each query, the share of the exact best k that an index found, [Q] float64.

    A found row counts if its true score reaches the k-th best score, so an index that returns another of several tied
    rows has lost nothing; a row returned twice counts once. The denominator is the number of rows that the exact
    search returned (k, or all there are); where that is 0 nothing can be missed, and the share is 1.

    Args:
        vectors: [N, d] item vectors.
        queries: [Q, d].
        found: [Q, k] rows that the index returned, -1 for none.
        exact: the exact search's answer to the same queries and k.

    >>> vectors = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> exact = Neighbours(np.array([[3.0, 2.0]], np.float32), np.array([[2, 1]]))
    >>> recall_at_k(vectors, np.ones((1, 1), np.float32), np.array([[2, 0]]), exact).tolist()
    [0.5]
    """
    shares = np.ones(len(queries))
    lengths = np.linalg.norm(vectors, axis=1)
    for begin in range(0, len(queries) if len(vectors) else 0, _QUERIES_AT_ONCE):
        block = slice(begin, begin + _QUERIES_AT_ONCE)
        asked, rows, best = queries[block], np.sort(found[block], axis=1), exact.rows[block]
        last = np.where(best >= 0, true_scores(vectors, asked, best), np.inf).min(axis=1, keepdims=True)
        # The exact search itself rounds to float32: scores nearer to each other than that are tied.
        longest = np.maximum(lengths[np.maximum(rows, 0)], lengths[np.maximum(best, 0)].max(axis=1, keepdims=True))
        rounding = vectors.shape[1] * np.finfo(np.float32).eps * longest * np.linalg.norm(asked, axis=1)[:, None]
        again = np.zeros(rows.shape, bool)
        again[:, 1:] = rows[:, 1:] == rows[:, :-1]
        hits = (true_scores(vectors, asked, rows) >= last - rounding) & ~again & (rows >= 0)
        wanted = (best >= 0).sum(axis=1)
        shares[block] = np.where(wanted > 0, np.minimum(hits.sum(axis=1), wanted) / np.maximum(wanted, 1), 1.0)
    return shares


def interval_of(shares: npt.NDArray[np.float64]) -> tuple[float, float] | tuple[None, None]:
    """Return where the mean recall of all such queries lies, with 95 % confidence; None twice where there are none.

    The mean of the measured shares and 1.96 standard errors on either side, within 0..1. Where all shares are equal the
    spread says nothing; then at most a share p of the queries is unlike them, with (1 - p)^Q = 5 %, and each could be 0
    or 1.

    Args:
        shares: [Q] of the measured queries.

    >>> tuple(round(end, 3) for end in interval_of(np.array([0.9, 1.0, 1.0, 1.0])))
    (0.926, 1.0)
    >>> tuple(round(end, 3) for end in interval_of(np.ones(256)))
    (0.988, 1.0)
    """
    if not len(shares):
        return None, None
    mean = float(shares.mean())
    if shares.min() == shares.max():
        unlike = 1 - 0.05 ** (1 / len(shares))
        return mean * (1 - unlike), mean + (1 - mean) * unlike
    error = 1.96 * float(shares.std(ddof=1)) / len(shares) ** 0.5
    return max(0.0, mean - error), min(1.0, mean + error)
