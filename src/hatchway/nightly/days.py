"""Days by their names, and the seconds that they begin and end with."""

from collections.abc import Iterator
from datetime import UTC, datetime

from hatchway.data.days import SECONDS_A_DAY, day_name
from hatchway.errors import UsageError


def day_number(name: str) -> int:
    """Return the days since 1970 of a day as people write it.

    Raises:
        UsageError: it is no day.

    >>> day_number("2026-03-02")
    20514
    """
    try:
        day = datetime.strptime(name, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"{name!r} is no day; write it as in 2026-03-02 (UTC)") from None
    if name != day.strftime("%Y-%m-%d"):  # folders and the order of nights go by the name
        raise UsageError(f"{name!r} is no day as nights are named; write it as in {day:%Y-%m-%d} (UTC)")
    return int(day.timestamp()) // SECONDS_A_DAY


def first_second(day: int) -> int:
    """Return the Unix second that a day (UTC) begins with."""
    return day * SECONDS_A_DAY


def days_between(first: str, last: str) -> Iterator[str]:
    """Name the days from ``first`` to ``last``, both included.

    Raises:
        UsageError: one is no day, or the last is before the first.
    """
    begin, end = day_number(first), day_number(last)
    if end < begin:
        raise UsageError(f"the last day {last} is before the first, {first}; give them the other way round")
    return (day_name(day) for day in range(begin, end + 1))
