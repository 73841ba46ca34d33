"""One day's events, looked at before anything learns from them: what is turned away, and why."""

from collections.abc import Mapping, Sequence

import polars as pl
import pydantic

from hatchway.data.positives import USUAL_ENGAGEMENTS
from hatchway.nightly.settings import IntakeSettings

_HOUR = 3_600

REASONS: Mapping[str, str] = {
    "repeat": "every field is as in an earlier row, time included",
    "weight": "the weight is no finite number above 0",
    "clock": "the row lies hours away from the rest of its session: a clock jumped",
    "poisoned": "one item had far too large a share of the hour's positives",
}
"""Why a row of the day is turned away, in the order in which the rules are applied."""


class DayFacts(pydantic.BaseModel):
    """What is known of one day's events.

    Attributes:
        rows: as they lay in the store.
        accepted: rows that were taken.
        positives: accepted rows whose event is a positive.
        rejected: rows turned away, by reason.
        events: accepted rows by event.
        positive: which of them are positives.
        largest_share: largest share of one item in the positives of an hour that had enough of them, before anything
            was turned away; None where no hour had.
        poisoned: the items of which an hour's positives were turned away.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    rows: int
    accepted: int
    positives: int
    rejected: dict[str, int]
    events: dict[str, int]
    positive: tuple[str, ...]
    largest_share: float | None
    poisoned: tuple[str, ...]


def clean_day(
    frame: pl.DataFrame, positive: Sequence[str], settings: IntakeSettings
) -> tuple[pl.DataFrame, DayFacts, pl.DataFrame]:
    """Turn away what cannot be right in one day's events.

    It is a function of the day's rows alone, so that a day gives the same rows whenever it is looked at again.

    Args:
        frame: the day's rows, sorted by (time, order).
        positive: the events that are positives; "" where rows have no event.
        settings: the limits.

    Returns:
        the accepted rows in their order, what is known of the day, and the rejected rows with a column ``reason``.
    """
    rejected: list[pl.DataFrame] = []

    def without(kept: pl.DataFrame, wrong: pl.Series, reason: str) -> pl.DataFrame:
        if wrong.any():
            rejected.append(kept.filter(wrong).with_columns(reason=pl.lit(reason)))
        return kept.filter(~wrong)

    fields = [name for name in frame.columns if name != "order"]
    kept = without(frame, ~frame.select(pl.struct(fields).is_first_distinct().alias("first"))["first"], "repeat")
    if "weight" in kept.columns:
        weight = pl.col("weight")
        wrong = kept.select((weight.is_not_null() & ~(weight.is_finite() & (weight > 0))).alias("wrong"))["wrong"]
        kept = without(kept, wrong, "weight")
    kept = without(kept, _jumped(kept, settings.longest_session_hours), "clock")
    largest, poisoned = _poisoned(kept, positive, settings)
    items = sorted({str(item) for item in kept.filter(poisoned)["item"].to_list()})
    kept = without(kept, poisoned, "poisoned")
    by_event = dict(kept.group_by("event").len().sort("event").iter_rows()) if "event" in kept.columns else {}
    counts = {part["reason"][0]: len(part) for part in rejected}
    facts = DayFacts(
        rows=len(frame),
        accepted=len(kept),
        positives=int(_is_positive(kept, positive).sum()),
        rejected={reason: counts[reason] for reason in REASONS if reason in counts},
        events={str(event or ""): int(number) for event, number in by_event.items()},
        positive=tuple(positive),
        largest_share=largest,
        poisoned=tuple(items),
    )
    nothing = kept.clear().with_columns(reason=pl.lit("", pl.String))
    return kept, facts, pl.concat([nothing, *rejected])


def _is_positive(frame: pl.DataFrame, positive: Sequence[str]) -> pl.Series:
    """Mark the rows whose event is a positive."""
    if "event" not in frame.columns:
        return pl.repeat(value=True, n=len(frame), eager=True)
    return frame["event"].fill_null("").is_in(list(positive))


def _jumped(frame: pl.DataFrame, hours: float) -> pl.Series:
    """Mark the rows that lie hours away from the middle row of their session; purchases may, and are never marked."""
    if not hours or "session" not in frame.columns or "time" not in frame.columns:
        return pl.repeat(value=False, n=len(frame), eager=True)
    # Some logs count the sessions of each buyer from 1.
    far = (pl.col("time") - pl.col("time").median().over("buyer", "session")).abs() > hours * _HOUR
    wrong = far & pl.col("session").is_not_null()
    if "event" in frame.columns:  # what was looked at today may be bought tonight
        wrong &= ~pl.col("event").fill_null("").is_in(list(USUAL_ENGAGEMENTS))
    return frame.select(wrong.fill_null(value=False).alias("jumped"))["jumped"]


def _poisoned(frame: pl.DataFrame, positive: Sequence[str], settings: IntakeSettings) -> tuple[float | None, pl.Series]:
    """Return the largest share of one item in an hour's positives, and mark the rows of poisoned hours."""
    none = pl.repeat(value=False, n=len(frame), eager=True)
    if "time" not in frame.columns:
        return None, none
    marked = frame.select("item", (pl.col("time") // _HOUR).alias("hour"), positive=_is_positive(frame, positive))
    counts = marked.filter("positive").group_by("item", "hour").len("here")
    if not len(counts):
        return None, none
    counts = counts.with_columns(
        hour_total=pl.col("here").sum().over("hour"),
        item_total=pl.col("here").sum().over("item"),
        total=pl.col("here").sum(),
    )
    elsewhere = (pl.col("item_total") - pl.col("here") + 1) / (pl.col("total") - pl.col("hour_total") + 1)
    share = pl.col("here") / pl.col("hour_total")
    enough = pl.col("here") >= settings.poisoned_fewest
    counts = counts.with_columns(share=share, lift=share / elsewhere)
    largest = counts.filter(enough)["share"].max()
    bad = counts.filter(
        enough & (pl.col("share") > settings.poisoned_share) & (pl.col("lift") >= settings.poisoned_lift)
    )
    bad = bad.select("item", "hour", bad=pl.lit(value=True))
    told = marked.join(bad, on=["item", "hour"], how="left", maintain_order="left")
    wrong = told.select((pl.col("bad").fill_null(value=False) & pl.col("positive")).alias("wrong"))["wrong"]
    return (float(largest) if isinstance(largest, (int, float)) else None), wrong
