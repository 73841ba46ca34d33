"""Ranking metrics of single cases, with ties in expectation.

Every function takes :class:`~hatchway.evaluation.ranks.Ranks` of Q cases and a cut-off k and returns [Q] float64, one
value a case; the mean over cases is the caller's. Relevance is binary.

Where scores tie, each metric is its expected value under a uniformly random order within the tie, exactly, in closed
form (after McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence of tied
scores", ECIR 2008). So the order in which a sort happens to leave equal scores can neither flatter nor hurt, and a
collapsed model, which gives every one of N candidates the same score, has recall@k = k/N.

Denominators, because the field has several: recall and average precision divide by all the case's relevant items, also
where there are more of them than k (so that the largest possible value is then below 1); ndcg divides by the best
dcg that k positions allow.
"""

import numpy as np

from hatchway.data.engagements import Int64
from hatchway.errors import UsageError
from hatchway.evaluation.ranks import Float64, Ranks


def recall(ranks: Ranks, k: int) -> Float64:
    """Return the expected share of the case's relevant items in the first k positions: hits / |relevant|.

    Raises:
        UsageError: k is not positive, or deeper than the ranks are known.

    >>> recall(Ranks(np.array([0, 2]), better=np.array([0, 7]), tied=np.array([1, 1])), k=5)
    array([0.5])
    """
    _check(ranks, k)
    inside = np.clip((k - ranks.better) / ranks.tied, 0.0, 1.0)
    return _sum_by_case(inside, ranks.cases, len(ranks)) / ranks.relevant


def hit_rate(ranks: Ranks, k: int) -> Float64:
    """Return the probability that at least one relevant item is in the first k positions.

    Of a run of m equal scores with r relevant items, n reach the first k; none of the r is among them with probability
    C(m - r, n) / C(m, n) (hypergeometric). With one relevant item this is recall.

    Raises:
        UsageError: k is not positive, or deeper than the ranks are known.

    >>> hit_rate(Ranks(np.array([0, 2]), better=np.array([0, 0]), tied=np.array([4, 4])), k=2)  # 1 - (2 of 4)/(2 of 4)
    array([0.83333333])
    """
    _check(ranks, k)
    groups = ranks.groups
    some = np.zeros(len(ranks))
    # All that can matter is the one run that position k cuts; a run that ends before it is a hit for certain.
    some[groups.case[groups.better + groups.size <= k]] = 1.0
    cut = np.flatnonzero((groups.better < k) & (groups.better + groups.size > k))
    size, relevant, places = groups.size[cut], groups.relevant[cut], k - groups.better[cut]
    none = np.ones(len(cut))
    for drawn in range(int(places.max(initial=0))):
        none *= np.where(drawn < places, _still_none(size, relevant, drawn), 1.0)
    some[groups.case[cut]] = np.maximum(some[groups.case[cut]], 1.0 - none)
    return some


def mrr(ranks: Ranks, k: int) -> Float64:
    """Return the expected reciprocal rank of the first relevant item, 0 where it stands below position k.

    Raises:
        UsageError: k is not positive, or deeper than the ranks are known.

    >>> mrr(Ranks(np.array([0, 2]), better=np.array([3, 7]), tied=np.array([1, 1])), k=5)
    array([0.25])
    """
    _check(ranks, k)
    groups = ranks.groups
    better, size, relevant = (a[groups.first] for a in (groups.better, groups.size, groups.relevant))
    total, none = np.zeros(len(ranks)), np.ones(len(ranks))
    for drawn in range(int(np.minimum(size, k - better).max(initial=0))):
        still = none * _still_none(size, relevant, drawn)
        position = better + drawn + 1
        total += np.where(position <= k, (none - still) / position, 0.0)
        none = still
    return total


def ndcg(ranks: Ranks, k: int) -> Float64:
    """Return the expected dcg of the first k positions over the best dcg that k positions allow.

    A relevant item at position p gains 1 / log2(p + 1) (Järvelin & Kekäläinen, TOIS 2002, with binary gains); the best
    has the first min(k, |relevant|) positions relevant.

    Raises:
        UsageError: k is not positive, or deeper than the ranks are known.

    >>> ndcg(Ranks(np.array([0, 1]), better=np.array([2]), tied=np.array([1])), k=5)  # 1 / log2(4)
    array([0.5])
    """
    _check(ranks, k)
    discounts = _sums_up_to(1.0 / np.log2(np.arange(2, k + 2)))
    begin, end = np.minimum(ranks.better, k), np.minimum(ranks.better + ranks.tied, k)
    gain = (discounts[end] - discounts[begin]) / ranks.tied
    return _sum_by_case(gain, ranks.cases, len(ranks)) / discounts[np.minimum(ranks.relevant, k)]


def average_precision(ranks: Ranks, k: int) -> Float64:
    """Return the expected sum of the precisions at the relevant items' positions up to k, over |relevant|.

    Within a run of m equal scores with r relevant items and h relevant items above it, position p (the j-th of the run)
    is relevant with probability r/m, and then h + 1 + (j - 1)(r - 1)/(m - 1) of the first p are expected to be.

    Raises:
        UsageError: k is not positive, or deeper than the ranks are known.

    >>> average_precision(Ranks(np.array([0, 2]), better=np.array([0, 3]), tied=np.array([1, 1])), k=5)
    array([0.75])
    """
    _check(ranks, k)
    groups = ranks.groups
    harmonic = _sums_up_to(1.0 / np.arange(1, k + 1))
    begin, end = np.minimum(groups.better, k), np.minimum(groups.better + groups.size, k)
    slope = (groups.relevant - 1) / np.maximum(groups.size - 1, 1)
    flat = groups.before + 1 - (begin + 1) * slope
    precision = flat * (harmonic[end] - harmonic[begin]) + slope * (end - begin)
    return _sum_by_case(precision * groups.relevant / groups.size, groups.case, len(ranks)) / ranks.relevant


METRICS = {"recall": recall, "hit_rate": hit_rate, "ndcg": ndcg, "mrr": mrr, "map": average_precision}
"""The metrics by the names that reports use; ``map`` is the mean of :func:`average_precision`."""


def _check(ranks: Ranks, k: int) -> None:
    """Refuse a cut-off at which the ranks say nothing."""
    if k < 1:
        raise UsageError(f"k = {k}; a cut-off is a positive number of positions")
    if ranks.depth is not None and k > ranks.depth:
        raise UsageError(f"k = {k}, but these ranks are known down to position {ranks.depth}; rank deeper")


def _still_none(size: Int64, relevant: Int64, drawn: int) -> Float64:
    """Return the chance that the next of a shuffled run is not relevant, given that the first ``drawn`` were not."""
    still: Float64 = np.clip(size - relevant - drawn, 0, None) / np.maximum(size - drawn, 1)
    return still


def _sums_up_to(terms: Float64) -> Float64:
    """Return [len + 1] running sums, from 0."""
    return np.concatenate([np.zeros(1), np.cumsum(terms)])


def _sum_by_case(values: Float64, cases: Int64, count: int) -> Float64:
    """Sum ``values`` by the case each belongs to."""
    return np.bincount(cases, weights=values, minlength=count).astype(np.float64, copy=False)
