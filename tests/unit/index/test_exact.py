"""Exact search: no answer depends on what the quick scores are made of, on guesses, or on the machine's switches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.index import exact as module
from hatchway.index.error_bounds import Lengths, error_bounds, lengths, thresholds
from hatchway.index.exact import ExactIndex, Products

Vectors = npt.NDArray[np.float32]
Make = Callable[[Vectors], ExactIndex]

WAYS: dict[str, tuple[Products, bool]] = {
    "bf16": ("bf16", True),
    "float32": ("float32", True),
    "bf16, plain": ("bf16", False),
    "float32, plain": ("float32", False),
}


@pytest.fixture(params=list(WAYS))
def make(request: pytest.FixtureRequest) -> Make:
    """Give every way of making quick scores its turn."""
    products, use_compiled = WAYS[request.param]
    return lambda vectors: ExactIndex(vectors, products=products, use_compiled=use_compiled)


def _slow(vectors: Vectors, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Rank by the whole matrix in float64, rounded once, equal scores by row number."""
    with np.errstate(over="ignore"):
        scores = (queries.astype(np.float64) @ vectors.astype(np.float64).T).astype(np.float32)
    order = np.lexsort((np.broadcast_to(np.arange(len(vectors)), scores.shape), -scores), axis=-1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), order


def _drawn(seed: int, *shape: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SHAPES: dict[str, Callable[[], Vectors]] = {
    "lengths from 1e-4 to 1e4": lambda: _drawn(1, 5000, 12) * np.exp(3 * _drawn(2, 5000, 1)),
    "one very long": lambda: (
        _drawn(1, 5000, 12) * np.where(np.arange(5000) == 4321, 1e6, 1)[:, None].astype(np.float32)
    ),
    "near each other": lambda: (1 + 1e-3 * _drawn(1, 5000, 12)).astype(np.float32),
    "all alike": lambda: np.ones((5000, 12), np.float32),
    "all zero": lambda: np.zeros((5000, 12), np.float32),
    "few different": lambda: np.repeat(_drawn(1, 5, 12), 1000, axis=0),
    "whole numbers": lambda: np.round(2 * _drawn(1, 5000, 12)),
    "negative": lambda: -np.abs(_drawn(1, 5000, 12)),
    "too small for normal numbers": lambda: _drawn(1, 5000, 12) * np.float32(1e-39),
    "very small": lambda: _drawn(1, 5000, 12) * np.float32(1e-25),
    "scores beyond float32": lambda: _drawn(1, 5000, 12) * np.float32(5e37),
    "ascending scores": lambda: np.sort(np.abs(_drawn(1, 5000, 12)), axis=0),
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_answer_is_the_slow_one(make: Make, shape: str) -> None:
    """To the last bit, ties included, on vectors that quick scores cannot tell apart or cannot hold."""
    vectors, queries = SHAPES[shape](), _drawn(3, 9, 12)
    if shape in {"negative", "ascending scores"}:
        queries = np.abs(queries)
    if shape == "whole numbers":
        queries = np.round(queries)
    index = make(vectors)
    for k in (1, 60, 3000):
        scores, rows = _slow(vectors, queries, k)
        found = index.search(queries, k)
        np.testing.assert_array_equal(found.rows, rows)
        np.testing.assert_array_equal(found.scores, scores)


@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 12),
    st.sampled_from([1.0, 1e-42, 1e-20, 3e18]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_any_small_vectors(count: int, asked: int, dimension: int, k: int, scale: float, seed: int) -> None:
    """Vectors with many equal scores, of any size of numbers."""
    random = np.random.default_rng(seed)
    vectors = (random.integers(-3, 4, (count, dimension)) * scale).astype(np.float32)
    queries = (random.integers(-3, 4, (asked, dimension)) / 4).astype(np.float32)
    without = random.random(count) < 0.3
    scores, rows = _slow(vectors, queries, count)
    for products, use_compiled in WAYS.values():
        found = ExactIndex(vectors, products=products, use_compiled=use_compiled).search(queries, k, without=without)
        for query in range(asked):
            left = [place for place, row in enumerate(rows[query]) if not without[row]][:k]
            assert found.rows[query, : len(left)].tolist() == rows[query, left].tolist()
            assert found.scores[query, : len(left)].tolist() == scores[query, left].tolist()
            assert (found.rows[query, len(left) :] == -1).all()


@contextmanager
def _guessing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let small catalogues be guessed about, too, and count the queries that were searched for a second time."""
    again: list[int] = []
    honest = ExactIndex._compiled

    def counted(index: ExactIndex, asked: Vectors, kept: int, blocked: Any, *, guessing: bool = True) -> Any:
        if not guessing:
            again.append(len(asked))
        return honest(index, asked, kept, blocked, guessing=guessing)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_SAMPLED_FROM", 2000)
        patch.setattr(ExactIndex, "_compiled", counted)
        yield again


@pytest.mark.parametrize("products", ["bf16", "float32"])
def test_a_guess_is_confirmed_or_searched_for_again(products: Products, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors in any order seldom need a second search; where the sample holds the best of all, every query does."""
    vectors, queries = _drawn(5, 40_000, 8), _drawn(6, 20, 8)
    scores, rows = _slow(vectors, queries, 100)
    with _guessing(monkeypatch) as again:
        found = ExactIndex(vectors, products=products).search(queries, 100)
        assert again == []
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)
    vectors[::16] *= 100
    scores, rows = _slow(vectors, queries, 2000)
    with _guessing(monkeypatch) as again:
        found = ExactIndex(vectors, products=products).search(queries, 2000)
        assert sum(again) == 20
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)


