"""Every index, through one suite: the same questions, the same right answers."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import safetensors
import safetensors.numpy

from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError, DataError, UsageError
from hatchway.index.approximate import IvfIndex, build_ivf
from hatchway.index.exact import ExactIndex, Products
from hatchway.index.files import load_index, save_index
from hatchway.index.protocol import Index
from hatchway.index.streaming import neighbours

Build = Callable[[npt.ArrayLike, npt.ArrayLike | None], Index]


def _ivf(vectors: npt.ArrayLike, rows: npt.ArrayLike | None) -> Index:
    """Build an IVF index that looks into every cell, so that its answer must be the exact one."""
    index = build_ivf(vectors, rows)
    index.set_probes(index.cells)
    return index


def _exact(products: Products, *, use_compiled: bool) -> Build:
    """Build an exact index whose quick scores are made in a certain way; none may change an answer."""
    return lambda vectors, rows: ExactIndex(vectors, rows, products=products, use_compiled=use_compiled)


BUILDS: dict[str, Build] = {
    "exact": ExactIndex,
    "exact, bf16": _exact("bf16", use_compiled=True),
    "exact, float32": _exact("float32", use_compiled=True),
    "exact, bf16, plain": _exact("bf16", use_compiled=False),
    "exact, float32, plain": _exact("float32", use_compiled=False),
    "ivf-sq8": _ivf,
}
EXACT = [name for name in BUILDS if name.startswith("exact")]


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


@pytest.mark.parametrize("name", EXACT)
def test_a_cut_through_duplicates_takes_the_first_rows(name: str) -> None:
    """Where ten rows tie for three places, the three of lowest row number are returned."""
    vectors = np.concatenate([np.zeros((20, 3)), np.ones((10, 3)), np.zeros((9000, 3))]).astype(np.float32)
    index = BUILDS[name](vectors, None)
    scores, rows = index.search([[1.0, 1.0, 1.0]], 3)
    assert (rows[0].tolist(), scores[0].tolist()) == ([20, 21, 22], [3.0] * 3)
    assert index.search([[1.0, 1.0, 1.0]], 13).rows[0].tolist() == [*range(20, 30), 0, 1, 2]


def test_a_cut_through_duplicates_takes_different_rows() -> None:
    """In an approximate index, too, three different ones of ten tied rows take three places."""
    vectors = np.concatenate([np.zeros((20, 3)), np.ones((10, 3))]).astype(np.float32)
    scores, rows = _ivf(vectors, None).search([[1.0, 1.0, 1.0]], 3)
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


@pytest.mark.parametrize("name", EXACT)
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
        vectors.astype(np.float16),
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


@pytest.mark.parametrize("make", [ExactIndex, build_ivf])
def test_save_and_load(make: Callable[..., ExactIndex | IvfIndex], tmp_path: Path) -> None:
    """A loaded index answers bit for bit as the saved one, row numbers and probes included; its bytes stay the same."""
    vectors, queries, rows = _draw(21, 400, 6), _draw(22, 20, 6), np.arange(399, 0, -3)
    first, second = make(vectors, rows), make(vectors, rows)
    for index in (first, second):
        if isinstance(index, IvfIndex):
            index.set_probes(5)
    save_index(tmp_path / "a", first, vectors)
    again = load_index(tmp_path / "a", vectors)
    assert type(again) is type(first)
    assert len(again) == len(first) == 133
    if isinstance(again, IvfIndex):
        assert again.probes == 5
    np.testing.assert_array_equal(again.search(queries, 9).rows, first.search(queries, 9).rows)
    np.testing.assert_array_equal(again.search(queries, 9).scores, first.search(queries, 9).scores)
    save_index(tmp_path / "b", again, vectors)
    save_index(tmp_path / "c", second, vectors)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("make", [ExactIndex, build_ivf])
@pytest.mark.parametrize("left", [0.0, 0.02, 0.5, 0.999])
def test_a_file_cut_short_is_refused(make: Callable[..., ExactIndex | IvfIndex], left: float, tmp_path: Path) -> None:
    """Whatever is left of an index file, it is no index."""
    vectors = _draw(23, 300, 6)
    path = tmp_path / "index.safetensors"
    save_index(path, make(vectors), vectors)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * left)])
    with pytest.raises(ArtefactError, match="cut short"):
        load_index(path, vectors)
    path.unlink()
    with pytest.raises(ArtefactError, match="missing"):
        load_index(path, vectors)


@pytest.mark.parametrize("make", [ExactIndex, build_ivf])
@pytest.mark.parametrize("others", [(299, 6), (301, 6), (300, 5), (0, 6), (300, 6)])
def test_an_index_of_other_vectors_is_refused(
    make: Callable[..., ExactIndex | IvfIndex], others: tuple[int, int], tmp_path: Path
) -> None:
    """An index of another N or d, or of as many vectors by other weights, belongs to others."""
    vectors = _draw(24, 300, 6)
    save_index(tmp_path / "index", make(vectors), vectors)
    with pytest.raises(ArtefactError, match="belongs to others"):
        load_index(tmp_path / "index", _draw(25, *others))


def _rewritten(path: Path, header: dict[str, object] | None, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an index file that says what it should not."""
    metadata = None if header is None else {"hatchway": json.dumps(header)}
    safetensors.numpy.save_file(dict(tensors), path, metadata=metadata)


