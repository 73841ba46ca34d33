"""What every index is: vectors behind one question, "which k rows score highest for these queries?"."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hatchway.errors import DataError, UsageError

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CHECKED_AT_ONCE = 1 << 22
"""Numbers looked at together for NaN: bounds the temporary mask, whatever the number of vectors."""


class Neighbours(NamedTuple):
    """The answer to Q queries, best first; equal scores stand in the order of their row numbers.

    Attributes:
        scores: [Q, k] float32 dot products, -inf where there is no further row.
        rows: [Q, k] int64 row numbers, -1 where there is no further row.
    """

    scores: Float32
    rows: Int64


class Index(Protocol):
    """Vectors that can be searched by their raw dot product with a query: nothing is normalised.

    ``len(index)`` is the number of vectors. Where k is larger, every row number appears and -1 fills the rest:
    k is never made smaller in silence.
    """

    def __len__(self) -> int: ...

    @property
    def dimension(self) -> int:
        """The numbers in a vector, d."""
        ...

    @property
    def rows_end(self) -> int:
        """One more than the largest row number that an answer can have: N, the rows of the vectors."""
        ...

    def search(self, queries: npt.ArrayLike, k: int, *, without: Mask | None = None) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries.

        A score is the dot product in float64, rounded once to float32.

        Args:
            queries: [Q, d] numbers.
            k: how many rows each gets, 1 or more.
            without: [N] bool, True for rows that must not be returned (gone, blocked); the search goes deeper instead,
                so that -1 stands only where no other row is left.

        Raises:
            UsageError: k is below 1.
            DataError: the queries are not [Q, d] numbers, or one is NaN or infinite; or ``without`` is not [N] bool.
        """
        ...


def checked_k(k: int) -> int:
    """Return ``k``, a whole number from 1.

    Raises:
        UsageError: it is below 1.
    """
    if k < 1:
        raise UsageError(f"k = {k}: at least 1 neighbour must be asked for")
    return int(k)


def checked_vectors(vectors: npt.ArrayLike, noun: str, dimension: int | None = None) -> Float32:
    """Return ``vectors`` as a C-contiguous [M, d] float32 array, without a copy where it is one already.

    Args:
        vectors: [M, d] numbers of any floating or integer type, in any memory layout.
        noun: what they are, in messages: ``"queries"``.
        dimension: d, where it is known.

    Raises:
        DataError: the shape is another, or a number is NaN or infinite (also: too large for float32).
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or given.shape[1] == 0 or given.dtype.kind not in "fiu":
        raise DataError(
            f"the {noun} are a {given.dtype} array of shape {list(given.shape)}; they must be [M, d] numbers"
        )
    if dimension is not None and given.shape[1] != dimension:
        raise DataError(f"the {noun} have {given.shape[1]} numbers each; the index has vectors of {dimension}")
    with np.errstate(over="ignore"):  # what overflows is refused below, with its row
        result = np.ascontiguousarray(given, dtype=np.float32)
    rows_at_once = max(1, _CHECKED_AT_ONCE // result.shape[1])
    for begin in range(0, len(result), rows_at_once):
        finite = np.isfinite(result[begin : begin + rows_at_once]).all(axis=1)
        if not finite.all():
            row = begin + int(np.argmin(finite))
            raise DataError(f"row {row} of the {noun} holds NaN, an infinity, or a number too large for float32")
    return result


def checked_rows(rows: npt.ArrayLike | None, count: int) -> Int64:
    """Return the row numbers that an index shall hold: ``rows``, or all of ``0 .. count-1`` where it is None.

    Raises:
        DataError: a row number is out of range or there twice.
    """
    if rows is None:
        return np.arange(count, dtype=np.int64)
    result = np.ascontiguousarray(rows, dtype=np.int64)
    outside = result[(result < 0) | (result >= count)]
    if result.ndim != 1 or len(outside):
        first = f"; {outside[0]} is not" if len(outside) else ""
        raise DataError(f"the rows to be indexed must be a list of numbers in 0..{count - 1}{first}")
    if len(np.unique(result)) != len(result):
        raise DataError("the rows to be indexed hold a row number twice; an index has each row once")
    return result


def checked_without(without: Mask | None, rows_end: int) -> Mask | None:
    """Return ``without``, None where it keeps nothing out.

    Raises:
        DataError: it is not one bool for each of the ``rows_end`` rows.
    """
    if without is None:
        return None
    given = np.asarray(without)
    if given.dtype != np.bool_ or given.shape != (rows_end,):
        raise DataError(
            f"without is a {given.dtype} array of shape {list(given.shape)}; it must say True or False of each of the "
            f"{rows_end:,} rows"
        )
    return np.ascontiguousarray(given) if given.any() else None


def in_order(scores: Float32, rows: Int64) -> Neighbours:
    """Sort each line of [Q, k] scores and rows: best first, equal scores by row number, -1 last."""
    order = np.lexsort((rows, -scores), axis=-1)
    return Neighbours(np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1))


def nothing(queries: int, k: int) -> Neighbours:
    """Return [queries, k] empty places: scores -inf, rows -1."""
    return Neighbours(np.full((queries, k), -np.inf, np.float32), np.full((queries, k), -1, np.int64))
