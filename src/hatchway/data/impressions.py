"""What buyers were shown and did not engage with, brought to the training rows that it stood beside."""

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.buyers import Buyers
from hatchway.data.engagements import Int64, Part
from hatchway.data.ordering import buyer_major, comparable
from hatchway.data.positives import IMPRESSION, EventSource
from hatchway.data.row_table import RowTable
from hatchway.data.rows import EngagedRows
from hatchway.data.splits import Parts

_DAY = 86_400


def shown_not_engaged(
    source: EventSource, rows: EngagedRows, buyers: Buyers, parts: Parts, *, given: bool
) -> RowTable | None:
    """Return, for each training engagement, the items that its buyer was shown with it and did not engage with.

    Where the engagement has a session: the impressions of the buyer's same session, up to the session's last training
    engagement. Where it has none but a time: those of the same day (UTC) up to the engagement. Left out are the items
    of the buyer's training engagements in the session (on the day), whenever in it; an item that is shown several times
    stands once, where it was first. Nothing that happened after training is looked at, neither what was shown then nor
    what turned out to be engaged with.

    Args:
        source: the log.
        rows: the engagements.
        buyers: their buyers.
        parts: [E] their parts.
        given: the log's column ``split`` gives impressions their parts too; those of a later part, or of none, are not
            looked at.

    Returns:
        [E] lists, empty for rows that are not of training; None where the log has no impressions at all.
    """
    if not source.has("event"):
        return None
    shown = source.events().filter(pl.col("event") == IMPRESSION)
    if shown.select(pl.len()).collect(engine="streaming").item() == 0:
        return None
    if given:
        shown = shown.filter(pl.col("split") == Part.TRAIN.name.lower())
    begin, end = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    items: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    training = parts == Part.TRAIN
    asked = pl.DataFrame({"buyer": rows.buyers, "item": rows.items, "key": rows.keys})
    in_session = np.zeros(len(rows), np.bool_)
    if "session" in rows.frame.columns:
        asked = asked.with_columns(rows.frame["session"])
        in_session = asked["session"].is_not_null().to_numpy()
    asked = asked.with_columns(day=pl.col("key") // _DAY)
    timed = ~rows.by_order[rows.buyers]
    for by, chosen in (("session", training & in_session), ("day", training & ~in_session & timed)):
        if not chosen.any():
            continue
        at = np.flatnonzero(chosen)
        found = _of_groups(source, shown, asked[at], buyers, rows.by_order, by)
        offset = sum(len(part) for part in items)
        begin[at], end[at] = found.begin + offset, found.end + offset
        items.append(found.items.astype(np.int32))
    return RowTable(begin, end, np.concatenate(items))


def _of_groups(
    source: EventSource,
    shown: pl.LazyFrame,
    asked: pl.DataFrame,
    buyers: Buyers,
    by_order: npt.NDArray[np.bool_],
    by: str,
) -> RowTable:
    """Return the lists of the rows ``asked`` (buyer, item, key, and the column ``by``)."""
    keys = ["buyer", by]
    groups = asked.select(keys).unique(maintain_order=True).with_row_index("group")
    groups = groups.with_columns(pl.col("group").cast(pl.Int64), by_order=by_order[groups["buyer"]])
    asked = asked.join(groups, on=keys, how="left", maintain_order="left")
    until = asked["key"] if by == "day" else asked.select(pl.col("key").max().over("group"))["key"]
    groups = groups.with_columns(id=buyers.external(groups["buyer"]))
    key = pl.col("order")
    if source.has("time"):
        key = pl.when("by_order").then("order").otherwise("time")
        shown = shown.with_columns(day=pl.col("time") // _DAY)
    seen = (
        shown.join(groups.lazy(), left_on=["buyer", by], right_on=["id", by], how="inner", maintain_order="left")
        .select("group", "item", "order", key.alias("key"))
        .drop_nulls("key")
        .collect(engine="streaming")
    )
    catalogue_rows = source.catalogue().rows(seen["item"])
    seen = seen.with_columns(item=pl.Series(catalogue_rows.astype(np.int32))).filter(pl.col("item") >= 0)
    engaged = asked.select("group", "item").unique()
    seen = seen.join(engaged, on=["group", "item"], how="anti", maintain_order="left")
    order = buyer_major(seen["group"].to_numpy(), seen["key"].to_numpy(), seen["order"].to_numpy())
    seen = seen[order].unique(["group", "item"], keep="first", maintain_order=True)
    places: Int64 = seen["group"].to_numpy()
    own: Int64 = asked["group"].to_numpy()
    folded, limit = comparable(places, seen["key"].to_numpy(), own, until.to_numpy())
    begin = np.searchsorted(places, own, side="left").astype(np.int64)
    end = np.searchsorted(folded, limit, side="right").astype(np.int64)
    return RowTable(begin, np.maximum(begin, end), seen["item"].to_numpy())
