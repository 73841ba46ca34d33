"""Metrics of single cases, worked out by hand."""

from fractions import Fraction
from math import log2

import numpy as np
import pytest

from hatchway.errors import DataError, UsageError
from hatchway.evaluation.metrics import METRICS, average_precision, hit_rate, mrr, ndcg, recall
from hatchway.evaluation.ranks import Ranks


def ranks(*cases: list[tuple[int, int]]) -> Ranks:
    """Write ranks case by case, each relevant item as (better, tied)."""
    flat = np.array([pair for case in cases for pair in case], np.int64).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum([len(case) for case in cases])]).astype(np.int64)
    return Ranks(offsets, flat[:, 0], flat[:, 1])


# Without ties, "better" is the position less one. Three cases: relevant at positions 1, 3 and 6; at 2; at 11.
PLAIN = ranks([(0, 1), (2, 1), (5, 1)], [(1, 1)], [(10, 1)])


@pytest.mark.parametrize(
    ("metric", "k", "expected"),
    [
        (recall, 2, [1 / 3, 1, 0]),
        (recall, 3, [2 / 3, 1, 0]),
        (recall, 11, [1, 1, 1]),
        (hit_rate, 1, [1, 0, 0]),
        (hit_rate, 10, [1, 1, 0]),
        (mrr, 1, [1, 0, 0]),
        (mrr, 11, [1, 1 / 2, 1 / 11]),
        (ndcg, 1, [1, 0, 0]),
        # The best two positions hold 1 + 1/log2(3) where there are several relevant items, 1 where there is one.
        (ndcg, 2, [1 / (1 + 1 / log2(3)), 1 / log2(3), 0]),
        (ndcg, 6, [(1 + 1 / 2 + 1 / log2(7)) / (1 + 1 / log2(3) + 1 / 2), 1 / log2(3), 0]),
        (average_precision, 2, [(1 / 1) / 3, 1 / 2, 0]),
        (average_precision, 6, [(1 / 1 + 2 / 3 + 3 / 6) / 3, 1 / 2, 0]),
    ],
)
def test_without_ties(metric: object, k: int, expected: list[float]) -> None:
    """Every case has the value that its positions give."""
    assert callable(metric)
    np.testing.assert_allclose(metric(PLAIN, k), expected, rtol=1e-12)


def test_one_relevant_item_in_a_tie() -> None:
    """One of four candidates at positions 3 to 6 is relevant: each position has a chance of a quarter."""
    tied = ranks([(2, 4)])
    assert recall(tied, 2) == [0]
    assert recall(tied, 5) == [0.75]
    assert hit_rate(tied, 5) == pytest.approx([0.75])
    assert mrr(tied, 5) == pytest.approx([(1 / 3 + 1 / 4 + 1 / 5) / 4])
    assert average_precision(tied, 5) == pytest.approx([(1 / 3 + 1 / 4 + 1 / 5) / 4])
    assert ndcg(tied, 5) == pytest.approx([(1 / log2(4) + 1 / log2(5) + 1 / log2(6)) / 4])


def test_several_relevant_items_in_one_tie() -> None:
    """Two of three tied candidates are relevant: the orders are RRN, RNR, NRR, each with a third."""
    tied = ranks([(0, 3), (0, 3)])
    assert recall(tied, 1) == pytest.approx([(1 / 2 + 1 / 2 + 0) / 3])
    assert recall(tied, 2) == pytest.approx([(1 + 1 / 2 + 1 / 2) / 3])
    assert hit_rate(tied, 1) == pytest.approx([2 / 3])
    assert hit_rate(tied, 2) == pytest.approx([1])  # two places always hold at least one of the two
    assert mrr(tied, 3) == pytest.approx([(1 + 1 + 1 / 2) / 3])
    first, second, third = (1 + 2 / 2) / 2, (1 + 2 / 3) / 2, (1 / 2 + 2 / 3) / 2
    assert average_precision(tied, 3) == pytest.approx([(first + second + third) / 3])


