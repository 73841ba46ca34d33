"""Every index, through one suite: the same questions, the same right answers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError, DataError, HatchwayError, UsageError
from hatchway.index.approximate import FlatIndex, IvfIndex, build_flat, build_ivf, load_index
from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Index

Build = Callable[[npt.ArrayLike, npt.ArrayLike | None], Index]


def _ivf(vectors: npt.ArrayLike, rows: npt.ArrayLike | None) -> Index:
    """Build an IVF index that looks into every cell, so that its answer must be the exact one."""
    index = build_ivf(vectors, rows)
    index.set_probes(index.cells)
    return index


BUILDS: dict[str, Build] = {"exact": ExactIndex, "flat": build_flat, "ivf-sq8": _ivf}


@pytest.fixture(params=list(BUILDS))
def build(request: pytest.FixtureRequest) -> Build:
    """Give every index its turn."""
    return BUILDS[request.param]


def _draw(seed: int, *shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _ranking(vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> tuple[list[int], list[float]]:
    """Rank by brute force in float64, equal scores by row number."""
    scores = [float(sum(a * b for a, b in zip(map(float, v), map(float, query), strict=True))) for v in vectors]
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    return order, [scores[row] for row in order]


@pytest.mark.parametrize(("count", "dimension", "k"), [(300, 8, 10), (300, 8, 1), (300, 3, 300), (17, 1, 5), (1, 4, 1)])
def test_finds_what_brute_force_finds(build: Build, count: int, dimension: int, k: int) -> None:
    """Rows and scores are those of a float64 loop, best first, on vectors of very different lengths."""
    vectors = _draw(1, count, dimension) * np.exp(_draw(2, count, 1))
    queries = _draw(3, 6, dimension)
    index = build(vectors, None)
    scores, rows = index.search(queries, k)
    assert (len(index), index.dimension) == (count, dimension)
    assert (scores.shape, rows.shape) == ((6, k), (6, k))
    assert (scores.dtype.name, rows.dtype.name) == ("float32", "int64")
    for query, found_scores, found in zip(queries, scores, rows, strict=True):
        order, wanted = _ranking(vectors, query)
        assert found.tolist() == order[:k]
        np.testing.assert_allclose(found_scores, wanted[:k], rtol=1e-5, atol=1e-5)


def test_long_vectors_win(build: Build) -> None:
    """The score is the raw dot product: the longest vector wins over the one that points the same way."""
    vectors = np.array([[1, 0], [3, 3], [0.1, 0]], np.float32)
    scores, rows = build(vectors, None).search([[2.0, 0.0]], 3)
    assert (rows.tolist(), scores.tolist()) == ([[1, 0, 2]], [[6.0, 2.0, pytest.approx(0.2)]])


def test_negative_scores(build: Build) -> None:
    """Where every score is negative, the best is the least negative one."""
    vectors = -np.abs(_draw(4, 50, 6))
    scores, rows = build(vectors, None).search(np.ones((1, 6)), 4)
    order, wanted = _ranking(vectors, np.ones(6, np.float32))
    assert rows[0].tolist() == order[:4]
    assert scores.max() < 0
    np.testing.assert_allclose(scores[0], wanted[:4], rtol=1e-5)


def test_duplicates_stand_in_row_order(build: Build) -> None:
    """Equal vectors have equal scores, and stand in the order of their rows."""
    vectors = np.repeat(np.array([[1, 1], [2, 2], [0, 1]], np.float32), 4, axis=0)
    scores, rows = build(vectors, None).search([[1.0, 0.0]], 12)
    assert rows[0].tolist() == [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]
    assert scores[0].tolist() == [2.0] * 4 + [1.0] * 4 + [0.0] * 4


def test_a_cut_through_duplicates_takes_different_rows(build: Build) -> None:
    """Where ten rows tie for three places, three different ones of them are returned."""
    vectors = np.concatenate([np.zeros((20, 3)), np.ones((10, 3))]).astype(np.float32)
    scores, rows = build(vectors, None).search([[1.0, 1.0, 1.0]], 3)
    assert len(set(rows[0].tolist()) & set(range(20, 30))) == 3
    assert scores[0].tolist() == [3.0] * 3


def test_zero_vectors(build: Build) -> None:
    """Zero vectors score 0, above negative scores; a zero query ties everything."""
    vectors = np.array([[0, 0], [-1, 0], [0, 0], [-2, 1]], np.float32)
    index = build(vectors, None)
    assert index.search([[1.0, 0.0]], 4).rows.tolist() == [[0, 2, 1, 3]]
    scores, rows = index.search([[0.0, 0.0]], 4)
    assert (rows.tolist(), np.abs(scores).tolist()) == ([[0, 1, 2, 3]], [[0.0] * 4])


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_more_asked_for_than_there_is(build: Build, count: int) -> None:
    """With k above N every row appears once, and -1 with a score of -inf fills the places after."""
    vectors = _draw(5, count, 4)
    scores, rows = build(vectors, None).search(_draw(6, 3, 4), count + 7)
    for found_scores, found in zip(scores, rows, strict=True):
        assert sorted(found[:count].tolist()) == list(range(count))
        assert found[count:].tolist() == [-1] * 7
        assert np.isfinite(found_scores[:count]).all()
        assert found_scores[count:].tolist() == [-np.inf] * 7


@pytest.mark.parametrize("name", ["exact", "flat"])
def test_empty(name: str) -> None:
    """An index of nothing answers with empty places."""
    index = BUILDS[name](np.empty((0, 5), np.float32), None)
    scores, rows = index.search(_draw(7, 2, 5), 3)
    assert len(index) == 0
    assert rows.tolist() == [[-1] * 3] * 2
    assert scores.tolist() == [[-np.inf] * 3] * 2


def test_empty_ivf_is_refused() -> None:
    """There are no cells in nothing; the message says what to build."""
    with pytest.raises(DataError, match="flat"):
        build_ivf(np.empty((0, 5)))


def test_no_queries(build: Build) -> None:
    """No queries, no answers, the right shape."""
    scores, rows = build(_draw(8, 9, 5), None).search(np.empty((0, 5), np.float32), 4)
    assert (scores.shape, rows.shape) == ((0, 4), (0, 4))


def test_more_queries_than_a_block(build: Build) -> None:
    """Blocks of queries and vectors leave no seam."""
    vectors, queries = _draw(9, 500, 4), _draw(10, 601, 4)
    index = build(vectors, None)
    whole = index.search(queries, 7)
    for row in (0, 255, 256, 257, 511, 512, 600):
        np.testing.assert_array_equal(whole.rows[row], _ranking(vectors, queries[row])[0][:7])


def test_many_threads_at_once(build: Build) -> None:
    """A server asks from many threads; each gets the answer to its own question."""
    vectors, queries = _draw(29, 400, 6), _draw(30, 64, 6)
    index = build(vectors, None)
    alone = [index.search(query[None], 1 + place % 9).rows.tolist() for place, query in enumerate(queries)]
    with ThreadPoolExecutor(8) as threads:
        together = threads.map(lambda place: index.search(queries[place : place + 1], 1 + place % 9), range(64))
        assert [found.rows.tolist() for found in together] == alone


def test_any_memory_layout_and_number_type(build: Build) -> None:
    """Strided, Fortran-ordered, float64 and integer arrays give the answers of plain float32 ones."""
    vectors, queries = np.round(_draw(11, 60, 5) * 10), np.round(_draw(12, 4, 5) * 10)
    wanted = build(vectors, None).search(queries, 6)
    wide = np.zeros((120, 10), np.float32)
    wide[::2, ::2] = vectors
    backwards = np.ascontiguousarray(vectors[::-1])[::-1]
    for form in (
        wide[::2, ::2],
        np.asfortranarray(vectors),
        vectors.astype(np.float64),
        vectors.astype(int),
        backwards,
    ):
        for asked in (np.asfortranarray(queries), queries.astype(np.float64), queries[::-1][::-1]):
            got = build(form, None).search(asked, 6)
            np.testing.assert_array_equal(got.scores, wanted.scores)
            np.testing.assert_array_equal(got.rows, wanted.rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_nan_and_infinity_are_refused(build: Build, bad: float) -> None:
    """A vector or query that is not finite (in float32) is refused, and its row named."""
    vectors, queries = _draw(13, 30, 4).astype(np.float64), _draw(14, 3, 4).astype(np.float64)
    index = build(vectors, None)
    queries[2, 1] = bad
    with pytest.raises(DataError, match="row 2 of the queries"):
        index.search(queries, 2)
    vectors[17, 0] = bad
    with pytest.raises(DataError, match="row 17 of the item vectors"):
        build(vectors, None)


@pytest.mark.parametrize("k", [0, -1])
def test_bad_k_is_refused(build: Build, k: int) -> None:
    """No neighbours, or fewer, cannot be asked for."""
    with pytest.raises(UsageError, match=f"k = {k}"):
        build(_draw(15, 5, 4), None).search(_draw(16, 1, 4), k)


@pytest.mark.parametrize("queries", [np.ones(4), np.ones((2, 3)), np.ones((2, 4, 1)), np.ones((2, 4), bool)])
def test_queries_of_another_shape_are_refused(build: Build, queries: npt.NDArray[np.float64]) -> None:
    """Queries must be [Q, d] numbers, with the d of the index."""
    with pytest.raises(DataError, match="queries"):
        build(_draw(17, 5, 4), None).search(queries, 2)


def test_only_the_rows_asked_for(build: Build) -> None:
    """An index of some rows answers with the row numbers of the whole, in any order they were given."""
    vectors = _draw(18, 90, 5)
    queries = _draw(19, 4, 5)
    chosen = np.array([80, 3, 41, 42, 7, 11])
    index = build(vectors, chosen)
    rows = index.search(queries, 10).rows
    assert len(index) == 6
    for query, found in zip(queries, rows, strict=True):
        wanted = [row for row in _ranking(vectors, query)[0] if row in chosen]
        assert found.tolist() == [*wanted, -1, -1, -1, -1]


@pytest.mark.parametrize("rows", [[0, 5], [-1], [2, 2], [[0, 1]]])
def test_rows_that_cannot_be_are_refused(build: Build, rows: list[int]) -> None:
    """A row number out of range, or given twice, is refused."""
    with pytest.raises(DataError, match="rows to be indexed"):
        build(_draw(20, 5, 4), rows)


@pytest.mark.parametrize("ids", [pl.Series([907, 12, -3, 44]), pl.Series(["b/1", "a", "ü", "01"])])
def test_external_ids(build: Build, ids: pl.Series) -> None:
    """Row numbers lead back to the user's own ids, integers or strings."""
    catalogue = Catalogue(pl.DataFrame({"item": ids}))
    index = build(np.array([[1.0], [4.0], [2.0], [3.0]]), None)
    rows = index.search([[1.0]], 3).rows[0]
    assert catalogue.external(rows).to_list() == [ids[1], ids[3], ids[2]]


