"""Bootstrap intervals of a mean over cases."""

import numpy as np

from hatchway.data.engagements import Int32, Int64
from hatchway.evaluation.ranks import Float64

_DRAWS_AT_ONCE = 2**22


def bootstrap_interval(
    values: Float64, clusters: Int32 | Int64, *, resamples: int, level: float, generator: np.random.Generator
) -> tuple[Float64, Float64] | None:
    """Return the percentile bootstrap interval of each column's mean (Efron & Tibshirani 1993, chapter 13).

    Whole clusters are drawn with replacement, as many as there are, because cases of one buyer are not independent; the
    mean is over the cases drawn. All columns see the same resamples.

    Args:
        values: [Q, M] one row a case.
        clusters: [Q] the buyer of each case.
        resamples: how many means are drawn.
        level: coverage, e.g. 0.95.
        generator: the random stream.

    Returns:
        [M] lower and [M] upper bounds; None where there are fewer than two clusters or no resamples, since nothing is
        then known of the spread.
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    counts = np.bincount(cluster)
    size = len(counts)
    if size < 2 or resamples < 1:
        return None
    sums = np.add.reduceat(values[np.argsort(cluster, kind="stable")], np.cumsum(counts) - counts, axis=0)
    means = np.empty((resamples, values.shape[1]))
    step = max(1, _DRAWS_AT_ONCE // size)
    for begin in range(0, resamples, step):
        here = min(step, resamples - begin)
        drawn = generator.integers(size, size=(here, size), dtype=np.int32).astype(np.int64)
        drawn += np.arange(here)[:, None] * size
        weights = np.bincount(drawn.ravel(), minlength=here * size).reshape(here, size).astype(np.float64)
        means[begin : begin + here] = (weights @ sums) / (weights @ counts)[:, None]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
