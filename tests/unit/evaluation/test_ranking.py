"""Counts of better and tied candidates, small enough to count by eye."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Engagements
from hatchway.errors import FailureError, UsageError
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.metrics import recall
from hatchway.evaluation.ranking import rank_by_item, rank_cases
from hatchway.evaluation.ranks import Ranks

INF = float("inf")


class Table:
    """Scores that are written down, one row a buyer; it hands out views of its own table."""

    history_length = 0

    def __init__(self, rows: list[list[float]]) -> None:
        self.table = torch.tensor(rows)

    def scores(self, contexts: Contexts) -> Tensor:
        """Look up the buyers' rows."""
        return self.table[int(contexts.buyers[0]) : int(contexts.buyers[-1]) + 1]


@pytest.fixture
def log(log_of: Callable[..., Engagements]) -> Engagements:
    """Return a log that nothing is read from."""
    return log_of([[(0, 0, 1.0)]])


def pairs(ranks: Ranks) -> list[tuple[int, int]]:
    """Write ranks as (better, tied)."""
    return list(zip(ranks.better.tolist(), ranks.tied.tolist(), strict=True))


@pytest.mark.parametrize("depth", [None, 6, 100])
def test_better_and_tied_are_counted_among_candidates(
    log: Engagements, cases_of: Callable[..., Cases], depth: int | None
) -> None:
    """Excluded items count for nothing, whatever they score; the scores given are left as they were."""
    table = Table([[5.0, 4.0, 4.0, 4.0, 1.0, 9.0], [-1.0, -2.0, -3.0, -3.0, -1.0, 0.0]])
    before = table.table.clone()
    cases = cases_of(([1, 4], [5, 3]), ([2], []))
    assert pairs(rank_cases(table, cases, log, depth=depth)) == [(1, 2), (3, 1), (4, 2)]
    assert torch.equal(table.table, before)


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_blocks_change_nothing(log: Engagements, cases_of: Callable[..., Cases], block: int) -> None:
    """However the cases are cut into blocks, and at the last short one, the counts are the same."""
    rows = [[float((item * (buyer + 3)) % 7) for item in range(9)] for buyer in range(5)]
    cases = cases_of(*[([buyer, buyer + 4], [buyer + 1]) for buyer in range(5)])
    whole = rank_cases(Table(rows), cases, log)
    assert pairs(rank_cases(Table(rows), cases, log, block=block)) == pairs(whole)


def test_deeper_than_asked_is_not_worked_out(log: Engagements, cases_of: Callable[..., Cases]) -> None:
    """With depth 2 the item at position 4 is only known to stand below 2; a tie across 2 is counted in full."""
    table = Table([[4.0, 3.0, 2.0, 1.0, 0.0], [4.0, 3.0, 3.0, 3.0, 0.0]])
    ranks = rank_cases(table, cases_of(([0, 3], []), ([2], [])), log, depth=2)
    assert pairs(ranks) == [(0, 1), (2, 1), (1, 3)]
    assert ranks.depth == 2


@pytest.mark.parametrize("depth", [None, 1, 2, 10])
def test_minus_infinity_is_a_score_like_any_other(
    log: Engagements, cases_of: Callable[..., Cases], depth: int | None
) -> None:
    """Candidates at -inf tie with each other; what is excluded is not among them."""
    table = Table([[-INF, -INF, -INF, 1.0, -INF, -INF]])
    ranks = rank_cases(table, cases_of(([0], [1, 4])), log, depth=depth)
    if depth == 1:
        assert pairs(ranks) == [(1, 1)]  # too deep to be counted
    else:
        assert pairs(ranks) == [(1, 3)]


def test_a_scorer_that_expands_one_row(log: Engagements, cases_of: Callable[..., Cases]) -> None:
    """One row of scores for all cases, in one piece of memory, is masked case by case."""

    class Same:
        history_length = 0

        def scores(self, contexts: Contexts) -> Tensor:
            return torch.tensor([3.0, 2.0, 1.0]).expand(len(contexts), 3)

    cases = cases_of(([2], [0]), ([2], [1]), ([2], []))
    assert rank_cases(Same(), cases, log).better.tolist() == [1, 1, 2]


@pytest.mark.parametrize("depth", [None, 2])
def test_nan_is_a_failure_that_names_its_place(
    log: Engagements, cases_of: Callable[..., Cases], depth: int | None
) -> None:
    """A NaN has no rank, also on an item that is no candidate."""
    table = Table([[1.0, 2.0, 3.0], [1.0, float("nan"), 3.0]])
    with pytest.raises(FailureError, match="item row 1 for buyer row 1 is NaN"):
        rank_cases(table, cases_of(([0], []), ([0], [1])), log, depth=depth)


def test_a_scorer_of_the_wrong_shape_is_refused(log: Engagements, cases_of: Callable[..., Cases]) -> None:
    """Scores for fewer items than the cases speak of would be read past their end."""
    with pytest.raises(UsageError, match=r"shape \(1, 3\).*N > 7"):
        rank_cases(Table([[1.0, 2.0, 3.0]]), cases_of(([7], [])), log)
    with pytest.raises(UsageError, match="depth = 0"):
        rank_cases(Table([[1.0]]), cases_of(([0], [])), log, depth=0)


@pytest.mark.parametrize("depth", [None, 3])
def test_a_collapsed_model_scores_k_of_its_candidates(
    log: Engagements, cases_of: Callable[..., Cases], depth: int | None
) -> None:
    """Eight candidates of ten remain, all tied: recall@3 is 3/8."""
    ranks = rank_cases(Table([[0.25] * 10]), cases_of(([4], [1, 2])), log, depth=depth)
    assert recall(ranks, 3).tolist() == [3 / 8]


def test_one_score_an_item(cases_of: Callable[..., Cases]) -> None:
    """Without a block of scores the counts are the same, for what is excluded above, at, and below an item."""
    scores = np.array([5, 3, 3, 3, 9, 0])
    cases = cases_of(([1], []), ([1], [4, 2, 5]), ([0, 5], [4]))
    assert pairs(rank_by_item(scores, cases)) == [(2, 3), (1, 2), (0, 1), (4, 1)]
    with pytest.raises(FailureError, match="item row 1 is NaN"):
        rank_by_item(np.array([0.0, np.nan]), cases)


def test_a_block_of_scores_stays_within_its_memory(log: Engagements, cases_of: Callable[..., Cases]) -> None:
    """With 200,000 items at most 83 cases (2^24 scores) are asked for at once, and every case once."""

    class Wide:
        history_length = 0

        def __init__(self) -> None:
            self.asked: list[int] = []

        def scores(self, contexts: Contexts) -> Tensor:
            self.asked.append(len(contexts))
            return torch.zeros(1, 200_000).expand(len(contexts), -1)

    wide = Wide()
    rank_cases(wide, cases_of(*[([7], [])] * 100), log, depth=1)
    assert max(wide.asked) <= 2**24 // 200_000
    assert sum(wide.asked) == 100
