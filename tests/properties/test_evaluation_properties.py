"""What must hold of ranking and metrics whatever the scores are."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Engagements, Int32, Int64
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.metrics import METRICS, hit_rate, recall
from hatchway.evaluation.ranking import rank_by_item, rank_cases
from hatchway.evaluation.ranks import Ranks

NOTHING = Engagements(
    offsets=np.zeros(2, np.int64),
    buyers=np.zeros(0, np.int32),
    items=np.zeros(0, np.int32),
    parts=np.zeros(0, np.int8),
    weights=np.zeros(0, np.float32),
    query_items=np.zeros(0, np.int32),
    times=None,
    context_end=np.zeros(0, np.int64),
)


class Table:
    """Scores that are written down, one row a buyer."""

    history_length = 0

    def __init__(self, table: np.ndarray) -> None:
        self.table = torch.from_numpy(table)

    def scores(self, contexts: Contexts) -> Tensor:
        """Look the buyers' rows up."""
        return self.table[torch.from_numpy(contexts.buyers.astype(np.int64))]


@st.composite
def rankings(draw: st.DrawFn) -> tuple[np.ndarray, Cases]:
    """Draw scores of a few levels, so that ties are common, and disjoint relevant and excluded items."""
    items, count = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    level = st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 3.0])
    table = np.array(draw(st.lists(st.lists(level, min_size=items, max_size=items), min_size=count, max_size=count)))
    relevant, excluded = [], []
    for _ in range(count):
        order = draw(st.permutations(range(items)))
        split = draw(st.integers(1, items))
        end = draw(st.integers(split, items))
        relevant.append(sorted(order[:split]))
        excluded.append(sorted(order[split:end]))
    return table.astype(np.float32), cases_of(relevant, excluded)


def cases_of(relevant: list[list[int]], excluded: list[list[int]]) -> Cases:
    """Make cases without a history."""
    count = len(relevant)
    none = np.zeros(count, np.int64)

    def ragged(lists: list[list[int]]) -> tuple[Int64, Int32]:
        offsets = np.concatenate([[0], np.cumsum([len(items) for items in lists])]).astype(np.int64)
        return offsets, np.array([item for items in lists for item in items], np.int32)

    buyers = np.arange(count, dtype=np.int32)
    nobody = np.full(count, -1, np.int32)
    return Cases(buyers, nobody, none, none, None, *ragged(relevant), *ragged(excluded))


def slowly(table: np.ndarray, cases: Cases) -> list[tuple[int, int]]:
    """Count better and tied candidates one by one."""
    counts = []
    for case in range(len(cases)):
        out = cases.excluded_items[cases.excluded_offsets[case] : cases.excluded_offsets[case + 1]]
        left = np.delete(table[case], out)
        own = table[case, cases.relevant_items[cases.relevant_offsets[case] : cases.relevant_offsets[case + 1]]]
        counts += [(int((left > score).sum()), int((left == score).sum())) for score in own]
    return counts


@given(rankings(), st.integers(1, 5))
def test_counts_are_those_of_counting_one_by_one(ranking: tuple[np.ndarray, Cases], block: int) -> None:
    """Sorting and searching whole rows comes to the same."""
    table, cases = ranking
    ranks = rank_cases(Table(table), cases, NOTHING, block=block)
    assert list(zip(ranks.better.tolist(), ranks.tied.tolist(), strict=True)) == slowly(table, cases)


@given(rankings(), st.integers(1, 14))
def test_the_fast_path_agrees_with_the_complete_one(ranking: tuple[np.ndarray, Cases], depth: int) -> None:
    """Every metric at every cut-off down to the depth is bit for bit the same."""
    table, cases = ranking
    complete = rank_cases(Table(table), cases, NOTHING)
    fast = rank_cases(Table(table), cases, NOTHING, depth=depth)
    for metric in METRICS.values():
        for k in range(1, depth + 1):
            assert metric(fast, k).tolist() == metric(complete, k).tolist()


@given(rankings())
def test_one_score_an_item_agrees_with_blocks_of_scores(ranking: tuple[np.ndarray, Cases]) -> None:
    """Ranking by one score an item is ranking with that row of scores in every case."""
    table, cases = ranking
    row = table[0].astype(np.float64)
    whole = rank_cases(Table(np.tile(table[0], (len(cases), 1))), cases, NOTHING)
    quick = rank_by_item(row, cases)
    assert quick.better.tolist() == whole.better.tolist()
    assert quick.tied.tolist() == whole.tied.tolist()


@given(rankings(), st.randoms(use_true_random=False))
def test_the_order_of_the_catalogue_does_not_matter(ranking: tuple[np.ndarray, Cases], random: object) -> None:
    """Renumbering the items changes no figure, ties included."""
    table, cases = ranking
    new = np.random.Generator(np.random.PCG64(random.getrandbits(32))).permutation(table.shape[1])  # type: ignore[attr-defined]
    moved = np.empty_like(table)
    moved[:, new] = table

    def renumber(offsets: np.ndarray, items: np.ndarray) -> list[list[int]]:
        return [sorted(new[part].tolist()) for part in np.split(items, offsets[1:-1])]

    renumbered = cases_of(
        renumber(cases.relevant_offsets, cases.relevant_items), renumber(cases.excluded_offsets, cases.excluded_items)
    )
    before, after = (rank_cases(Table(t), c, NOTHING) for t, c in ((table, cases), (moved, renumbered)))
    for metric in METRICS.values():
        np.testing.assert_allclose(metric(after, 3), metric(before, 3), rtol=1e-12)


@given(rankings())
def test_bounds_and_growth_with_k(ranking: tuple[np.ndarray, Cases]) -> None:
    """All lie in [0, 1]; all but ndcg (whose ideal grows, too) never fall as k grows; at the end all is found."""
    table, cases = ranking
    ranks = rank_cases(Table(table), cases, NOTHING)
    end = table.shape[1]
    for name, metric in METRICS.items():
        values = np.stack([metric(ranks, k) for k in range(1, end + 1)])
        assert values.min() >= 0
        assert values.max() <= 1 + 1e-12
        if name != "ndcg":
            assert np.diff(values, axis=0).min(initial=0) >= -1e-12
    np.testing.assert_allclose(recall(ranks, end), 1)
    np.testing.assert_allclose(hit_rate(ranks, end), 1)


@given(st.integers(1, 200), st.integers(0, 50), st.integers(1, 60), st.integers(1, 20))
def test_a_collapsed_model_scores_k_of_n(candidates: int, excluded: int, k: int, cases: int) -> None:
    """Whatever is excluded, recall@k is min(k, n)/n of the n candidates that are left, exactly."""
    table = np.full((cases, candidates + excluded), 0.1, np.float32)
    asked = cases_of([[0]] * cases, [list(range(1, excluded + 1))] * cases)
    values = recall(rank_cases(Table(table), asked, NOTHING, depth=60), k)
    assert values.tolist() == [min(k, candidates) / candidates] * cases


@given(rankings())
def test_slices_of_the_relevant_items_add_up(ranking: tuple[np.ndarray, Cases]) -> None:
    """Hits of two complementary slices are all hits, because both keep the ranks among all candidates."""
    table, cases = ranking
    ranks: Ranks = rank_cases(Table(table), cases, NOTHING)
    chosen = cases.relevant_items % 2 == 0
    total = 0.0
    for mask in (chosen, ~chosen):
        if mask.any():
            part, _ = ranks.only(mask)
            total += float((recall(part, 2) * part.relevant).sum())
    np.testing.assert_allclose(total, (recall(ranks, 2) * ranks.relevant).sum(), rtol=1e-12)
