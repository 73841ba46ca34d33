"""Everything every buyer did that counts, as flat arrays: the one form that training, masks and evaluation read.

Rows are buyer-major, and within a buyer they stand in the order (part, time, order of the log): all training rows
first, then validation, then test. So "everything that training may know of this buyer" is a prefix of the buyer's
rows, and "everything this buyer did before that row" is a prefix of it again; no row is ever looked at twice.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hatchway import compiled
from hatchway.errors import SettingsError

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


class Part(IntEnum):
    """The part of the split that a row belongs to; ordered, so that ``part <= VALIDATION`` is what a test may see."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2


@dataclass(frozen=True, eq=False)
class Engagements:
    """All engagements of all buyers (E rows), as columns.

    Attributes:
        offsets: [buyers + 1] int64; buyer b's rows are ``offsets[b]:offsets[b + 1]``.
        buyers: [E] int32 row number of the buyer.
        items: [E] int32 row number of the item in the catalogue.
        parts: [E] int8, a :class:`Part`; never falls within a buyer.
        weights: [E] float32; the weight of the positive, 0 where the row is an engagement but no positive.
        query_items: [E] int32; the listing that was being looked at, or the previous engagement, or -1.
        times: [E] int64 Unix seconds, or None where the log has no times (then order alone is known).
        context_end: [E] int64, absolute; ``offsets[buyer]:context_end`` are the rows strictly before this one:
            earlier in time (rows of the same second do not see each other) or, without times, in order. Where a split
            puts a later row in an earlier part, the range stops before the first row that is not strictly earlier.
        query_texts: [E] the text that was searched for ("" where none), or None where the log has none.
    """

    offsets: Int64
    buyers: Int32
    items: Int32
    parts: npt.NDArray[np.int8]
    weights: Float32
    query_items: Int32
    times: Int64 | None
    context_end: Int64
    query_texts: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def training_end(self) -> Int64:
        """The absolute end of each buyer's training rows, [buyers] int64."""
        return self.part_end(Part.TRAIN)

    def positives(self, part: Part) -> Int64:
        """Return the rows of ``part`` that are positives, [P] int64, ascending."""
        return np.flatnonzero((self.parts == part) & (self.weights > 0)).astype(np.int64)

    def part_end(self, part: Part) -> Int64:
        """Return, for each buyer, the absolute end of the rows of ``part`` and before, [buyers] int64."""
        within = np.bincount(self.buyers[self.parts <= part], minlength=len(self.offsets) - 1)
        return self.offsets[:-1] + within.astype(np.int64)


def training_counts(engagements: Engagements, catalogue_size: int) -> Int64:
    """Count the training positives of every item, weights ignored, [catalogue_size] int64.

    Nothing but positives of :attr:`Part.TRAIN` is counted: no engagement that is no positive, nothing of validation or
    test.
    """
    items = engagements.items[engagements.positives(Part.TRAIN)]
    return np.bincount(items, minlength=catalogue_size).astype(np.int64)


def last_training_day(engagements: Engagements) -> int | None:
    """Return the day of the last training engagement, in days since 1970 (UTC); None without times or training rows.

    It is how old what was learned from the log is, in days of the data: no clock is asked.
    """
    training = engagements.parts == Part.TRAIN
    if engagements.times is None or not training.any():
        return None
    return int(engagements.times[training].max()) // 86_400


def known_ranges(engagements: Engagements, rows: Int64, days: float | None = 30.0) -> tuple[Int64, Int64]:
    """Return which training engagements a buyer is known for as of each row's time, for masks.

    With times, these are the engagements (positives or not) in the ``days`` before the row, ``[time - days, time)``,
    the row's own second left out. Without times, or with ``days=None``, they are all of the buyer's training
    engagements, the row itself and later ones included. Rows of validation and test are never among them.

    Args:
        engagements: the log.
        rows: [R] int64 engagement rows.
        days: length of the window in days of 86,400 seconds, above 0 (``math.inf``: no earliest time).

    Returns:
        begin, end: [R] int64, absolute; row i's are ``engagements.items[begin[i]:end[i]]``.

    Raises:
        SettingsError: ``days`` is not above 0.
    """
    if days is not None and not days > 0:
        raise SettingsError(f"days = {days} is no window; give a number above 0, or None for all training engagements")
    times = engagements.times
    if days is not None and times is not None and compiled.available():
        buyers, offsets = engagements.buyers, engagements.offsets
        arrays = rows, buyers, offsets, engagements.training_end, engagements.context_end, times
        return _known_before(*arrays, days * 86_400.0)
    buyers = engagements.buyers[rows]
    begin = engagements.offsets[buyers]
    end = engagements.training_end[buyers]
    if days is None or times is None:
        return begin, end
    end = np.minimum(end, engagements.context_end[rows])
    earliest = times[rows].astype(np.float64) - days * 86_400.0
    return _first_at_or_after(times, begin, end, earliest), end


def _first_at_or_after(times: Int64, begin: Int64, end: Int64, bounds: npt.NDArray[np.float64]) -> Int64:
    """Bisect every range of ascending times at once: the first row in it not before its bound, or its end."""
    low, high = begin.copy(), end.copy()
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        earlier = (low < high) & (times[np.minimum(middle, len(times) - 1)] < bounds)
        low = np.where(earlier, middle + 1, low)
        high = np.where(earlier, high, np.minimum(middle, high))
    return low


_AHEAD = 64
"""Rows between asking for a row's times and looking at them."""


@compiled.Compiled
def _known_before(
    rows: Int64,
    buyers: Int32,
    offsets: Int64,
    training_end: Int64,
    context_end: Int64,
    times: Int64,
    seconds: float,
) -> tuple[Int64, Int64]:
    """Find the ranges row by row: what is known of a row lies side by side in memory, the rows do not.

    Steps back from the end, twice as far each time, before it bisects: most ranges are short and at the end.
    """
    begin, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    earliest = np.empty(len(rows), np.float64)
    of_rows = np.empty(len(rows), np.int32)
    # Loops that do little but fetch come first: the shorter a loop, the more waits for memory overlap.
    for i in range(len(rows)):
        of_rows[i], end[i] = buyers[rows[i]], context_end[rows[i]]
        earliest[i] = float(times[rows[i]]) - seconds
    for i in range(len(rows)):
        begin[i], end[i] = offsets[of_rows[i]], min(training_end[of_rows[i]], end[i])
    for i in range(min(_AHEAD, len(rows))):
        compiled.ahead(times, end[i] - 1)
    for i in range(len(rows)):
        compiled.ahead(times, end[min(i + _AHEAD, len(rows) - 1)] - 1)
        first, high = begin[i], end[i]
        low, step = high - 1, 1
        while low >= first and float(times[low]) >= earliest[i]:
            high = low
            step *= 2
            low = high - step
        low = max(low + 1, first)
        while low < high:
            middle = (low + high) // 2
            if float(times[middle]) < earliest[i]:
                low = middle + 1
            else:
                high = middle
        begin[i] = high
    return begin, end
