"""The buyers: everyone in the log who engaged with something, and their row numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.identifiers import Identifiers


@dataclass(frozen=True, eq=False)
class Buyers:
    """The buyers of a log, in the order of their ids.

    Attributes:
        ids: [buyers] Int64 or String external ids in row order.

    Raises:
        DataError: an id is of another type, null, or there twice.
    """

    ids: pl.Series

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", self.identifiers.ids)

    @cached_property
    def identifiers(self) -> Identifiers:
        """The buyers' external ids."""
        return Identifiers(self.ids, "buyer", "the log")

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, ids: pl.Series) -> npt.NDArray[np.int64]:
        """Return the row number of every id, [len(ids)] int64, -1 where an id is unknown."""
        return self.identifiers.rows(ids)

    def row(self, identifier: str | int) -> int:
        """Return the row number of one id.

        Raises:
            UnknownIdError: the log has no such buyer.
        """
        return self.identifiers.row(identifier)

    def external(self, rows: npt.ArrayLike) -> pl.Series:
        """Return the external ids of row numbers, in the order given.

        Raises:
            UnknownIdError: a row number is out of range.
        """
        return self.identifiers.external(rows)
