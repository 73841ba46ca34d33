"""Lists of items by row, as flat arrays: what was shown beside an engagement, what was mined for it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64
from hatchway.errors import DataError


@dataclass(frozen=True, eq=False)
class RowTable:
    """A list of items for each of R rows. Rows may share a list, or a part of it.

    Attributes:
        begin: [R] int64.
        end: [R] int64; row r's items are ``items[begin[r]:end[r]]``.
        items: [M] integers, item row numbers.

    Raises:
        DataError: a range does not lie within the items, or an item is negative.
    """

    begin: Int64
    end: Int64
    items: npt.NDArray[np.integer]

    def __post_init__(self) -> None:
        """Refuse ranges of another array."""
        if self.begin.shape != self.end.shape or self.begin.ndim != 1:
            raise DataError(f"begin has shape {self.begin.shape} and end {self.end.shape}; allowed: [R] both")
        if ((self.begin < 0) | (self.end < self.begin) | (self.end > len(self.items))).any():
            raise DataError(f"a row's range does not lie within the {len(self.items)} items, or ends before it begins")
        if len(self.items) and int(self.items.min()) < 0:
            raise DataError(f"item row {int(self.items.min())} in the table; item rows are never negative")

    @classmethod
    def from_offsets(cls, offsets: Int64, items: npt.NDArray[np.integer]) -> Self:
        """Make a table of lists that lie one after another.

        Args:
            offsets: [R + 1] int64, where each row's list begins, and where the last ends.
            items: [M] item row numbers.
        """
        return cls(offsets[:-1], offsets[1:], items)

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def lengths(self) -> Int64:
        """[R] int64, how many items each row has."""
        return self.end - self.begin
