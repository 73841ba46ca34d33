"""Times as people write them, read as Unix seconds in UTC: numbers in any unit, ISO dates, Parquet's, own formats."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from hatchway.errors import DataError

Unit = Literal["seconds", "milliseconds", "microseconds", "nanoseconds"]

DIVISORS: dict[Unit, int] = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}

YEAR_1980 = 315_532_800
YEAR_2000 = 946_684_800
YEAR_2100 = 4_102_444_800

_ISO = r"^(\d{4}[-/]\d{2}[-/]\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?$"


@dataclass(frozen=True)
class RawTimes:
    """A column of times, not judged yet, as two expressions of which at most one is not null in a row.

    Attributes:
        number: Int64, the number that was written, in a unit still to be found out.
        instant: Int64 Unix seconds, where a date was written.
    """

    number: pl.Expr
    instant: pl.Expr


def raw_times(column: str, dtype: pl.DataType, time_format: str | None = None) -> RawTimes:
    """Read ``column``; a value that is no time gives null in both expressions.

    Args:
        column: its name.
        dtype: its type: integer, float, String, Date or Datetime (without a zone: UTC).
        time_format: strptime format of a String column; without one, numbers and ISO 8601 dates are read.

    Raises:
        DataError: a column of this type holds no times, or the format is no format.
    """
    value = pl.col(column)
    nothing = pl.lit(None, pl.Int64)
    if dtype.is_integer() or dtype.is_float():
        return RawTimes(value.floor().cast(pl.Int64, strict=False), nothing)
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return RawTimes(nothing, value.dt.epoch("s"))
    if dtype == pl.Null:
        return RawTimes(nothing, nothing)
    if dtype != pl.String:
        raise DataError(f"column {column!r} is {dtype} and cannot be read as times; give numbers, dates or text")
    text = value.str.strip_chars()
    if time_format is not None:
        check_format(time_format)
        kind = pl.Datetime("us", "UTC") if "%z" in time_format else pl.Datetime("us")
        return RawTimes(nothing, text.str.strptime(kind, time_format, strict=False).dt.epoch("s"))
    whole = text.cast(pl.Int64, strict=False)
    other = pl.when(whole.is_null()).then(text).cast(pl.Float64, strict=False)
    number = pl.coalesce(whole, other.floor().cast(pl.Int64, strict=False))
    return RawTimes(number, _iso_seconds(pl.when(number.is_null()).then(text)))


def check_format(time_format: str) -> None:
    """Refuse a strptime format that cannot be one.

    Raises:
        DataError: it has no directive of a date.
    """
    if not any(directive in time_format for directive in ("%d", "%D", "%F", "%j", "%e", "%s", "%c", "%+", "%m")):
        raise DataError(f"{time_format!r} is no format of dates; one looks like %d.%m.%Y %H:%M (strptime's directives)")


def _iso_seconds(text: pl.Expr) -> pl.Expr:
    """Read ISO 8601 dates, with or without time of day, fraction and zone, as Unix seconds."""
    found = text.str.extract_groups(_ISO)
    date = found.struct.field("1").str.replace_all("/", "-", literal=True)
    clock = pl.format("{}:{}", found.struct.field("2").fill_null("00:00"), found.struct.field("3").fill_null("00"))
    stamp = pl.format("{} {}", date, clock).str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S", strict=False)
    zone = found.struct.field("4").str.replace_all(":", "", literal=True)
    hours, minutes = (zone.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (1, 3))
    ahead = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1) * (hours * 3600 + minutes * 60)
    return stamp.dt.epoch("s") - ahead.fill_null(0)


def unit_of(median: float | None) -> Unit:
    """Say in which unit a column of numbers counts, from the median of them.

    >>> [unit_of(median) for median in (978300019, 978300019000, 978300019000000, None)]
    ['seconds', 'milliseconds', 'microseconds', 'seconds']
    """
    size = abs(median or 0)
    bounds: tuple[tuple[float, Unit], ...] = ((1e11, "seconds"), (1e14, "milliseconds"), (1e17, "microseconds"))
    return next((unit for bound, unit in bounds if size < bound), "nanoseconds")


def judged_times(raw: RawTimes, median: float | None) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Turn raw times into seconds and say which of them cannot be meant.

    A date before 1980 is taken for a missing one (a zero that became 1970); so is a number where most are after 1980.
    Small numbers throughout (a log that counts from 0) are taken as they are.

    Args:
        raw: the column.
        median: median of ``raw.number`` over the source, None where it has none.

    Returns:
        seconds: Int64 Unix seconds, null where there is neither number nor date.
        elsewhere: Boolean, True where the number is absurd in the column's unit and of this century in another.
        absurd: Boolean, True where the time is too early or too late to be meant.
    """
    unit = unit_of(median)
    real_clock = (median or 0) / DIVISORS[unit] >= YEAR_1980
    seconds = pl.coalesce(raw.number if unit == "seconds" else raw.number // DIVISORS[unit], raw.instant)
    earliest = pl.when(raw.instant.is_null()).then(YEAR_1980 if real_clock else 0).otherwise(YEAR_1980)
    absurd = (seconds < earliest) | (seconds >= YEAR_2100)
    others = [
        raw.number.is_between(YEAR_2000 * divisor, YEAR_2100 * divisor, closed="left")
        for other, divisor in DIVISORS.items()
        if other != unit
    ]
    return seconds, absurd & pl.any_horizontal(others).fill_null(value=False), absurd
