"""Recall against exact search: hand-computed shares."""

import numpy as np
import numpy.typing as npt
import pytest

from hatchway.index.exact import ExactIndex, true_scores
from hatchway.index.recall import recall_at_k

VECTORS = np.array([[5, 0], [4, 0], [4, 0], [3, 0], [0, 1]], np.float32)
QUERY = np.array([[1, 0]], np.float32)


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([0, 1, 2], 1.0),
        ([2, 1, 0], 1.0),  # the order within the k does not matter
        ([0, 1, 3], 2 / 3),
        ([3, 4, -1], 0.0),
        ([0, 0, 0], 1 / 3),  # one row three times is one row
        ([-1, -1, -1], 0.0),
    ],
)
def test_share_of_the_best_three(found: list[int], share: float) -> None:
    """The best three are rows 0, 1 and 2."""
    exact = ExactIndex(VECTORS).search(QUERY, 3)
    assert recall_at_k(VECTORS, QUERY, np.array([found]), exact).tolist() == [pytest.approx(share)]


@pytest.mark.parametrize("found", [[0, 1], [0, 2]])
def test_either_of_two_tied_rows_will_do(found: list[int]) -> None:
    """Rows 1 and 2 tie for the second place; an index that returns the one the oracle did not has lost nothing."""
    exact = ExactIndex(VECTORS).search(QUERY, 2)
    assert recall_at_k(VECTORS, QUERY, np.array([found]), exact).tolist() == [1.0]


def test_fewer_vectors_than_places() -> None:
    """With 5 vectors and 8 places the denominator is 5."""
    exact = ExactIndex(VECTORS).search(QUERY, 8)
    found = np.array([[0, 1, 2, 4, -1, -1, -1, -1]])
    assert recall_at_k(VECTORS, QUERY, found, exact).tolist() == [pytest.approx(4 / 5)]


def test_nothing_to_find() -> None:
    """In an empty catalogue nothing can be missed."""
    nothing = np.empty((0, 2), np.float32)
    exact = ExactIndex(nothing).search(QUERY, 3)
    assert recall_at_k(nothing, QUERY, np.full((1, 3), -1), exact).tolist() == [1.0]


def test_every_query_counts_for_itself() -> None:
    """More queries than a block, each with the share of its own row."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(90, 4)).astype(np.float32)
    queries = generator.normal(size=(300, 4)).astype(np.float32)
    exact = ExactIndex(vectors).search(queries, 10)
    found: npt.NDArray[np.int64] = exact.rows.copy()
    wrong = np.arange(300) % 11
    for row, count in enumerate(wrong):
        found[row, :count] = -1
    np.testing.assert_allclose(recall_at_k(vectors, queries, found, exact), (10 - wrong) / 10)


def test_true_scores_by_hand() -> None:
    """Each query meets its own rows; -1 scores -inf."""
    scores = true_scores(VECTORS, np.array([[1, 0], [0, 2]], np.float32), np.array([[0, 4], [4, -1]]))
    assert scores.tolist() == [[5.0, 0.0], [2.0, -np.inf]]
