"""A log cut into days: how many rows each has, and runs of days that fit in memory."""

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

SECONDS_A_DAY = 86_400
ROWS_AT_ONCE = 10_000_000
"""Rows that are held in memory at once; a single day is always held whole."""


def by_day(events: pl.LazyFrame) -> pl.DataFrame:
    """Count rows by day: columns ``day`` (Int64 days since 1970, UTC; null first: no time) and ``rows`` (Int64)."""
    day = pl.col("time") // SECONDS_A_DAY if "time" in events.collect_schema() else pl.lit(None, pl.Int64)
    counts = events.group_by(day.alias("day")).agg(pl.len().cast(pl.Int64).alias("rows"))
    return counts.collect(engine="streaming").sort("day", nulls_last=False)


def spans_of_days(
    events: pl.LazyFrame, rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[tuple[pl.LazyFrame, pl.DataFrame]]:
    """Cut the log into runs of whole days of at most ``rows_at_once`` rows (one day at least), earliest first.

    Yields:
        the rows of the run, and its share of :func:`by_day`.
    """
    days = by_day(events)
    runs = days.with_columns(run=(pl.col("rows").cum_sum() - 1) // rows_at_once)
    for (_,), run in runs.group_by("run", maintain_order=True):
        if len(runs) == len(run):
            yield events, run
            continue
        day = pl.col("time") // SECONDS_A_DAY
        inside = day.is_between(run["day"].min(), run["day"].max())
        yield events.filter(inside | day.is_null() if run["day"].null_count() else inside), run


def day_name(day: int | None) -> str:
    """Name a day since 1970 as in ``day=2026-03-01``; null is ``undated``."""
    if day is None:
        return "undated"
    return datetime.fromtimestamp(day * SECONDS_A_DAY, UTC).strftime("%Y-%m-%d")
