"""What happens in the market, as columns: who, which listing, what, when, and where on which page."""

from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np

from hatchway.data.engagements import Int64
from hatchway.simulation.listings import Bools, Int8


class Event(IntEnum):
    """The kinds of events, in the order in which they can follow each other within a second."""

    IMPRESSION = 0
    VIEW = 1
    SAVE = 2
    MESSAGE = 3
    PURCHASE = 4


@dataclass(frozen=True, eq=False)
class Rows:
    """Events as columns, all of one length.

    Attributes:
        buyer: row of the buyer.
        item: row of the listing.
        event: an :class:`Event`.
        time: Unix seconds.
        session: number of the session.
        position: slot on the page, from 1; 0 where the event is no impression and no view.
        query_item: row of the listing whose page it happened on, -1 where it was no listing's page.
        query: position in :func:`hatchway.simulation.sessions.searches` of what was searched for, -1 for nothing.
    """

    buyer: Int64
    item: Int64
    event: Int8
    time: Int64
    session: Int64
    position: Int8
    query_item: Int64
    query: Int64

    def __len__(self) -> int:
        return len(self.item)

    def take(self, rows: Bools | Int64) -> "Rows":
        """Return the chosen rows."""
        return Rows(*(getattr(self, field.name)[rows] for field in fields(self)))

    def becoming(self, event: Event, time: Int64 | None = None) -> "Rows":
        """Return the same with another event, at the given times where they are given; only views keep a position."""
        position = self.position if event == Event.VIEW else np.zeros_like(self.position)
        kind = np.full(len(self), event, np.int8)
        return replace(self, event=kind, time=self.time if time is None else time, position=position)

    @staticmethod
    def joined(parts: "list[Rows]") -> "Rows":
        """Put several together, one after another."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(Rows))
        return Rows(*(np.concatenate(column) for column in columns))

    @staticmethod
    def none() -> "Rows":
        """Return no rows."""
        nothing, small = np.zeros(0, np.int64), np.zeros(0, np.int8)
        return Rows(nothing, nothing, small, nothing, nothing, small, nothing, nothing)