@pytest.mark.parametrize("make", [build_flat, build_ivf])
def test_save_and_load(make: Callable[..., FlatIndex | IvfIndex], tmp_path: Path) -> None:
    """A loaded index answers bit for bit as the saved one, row numbers and probes included."""
    vectors, queries, rows = _draw(21, 400, 6), _draw(22, 20, 6), np.arange(399, 0, -3)
    index = make(vectors, rows)
    if isinstance(index, IvfIndex):
        index.set_probes(5)
    index.save(tmp_path / "a.faiss")
    again = load_index(tmp_path / "a.faiss", vectors)
    assert type(again) is type(index)
    assert len(again) == len(index) == 133
    if isinstance(again, IvfIndex):
        assert again.probes == 5
    np.testing.assert_array_equal(again.search(queries, 9).rows, index.search(queries, 9).rows)
    np.testing.assert_array_equal(again.search(queries, 9).scores, index.search(queries, 9).scores)
    again.save(tmp_path / "b.faiss")
    make(vectors, rows).save(tmp_path / "c.faiss")
    if isinstance(index, FlatIndex):  # the third IVF index was not told its probes
        assert (tmp_path / "a.faiss").read_bytes() == (tmp_path / "c.faiss").read_bytes()
    assert (tmp_path / "a.faiss").read_bytes() == (tmp_path / "b.faiss").read_bytes()


