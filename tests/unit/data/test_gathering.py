"""Contexts and known ranges are the same with compiled loops and without."""

import numpy as np
import pytest

from hatchway import compiled
from hatchway.data.contexts import contexts_of, gathered_ranges
from hatchway.data.engagements import Engagements, Part, known_ranges


def log(random: np.random.Generator) -> Engagements:
    """Make a log of 40 buyers, some with nothing, many rows at the same time, and every part of a split."""
    sizes = random.integers(0, 60, size=40)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    buyers = np.repeat(np.arange(40), sizes).astype(np.int32)
    number = len(buyers)
    times = random.integers(30, size=number) * 40_000
    times = times[np.lexsort((times, buyers))]
    place = np.arange(number) - offsets[buyers]
    return Engagements(
        offsets=offsets,
        buyers=buyers,
        items=random.integers(25, size=number).astype(np.int32),
        parts=np.where(place < sizes[buyers] * 0.7, Part.TRAIN, Part.TEST).astype(np.int8),
        weights=np.ones(number, np.float32),
        query_items=np.full(number, -1, np.int32),
        times=times,
        context_end=np.searchsorted(buyers * 10**7 + times, buyers * 10**7 + times).astype(np.int64),
    )


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("days", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("history", [0, 3, 100])
def test_both_ways_find_the_same(seed: int, days: float, history: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges, histories and their offsets, for all rows in any order."""
    random = np.random.Generator(np.random.PCG64(seed))
    engagements = log(random)
    rows = random.permutation(len(engagements.buyers))
    found: list[list[np.ndarray]] = []
    for way in (True, False):
        monkeypatch.setattr(compiled, "available", lambda way=way: way)
        begin, end = known_ranges(engagements, rows, days)
        contexts = contexts_of(engagements, rows, history)
        known = gathered_ranges(engagements.items, begin, end)
        found.append([begin, end, contexts.buyers, contexts.history, contexts.history_offsets, *known])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("way", [True, False] if compiled.available() else [False])
def test_ranges_by_hand(way: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """2:4, nothing, nothing (it ends before it begins), 0:1."""
    monkeypatch.setattr(compiled, "available", lambda: way)
    found, offsets = gathered_ranges(np.array([5, 6, 7, 8], np.int32), np.array([2, 1, 3, 0]), np.array([4, 1, 2, 1]))
    assert found.tolist() == [7, 8, 5]
    assert offsets.tolist() == [0, 2, 2, 2, 3]
