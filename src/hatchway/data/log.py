"""The log as everything after it reads it: a store's events become engagements, split, with what was known at each."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.buyers import Buyers
from hatchway.data.catalogue import Catalogue
from hatchway.data.engagements import Engagements, Int32, Int64, Part
from hatchway.data.identifiers import Identifiers
from hatchway.data.impressions import shown_not_engaged
from hatchway.data.ordering import buyer_major, comparable
from hatchway.data.positives import IMPRESSION, VIEW, Choice, EventSource, PositivesSettings, choose_events
from hatchway.data.query_items import previous_engaged
from hatchway.data.row_table import RowTable
from hatchway.data.rows import EngagedRows, read_engagements
from hatchway.data.splits import Parts, SplitProtocol, SplitSettings, draw_validation, given, global_time, leave_one_out
from hatchway.data.views import viewed_items
from hatchway.errors import DataError
from hatchway.randomness import stream


@dataclass(frozen=True, eq=False)
class Log:
    """Engagements, and the ids that their row numbers stand for.

    Attributes:
        engagements: all engagements of all buyers.
        buyers: the buyers with at least one engagement.
        catalogue: the items.
        notes: what was chosen and what is absent, in lines to be said.
        protocol: how the engagements were split.
        impressions: for each engagement of the training part, what its buyer was shown with it and did not engage with;
            None where nobody asked, or the log has no impressions.
        living: [N] bool, the items that may be drawn as negatives, where somebody knows; None for what
            :func:`~hatchway.data.living.living_in_training` finds out.
    """

    engagements: Engagements
    buyers: Buyers
    catalogue: Catalogue
    notes: tuple[str, ...]
    protocol: SplitProtocol
    impressions: RowTable | None = None
    living: npt.NDArray[np.bool_] | None = None


def build_log(
    source: EventSource, positives: PositivesSettings, split: SplitSettings, seed: int, *, impressions: bool = False
) -> Log:
    """Choose the engagements of a log, split them, and say what was looked at and known at each.

    The same source, settings and seed give the same arrays; the seed matters for ``validation_fraction`` alone.

    Args:
        source: an opened :class:`~hatchway.data.store.Store`, or anything that answers as it does.
        positives: which events count.
        split: the protocol; where it is None, what the log has decides.
        seed: the run's seed; the stream ``"validation"`` is drawn from.
        impressions: read the log's impressions too.

    Raises:
        DataError: the log does not hold what the settings ask for; the message says what it does hold.
    """
    has_parts = source.has("split")
    protocol, split = split.protocol_in(given=has_parts), split.settled(given=has_parts)
    _check_columns(source, split)
    choice = choose_events(source, positives)
    rows, buyers = read_engagements(source, choice)
    parts = _split(rows, split, seed)
    if (np.diff(parts)[np.diff(rows.buyers) == 0] < 0).any():
        regrouped = buyer_major(rows.buyers, parts.astype(np.int64), np.arange(len(parts)))
        rows, parts = rows.take(regrouped), parts[regrouped]
    context_end = _context_end(rows)
    view_parts = parts if split.protocol == "given" else None
    query_items, query_note = _query_items(source, choice, rows, buyers, context_end=context_end, parts=view_parts)
    engagements = Engagements(
        offsets=rows.offsets,
        buyers=rows.buyers,
        items=rows.items,
        parts=parts,
        weights=rows.frame["weight"].to_numpy(),
        query_items=query_items,
        times=rows.keys if rows.timed else None,
        context_end=context_end,
        query_texts=_query_texts(rows.frame),
    )
    split_note = _say_split(engagements, split, ignored=has_parts and protocol != "given")
    notes = (*choice.notes, *_say_times(rows.by_order), query_note, split_note)
    shown = None
    if impressions:
        if IMPRESSION not in choice.events:
            shown = shown_not_engaged(source, rows, buyers, parts, given=protocol == "given")
        notes = (*notes, *_say_impressions(shown, parts))
    return Log(engagements, buyers, source.catalogue(), notes, protocol, shown)


def _check_columns(source: EventSource, split: SplitSettings) -> None:
    """Refuse a protocol that needs a column which the log lacks."""
    needed = {"given": "split", "global-time": "time"}.get(str(split.protocol))
    if needed and not source.has(needed):
        raise DataError(
            f"split.protocol = {split.protocol!r} needs a column {needed!r}, which the log lacks; use 'leave-one-out' "
            f"or 'none', or import the log with its {needed}"
        )


def _split(rows: EngagedRows, split: SplitSettings, seed: int) -> Parts:
    """Give every row its part."""
    positive = rows.frame["weight"].to_numpy() > 0
    if split.protocol == "leave-one-out":
        return leave_one_out(rows.offsets, rows.buyers, positive)
    if split.protocol == "global-time":
        if not rows.timed:
            raise DataError(
                "split.protocol = 'global-time' needs a time for every engagement; "
                f"{rows.by_order.sum():,} of {len(rows.by_order):,} buyers have one without; use 'leave-one-out', or "
                "import the log without those rows"
            )
        return global_time(rows.keys, positive, split)
    if split.protocol == "given":
        parts = given(rows.frame["split"])
        if split.validation_fraction:
            generator = stream(seed, "validation")
            parts = draw_validation(
                parts, positive, rows.buyers, split.validation_fraction, generator, last=split.validation_rows == "last"
            )
        return parts
    return np.zeros(len(rows), np.int8)


def _context_end(rows: EngagedRows) -> Int64:
    """Return where each row's context ends: before the first of its buyer's rows that is not strictly earlier.

    With the running maximum of the keys, "the first that is not earlier" is one binary search, whatever the split did
    to the order.
    """
    folded, asked = comparable(rows.buyers, rows.keys, rows.buyers, rows.keys)
    return np.searchsorted(np.maximum.accumulate(folded), asked, side="left").astype(np.int64)


def _query_items(
    source: EventSource, choice: Choice, rows: EngagedRows, buyers: Buyers, *, context_end: Int64, parts: Parts | None
) -> tuple[Int32, str]:
    """Return the query items, and the line that says where they come from.

    Args:
        source: the log, for its views.
        choice: what counts; views that count are engagements, and looked at as such.
        rows: the engagements.
        buyers: their buyers.
        context_end: the ends of their contexts.
        parts: their parts if views have parts of their own (a given split), else None.
    """
    found = previous_engaged(rows.offsets, rows.buyers, rows.items, context_end)
    origins = ["the previous engagement"]
    if source.has("event") and VIEW not in choice.events:
        viewed = viewed_items(source, rows, buyers, parts)
        if (viewed >= 0).any():
            found = np.where(viewed >= 0, viewed, found)
            origins.insert(0, "the last view")
    unknown = 0
    if "query_item" in rows.frame.columns:
        said = rows.frame["query_item"].is_not_null().to_numpy()
        told = source.catalogue().rows(rows.frame["query_item"]).astype(np.int32)
        unknown = int((said & (told < 0)).sum())
        found = np.where(said, told, found)
        origins.insert(0, "the log's column query_item")
    note = f"query item: {', else '.join(origins)}"
    return found, note + (f" ({unknown:,} rows name an item that is not in the catalogue: none)" if unknown else "")


def _query_texts(frame: pl.DataFrame) -> npt.NDArray[np.object_] | None:
    """Return the query texts, one Python string for equal ones, or None where the log has none."""
    if "query" not in frame.columns:
        return None
    texts = frame["query"].fill_null("")
    distinct = Identifiers(texts.unique(maintain_order=True), "query", "the log")
    return distinct.ids.to_numpy()[distinct.rows(texts)].astype(np.object_)


def _say_times(by_order: npt.NDArray[np.bool_]) -> list[str]:
    """Return the line about absent times, if any is absent."""
    if not by_order.any():
        return []
    who = "engagements have no time"
    if not by_order.all():
        who = f"{by_order.sum():,} of {len(by_order):,} buyers have an engagement without a time"
    return [f"{who}: the log's order stands for it, and what a buyer engaged with is masked whenever it happened"]


def _say_impressions(shown: RowTable | None, parts: Parts) -> list[str]:
    """Return the line about what was shown, if anything was."""
    lengths = np.zeros(0, np.int64) if shown is None else shown.lengths[parts == Part.TRAIN]
    having = lengths[lengths > 0]
    if not len(having):
        return []
    rows = f"{len(having):,} of {len(lengths):,} training engagements"
    return [f"impressions: {rows} have items that were shown and not engaged with, {having.mean():.1f} each"]


def _say_split(engagements: Engagements, split: SplitSettings, *, ignored: bool) -> str:
    """Return the line about the split and its sizes."""
    counts = ", ".join(f"{len(engagements.positives(part)):,} {part.name.lower()}" for part in Part)
    ending = "; the log's own column 'split' is not used" if ignored else ""
    by = ", as the log's column 'split' says" if split.protocol == "given" else ""
    return f"split {split.protocol}{by}: {counts} positives{ending}"
