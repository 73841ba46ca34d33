"""The catalogue: every item there is, its row number, and whatever is known of it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.identifiers import Identifiers
from hatchway.errors import DataError


@dataclass(frozen=True, eq=False)
class Catalogue:
    """N items; the row number of an item here is its row number everywhere inside.

    Attributes:
        frame: [N] rows, column ``item`` (Int64 or String, distinct, no nulls) and any others.

    Raises:
        DataError: there is no ``item`` column, or its ids are of another type, null, or there twice.
    """

    frame: pl.DataFrame

    def __post_init__(self) -> None:
        if "item" not in self.frame.columns:
            raise DataError(f"the catalogue has no column 'item'; its columns are {', '.join(self.frame.columns)}")
        object.__setattr__(self, "frame", self.frame.with_columns(self.identifiers.ids.alias("item")))

    @cached_property
    def identifiers(self) -> Identifiers:
        """The items' external ids."""
        return Identifiers(self.frame["item"], "item", "the catalogue")

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def ids(self) -> pl.Series:
        """The items' external ids in row order, [N] Int64 or String."""
        return self.identifiers.ids

    def has(self, column: str) -> bool:
        """Say whether the catalogue has a column of this name."""
        return column in self.frame.columns

    def rows(self, ids: pl.Series) -> npt.NDArray[np.int64]:
        """Return the row number of every id, [len(ids)] int64, -1 where an id is unknown."""
        return self.identifiers.rows(ids)

    def row(self, identifier: str | int) -> int:
        """Return the row number of one id; an integer catalogue takes ``"1198"`` for 1198.

        Raises:
            UnknownIdError: the catalogue has no such item.
        """
        return self.identifiers.row(identifier)

    def external(self, rows: npt.ArrayLike) -> pl.Series:
        """Return the external ids of row numbers, in the order given.

        Raises:
            UnknownIdError: a row number is out of range.
        """
        return self.identifiers.external(rows)
