"""Metrics against independent implementations, and ties against every order written out."""

from itertools import permutations

import ir_measures
import numpy as np
import pytest
import sklearn.metrics
from ir_measures import AP, RR, R, Success, nDCG

from hatchway.evaluation.metrics import METRICS, average_precision, hit_rate, mrr, ndcg, recall
from hatchway.evaluation.ranks import Ranks

CASES, ITEMS = 40, 60
THEIRS = {"recall": R, "hit_rate": Success, "ndcg": nDCG, "mrr": RR, "map": AP}


def ranks_of(table: np.ndarray, relevant: list[np.ndarray]) -> Ranks:
    """Count better and tied, item by item."""
    offsets = np.concatenate([[0], np.cumsum([len(items) for items in relevant])]).astype(np.int64)
    pairs = [(row > row[i], row == row[i]) for row, items in zip(table, relevant, strict=True) for i in items]
    better, tied = (np.array([int(pair[side].sum()) for pair in pairs]) for side in (0, 1))
    return Ranks(offsets, better, tied)


def random_cases(seed: int, levels: int | None = None) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw scores, distinct or of a few levels, and one to thirty relevant items a case."""
    generator = np.random.default_rng(seed)
    if levels is None:
        table = np.stack([generator.permutation(ITEMS) for _ in range(CASES)]).astype(float)
    else:
        table = generator.integers(levels, size=(CASES, ITEMS)).astype(float)
    counts = generator.integers(1, 31, size=CASES)
    return table, [np.sort(generator.permutation(ITEMS)[:count]) for count in counts]


@pytest.mark.parametrize("k", [1, 5, 20, 60])
@pytest.mark.parametrize("name", METRICS)
def test_random_rankings_agree_with_ir_measures(name: str, k: int) -> None:
    """Case by case, with fewer and with more relevant items than k."""
    table, relevant = random_cases(seed=k)
    qrels = {str(q): {str(i): 1 for i in items} for q, items in enumerate(relevant)}
    run = {str(q): {str(i): float(score) for i, score in enumerate(row)} for q, row in enumerate(table)}
    measure = THEIRS[name] @ k
    theirs = {int(found.query_id): found.value for found in ir_measures.iter_calc([measure], qrels, run)}
    ours = METRICS[name](ranks_of(table, relevant), k)
    np.testing.assert_allclose(ours, [theirs[q] for q in range(CASES)], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("levels", [1, 3, 20])
def test_tied_ndcg_agrees_with_scikit_learn(levels: int, k: int) -> None:
    """Scikit-learn averages over ties, too."""
    table, relevant = random_cases(seed=levels, levels=levels)
    truth = np.zeros_like(table)
    for row, items in zip(truth, relevant, strict=True):
        row[items] = 1
    ours = ndcg(ranks_of(table, relevant), k)
    theirs = [sklearn.metrics.ndcg_score([t], [s], k=k) for t, s in zip(truth, table, strict=True)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("metric", [recall, hit_rate, mrr, ndcg, average_precision])
def test_ties_are_the_mean_over_every_order(metric: object, k: int) -> None:
    """Six items on a few levels: the mean of the metric over all 720 orders that respect the scores."""
    assert callable(metric)
    generator = np.random.default_rng(k)
    for levels in (1, 2, 2, 3, 3, 4):
        scores = generator.integers(levels, size=6).astype(float)
        relevant = np.sort(generator.permutation(6)[: generator.integers(1, 5)])
        # Breaking every tie by a shuffled second key makes each order within the ties equally frequent.
        orders = np.array([scores * 10 + np.array(key) for key in permutations(range(6))])
        exact = metric(ranks_of(scores[None], [relevant]), k)
        mean = metric(ranks_of(orders, [relevant] * len(orders)), k).mean()
        assert exact == pytest.approx([mean], rel=1e-12)
