"""FAISS behind the one protocol: flat (every vector is looked at) and IVF,SQ8 (some cells are, then rescored exactly).

An index file carries its own map from places to row numbers. IVF,SQ8 keeps its vectors in one byte a number, so what it
finds is scored again with the float32 vectors: every score that leaves this module is the dot product in float32.
"""

from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt

from hatchway.errors import ArtefactError, DataError
from hatchway.index.protocol import (
    Float32,
    Int64,
    Neighbours,
    checked_k,
    checked_rows,
    checked_vectors,
    in_order,
    nothing,
)

_QUERIES_AT_ONCE = 256
_POINTS_PER_CELL = 64
"""Vectors for each cell that k-means is trained on; more of them cost time and change recall by less than 0.1 %."""


class FlatIndex:
    """FAISS, looking at every vector: made by :func:`build_flat` or :func:`load_index`."""

    def __init__(self, searched: faiss.IndexIDMap) -> None:
        self._searched = searched

    def __len__(self) -> int:
        return int(self._searched.ntotal)

    @property
    def dimension(self) -> int:
        """The numbers in a vector, d."""
        return int(self._searched.d)

    def search(self, queries: npt.ArrayLike, k: int) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries, as :class:`~hatchway.index.protocol.Index` says."""
        checked = checked_vectors(queries, "queries", self.dimension)
        scores, rows = nothing(len(checked), checked_k(k))
        kept = min(k, len(self))
        if kept:
            scores[:, :kept], rows[:, :kept] = in_order(*self._searched.search(checked, kept))
        return Neighbours(scores, rows)

    def save(self, path: Path) -> None:
        """Write the vectors and their row numbers to ``path``."""
        faiss.write_index(self._searched, str(path))


class IvfIndex:
    """FAISS, looking into those cells whose centre scores highest with the query: made by :func:`build_ivf`.

    How many cells must be looked into depends on the vectors; :func:`hatchway.index.build.build_index` measures it.
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

    def search(self, queries: npt.ArrayLike, k: int) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries, as :class:`~hatchway.index.protocol.Index` says.

        Where the cells looked into hold fewer than k vectors, more cells are looked into until there are k.
        """
        checked = checked_vectors(queries, "queries", self.dimension)
        scores, rows = nothing(len(checked), checked_k(k))
        kept = min(k, len(self))
        for begin in range(0, len(checked), _QUERIES_AT_ONCE):
            block = slice(begin, begin + _QUERIES_AT_ONCE)
            scores[block, :kept], rows[block, :kept] = self._block(checked[block], kept)
        return Neighbours(scores, rows)

    def _block(self, queries: Float32, kept: int) -> Neighbours:
        """Find a few more than ``kept``, score them with the float32 vectors, and cut."""
        candidates = min(len(self), kept + max(32, kept // 5))
        rows = np.full((len(queries), candidates), -1, np.int64)
        short = np.arange(len(queries))
        parameters = faiss.SearchParametersIVF()
        parameters.nprobe = self.probes
        while len(short):
            rows[short] = self._searched.search(queries[short], candidates, params=parameters)[1]
            short = short[(rows[short] >= 0).sum(axis=1) < kept]
            parameters.nprobe = min(4 * parameters.nprobe, self.cells)
        scores = np.einsum("qkd,qd->qk", self._vectors[np.maximum(rows, 0)], queries)
        ordered = in_order(np.where(rows >= 0, scores, np.float32(-np.inf)), rows)
        return Neighbours(ordered.scores[:, :kept], ordered.rows[:, :kept])

    def save(self, path: Path) -> None:
        """Write cells, one-byte vectors, row numbers and probes to ``path``; the float32 vectors are kept elsewhere."""
        faiss.write_index(self._searched, str(path))


def build_flat(vectors: npt.ArrayLike, rows: npt.ArrayLike | None = None) -> FlatIndex:
    """Build the index that looks at every vector.

    Args:
        vectors: [N, d] item vectors, raw.
        rows: the row numbers to be found; all where None.

    Raises:
        DataError: a vector is not finite, or a row number is out of range or there twice.
    """
    whole = checked_vectors(vectors, "item vectors")
    labels = checked_rows(rows, len(whole))
    searched = faiss.IndexIDMap(faiss.IndexFlatIP(whole.shape[1]))
    searched.add_with_ids(whole if rows is None else whole[labels], labels)
    return FlatIndex(searched)


def build_ivf(
    vectors: npt.ArrayLike, rows: npt.ArrayLike | None = None, *, cells: int | None = None, seed: int = 0
) -> IvfIndex:
    """Build the index that sorts vectors into cells, by k-means on their directions, and keeps one byte a number.

    It looks into 64 cells until told otherwise.

    Args:
        vectors: [N, d] item vectors, raw; kept, to score what is found.
        rows: the row numbers to be found; all where None.
        cells: how many cells; about 4·sqrt(N) where None, and never more than there are vectors.
        seed: where k-means starts.

    Raises:
        DataError: there is nothing to index, a vector is not finite, or a row number is out of range or there twice.
    """
    whole = checked_vectors(vectors, "item vectors")
    labels = checked_rows(rows, len(whole))
    if not len(labels):
        raise DataError("no vectors make no cells; an empty catalogue needs the flat index")
    indexed, dimension = whole if rows is None else whole[labels], whole.shape[1]
    chosen = min(len(labels), cells or max(1, round(4 * len(labels) ** 0.5)))
    searched = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dimension), dimension, chosen, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    searched.cp.seed = seed
    searched.cp.max_points_per_centroid = _POINTS_PER_CELL
    searched.cp.min_points_per_centroid = 1  # a small catalogue is no mistake; FAISS would warn on stderr
    searched.train(indexed)
    searched.add_with_ids(indexed, labels)
    index = IvfIndex(searched, whole)
    index.set_probes(64)
    return index


def load_index(path: Path, vectors: npt.ArrayLike) -> FlatIndex | IvfIndex:
    """Read an index file that :meth:`FlatIndex.save` or :meth:`IvfIndex.save` wrote.

    Args:
        path: the file.
        vectors: the [N, d] item vectors that the index was built from.

    Raises:
        ArtefactError: the file is missing, cut short or another kind of index, or does not fit the vectors.
    """
    whole = checked_vectors(vectors, "item vectors")
    try:
        searched = faiss.read_index(str(path))
    except RuntimeError as error:
        raise ArtefactError(f"{path} is missing, cut short, or no FAISS index; build the index again") from error
    index: FlatIndex | IvfIndex
    if isinstance(searched, faiss.IndexIDMap) and isinstance(faiss.downcast_index(searched.index), faiss.IndexFlat):
        index, ids = FlatIndex(searched), faiss.vector_to_array(searched.id_map)
    elif isinstance(searched, faiss.IndexIVFScalarQuantizer):
        index, ids = IvfIndex(searched, whole), _ids_in_cells(searched)
    else:
        raise ArtefactError(f"{path} holds a {type(searched).__name__}; Hatchway writes flat and IVF,SQ8 indexes")
    if searched.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ArtefactError(f"{path} does not search by inner product, which is Hatchway's only score; build it again")
    if searched.d != whole.shape[1] or (len(ids) and not 0 <= ids.min() <= ids.max() < len(whole)):
        raise ArtefactError(
            f"{path} has vectors of {searched.d} numbers and row numbers up to {ids.max(initial=-1)}, but the item "
            f"vectors are {list(whole.shape)}: it belongs to others; build the index again"
        )
    return index


def _ids_in_cells(searched: faiss.IndexIVFScalarQuantizer) -> Int64:
    """Return the row numbers in an IVF index, cell after cell."""
    lists = searched.invlists
    if lists is None:
        return np.empty(0, np.int64)
    cells = range(searched.nlist)
    return np.concatenate([faiss.rev_swig_ptr(lists.get_ids(c), lists.list_size(c)).copy() for c in cells])
