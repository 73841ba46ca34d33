"""The query item of an engagement: the listing that the buyer was looking at when it happened.

It is what the log says (column ``query_item``); where the log does not say, the last view of another item, in the same
session where there is one; where there is none, the previous engagement with another item; else none.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int32, Int64
from hatchway.data.ordering import Keys, comparable


@dataclass(frozen=True, eq=False)
class Sightings:
    """Views, ordered by (group, key): who looked at which item, and when.

    Attributes:
        groups: [V] int64, ascending; views and engagements of one buyer (and session) share a group.
        keys: [V] int64, ascending within a group: time, or order where there is no time.
        items: [V] int32 row number of the item.
    """

    groups: Int64
    keys: Keys
    items: Int32

    def where(self, chosen: npt.NDArray[np.bool_] | Int64) -> "Sightings":
        """Return the views chosen by a mask, or by rows."""
        return Sightings(self.groups[chosen], self.keys[chosen], self.items[chosen])


def previous_other(groups: npt.NDArray[np.integer], items: Int32) -> Int32:
    """Return, for each row, the item of the last row before it, in its group, that holds another item; -1 for none.

    Args:
        groups: [E] the groups, each in one piece.
        items: [E] int32 row number of the item.

    >>> previous_other(np.array([0, 0, 0, 1, 1]), np.array([5, 5, 7, 7, 5], np.int32)).tolist()
    [-1, -1, 5, -1, 7]
    """
    if not len(items):
        return items
    starts = np.ones(len(items), np.bool_)
    starts[1:] = (groups[1:] != groups[:-1]) | (items[1:] != items[:-1])
    start = np.maximum.accumulate(np.where(starts, np.arange(len(items)), 0))
    before = np.maximum(start - 1, 0)
    return np.where((start > 0) & (groups[before] == groups), items[before], -1).astype(np.int32)


def last_viewed(views: Sightings, groups: Int64, keys: Keys, items: Int32) -> Int32:
    """Return the item of the last view, at or before each engagement and in its group, of another item; -1 for none.

    Args:
        views: the views.
        groups: [R] int64 the engagements' groups.
        keys: [R] int64 the engagements' keys, on the scale of the views'.
        items: [R] int32 the engagements' items.
    """
    if not len(views.items) or not len(items):
        return np.full(len(items), -1, np.int32)
    folded, asked = comparable(views.groups, views.keys, groups, keys)
    last = np.searchsorted(folded, asked, side="right") - 1
    inside = np.maximum(last, 0)
    seen = (last >= 0) & (views.groups[inside] == groups)
    other = previous_other(views.groups, views.items)
    chosen = np.where(views.items[inside] != items, views.items[inside], other[inside])
    return np.where(seen, chosen, -1).astype(np.int32)


def previous_engaged(offsets: Int64, buyers: Int32, items: Int32, context_end: Int64) -> Int32:
    """Return the item of the last engagement strictly before each row with another item; -1 for none.

    Args:
        offsets: [buyers + 1] as in :class:`~hatchway.data.engagements.Engagements`, like the rest.
        buyers: [E] row number of the buyer.
        items: [E] row number of the item.
        context_end: [E] end of the context.
    """
    known = context_end > offsets[buyers]
    last = np.maximum(context_end - 1, 0)
    other = previous_other(buyers, items)
    chosen = np.where(items[last] != items, items[last], other[last])
    return np.where(known, chosen, -1).astype(np.int32)
