"""What may not stand as a mined negative of a row: what its buyer knows, hidden positives, what was not on offer."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hatchway.data.contexts import ragged_ranges
from hatchway.data.engagements import Engagements, Int64, known_ranges
from hatchway.negatives.sources import Reason

Bools = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]


class PairScreen(Protocol):
    """Says of items whether they are hidden positives beside a positive; :class:`~hatchway.screening.screen.Screen`."""

    def pairs(self, positives: npt.NDArray[np.integer], candidates: npt.NDArray[np.integer]) -> Int8:
        """Return [P] reasons, 0 where the candidate may stand beside the positive."""
        ...


@dataclass(frozen=True, eq=False)
class RowFilter:
    """The filter of one log's rows. Nothing that happened after a row is looked at, where the log has times.

    Attributes:
        engagements: the log.
        engaged_days: what the buyer engaged with in so many days before the row is no negative; 0 asks nothing.
        living: [N] bool, the items that were on offer in the training part; None: all.
        screen: finds hidden positives among items; None: nobody does.
    """

    engagements: Engagements
    engaged_days: float = 30.0
    living: Bools | None = None
    screen: PairScreen | None = None

    def reasons(self, rows: Int64, items: Int64) -> Int8:
        """Return the first reason that holds for each pair of a row and a candidate, 0 for none.

        In this order: the row's own positive; engaged with by the buyer; the listing that was looked at; what the
        screen finds; not on offer.

        Args:
            rows: [P] int64 engagement rows, equal ones side by side or not.
            items: [P] int64 item rows.

        Returns:
            [P] int8.
        """
        positives = self.engagements.items[rows].astype(np.int64)
        reasons = np.where(items == positives, np.int8(Reason.SAME_ITEM), np.int8(0))
        if self.engaged_days:
            self._tell(reasons, self._engaged(rows, items), Reason.ENGAGED)
        self._tell(reasons, items == self.engagements.query_items[rows], Reason.LOOKED_AT)
        if self.screen is not None:
            left = np.flatnonzero(reasons == 0)
            reasons[left] = self.screen.pairs(positives[left], items[left])
        if self.living is not None:
            self._tell(reasons, ~self.living[items], Reason.NOT_ON_OFFER)
        return reasons

    def _engaged(self, rows: Int64, items: Int64) -> Bools:
        """Say of each pair whether the row's buyer is known to have engaged with the item, as of the row's time."""
        distinct, places = np.unique(rows, return_inverse=True)
        begin, end = known_ranges(self.engagements, distinct, self.engaged_days)
        index, offsets = ragged_ranges(begin, end)
        if not len(index):
            return np.zeros(len(rows), np.bool_)
        # A row and an item make one number: the look-up of pairs is one of numbers.
        known = np.repeat(np.arange(len(distinct)), np.diff(offsets)) << 32 | self.engagements.items[index]
        known.sort()
        asked = places.astype(np.int64) << 32 | items
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        found: Bools = known[at] == asked
        return found

    @staticmethod
    def _tell(reasons: Int8, where: Bools, reason: Reason) -> None:
        reasons[where & (reasons == 0)] = reason
