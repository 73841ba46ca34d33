"""Approximate search: FAISS's IVF,SQ8, which looks into some cells of vectors, and what it finds scored exactly.

IVF,SQ8 keeps its vectors in one byte a number. A few more than k are found by those, and scored again with the float32
vectors: every score that leaves this module is the dot product that the exact search gives.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import faiss
import numpy as np
import numpy.typing as npt

from hatchway.compiled import at_once, available, parts_of
from hatchway.errors import DataError
from hatchway.index.cells import cells_of, centres_of
from hatchway.index.exact import true_scores
from hatchway.index.exact_loops import scores_of
from hatchway.index.protocol import (
    Float32,
    Int64,
    Mask,
    Neighbours,
    checked_k,
    checked_rows,
    checked_vectors,
    checked_without,
    in_order,
    nothing,
)

_QUERIES_AT_ONCE = 1024
_VECTORS_AT_ONCE = 1 << 17
_FEWEST_A_THREAD = 16


class IvfIndex:
    """FAISS, looking into those cells whose centre scores highest with the query.

    Made by :func:`build_ivf` or :func:`~hatchway.index.files.load_index`. How many cells must be looked into depends on
    the vectors; :func:`hatchway.index.build.build_index` measures it.

    Args:
        searched: the cells, with one-byte vectors and row numbers.
        vectors: [N, d] item vectors, to score what is found.
    """

    def __init__(self, searched: faiss.IndexIVFScalarQuantizer, vectors: Float32) -> None:
        self._searched = searched
        self._vectors = vectors

    def __len__(self) -> int:
        return int(self._searched.ntotal)

    @property
    def dimension(self) -> int:
        """The numbers in a vector, d."""
        return int(self._searched.d)

    @property
    def rows_end(self) -> int:
        """N, the rows of the vectors."""
        return len(self._vectors)

    @property
    def cells(self) -> int:
        """How many cells the vectors are sorted into."""
        return int(self._searched.nlist)

    @property
    def probes(self) -> int:
        """How many cells a query looks into, at least; 1 to :attr:`cells`."""
        return int(self._searched.nprobe)

    def set_probes(self, probes: int) -> None:
        """Look into ``probes`` cells from now on, or into all where there are fewer."""
        self._searched.nprobe = min(max(1, probes), self.cells)

    def to_bytes(self) -> npt.NDArray[np.uint8]:
        """Return cells, one-byte vectors, row numbers and probes as FAISS writes them; no float32 vectors."""
        written: npt.NDArray[np.uint8] = faiss.serialize_index(self._searched)
        return written

    def search(self, queries: npt.ArrayLike, k: int, *, without: Mask | None = None) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries, as :class:`~hatchway.index.protocol.Index` says.

        Where the cells looked into hold fewer than k vectors that may be returned, more cells are looked into until
        there are k. Where a share of all vectors may not be returned, more cells are looked into from the start.
        """
        checked = checked_vectors(queries, "queries", self.dimension)
        scores, rows = nothing(len(checked), checked_k(k))
        blocked = checked_without(without, self.rows_end)
        kept = min(k, len(self))
        with _only(blocked) as parameters:
            gone = 0 if blocked is None else int(np.count_nonzero(blocked))
            probes = min(self.cells, -(-self.probes * len(self) // max(1, len(self) - gone)))
            for begin in range(0, len(checked), _QUERIES_AT_ONCE):
                block = slice(begin, begin + _QUERIES_AT_ONCE)
                scores[block, :kept], rows[block, :kept] = self._block(checked[block], kept, probes, parameters)
        return Neighbours(scores, rows)

    def _block(self, queries: Float32, kept: int, probes: int, parameters: faiss.SearchParametersIVF) -> Neighbours:
        """Find a few more than ``kept``, score them exactly, and cut."""
        candidates = min(len(self), kept + max(32, kept // 5))
        rows = np.full((len(queries), candidates), -1, np.int64)
        short = np.arange(len(queries))
        while len(short):
            parameters.nprobe = probes
            rows[short] = self._searched.search(queries[short], candidates, params=parameters)[1]
            if probes == self.cells:
                break
            short = short[(rows[short] >= 0).sum(axis=1) < kept]
            probes = min(4 * probes, self.cells)
        ordered = in_order(exact_scores(self._vectors, queries, rows), rows)
        return Neighbours(ordered.scores[:, :kept], ordered.rows[:, :kept])


@contextmanager
def _only(blocked: Mask | None) -> Iterator[faiss.SearchParametersIVF]:
    """Give FAISS's parameters that keep rows out; it holds addresses of what must live as long as they are used."""
    parameters = faiss.SearchParametersIVF()
    if blocked is None:
        yield parameters
        return
    bits = np.packbits(blocked, bitorder="little")
    those = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
    others = faiss.IDSelectorNot(those)
    parameters.sel = others
    yield parameters


def exact_scores(vectors: Float32, queries: Float32, rows: Int64) -> Float32:
    """Return the [Q, c] scores of each query with its own rows: in float64, rounded once to float32; -inf for row -1.

    Args:
        vectors: [N, d] item vectors.
        queries: [Q, d].
        rows: [Q, c] rows of ``vectors``, or -1.
    """
    if not available():
        return true_scores(vectors, queries, rows).astype(np.float32)
    scores = np.empty(rows.shape, np.float32)

    def part(_: int, begin: int, end: int) -> None:
        scores_of(vectors, queries[begin:end], rows[begin:end], scores[begin:end])

    at_once(part, parts_of(len(queries), _FEWEST_A_THREAD))
    return scores


def build_ivf(
    vectors: npt.ArrayLike, rows: npt.ArrayLike | None = None, *, cells: int | None = None, seed: int = 0
) -> IvfIndex:
    """Build the index that sorts vectors into cells by their directions, and keeps one byte a number.

    It looks into 64 cells until told otherwise. The same vectors and seed give the same index, on any machine.

    Args:
        vectors: [N, d] item vectors, raw; kept, to score what is found.
        rows: the row numbers to be found; all where None.
        cells: how many cells; about 4·sqrt(N) where None, and never more than there are vectors.
        seed: which vectors the cells are found from.

    Raises:
        DataError: there is nothing to index, a vector is not finite, or a row number is out of range or there twice.
    """
    whole = checked_vectors(vectors, "item vectors")
    labels = checked_rows(rows, len(whole))
    if not len(labels):
        raise DataError("no vectors make no cells; an empty catalogue needs the flat index")
    chosen = min(len(labels), cells or max(1, round(4 * len(labels) ** 0.5)))
    centres = centres_of(whole, labels, chosen, seed)
    coarse = faiss.IndexFlatIP(whole.shape[1])
    coarse.add(centres)
    searched = faiss.IndexIVFScalarQuantizer(
        coarse, whole.shape[1], chosen, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    # Trained on all, or on every n-th: the cells are there already, and only the range of each number is found.
    step = -(-len(labels) // _VECTORS_AT_ONCE)
    searched.train(whole[labels[::step]])
    for begin in range(0, len(labels), _VECTORS_AT_ONCE):
        own = labels[begin : begin + _VECTORS_AT_ONCE]
        block = whole[own]
        cell = cells_of(block, centres)
        pointers = (faiss.swig_ptr(array) for array in (block, own, cell))
        searched.add_core(len(own), *pointers)
    index = IvfIndex(searched, whole)
    index.set_probes(64)
    return index
