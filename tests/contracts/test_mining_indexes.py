"""Every index gives the same mined set whatever the block of queries, near and exact ties among the items included."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from earlier_models import BuyerQueries, WholeMatrix

from hatchway.data.engagements import Engagements
from hatchway.index.approximate import build_ivf
from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Index
from hatchway.randomness import stream
from hatchway.training.mining.mine import Earlier, mine
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings

ITEMS, BUYERS = 3_000, 150
Float32 = npt.NDArray[np.float32]


def vectors_of(seed: int) -> Float32:
    """Make items in groups: a third copies of others, to the bit, and a third near copies."""
    rng = stream(seed, "mining indexes")
    vectors = rng.standard_normal((ITEMS, 16)).astype(np.float32)
    vectors[1_000:2_000] = vectors[:1_000]
    vectors[2_000:] = vectors[:1_000] * np.float32(1 + 2**-22)
    return vectors


INDEXES: dict[str, Callable[[Float32], Index]] = {
    "exact": ExactIndex,
    "ivf-sq8": lambda vectors: build_ivf(vectors, cells=30),
}


def log_of_buyers() -> Engagements:
    """Make a log of one engagement a buyer."""
    every = np.arange(BUYERS, dtype=np.int64)
    return Engagements(
        offsets=np.arange(BUYERS + 1, dtype=np.int64),
        buyers=every.astype(np.int32),
        items=(every * 7).astype(np.int32),
        parts=np.zeros(BUYERS, np.int8),
        weights=np.ones(BUYERS, np.float32),
        query_items=np.full(BUYERS, -1, np.int32),
        times=every,
        context_end=every,
    )


def mined_with(earlier: Earlier, engagements: Engagements, at_once: int) -> Mined:
    """Mine ranks 21 to 120 for everybody."""
    settings = MiningSettings(first_rank=21, last_rank=120, cap=5, queries_at_once=at_once)
    return mine(earlier, np.arange(BUYERS, dtype=np.int64), RowFilter(engagements), settings, seed=2)


@pytest.mark.parametrize("name", INDEXES)
def test_blocks_change_nothing(name: str) -> None:
    """One query at a time, seven, all: to the bit the same candidates, ranks and scores."""
    vectors, engagements = vectors_of(1), log_of_buyers()
    buyers = stream(1, "mining indexes", "buyers").standard_normal((BUYERS, 16)).astype(np.float32)
    every = np.arange(ITEMS, dtype=np.int64)
    index = INDEXES[name](vectors)
    earlier = Earlier(index.search, vectors, every, every, BuyerQueries(engagements, buyers))
    whole = mined_with(earlier, engagements, 512)
    for at_once in (1, 7, 64):
        some = mined_with(earlier, engagements, at_once)
        for part in ("offsets", "items", "scores", "ranks", "reasons", "positive_ranks"):
            assert np.array_equal(getattr(some, part), getattr(whole, part)), (at_once, part)


def test_exact_search_mines_what_the_whole_matrix_does() -> None:
    """The index of a bundle and the obvious search agree on every rank, ties by row number."""
    vectors, engagements = vectors_of(3), log_of_buyers()
    buyers = stream(3, "mining indexes", "buyers").standard_normal((BUYERS, 16)).astype(np.float32)
    every = np.arange(ITEMS, dtype=np.int64)
    matrix = Earlier(WholeMatrix(vectors).search, vectors, every, every, BuyerQueries(engagements, buyers))
    one = mined_with(matrix, engagements, 64)
    other = mined_with(replace(matrix, search=ExactIndex(vectors).search), engagements, 64)
    parts: list[Any] = [(getattr(one, part), getattr(other, part)) for part in ("items", "ranks", "scores", "reasons")]
    assert all(np.array_equal(first, second) for first, second in parts)
    assert len(one.items) == 5 * BUYERS + (one.reasons != 0).sum()


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("first", [2_990, 3_001])
def test_a_window_that_reaches_below_the_last_item_ends_there(name: str, first: int) -> None:
    """Whoever wants all ranks writes some large number: the same is mined, and in no more memory."""
    vectors, engagements = vectors_of(1), log_of_buyers()
    buyers = stream(1, "mining indexes", "buyers").standard_normal((BUYERS, 16)).astype(np.float32)
    every = np.arange(ITEMS, dtype=np.int64)
    index = INDEXES[name](vectors)
    earlier = Earlier(index.search, vectors, every, every, BuyerQueries(engagements, buyers))
    rows, rules = np.arange(BUYERS, dtype=np.int64), RowFilter(engagements)
    near, far = (
        mine(earlier, rows, rules, MiningSettings(first_rank=first, last_rank=last, cap=5), seed=2)
        for last in (max(first, ITEMS), 10**12)
    )
    for part in ("offsets", "items", "scores", "ranks", "reasons", "positive_ranks"):
        assert np.array_equal(getattr(near, part), getattr(far, part)), part
    assert (len(near.items) == 0) == (first > ITEMS)