def test_ties_of_several_runs_in_one_case() -> None:
    """A relevant item alone on top, then one in a tie of two: it stands at 2 or 3, and counts the one above it."""
    mixed = ranks([(0, 1), (1, 2)])
    assert average_precision(mixed, 3) == pytest.approx([(1 + (2 / 2 + 2 / 3) / 2) / 2])
    assert mrr(mixed, 3) == pytest.approx([1])
    assert hit_rate(mixed, 2) == pytest.approx([1])


@pytest.mark.parametrize("k", [1, 7, 50])
def test_a_collapsed_model_scores_k_of_n(k: int) -> None:
    """All N scores equal, one relevant item: recall and hit rate are k/N and no more."""
    n = 1000
    collapsed = ranks([(0, n)])
    assert recall(collapsed, k) == [k / n]
    assert hit_rate(collapsed, k)[0] == pytest.approx(k / n, rel=1e-12)
    assert mrr(collapsed, k)[0] == pytest.approx(sum(1 / p for p in range(1, k + 1)) / n, rel=1e-12)


def test_a_collapsed_model_with_many_relevant_items() -> None:
    """Hit rate follows the hypergeometric law: 1 - C(990, 20) / C(1000, 20) with 10 of 1000 relevant."""
    none = Fraction(1)
    for drawn in range(20):
        none *= Fraction(990 - drawn, 1000 - drawn)
    collapsed = ranks([(0, 1000)] * 10)
    assert hit_rate(collapsed, 20)[0] == pytest.approx(float(1 - none), rel=1e-12)
    assert recall(collapsed, 20)[0] == pytest.approx(0.02, rel=1e-12)


def test_mean_position_of_a_tie() -> None:
    """At the mean position a tie of three at 4..6 stands at 5, a tie of two at 10..11 at 11, one alone where it is."""
    settled = ranks([(3, 3), (9, 2), (12, 1)]).at_mean()
    assert settled.better.tolist() == [4, 10, 12]
    assert recall(settled, 10) == pytest.approx([1 / 3])
    assert recall(settled, 11) == pytest.approx([2 / 3])


@pytest.mark.parametrize("metric", METRICS.values())
def test_cut_offs_that_mean_nothing_are_refused(metric: object) -> None:
    """Zero is no cut-off, and ranks known to position 10 say nothing about position 11."""
    assert callable(metric)
    shallow = Ranks(np.array([0, 1]), np.array([10]), np.array([1]), depth=10)
    assert metric(shallow, 10) == [0]
    with pytest.raises(UsageError, match=r"k = 11.*position 10"):
        metric(shallow, 11)
    with pytest.raises(UsageError, match="k = 0"):
        metric(shallow, 0)


def test_a_case_without_relevant_items_is_refused() -> None:
    """No metric is defined for it, so it does not become a silent zero."""
    with pytest.raises(DataError, match="case 1 has no relevant item"):
        Ranks(np.array([0, 1, 1]), np.array([0]), np.array([1]))


def test_only_keeps_ranks_and_drops_cases_without_any() -> None:
    """The chosen items keep their positions among all candidates."""
    some, kept = PLAIN.only(np.array([False, True, True, False, True]))
    assert kept.tolist() == [0, 2]
    assert some.better.tolist() == [2, 5, 10]
    assert some.offsets.tolist() == [0, 2, 3]


def test_tied_share_looks_no_deeper_than_the_ranks_are_known() -> None:
    """Of the items above the depth one of two is tied; the one below says nothing."""
    known = Ranks(np.array([0, 3]), np.array([0, 4, 10]), np.array([1, 3, 1]), depth=10)
    assert known.tied_share() == 0.5
    assert np.isnan(Ranks(np.array([0, 1]), np.array([10]), np.array([1]), depth=10).tied_share())
