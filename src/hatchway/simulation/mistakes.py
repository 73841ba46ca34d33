"""Which negatives are none, by the truth: duplicates, hidden positives, and the same model (docs/market.md)."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.engagements import Float32, Int64
from hatchway.data.store import Store
from hatchway.simulation.deeds import MESSAGE_AT
from hatchway.simulation.listings import DAY, Bools, Int8
from hatchway.simulation.truth import Truth

KNOWN_DAYS = 30
"""How long a save or message makes a listing a hidden positive of whoever did it."""


class Mistake(IntEnum):
    """What is wrong with a negative; where several things are, the first of them."""

    NONE = 0
    DUPLICATE = 1
    KNOWN = 2  # a hidden positive: the buyer saved it or wrote about it, or about its object, in the days before
    WANTED = 3  # a hidden positive: having opened it, the buyer would as likely as not write about it
    SAME_MODEL = 4  # not counted as wrong


@dataclass(frozen=True, eq=False)
class Engaged:
    """Who saved or wrote about which object, and when; asked by the store's ids.

    Attributes:
        truth: the market's truth.
        moments: sorted int64, one for each save and message: buyer, object and second in one number.
    """

    truth: Truth
    moments: Int64

    @classmethod
    def of(cls, truth: Truth, store: Store) -> "Engaged":
        """Read the saves and messages of the market's store."""
        deeds = store.events().filter(pl.col("event").is_in(["save", "message"])).select("buyer", "item", "time")
        buyer, item, time = (column.to_numpy() for column in deeds.collect(engine="streaming"))
        return cls(truth, np.sort(_moments(truth, buyer, item, time)))

    def before(self, buyers: Int64, items: Int64, times: Int64, days: int = KNOWN_DAYS) -> Bools:
        """Say whether each buyer engaged with each item's object in the days before each time. All [n]."""
        asked = _moments(self.truth, buyers, items, times)
        # The last engagement of this buyer with this object before the time, if there is one, stands just before it.
        at = np.searchsorted(self.moments, asked, side="left") - 1
        seconds = np.minimum(days * DAY, times - self.truth.settings.start)
        found = np.where(at >= 0, self.moments[np.maximum(at, 0)] if len(self.moments) else -1, -1)
        return np.asarray(found >= asked - seconds)


def _moments(truth: Truth, buyers: Int64, items: Int64, times: Int64) -> Int64:
    """Put buyers, the objects of items and seconds since the market began into one number each, [n] int64."""
    things = int(truth.listings.thing.max(initial=0)) + 1
    # A second more than the days have, so that a time at the very end stays with its own object.
    seconds = truth.settings.days * DAY + 1
    thing = truth.listings.thing[items - 1].astype(np.int64)
    return ((buyers - 1) * things + thing) * seconds + (times - truth.settings.start)


def mistakes(engaged: Engaged, buyers: Int64, positives: Int64, negatives: Int64, times: Int64) -> Int8:
    """Say what is wrong with each negative of a row, by the truth.

    Args:
        engaged: the truth, and who engaged with what.
        buyers: [n] ids of the rows' buyers; a row with several negatives stands there once for each.
        positives: [n] ids of the rows' positives.
        negatives: [n] ids of the listings that are asked about.
        times: [n] Unix seconds of the rows, within the market's days.

    Returns:
        [n] int8, a :class:`Mistake` each.
    """
    truth = engaged.truth
    found = np.zeros(len(buyers), np.int8)
    found[truth.same_model(positives, negatives)] = Mistake.SAME_MODEL
    found[wanted(truth, buyers, negatives, times) >= MESSAGE_AT] = Mistake.WANTED
    found[engaged.before(buyers, negatives, times)] = Mistake.KNOWN
    found[truth.same_object(positives, negatives)] = Mistake.DUPLICATE
    return found


def wanted(truth: Truth, buyers: Int64, items: Int64, times: Int64) -> Float32:
    """Return how much each buyer likes each item on the day of each time, [n] float32; all by the store's ids."""
    liking = np.empty(len(buyers), np.float32)
    days: npt.NDArray[np.int64] = (times - truth.settings.start) // DAY
    for day in np.unique(days):
        rows = days == day
        liking[rows] = truth.taste(buyers[rows], items[rows], int(day))
    return liking
