"""Times as people write them."""

import polars as pl
import pytest

from hatchway.data.times import judged_times, raw_times
from hatchway.errors import DataError

MARCH_2026 = 1_772_323_200  # 2026-03-01 00:00:00 UTC, by `date -u -d 2026-03-01 +%s`


def seconds(values: list[object], dtype: pl.DataType, time_format: str | None = None) -> list[int | None]:
    """Read a column as seconds, whatever one thinks of them."""
    frame = pl.DataFrame({"time": pl.Series(values, dtype=dtype)})
    raw = raw_times("time", dtype, time_format)
    median = frame.select(raw.number.median()).item()
    return frame.select(judged_times(raw, median)[0].alias("seconds"))["seconds"].to_list()


def verdict(value: int | str, median: float | None) -> str:
    """Say how one value is judged in a column of the given median."""
    frame = pl.DataFrame({"time": [value]})
    _, elsewhere, absurd = judged_times(raw_times("time", frame.schema["time"]), median)
    row = frame.select(elsewhere.alias("elsewhere"), absurd.alias("absurd")).row(0, named=True)
    return "elsewhere" if row["elsewhere"] else "absurd" if row["absurd"] else "fine"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("2026-03-01", 0),
        ("2026/03/01", 0),
        ("2026-03-01 12:30", 45_000),
        ("2026-03-01T12:30:05", 45_005),
        ("2026-03-01T12:30:05.999Z", 45_005),
        ("2026-03-01 12:30:05+01:00", 41_405),
        ("2026-03-01T12:30:05-0530", 64_805),
        (" 2026-03-01 12:30:05 UTC ", 45_005),
        (str(MARCH_2026 + 7), 7),
        (f"{MARCH_2026 + 7}.9", 7),
        ("1.7723232e9", 0),
    ],
)
def test_text_is_read_as_number_or_iso_date(text: str, after: int) -> None:
    """Each way to write a moment gives the same second."""
    assert seconds([text], pl.String()) == [MARCH_2026 + after]


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "01.03.2026", "nan", "inf", "12:30", "2026-03"])
def test_other_text_is_no_time(text: str) -> None:
    """What cannot be read gives null, and no guess."""
    assert seconds([text], pl.String()) == [None]


@pytest.mark.parametrize("scale", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_read_in_the_unit_that_most_of_them_have(scale: int) -> None:
    """Seconds to nanoseconds are told apart by size."""
    values: list[object] = [(MARCH_2026 + n) * scale for n in range(3)]
    assert seconds(values, pl.Int64()) == [MARCH_2026, MARCH_2026 + 1, MARCH_2026 + 2]
    assert seconds([str(value) for value in values], pl.String()) == [MARCH_2026, MARCH_2026 + 1, MARCH_2026 + 2]


def test_dates_and_datetimes_of_parquet_are_read_in_utc() -> None:
    """A zone is honoured; without one it is UTC."""
    stamps = pl.Series(["2026-03-01 01:00:00"]).str.to_datetime()
    assert seconds(stamps.to_list(), pl.Datetime("us")) == [MARCH_2026 + 3600]
    zoned = stamps.dt.replace_time_zone("Europe/Amsterdam").to_frame("time")
    raw = raw_times("time", zoned.schema["time"])
    assert zoned.select(judged_times(raw, None)[0].alias("s"))["s"].to_list() == [MARCH_2026]
    assert seconds(stamps.dt.date().to_list(), pl.Date()) == [MARCH_2026]


def test_a_format_of_ones_own_is_the_only_one_then() -> None:
    """With a format, numbers and ISO dates are not guessed at."""
    values: list[object] = ["1.3.2026 2:00:01 PM", "2026-03-01", "1772323200"]
    assert seconds(values, pl.String(), "%d.%m.%Y %I:%M:%S %p") == [MARCH_2026 + 50_401, None, None]
    assert seconds(["01.03.2026"], pl.String(), "%d.%m.%Y") == [MARCH_2026]
    assert seconds(["01.03.2026 02:00 +0200"], pl.String(), "%d.%m.%Y %H:%M %z") == [MARCH_2026]


def test_columns_and_formats_that_hold_no_times_are_refused() -> None:
    """The message names what was given."""
    with pytest.raises(DataError, match="'time' is Boolean and cannot be read as times"):
        raw_times("time", pl.Boolean())
    with pytest.raises(DataError, match="'dd-mm-yyyy' is no format of dates"):
        raw_times("time", pl.String(), "dd-mm-yyyy")


@pytest.mark.parametrize(
    ("value", "median", "expected"),
    [
        (MARCH_2026, MARCH_2026, "fine"),
        (-5, MARCH_2026, "absurd"),
        (0, MARCH_2026, "absurd"),
        (253_402_300_799, MARCH_2026, "absurd"),  # the last second of year 9999
        (MARCH_2026 * 1000, MARCH_2026, "elsewhere"),
        (MARCH_2026 * 1000, MARCH_2026 * 1000.0, "fine"),
        (MARCH_2026, MARCH_2026 * 1000.0, "elsewhere"),
        (253_402_300_799_000, MARCH_2026 * 1000.0, "absurd"),
        (3, 7.0, "fine"),
        (0, 7.0, "fine"),
        (-1, 7.0, "absurd"),
        ("1970-01-01", MARCH_2026, "absurd"),
        ("9999-12-31", None, "absurd"),
        ("1995-01-09", None, "fine"),
        ("2099-12-31T23:59:59", None, "fine"),
        ("2100-01-01", None, "absurd"),
    ],
)
def test_times_that_cannot_be_meant_are_told(value: int | str, median: float | None, expected: str) -> None:
    """Negative, year 9999, another unit, a zero among real times; small numbers throughout are a clock of their own."""
    assert verdict(value, median) == expected
