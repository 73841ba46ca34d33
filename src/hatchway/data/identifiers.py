"""External ids on one side, row numbers on the other: the user's own ids at every edge, ``0 .. N-1`` inside."""

import difflib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.errors import DataError, UnknownIdError

_COMPARED = 2_000
"""Ids that a misspelt one is compared with letter by letter."""


@dataclass(frozen=True, eq=False)
class Identifiers:
    """N distinct external ids; the id at position r has row number r.

    Attributes:
        ids: [N] Int64 or String, without nulls or duplicates.
        noun: what an id stands for, in messages: ``"item"``, ``"buyer"``.
        place: where the ids live, in messages: ``"the catalogue"``, ``"the log"``.

    Raises:
        DataError: the ids are neither integers nor strings, or one is null or there twice.
    """

    ids: pl.Series
    noun: str
    place: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", _as_ids(self.ids, self.noun))
        nulls = self.ids.null_count()
        if nulls:
            raise DataError(f"{nulls} {self.noun} ids of {self.place} are null; every row needs an id of its own")
        if self.ids.n_unique() != len(self.ids):
            twice = self.ids.filter(self.ids.is_duplicated())[0]
            raise DataError(f"{self.noun} {twice!r} stands in {self.place} more than once; ids must be unique")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def are_integers(self) -> bool:
        """True if the ids are integers, False if they are strings."""
        return self.ids.dtype == pl.Int64

    @cached_property
    def table(self) -> pl.DataFrame:
        """The ids and their row numbers, columns ``id`` and ``row`` (Int32): the right side of a join."""
        return pl.DataFrame({"id": self.ids, "row": pl.Series(np.arange(len(self), dtype=np.int32))})

    def rows(self, ids: pl.Series) -> npt.NDArray[np.int64]:
        """Return the row number of every id, [len(ids)] int64, -1 where an id is unknown (or null).

        Integers and their decimal text count as the same id, whichever of the two the ids are.

        Raises:
            DataError: ``ids`` are neither integers nor strings.
        """
        asked = self._asked(ids).alias("id").to_frame()
        found = asked.join(self.table, on="id", how="left", maintain_order="left")["row"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()

    def row(self, identifier: str | int) -> int:
        """Return the row number of one id; for many, :meth:`rows` is the quicker.

        Raises:
            UnknownIdError: there is no such id; the message has some that there are.
        """
        try:
            kinds_fit = isinstance(identifier, (str, int)) and not isinstance(identifier, bool)
            asked = self._asked(pl.Series([identifier]))[0] if kinds_fit else None
        except (DataError, OverflowError, UnicodeEncodeError):  # beyond 64 bits, or no Unicode: nobody's id
            asked = None
        # A join would hash the whole catalogue for one id: tens of milliseconds a request where a scan takes one.
        row = None if asked is None else self.ids.index_of(asked)
        if row is None:
            raise UnknownIdError(f"{self.noun} {identifier!r} is not among the {self._known()}{self._near(asked)}")
        return row

    def external(self, rows: npt.ArrayLike) -> pl.Series:
        """Return the external ids of row numbers, in the order given.

        Raises:
            UnknownIdError: a row number is below 0 or not below N.
        """
        numbers = np.asarray(rows, dtype=np.int64)
        outside = numbers[(numbers < 0) | (numbers >= len(self))]
        if len(outside):
            raise UnknownIdError(f"{self.noun} row {outside[0]} is not in 0..{len(self) - 1}, the rows of {self.place}")
        return self.ids.gather(pl.Series(numbers))

    def _asked(self, ids: pl.Series) -> pl.Series:
        """Give ids that are asked for the type of the known ones; null where one cannot be of it."""
        return _as_ids(ids, self.noun).cast(pl.Int64 if self.are_integers else pl.String, strict=False)

    def _near(self, asked: object) -> str:
        """Ask whether an id of nearly the same letters was meant; of numbers none is nearer than another."""
        if not isinstance(asked, str) or not asked:
            return ""
        lengths = self.ids.str.len_chars().is_between(len(asked) - 1, len(asked) + 1)
        alike = self.ids.filter(lengths & self.ids.str.slice(0, 1).str.to_lowercase().eq(asked[0].lower()))
        same = alike.filter(alike.str.to_lowercase() == asked.lower()).head(1).to_list()
        near = same or difflib.get_close_matches(asked, alike.head(_COMPARED).to_list(), n=1)
        return f"; did you mean {near[0]!r}?" if near else ""

    def _known(self) -> str:
        """Describe the ids that there are."""
        kind = "integers" if self.are_integers else "strings"
        examples = ", ".join(repr(value) for value in self.ids.head(3))
        return f"{len(self):,} {self.noun}s of {self.place} ({kind}" + (f": {examples}, …)" if examples else ")")


def _as_ids(ids: pl.Series, noun: str) -> pl.Series:
    """Return ``ids`` as Int64 or String."""
    if ids.dtype.is_integer():
        try:
            return ids.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError:
            raise DataError(f"{noun} ids above {2**63 - 1} do not fit 64 bits; give them as strings") from None
    if ids.dtype == pl.String:
        return ids
    if isinstance(ids.dtype, (pl.Categorical, pl.Enum)) or ids.dtype == pl.Null:
        return ids.cast(pl.String)
    raise DataError(f"{noun} ids are {ids.dtype}; they must be integers or strings")
