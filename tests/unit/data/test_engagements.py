"""Counts and known ranges over engagement arrays, by hand."""

import math

import numpy as np
import pytest

from hatchway.data.engagements import Engagements, Part, known_ranges, training_counts
from hatchway.errors import SettingsError

DAY = 86_400


def _log(*, timed: bool = True) -> Engagements:
    """Return buyer 0 with five training rows (one no positive), one of validation, one of test; buyer 1 with a test."""
    return Engagements(
        offsets=np.array([0, 7, 8]),
        buyers=np.array([0, 0, 0, 0, 0, 0, 0, 1], np.int32),
        items=np.array([1, 2, 1, 3, 4, 5, 6, 6], np.int32),
        parts=np.array([0, 0, 0, 0, 0, 1, 2, 2], np.int8),
        weights=np.array([1, 0.5, 2, 0, 1, 1, 1, 1], np.float32),
        query_items=np.full(8, -1, np.int32),
        times=np.array([0, 10, 30, 40, 40, 50, 60, 60]) * DAY if timed else None,
        context_end=np.array([0, 1, 2, 3, 3, 5, 6, 7]),
    )


def _known(engagements: Engagements, row: int, days: float | None = 30.0) -> list[int]:
    begin, end = known_ranges(engagements, np.array([row]), days)
    return list(range(int(begin[0]), int(end[0])))


def test_positives_are_rows_with_weight_in_their_part() -> None:
    """Row 3 is an engagement only."""
    log = _log()
    assert log.positives(Part.TRAIN).tolist() == [0, 1, 2, 4]
    assert log.positives(Part.VALIDATION).tolist() == [5]
    assert log.positives(Part.TEST).tolist() == [6, 7]
    assert len(log) == 8


def test_parts_end_where_the_next_begins() -> None:
    """A buyer without training rows has an empty training part."""
    log = _log()
    assert log.part_end(Part.TRAIN).tolist() == [5, 7]
    assert log.part_end(Part.VALIDATION).tolist() == [6, 7]
    assert log.part_end(Part.TEST).tolist() == [7, 8]
    assert log.training_end.tolist() == [5, 7]


def test_training_counts_are_of_positives_in_training_whatever_they_weigh() -> None:
    """Item 3 was engaged with but is no positive; items 5 and 6 are validation and test."""
    counts = training_counts(_log(), 8)
    assert counts.tolist() == [0, 2, 1, 0, 1, 0, 0, 0]
    assert counts.dtype == np.int64


@pytest.mark.parametrize(
    ("row", "days", "known"),
    [
        (0, 30, []),
        (2, 30, [0, 1]),  # day 0 is 30 days before day 30: the first second of the window counts
        (2, 29.999, [1]),
        (3, 30, [1, 2]),  # its own second holds row 4, which it does not know, nor itself
        (4, 30, [1, 2]),
        (5, 30, [2, 3, 4]),  # a validation row knows training rows only, of its last 30 days
        (6, 30, [2, 3, 4]),  # so does a test row: not the validation row of day 50
        (6, 5, []),
        (4, 10, [2]),
        (4, math.inf, [0, 1, 2]),
        (7, 30, []),  # no training rows at all
        (7, None, []),
        (2, None, [0, 1, 2, 3, 4]),  # no window: all of training, itself and later ones included
        (6, None, [0, 1, 2, 3, 4]),
    ],
)
def test_known_ranges_with_times(row: int, days: float | None, known: list[int]) -> None:
    """``[time - days, time)`` of the buyer's training rows."""
    assert _known(_log(), row, days) == known


@pytest.mark.parametrize("row", [0, 4, 5, 6])
def test_without_times_all_of_training_is_known(row: int) -> None:
    """Whatever the window."""
    assert _known(_log(timed=False), row) == [0, 1, 2, 3, 4]


def test_many_rows_at_once_give_what_each_gives_alone() -> None:
    """In the order asked, with repeats, and none at all."""
    log = _log()
    rows = np.array([6, 2, 7, 0, 2, 4])
    begin, end = known_ranges(log, rows, 30)
    assert [list(range(b, e)) for b, e in zip(begin.tolist(), end.tolist(), strict=True)] == [
        _known(log, row) for row in rows.tolist()
    ]
    nothing = known_ranges(log, np.zeros(0, np.int64), 30)
    assert [part.tolist() for part in nothing] == [[], []]


@pytest.mark.parametrize("days", [0, -1, math.nan])
def test_a_window_of_nothing_is_refused(days: float) -> None:
    """Masking nothing is for the caller to say otherwise."""
    with pytest.raises(SettingsError, match="is no window; give a number above 0"):
        known_ranges(_log(), np.array([0]), days)