def test_a_guess_knows_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nine of ten rows are kept out, the guess is of the tenth."""
    vectors, queries = _drawn(7, 40_000, 8), _drawn(8, 10, 8)
    without = np.random.default_rng(9).random(40_000) < 0.9
    left = np.flatnonzero(~without)
    scores, places = _slow(vectors[left], queries, 100)
    chosen = np.setdiff1d(np.arange(40_000), np.arange(5))
    with _guessing(monkeypatch) as again:
        for index in (ExactIndex(vectors), ExactIndex(vectors, chosen)):
            found = index.search(queries, 100, without=without)
            np.testing.assert_array_equal(found.scores, scores)
            np.testing.assert_array_equal(found.rows, left[places])
        assert again == []


def test_switches_for_less_precision_change_nothing() -> None:
    """A program may let PyTorch multiply float32 as bf16 or TF32; the bound on the error then is wider."""
    vectors, queries = _drawn(10, 6000, 16), _drawn(11, 12, 16)
    scores, rows = _slow(vectors, queries, 40)
    backends: Any = torch.backends
    switch = backends.mkldnn.matmul
    before = switch.fp32_precision
    try:
        switch.fp32_precision = "bf16"
        for use_compiled in (True, False):
            found = ExactIndex(vectors, products="float32", use_compiled=use_compiled).search(queries, 40)
            np.testing.assert_array_equal(found.rows, rows)
            np.testing.assert_array_equal(found.scores, scores)
    finally:
        switch.fp32_precision = before


def test_threads_change_nothing() -> None:
    """Queries are answered by as many threads as PyTorch has, each with blocks of its own."""
    vectors, queries = _drawn(12, 3000, 8), _drawn(13, 700, 8)
    index, before = ExactIndex(vectors), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = index.search(queries, 30)
        torch.set_num_threads(3)
        three = index.search(queries, 30)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(one.rows, three.rows)
    np.testing.assert_array_equal(one.scores, three.scores)


@pytest.mark.parametrize("dimension", [1, 7, 64, 300])
@pytest.mark.parametrize("full", [True, False])
def test_the_bound_holds_and_is_not_wide(dimension: int, full: bool) -> None:
    """No quick score is further from the true one; and the worst is within a factor that keeps the filter of use."""
    vectors, queries = torch.from_numpy(_drawn(14, 4000, dimension)), torch.from_numpy(_drawn(15, 50, dimension))
    entered, asked = (vectors.bfloat16(), queries.bfloat16()) if full else (vectors, queries)
    within, lost = lengths(vectors, entered)
    bounds = error_bounds(
        queries,
        asked,
        Lengths(within.max().reshape(1).numpy(), lost.max().reshape(1).numpy()),
        full_precision=full,
    )
    quick = (
        (asked.float() @ entered.float().T).double() if full else (queries.bfloat16() @ vectors.bfloat16().T).double()
    )
    off = (quick - queries.double() @ vectors.double().T).abs().amax(dim=1).numpy()
    assert (off <= bounds[:, 0]).all()
    assert (bounds[:, 0] < 0.02 * queries.norm(dim=1).numpy() * float(within.max())).all()


def test_thresholds_are_rounded_down() -> None:
    """What lies on the bound passes; an unknown or overflowing bound lets everything pass."""
    worst = np.array([1, -1, 0, -np.inf, np.inf, 3e38], np.float32)
    found = thresholds(worst, np.array([0.1, 0.1, 0, 0.1, 0.1, np.inf]))
    assert found[0] <= 0.9 - 1e-9
    assert found[0] > 0.8999
    assert -1.1001 < found[1] <= -1.1 - 1e-9
    assert found[2:].tolist() == [0.0, -np.inf, -np.inf, -np.inf]
