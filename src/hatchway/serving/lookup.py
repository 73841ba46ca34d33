"""From an id to its row number in microseconds: a request looks up one id, and a join would hash all of them."""

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import polars as pl

from hatchway.data.identifiers import Identifiers
from hatchway.index.protocol import Int64
from hatchway.serving.posts import Item


class Sorted:
    """Texts or integers in ascending order, without nulls, each once.

    Args:
        values: [n] Int64 or String, ascending.
    """

    def __init__(self, values: pl.Series) -> None:
        self._values = values
        self._numbers = values.to_numpy() if values.dtype == pl.Int64 else None

    def __len__(self) -> int:
        return len(self._values)

    def place(self, value: Item) -> int | None:
        """Return where a value stands, None where it does not; it has to be of the type of the others."""
        if self._numbers is None:
            place = bisect_left(self._values, value)
        else:
            place = int(np.searchsorted(self._numbers, value))
        return place if place < len(self._values) and self._values[place] == value else None


class IdLookup:
    """The row numbers of a bundle's items.

    Args:
        identifiers: the items' ids.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        order = identifiers.ids.arg_sort()
        self._rows: Int64 = order.to_numpy().astype(np.int64)
        self._sorted = Sorted(identifiers.ids[order])
        self._integers = identifiers.are_integers

    def row(self, item: Item) -> int | None:
        """Return the row number of an id, None where there is no such item."""
        if isinstance(item, int) != self._integers:
            return None
        place = self._sorted.place(item)
        return None if place is None else int(self._rows[place])

    def rows(self, items: Iterable[Item]) -> list[int | None]:
        """Return the row number of every id."""
        return [self.row(item) for item in items]