@pytest.mark.parametrize("make", [build_flat, build_ivf])
@pytest.mark.parametrize("left", [0.0, 0.02, 0.5, 0.999])
def test_a_file_cut_short_is_refused(make: Callable[..., FlatIndex | IvfIndex], left: float, tmp_path: Path) -> None:
    """Whatever is left of an index file, it is no index."""
    vectors = _draw(23, 300, 6)
    path = tmp_path / "index.faiss"
    make(vectors).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * left)])
    with pytest.raises(ArtefactError, match="cut short"):
        load_index(path, vectors)


@pytest.mark.parametrize("make", [build_flat, build_ivf])
@pytest.mark.parametrize("others", [(299, 6), (300, 5), (0, 6)])
def test_an_index_of_other_vectors_is_refused(
    make: Callable[..., FlatIndex | IvfIndex], others: tuple[int, int], tmp_path: Path
) -> None:
    """An index that names rows which the vectors do not have, or has another d, belongs to others."""
    make(_draw(24, 300, 6)).save(tmp_path / "index.faiss")
    with pytest.raises(ArtefactError, match="belongs to others"):
        load_index(tmp_path / "index.faiss", _draw(25, *others))


def test_an_index_of_distances_is_refused(tmp_path: Path) -> None:
    """An index by Euclidean distance would rank by another score than the one trained for."""
    vectors = _draw(26, 20, 6)
    for index in (faiss.IndexIDMap(faiss.IndexFlatL2(6)), faiss.IndexFlatIP(6)):
        faiss.write_index(index, str(tmp_path / "index.faiss"))
        with pytest.raises(HatchwayError, match=r"inner product|IndexFlat"):
            load_index(tmp_path / "index.faiss", vectors)


@pytest.mark.parametrize("probes", [1, 2, 8])
def test_an_approximate_index_always_fills_its_places(probes: int) -> None:
    """However few cells are looked into, min(k, N) different rows come back, each with its true score."""
    vectors, queries = _draw(27, 700, 4), _draw(28, 30, 4)
    index = build_ivf(vectors)
    index.set_probes(probes)
    for k in (1, 50, 699, 705):
        scores, rows = index.search(queries, k)
        kept = min(k, 700)
        assert all(len(set(found[:kept].tolist())) == kept for found in rows)
        assert (rows[:, kept:] == -1).all()
        assert (rows[:, :kept] >= 0).all()
        for query, found_scores, found in zip(queries[:3], scores, rows, strict=False):
            wanted = [float(np.dot(vectors[row].astype(np.float64), query)) for row in found[:kept]]
            np.testing.assert_allclose(found_scores[:kept], wanted, rtol=1e-5, atol=1e-5)
            assert (np.diff(found_scores[:kept]) <= 0).all()
