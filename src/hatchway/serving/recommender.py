"""Rows of recommendations: the best k items that are for sale and pass the filter, each thing once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.errors import UnknownIdError, UsageError
from hatchway.index.bundle import Bundle
from hatchway.index.model_bundle import queries_of
from hatchway.index.protocol import Float32, Int64, checked_k
from hatchway.index.queries import Queries
from hatchway.serving.alike import OneOfEach
from hatchway.serving.filters import Filters
from hatchway.serving.ranking import Ranking, SearchLimits
from hatchway.serving.stock import Stock

_EVERYTHING = Filters()
_SLACK = 16
"""Searched for beyond what was asked for, so that a few gone or alike ones cost no second search."""


@dataclass(frozen=True)
class Row:
    """Recommended items, best first.

    Attributes:
        rows: [n] int64 item row numbers; n is below k only where no other item may stand in the row.
        scores: [n] float32 dot products.
        others: for each of the n the row numbers of those that are alike, score less, and would else stand in the row.
    """

    rows: Int64
    scores: Float32
    others: tuple[tuple[int, ...], ...] = ()


class Recommender:
    """Answers from one stock; all of its bundle is in memory once this is made.

    Args:
        bundle: the bundle.
        stock: what is for sale; the bundle's catalogue where None.
        queries: the query side of the bundle's model, where it was put together before.
        limits: when all items are scored instead of searching deeper.

    Raises:
        ArtefactError: a part of the bundle does not fit the others.
    """

    def __init__(
        self,
        bundle: Bundle,
        stock: Stock | None = None,
        queries: Queries | None = None,
        limits: SearchLimits | None = None,
    ) -> None:
        self.bundle = bundle
        self.catalogue = bundle.catalogue
        self.stock = stock or Stock.of(bundle)
        self.queries = queries or queries_of(bundle)
        self._limits = limits or SearchLimits()
        self._index = bundle.index
        self._similar = bundle.similar

    def find(self, item: int | str) -> int | None:
        """Return the row number of an external id, None where there is no such item."""
        try:
            return self.stock.row(item)
        except UnknownIdError:
            return None

    def find_all(self, items: Sequence[int | str]) -> Int64:
        """Return the row number of each external id, [len(items)] int64, -1 where there is no such item."""
        return self.stock.rows(items)

    def similar(self, row: int, k: int, filters: Filters = _EVERYTHING, *, collapse: bool = True) -> Row:
        """Return the ``k`` items for the page of item ``row``, which itself is not among them.

        Args:
            row: the row number of the item whose page is being looked at.
            k: how many to return.
            filters: what the row is narrowed to.
            collapse: show one of the items that are alike.

        Raises:
            UsageError: k is below 1, or the filter asks for what the catalogue does not have.
        """
        rows = np.array([row], np.int64)
        known = row < self.bundle.manifest.items
        query = self.queries.similar(rows) if known else self.stock.vectors(rows)
        return self._best(query, checked_k(k), rows, filters, collapse=collapse)

    def recommend(self, recent: Sequence[int], k: int, filters: Filters = _EVERYTHING, *, collapse: bool = True) -> Row:
        """Return the ``k`` items for a buyer nobody knows, none of which is among the recent ones.

        Listings that were posted since the bundle was made are told to no model; where there are no others, the mean of
        the vectors asks.

        Args:
            recent: row numbers of the items the buyer engaged with, oldest first, at least one.
            k: how many to return.
            filters: what the row is narrowed to.
            collapse: show one of the items that are alike.

        Raises:
            UsageError: k is below 1, there is no recent item, or the filter asks for what the catalogue does not have.
        """
        rows = np.array(recent, np.int64)
        if not len(rows):
            raise UsageError("no recent items were given; at least one is needed to know what the buyer likes")
        known = rows[rows < self.bundle.manifest.items]
        if len(known) == len(rows) or self.queries.knows(known).any():
            query = self.queries.recommend([known])
        else:
            query = self.stock.vectors(rows).mean(axis=0, keepdims=True)
        return self._best(query, checked_k(k), np.unique(rows), filters, collapse=collapse)

    def _best(self, query: Float32, k: int, asked: Int64, filters: Filters, *, collapse: bool) -> Row:
        """Go down the ranking, and further down, until there are k of which each may stand in the row."""
        ranking = Ranking(self._index, self.stock, query, self._limits)
        wanted = self.stock.wanted(filters)
        depth = k + len(asked) + _SLACK
        while True:
            found = ranking.down_to(depth, wanted, asked, narrowed=not filters.empty)
            row = self._each_once(found.rows, found.scores, k, asked) if collapse else None
            row = row or Row(found.rows[:k], found.scores[:k], ((),) * min(k, len(found.rows)))
            if len(row.rows) == k or found.whole:
                scores = ranking.exact_scores(row.rows)
                order = np.lexsort((row.rows, -scores))  # the same whichever way the ranking was found
                return Row(row.rows[order], scores[order], tuple(row.others[place] for place in order.tolist()))
            depth *= 4

    def _each_once(self, rows: Int64, scores: Float32, k: int, asked: Int64) -> Row:
        """Keep the first k of a ranking that are unlike each other."""
        once = OneOfEach(self._similar)
        for row, title, photo, seller in zip(asked.tolist(), *self.stock.marks(asked), strict=True):
            # A sold item may be offered again under another id, and that offer is wanted.
            if self.stock.for_sale(row):
                once.already_shown(row, title, photo, self._alike_of_one_seller(row, seller))
        titles, photos, _ = self.stock.marks(rows)
        for place, (row, title, photo) in enumerate(zip(rows.tolist(), titles, photos, strict=True)):
            if once.offer(place, row, title, photo) and len(once.kept) == k:
                break
        others = tuple(tuple(rows[places].tolist()) for places in once.others)
        return Row(rows[once.kept], scores[once.kept], others)

    def _alike_of_one_seller(self, row: int, seller: int) -> Int64:
        """Return the items that are like one, and of the same seller."""
        if self._similar is None or row >= len(self._similar):
            return np.empty(0, np.int64)
        alike: Int64 = self._similar.of(row)
        of_same: npt.NDArray[np.bool_] = np.array(self.stock.marks(alike)[2], np.int64) == max(seller, 0)
        return alike[of_same] if seller >= 0 else alike[:0]
