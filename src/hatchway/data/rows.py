"""The engagements of a log as they are read: chosen, numbered, and sorted by buyer and time."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.buyers import Buyers
from hatchway.data.engagements import Int32, Int64
from hatchway.data.ordering import Keys, buyer_major
from hatchway.data.positives import Choice, EventSource, check_weights, engaged_rows
from hatchway.errors import DataError


@dataclass(frozen=True, eq=False)
class EngagedRows:
    """E engagements, sorted by (buyer, key, order) or, once split, by (buyer, part, key, order).

    Attributes:
        frame: [E] rows: ``weight``, and ``session``, ``query``, ``query_item`` and ``split`` where the log has them.
        offsets: [buyers + 1] int64; buyer b's rows are ``offsets[b]:offsets[b + 1]``.
        buyers: [E] int32 row number of the buyer.
        items: [E] int32 row number of the item.
        keys: [E] int64, what "before" means: the time, or the order for a buyer in ``by_order``.
        by_order: [buyers] whether a row of this buyer has no time, so that all are ordered by ``order``.
    """

    frame: pl.DataFrame
    offsets: Int64
    buyers: Int32
    items: Int32
    keys: Keys
    by_order: npt.NDArray[np.bool_]

    @property
    def timed(self) -> bool:
        """Whether every row has a time."""
        return not self.by_order.any()

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Int64) -> "EngagedRows":
        """Return the rows in another order that leaves every buyer's in one piece."""
        return dataclasses.replace(
            self, frame=self.frame[rows], buyers=self.buyers[rows], items=self.items[rows], keys=self.keys[rows]
        )


def read_engagements(source: EventSource, choice: Choice) -> tuple[EngagedRows, Buyers]:
    """Read the engagements, number their buyers and items, and sort them.

    Raises:
        DataError: a weight is not above 0, no row is a positive, or an item is not in the catalogue.
    """
    columns = ("time", "session", "query", "query_item", "split")
    frame = engaged_rows(source, choice, columns).collect(engine="streaming")
    check_weights(frame)
    buyers = Buyers(frame["buyer"].unique().sort())
    numbers = buyers.rows(frame["buyer"]).astype(np.int32)
    items = source.catalogue().rows(frame["item"]).astype(np.int32)
    if (items < 0).any():
        stranger = frame["item"][int(np.flatnonzero(items < 0)[0])]
        raise DataError(f"item {stranger!r} of the log is not in the catalogue; import the log again")
    by_order = np.ones(len(buyers), np.bool_)
    keys = orders = frame["order"].to_numpy()
    if "time" in frame.columns:
        by_order[:] = False
        by_order[numbers[frame["time"].is_null().to_numpy()]] = True
        keys = np.where(by_order[numbers], orders, frame["time"].fill_null(0).to_numpy())
    offsets = np.zeros(len(buyers) + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=len(buyers)), out=offsets[1:])
    # Numbers stand for the ids from here on; a column less is a second less for ten million rows.
    frame = frame.drop("buyer", "item", "order", "positive", "time", strict=False)
    rows = EngagedRows(frame, offsets, numbers, items, keys, by_order)
    return rows.take(buyer_major(numbers, keys, orders)), buyers
