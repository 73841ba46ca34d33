"""Rows of recommendations: the best k items, without those that were asked with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hatchway.errors import UnknownIdError, UsageError
from hatchway.index.bundle import Bundle
from hatchway.index.model_bundle import queries_of
from hatchway.index.protocol import Float32, Int64, checked_k


@dataclass(frozen=True)
class Row:
    """Recommended items, best first.

    Attributes:
        rows: [n] int64 item row numbers; n is below k only where there are no more items.
        scores: [n] float32 dot products.
    """

    rows: Int64
    scores: Float32


class Recommender:
    """Answers from one bundle, all of which is in memory once this is made.

    Args:
        bundle: the bundle.

    Raises:
        ArtefactError: a part of the bundle does not fit the others.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.catalogue = bundle.catalogue
        self.queries = queries_of(bundle)
        self._index = bundle.index

    def find(self, item: int | str) -> int | None:
        """Return the row number of an external id, None where the catalogue has no such item."""
        try:
            return self.catalogue.row(item)
        except UnknownIdError:
            return None

    def find_all(self, items: Sequence[int | str]) -> Int64:
        """Return the row number of each external id, [len(items)] int64, -1 where the catalogue has no such item."""
        texts = [text if is_unicode(text) else None for text in map(str, items)]
        return self.catalogue.rows(pl.Series(texts, dtype=pl.String))

    def similar(self, row: int, k: int) -> Row:
        """Return the ``k`` items for the page of item ``row``, which itself is not among them.

        Raises:
            UsageError: k is below 1.
        """
        rows = np.array([row], np.int64)
        return self._best(self.queries.similar(rows), k, without=rows)

    def recommend(self, recent: Sequence[int], k: int) -> Row:
        """Return the ``k`` items for a buyer nobody knows, none of which is among the recent ones.

        Args:
            recent: row numbers of the items the buyer engaged with, oldest first, at least one.
            k: how many to return.

        Raises:
            UsageError: k is below 1, or there is no recent item.
        """
        rows = np.array(recent, np.int64)
        if not len(rows):
            raise UsageError("no recent items were given; at least one is needed to know what the buyer likes")
        return self._best(self.queries.recommend([rows]), k, without=np.unique(rows))

    def _best(self, query: Float32, k: int, without: Int64) -> Row:
        """Search for as many more as may have to be left out, and leave them out."""
        found = self._index.search(query, checked_k(k) + len(without))
        kept = (found.rows[0] >= 0) & ~np.isin(found.rows[0], without)
        return Row(found.rows[0][kept][:k], found.scores[0][kept][:k])


def is_unicode(text: str) -> bool:
    """Say whether a text can be written down: JSON may hold half a character (a lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
