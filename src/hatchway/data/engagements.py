"""Everything every buyer did that counts, as flat arrays: the one form that training, masks and evaluation read.

Rows are buyer-major, and within a buyer they stand in the order (part, time, order of the log): all training rows
first, then validation, then test. So "everything that training may know of this buyer" is a prefix of the buyer's
rows, and "everything this buyer did before that row" is a prefix of it again; no row is ever looked at twice.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


class Part(IntEnum):
    """The part of the split that a row belongs to; ordered, so that ``part <= VALIDATION`` is what a test may see."""

    TRAIN = 0
    VALIDATION = 1
    TEST = 2


@dataclass(frozen=True)
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
            earlier in time (rows of the same second do not see each other) or, without times, in order.
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

    def positives(self, part: Part) -> Int64:
        """Return the rows of ``part`` that are positives, [P] int64, ascending."""
        return np.flatnonzero((self.parts == part) & (self.weights > 0)).astype(np.int64)

    def part_end(self, part: Part) -> Int64:
        """Return, for each buyer, the absolute end of the rows of ``part`` and before, [buyers] int64."""
        within = np.bincount(self.buyers[self.parts <= part], minlength=len(self.offsets) - 1)
        return self.offsets[:-1] + within.astype(np.int64)