def test_a_file_that_says_something_else_is_refused(tmp_path: Path) -> None:
    """Another score, version or kind, rows that are not there, parts that are missing, and files of other programs."""
    vectors, path = _draw(26, 20, 6), tmp_path / "index"
    save_index(path, ExactIndex(vectors), vectors)
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["hatchway"])
    rows = {"rows": np.arange(20)}
    for change, message in (
        ({"score": "cosine"}, "score = 'cosine'"),
        ({"version": 2}, "version = 2"),
        ({"kind": "hnsw"}, "kind = 'hnsw'"),
        ({"kind": "ivf-sq8"}, "no part 'faiss'"),
        ({"dimension": 7}, "belongs to others"),
    ):
        _rewritten(path, header | change, rows)
        with pytest.raises(ArtefactError, match=message):
            load_index(path, vectors)
    _rewritten(path, None, rows)
    with pytest.raises(ArtefactError, match="no index of Hatchway"):
        load_index(path, vectors)
    for wrong in (np.array([3, 20]), np.array([-1]), np.array([0.0])):
        _rewritten(path, header, {"rows": wrong})
        with pytest.raises(ArtefactError, match="belongs to others"):
            load_index(path, vectors)
    distances = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatL2(6), 6, 1, faiss.ScalarQuantizer.QT_8bit)
    flat = faiss.serialize_index(faiss.IndexFlatIP(6))
    for blob in (faiss.serialize_index(distances), flat):
        _rewritten(path, header | {"kind": "ivf-sq8"}, {"faiss": blob})
        with pytest.raises(ArtefactError, match="inner product"):
            load_index(path, vectors)
    _rewritten(path, header | {"kind": "ivf-sq8"}, {"faiss": flat[:-30]})
    with pytest.raises(ArtefactError, match="FAISS cannot read"):
        load_index(path, vectors)


def test_rows_that_are_gone_are_never_returned_and_leave_no_gap(build: Build) -> None:
    """However many of the best are gone, the next best stand in their places, and -1 only where none is left."""
    vectors, queries = _draw(31, 600, 5), _draw(32, 8, 5)
    index = build(vectors, None)
    whole = index.search(queries, 600)
    for gone in (0, 1, 100, 550, 595, 600):
        without = np.zeros(600, np.bool_)
        without[whole.rows[0, :gone]] = True
        scores, rows = index.search(queries, 12, without=without)
        for query in range(8):
            left = [row for row in whole.rows[query].tolist() if not without[row]][:12]
            assert rows[query].tolist() == left + [-1] * (12 - len(left))
            assert np.isneginf(scores[query, len(left) :]).all()


def test_gone_rows_of_an_index_of_some_rows(build: Build) -> None:
    """What is gone is said of all row numbers, and those that the index never had stay out."""
    vectors, queries = _draw(33, 90, 5), _draw(34, 3, 5)
    for chosen in (np.arange(0, 90, 9), np.setdiff1d(np.arange(90), [4, 5, 40])):
        without = np.zeros(90, np.bool_)
        without[[0, 18, 40, 41]] = True
        rows = build(vectors, chosen).search(queries, 90, without=without).rows
        for query, found in zip(queries, rows, strict=True):
            left = [row for row in _ranking(vectors, query)[0] if row in chosen and not without[row]]
            assert found.tolist() == left + [-1] * (90 - len(left))


@pytest.mark.parametrize("without", [np.zeros(4, np.bool_), np.zeros((5, 1), np.bool_), np.zeros(5, np.int64)])
def test_gone_rows_must_be_said_of_each_row(build: Build, without: npt.NDArray[np.bool_]) -> None:
    """A mask of another length or type is refused, and never guessed at."""
    with pytest.raises(DataError, match="each of the 5 rows"):
        build(_draw(35, 5, 4), None).search(_draw(36, 1, 4), 2, without=without)


def test_answers_come_block_by_block(build: Build) -> None:
    """One array is cut into blocks, given blocks are answered as they are, and nothing is read before it is needed."""
    vectors, queries = _draw(37, 200, 4), _draw(38, 25, 4)
    index = build(vectors, None)
    without = np.zeros(200, np.bool_)
    without[::3] = True
    whole = index.search(queries, 6, without=without)
    blocks = list(neighbours(index, queries, 6, without=without, at_once=10))
    assert [len(block.rows) for block in blocks] == [10, 10, 5]
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), whole.rows)
    np.testing.assert_array_equal(np.concatenate([block.scores for block in blocks]), whole.scores)
    given = neighbours(index, iter([queries[:3], queries[3:3], np.full((1, 4), np.nan)]), 6, without=without)
    np.testing.assert_array_equal(next(given).rows, whole.rows[:3])
    assert next(given).rows.shape == (0, 6)
    with pytest.raises(DataError, match="row 0 of the queries"):
        next(given)
    assert list(neighbours(index, queries[:0], 6)) == []
    with pytest.raises(UsageError, match="at_once = 0"):
        neighbours(index, queries, 6, at_once=0)


def test_vectors_mapped_from_a_file(build: Build, tmp_path: Path) -> None:
    """Vectors and queries may lie in files that are mapped read-only, and no warning is given."""
    vectors, queries = _draw(39, 150, 4), _draw(40, 7, 4)
    np.save(tmp_path / "vectors.npy", vectors)
    np.save(tmp_path / "queries.npy", queries)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    asked = np.load(tmp_path / "queries.npy", mmap_mode="r")
    wanted = build(vectors, None).search(queries, 5)
    for rows in (None, np.arange(10, 150), np.array([3, 7])):
        build(mapped, rows)
    np.testing.assert_array_equal(build(mapped, None).search(asked, 5).rows, wanted.rows)


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
