"""What was shown and not engaged with, by hand: sessions, days, repeats, and that nothing leaks from later parts."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from hatchway.data.catalogue import Catalogue
from hatchway.data.engagements import Part
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings

NONE = SplitSettings(protocol="none")
DAY = 86_400


class _Source:
    """A log in memory; the catalogue is items 0 to 9."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def events(self) -> pl.LazyFrame:
        return self.frame.lazy()

    def has(self, column: str) -> bool:
        return column in self.frame.columns

    def catalogue(self) -> Catalogue:
        return Catalogue(pl.DataFrame({"item": range(10)}))


def _log(
    rows: list[tuple[Any, ...]], columns: list[str], split: SplitSettings = NONE, *, impressions: bool = True
) -> Log:
    """Build a log of rows (buyer, event, item, ...)."""
    frame = pl.DataFrame(rows, schema=["buyer", "event", "item", *columns], orient="row")
    frame = frame.with_columns(order=pl.int_range(pl.len()))
    return build_log(_Source(frame), PositivesSettings(), split, 1, impressions=impressions)


def _lists(log: Log) -> list[tuple[int, int, list[int]]]:
    """Return (buyer's row, item, shown items) of each engagement."""
    table, e = log.impressions, log.engagements
    assert table is not None
    return [
        (int(e.buyers[row]), int(e.items[row]), table.items[table.begin[row] : table.end[row]].tolist())
        for row in range(len(e))
    ]


def test_a_session_has_what_was_shown_in_it() -> None:
    """Item 4 was engaged with in the session, 9 is shown after its last save, 2 twice, 7 in another session."""
    rows = [
        (1, "impression", 2, "a", 10),
        (1, "impression", 3, "a", 10),
        (1, "impression", 4, "a", 10),
        (1, "save", 4, "a", 20),
        (1, "impression", 2, "a", 25),
        (1, "impression", 5, "a", 25),
        (1, "impression", 6, "a", 26),
        (1, "save", 6, "a", 30),
        (1, "impression", 9, "a", 40),
        (1, "impression", 7, "b", 45),
        (1, "save", 8, "c", 50),
        (2, "impression", 1, "a", 10),
        (2, "save", 0, "a", 20),
    ]
    log = _log(rows, ["session", "time"])
    assert _lists(log) == [(0, 4, [2, 3, 5]), (0, 6, [2, 3, 5]), (0, 8, []), (1, 0, [1])]
    assert log.notes[-1] == (
        "impressions: 3 of 4 training engagements have items that were shown and not engaged with, 2.3 each"
    )


def test_without_sessions_the_same_day_up_to_the_row_counts() -> None:
    """Shown yesterday, or later than the save: not beside it; of the same second: beside it."""
    rows = [
        (1, "impression", 2, DAY - 1),
        (1, "impression", 3, DAY + 1),
        (1, "save", 4, DAY + 5),
        (1, "impression", 5, DAY + 5),
        (1, "impression", 6, DAY + 6),
        (1, "save", 7, DAY + 9),
        (1, "impression", 4, DAY + 7),
    ]
    assert _lists(_log(rows, ["time"])) == [(0, 4, [3, 5]), (0, 7, [3, 5, 6])]


def test_rows_without_session_stand_beside_rows_with_one() -> None:
    """Each row by its own rule; without time or session there is nothing to go by."""
    rows = [
        (1, "impression", 2, "a", 10),
        (1, "save", 4, "a", 20),
        (1, "impression", 3, None, 30),
        (1, "save", 5, None, 40),
        (2, "impression", 6, None, None),
        (2, "save", 7, None, None),
    ]
    assert _lists(_log(rows, ["session", "time"])) == [(0, 4, [2]), (0, 5, [2, 3]), (1, 7, [])]


@pytest.mark.parametrize("timed", [True, False])
def test_nothing_of_a_later_part_is_looked_at(timed: bool) -> None:
    """Leave-one-out: item 6 is saved last, as the test. It was shown before training ended: a negative of then.

    To leave it out because it is engaged with later would tell the model what the test holds. What is shown after the
    last training save (9) belongs to later parts.
    """
    rows = [
        (1, "impression", 2, "a", 10),
        (1, "impression", 6, "a", 10),
        (1, "save", 4, "a", 20),
        (1, "impression", 9, "a", 25),
        (1, "save", 5, "a", 30),
        (1, "save", 6, "a", 40),
    ]
    columns = ["session", "time"] if timed else ["session"]
    kept = rows if timed else [row[:4] for row in rows]
    log = _log(kept, columns, SplitSettings(protocol="leave-one-out"))
    assert log.engagements.parts.tolist() == [Part.TRAIN, Part.VALIDATION, Part.TEST]
    assert _lists(log) == [(0, 4, [2, 6]), (0, 5, []), (0, 6, [])]


def test_a_given_split_gives_impressions_their_parts() -> None:
    """An impression of the test part, or of none, is no negative of training even if it is of the same session."""
    rows = [
        (1, "impression", 2, "a", "train"),
        (1, "impression", 3, "a", "test"),
        (1, "impression", 8, "a", None),
        (1, "save", 4, "a", "train"),
        (1, "save", 5, "a", "test"),
    ]
    log = _log(rows, ["session", "split"], SplitSettings(protocol="given"))
    assert _lists(log) == [(0, 4, [2]), (0, 5, [])]


def test_impressions_are_read_only_where_they_are_asked_for() -> None:
    """And a log without any, or one where they count as engagements, has no table."""
    rows = [(1, "impression", 2, "a", 10), (1, "save", 4, "a", 20)]
    assert _log(rows, ["session", "time"], impressions=False).impressions is None
    assert _log(rows[1:], ["session", "time"]).impressions is None
    frame = pl.DataFrame(rows, schema=["buyer", "event", "item", "session", "time"], orient="row")
    positives = PositivesSettings(events={"save": 1.0, "impression": 0.1})
    log = build_log(_Source(frame.with_columns(order=pl.int_range(2))), positives, NONE, 1, impressions=True)
    assert log.impressions is None


def test_an_item_outside_the_catalogue_is_left_out() -> None:
    """It has no row, so it cannot be a column."""
    rows = [(1, "impression", 77, "a", 10), (1, "impression", 3, "a", 10), (1, "save", 4, "a", 20)]
    log = _log(rows, ["session", "time"])
    assert _lists(log) == [(0, 4, [3])]
    assert log.impressions is not None
    assert log.impressions.lengths.dtype == np.int64
