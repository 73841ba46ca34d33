"""Which items are like which: lists of similar items by item, asked by pairs, kept in one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.engagements import Int64
from hatchway.errors import ArtefactError, DataError

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SimilarItems:
    """For each of N items the items that are like it: symmetric, and no item is among its own.

    Attributes:
        offsets: [N + 1] int64; item i's similar items are ``items[offsets[i]:offsets[i + 1]]``.
        items: [M] int64 item rows, ascending within an item.

    Raises:
        DataError: the offsets do not cut up the items, or an item row is none of the N.
    """

    offsets: Int64
    items: Int64

    def __post_init__(self) -> None:
        """Refuse lists that cannot be looked up."""
        offsets, items = self.offsets, self.items
        if offsets.ndim != 1 or not len(offsets) or items.ndim != 1:
            raise DataError(f"offsets have shape {offsets.shape} and items {items.shape}; allowed: [N + 1] and [M]")
        if offsets[0] != 0 or offsets[-1] != len(items) or (np.diff(offsets) < 0).any():
            raise DataError(f"the offsets do not cut up {len(items)} items; they ascend from 0 to the number of items")
        if len(items) and (int(items.min()) < 0 or int(items.max()) >= len(self)):
            raise DataError(f"item rows {int(items.min())} to {int(items.max())}; allowed: 0 to {len(self) - 1}")
        descends = items[1:] <= items[:-1]
        descends[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(items))] - 1] = False
        if descends.any():
            raise DataError("an item's similar items do not ascend, or one comes twice; make them with from_pairs")

    @classmethod
    def none(cls, size: int) -> Self:
        """Return the lists of ``size`` items that are all unlike."""
        return cls(np.zeros(size + 1, np.int64), np.empty(0, np.int64))

    @classmethod
    def from_pairs(cls, size: int, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Self:
        """Make the lists of pairs, each told once or several times, in either direction.

        Args:
            size: N.
            first: [P] item rows.
            second: [P] item rows; a pair of an item with itself is left out.

        Raises:
            DataError: the arrays differ in length, or an item row is none of the N.
        """
        if first.shape != second.shape or first.ndim != 1:
            raise DataError(f"pairs of shapes {first.shape} and {second.shape}; allowed: [P] both")
        for rows in (first, second):
            if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= size):
                raise DataError(f"item rows {int(rows.min())} to {int(rows.max())}; allowed: 0 to {size - 1}")
        apart = first != second
        one, other = first[apart].astype(np.int64), second[apart].astype(np.int64)
        codes = np.concatenate([one * size + other, other * size + one])
        codes.sort()
        fresh = np.ones(len(codes), np.bool_)
        np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
        codes = codes[fresh]
        items = codes // max(size, 1)
        offsets = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(items, minlength=size), out=offsets[1:])
        codes -= items * size
        return cls(offsets, codes)

    def __len__(self) -> int:
        """N."""
        return len(self.offsets) - 1

    @property
    def pairs(self) -> int:
        """How many pairs of items are alike, each counted once."""
        return len(self.items) // 2

    @property
    def counts(self) -> Int64:
        """[N] int64, how many items each is like."""
        return np.diff(self.offsets)

    def of(self, item: int) -> Int64:
        """Return the items that are like one, ascending.

        Raises:
            DataError: there is no such item.
        """
        if not 0 <= item < len(self):
            raise DataError(f"item row {item}; allowed: 0 to {len(self) - 1}")
        return self.items[self.offsets[item] : self.offsets[item + 1]]

    def contains(self, items: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Bools:
        """Say of each pair whether the two are alike; an item is not like itself.

        Args:
            items: [P] item rows.
            others: [P] item rows.

        Returns:
            [P] bool.

        Raises:
            DataError: an item row is none of the N.
        """
        found = np.zeros(items.shape, np.bool_)
        if not items.size:
            return found
        for rows in (items, others):
            if int(rows.min()) < 0 or int(rows.max()) >= len(self):
                raise DataError(f"item rows {int(rows.min())} to {int(rows.max())}; allowed: 0 to {len(self) - 1}")
        # Most items are like none, so most pairs are answered before the search.
        asked = np.flatnonzero(self.counts[items])
        low, end = self.offsets[items[asked]], self.offsets[items[asked] + 1]
        wanted, high = others[asked], end
        for _ in range(int((end - low).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            before = (low < high) & (self.items[np.minimum(middle, len(self.items) - 1)] < wanted)
            low = np.where(before, middle + 1, low)
            high = np.where(before, high, np.minimum(middle, high))
        found[asked] = (low < end) & (self.items[np.minimum(low, len(self.items) - 1)] == wanted)
        return found

    def union(self, other: Self) -> Self:
        """Return the lists in which two items are alike where they are in these or in the others.

        Raises:
            DataError: the others are of another number of items.
        """
        if len(other) != len(self):
            raise DataError(f"similar items of {len(self)} and of {len(other)} items; both must be of one catalogue")
        mine, theirs = self.first_of_pairs(), other.first_of_pairs()
        return type(self).from_pairs(
            len(self), np.concatenate([mine[0], theirs[0]]), np.concatenate([mine[1], theirs[1]])
        )

    def first_of_pairs(self) -> tuple[Int64, Int64]:
        """Return every pair once, smaller row first: two arrays, [pairs] int64 each."""
        items = np.repeat(np.arange(len(self)), self.counts)
        once = items < self.items
        return items[once], self.items[once]

    def write(self, path: Path) -> None:
        """Write the lists as one safetensors file, whole or not at all; equal lists give equal bytes."""
        with replacing_file(path) as partial:
            safetensors.numpy.save_file({"offsets": self.offsets, "items": self.items}, partial)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the lists that :meth:`write` wrote.

        Raises:
            ArtefactError: they are not there, or damaged.
        """
        try:
            tensors = safetensors.numpy.load_file(path)
            return cls(tensors["offsets"], tensors["items"])
        except (OSError, safetensors.SafetensorError, KeyError, DataError) as error:
            raise ArtefactError(f"{path} does not hold lists of similar items ({error}); screen again") from None
