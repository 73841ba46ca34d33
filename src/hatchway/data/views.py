"""What buyers looked at: the views of a log, brought to the engagements that they may have led to."""

import numpy as np
import polars as pl

from hatchway.data.buyers import Buyers
from hatchway.data.engagements import Int32, Part
from hatchway.data.ordering import buyer_major
from hatchway.data.positives import VIEW, EventSource
from hatchway.data.query_items import Sightings, last_viewed
from hatchway.data.rows import EngagedRows
from hatchway.data.splits import Parts


def viewed_items(source: EventSource, rows: EngagedRows, buyers: Buyers, parts: Parts | None) -> Int32:
    """Return, for each engagement, the item of the last view of another item at or before it, [E] int32, -1 for none.

    A view counts if it is the same buyer's and, where the engagement has a session, of the same session.

    Args:
        source: the log; it has a column ``event``.
        rows: the engagements.
        buyers: their buyers.
        parts: their parts, if the log's column ``split`` gives parts to views too: a view of a later part is not seen.
            None: every view may be seen.
    """
    found = np.full(len(rows), -1, np.int32)
    in_session = np.zeros(len(rows), np.bool_)
    asked_by = pl.DataFrame({"buyer": rows.buyers})
    if "session" in rows.frame.columns:
        asked_by = asked_by.with_columns(rows.frame["session"])
        in_session = asked_by["session"].is_not_null().to_numpy()
    for by, chosen in ((["buyer", "session"], in_session), (["buyer"], ~in_session)):
        if not chosen.any():
            continue
        asked = asked_by.select(by).filter(pl.Series(chosen))
        groups = asked.unique(maintain_order=True).with_row_index("group")
        groups = groups.with_columns(id=buyers.external(groups["buyer"]), by_order=rows.by_order[groups["buyer"]])
        views, view_parts = _read_views(source, groups, by[1:], with_parts=parts is not None)
        own = np.full(len(rows), -1, np.int64)
        own[chosen] = asked.join(groups, on=by, how="left", maintain_order="left")["group"].to_numpy()
        rounds = [(chosen, views)]
        if parts is not None:
            rounds = [(chosen & (parts == part), views.where(view_parts <= part)) for part in Part]
        for mine, seen in rounds:
            found[mine] = last_viewed(seen, own[mine], rows.keys[mine], rows.items[mine])
    return found


def _read_views(
    source: EventSource, groups: pl.DataFrame, session: list[str], *, with_parts: bool
) -> tuple[Sightings, Parts]:
    """Read the views of the given groups, sorted, and their parts (all TRAIN unless ``with_parts``)."""
    key = pl.col("order")
    if source.has("time"):
        key = pl.when("by_order").then("order").otherwise("time")
    part = pl.lit(int(Part.TRAIN), pl.Int8)
    if with_parts:  # a view whose part nobody knows is taken for the latest: only the test may see it
        names = {part.name.lower(): int(part) for part in Part}
        part = pl.col("split").replace_strict(names, default=int(Part.TEST), return_dtype=pl.Int8)
    views = (
        source.events()
        .filter(pl.col("event") == VIEW)
        .join(groups.lazy(), left_on=["buyer", *session], right_on=["id", *session], how="inner", maintain_order="left")
        .select("group", "item", "order", key.alias("key"), part.alias("part"))
        .drop_nulls("key")
        .collect()
    )
    views = views.with_columns(row=pl.Series(source.catalogue().rows(views["item"]))).filter(pl.col("row") >= 0)
    sightings = Sightings(
        groups=views["group"].cast(pl.Int64).to_numpy(),
        keys=views["key"].to_numpy(),
        items=views["row"].cast(pl.Int32).to_numpy(),
    )
    order = buyer_major(sightings.groups, sightings.keys, views["order"].to_numpy())
    return sightings.where(order), views["part"].to_numpy()[order]
