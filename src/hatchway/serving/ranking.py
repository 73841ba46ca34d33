"""The ranking of one query over everything that is for sale, as far down as somebody wants to go."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hatchway.index.protocol import Float32, Index, Int64
from hatchway.serving.filters import Wanted
from hatchway.serving.stock import Stock

_ROWS_AT_ONCE = 1 << 17
_FEW = 16


class Ranked(NamedTuple):
    """A ranking from its top down, without what may not stand in the row.

    Attributes:
        rows: [n] int64 row numbers, best first; equal scores stand in the order of their row numbers.
        scores: [n] float32 dot products.
        whole: whether there is nothing below.
    """

    rows: Int64
    scores: Float32
    whole: bool


@dataclass(frozen=True)
class SearchLimits:
    """When everything is scored instead of searching deeper.

    Attributes:
        exact_up_to: where at most this many items pass a filter.
        deepest: where more than this would have to be searched for.
    """

    exact_up_to: int = 20_000
    deepest: int = 2_048


class Ranking:
    """The items of a stock in the order of their scores for one query.

    Two ways lead down. The index is searched for more than is wanted, and what may not be shown is left out; what the
    index does not hold is scored beside it. Where that would have to go very deep, or where few items pass a filter,
    all that pass are scored instead: nothing is missed however few they are.

    Args:
        index: of the bundle's items.
        stock: what is for sale.
        query: [1, d] float32.
        limits: when the second way is taken.
    """

    def __init__(self, index: Index, stock: Stock, query: Float32, limits: SearchLimits) -> None:
        self._index, self._stock, self._query, self._limits = index, stock, query, limits
        self._all: tuple[Int64, Float32] | None = None
        self._outside: tuple[Int64, Float32] | None = None

    def down_to(self, depth: int, wanted: Wanted, without: Int64, *, narrowed: bool) -> Ranked:
        """Return the ranking down to about ``depth`` items, those that are left out counted.

        Args:
            depth: how deep to look.
            wanted: which items may be shown; the same at every call.
            without: row numbers that are left out; the same at every call.
            narrowed: whether the filter asks for anything.
        """
        if self._all is None and (narrowed or depth > self._limits.deepest):
            passing = np.flatnonzero(wanted.passing(self._stock.facts))
            if depth > self._limits.deepest or len(passing) <= self._limits.exact_up_to:
                posted = len(self._stock.facts) + np.flatnonzero(wanted.passing(self._stock.posted.facts))
                self._all = self._scored(np.concatenate([passing, posted]), without)
        if self._all is not None:
            rows, scores = self._all
            best = _best_of(scores, depth)
            return _in_order(rows[best], scores[best], whole=depth >= len(rows))
        return self._searched(depth, wanted, without)

    def exact_scores(self, rows: Int64) -> Float32:
        """Return the [n] dot products of some rows, summed in float64, so that they do not depend on the way taken."""
        scores: Float32 = (self._stock.vectors(rows).astype(np.float64) @ self._query[0].astype(np.float64)).astype(
            np.float32
        )
        return scores

    def _searched(self, depth: int, wanted: Wanted, without: Int64) -> Ranked:
        """Search the index, and put what it does not hold in between."""
        found = self._index.search(self._query, depth)
        rows, scores = found.rows[0], found.scores[0]
        there = rows >= 0
        whole = not there.all()
        lowest = -np.inf if whole else float(scores[-1])
        kept = there & ~_among(rows, without)
        kept[kept] = self._stock.passing(rows[kept], wanted)
        if self._outside is None:
            outside = self._stock.outside
            self._outside = self._scored(outside[self._stock.passing(outside, wanted)], without)
        # Below the lowest that was found, the index may hold better ones.
        among = self._outside[1] >= lowest
        return _in_order(
            np.concatenate([rows[kept], self._outside[0][among]]),
            np.concatenate([scores[kept], self._outside[1][among]]),
            whole=whole,
        )

    def _scored(self, rows: Int64, without: Int64) -> tuple[Int64, Float32]:
        """Score some row numbers, but for those that are left out."""
        rows = rows[~_among(rows, without)]
        blocks = (rows[begin : begin + _ROWS_AT_ONCE] for begin in range(0, len(rows), _ROWS_AT_ONCE))
        scores = [self._stock.vectors(block) @ self._query[0] for block in blocks]
        return rows, np.concatenate([np.empty(0, np.float32), *scores])


def _among(rows: Int64, few: Int64) -> npt.NDArray[np.bool_]:
    """Say which of many row numbers are among a few."""
    if len(few) > _FEW:
        return np.isin(rows, few)
    found = np.zeros(len(rows), np.bool_)
    for row in few.tolist():
        found |= rows == row
    return found


def _best_of(scores: Float32, depth: int) -> npt.NDArray[np.int64]:
    """Return the places of the ``depth`` highest scores (all where there are fewer), in no order."""
    if depth >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(-scores, depth - 1)[:depth].astype(np.int64)


def _in_order(rows: Int64, scores: Float32, *, whole: bool) -> Ranked:
    """Sort by score, then by row number."""
    order = np.lexsort((rows, -scores))
    return Ranked(rows[order], scores[order], whole)
