"""Categories and sellers as numbers, so that a filter is a comparison of numbers."""

import difflib
import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.identifiers import Identifiers
from hatchway.serving.lookup import Sorted

Codes = npt.NDArray[np.int64]

NONE = -1
"""The number of an absent category or seller."""


_COMPARED = 1_000
_LONGEST = 60


def as_names(column: pl.Series) -> pl.Series:
    """Read a column as names; of a list of names the first counts."""
    first = column.list.first() if isinstance(column.dtype, pl.List) else column
    return first.cast(pl.String)


class Names:
    """A number for every name: those of the bundle's catalogue, then those that were posted. Numbers never change."""

    def __init__(self, column: pl.Series) -> None:
        self._known = as_names(column).drop_nulls().unique().sort()
        self._sorted = Sorted(self._known)
        self._posted: dict[str, int] = {}

    def all_codes(self, column: pl.Series) -> Codes:
        """Return the number of every name of the catalogue, [n] int64; :data:`NONE` for null."""
        return np.array(Identifiers(self._known, "name", "the catalogue").rows(as_names(column)))

    def codes(self, column: pl.Series) -> Codes:
        """Return the number of a few names, [n] int64, :data:`NONE` for null; those that have none are given one."""
        codes = np.full(len(column), NONE, np.int64)
        for place, name in enumerate(as_names(column)):
            if name is not None:
                code = self._code(name)
                if code == NONE:
                    code = self._posted[name] = len(self._known) + len(self._posted)
                codes[place] = code
        return codes

    def some(self, names: Iterable[str]) -> Codes:
        """Return the numbers of those names that are known."""
        codes = [self._code(name) for name in names]
        return np.array([code for code in codes if code >= 0], np.int64)

    def has(self, name: str) -> bool:
        """Say whether anything has, or had, the name."""
        return self._code(name) != NONE

    def like(self, name: str, count: int = 5) -> list[str]:
        """Return a few names that there are, the most similar ones first, for messages."""
        some = [*self._known.head(_COMPARED).to_list(), *itertools.islice(self._posted, _COMPARED)]
        near = difflib.get_close_matches(name[:_LONGEST].lower(), some, n=count, cutoff=0.6)
        return list(dict.fromkeys([*near, *some]))[:count]

    def _code(self, name: str) -> int:
        place = self._sorted.place(name)
        return self._posted.get(name, NONE) if place is None else place
