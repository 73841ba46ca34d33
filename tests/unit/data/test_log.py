"""A log from its events, by hand: rows, contexts, query items, notes, errors, and that nothing leaks."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from event_sources import FrameSource

from hatchway.data.contexts import contexts_of, ragged_ranges
from hatchway.data.engagements import Engagements, Part, known_ranges, training_counts
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.errors import DataError

DAY = 86_400
NONE = SplitSettings(protocol="none")
GIVEN = SplitSettings(protocol="given")
LEAVE_ONE_OUT = SplitSettings(protocol="leave-one-out")


def _source(frame: pl.DataFrame) -> FrameSource:
    """Return a log in memory; the catalogue is items 0 to 9, or "0" to "9"."""
    return FrameSource(frame, pl.Series(range(10)).cast(frame.schema["item"]))


def _log(split: SplitSettings = NONE, seed: int = 0, /, **columns: Any) -> Log:
    """Build a log; without ``order``, rows stand in the order given."""
    frame = pl.DataFrame(columns)
    if "order" not in columns:
        frame = frame.with_columns(order=pl.int_range(pl.len()))
    return build_log(_source(frame), PositivesSettings(), split, seed)


def _histories(log: Engagements) -> list[list[int]]:
    contexts = contexts_of(log, np.arange(len(log)), 100)
    return [part.tolist() for part in np.split(contexts.history, contexts.history_offsets[1:-1])]


def test_others_are_all_other_training_items_of_the_buyer_and_never_the_row_itself_or_held_out() -> None:
    """Buyer 3 trains on 5, 6, 5, 8 and holds out 7: a row with 5 sees neither 5; nothing sees 7."""
    given = SplitSettings(protocol="given")
    log = _log(
        given,
        buyer=[3, 3, 3, 3, 3, 4, 4],
        item=[5, 6, 5, 7, 8, 2, 1],
        split=["train", "train", "train", "test", "train", "train", "test"],
    )
    e = log.engagements
    rows = e.positives(Part.TRAIN)
    told = contexts_of(e, rows, 100, "others")
    ids = log.catalogue.external(told.history).to_list()
    histories = [ids[a:b] for a, b in zip(told.history_offsets, told.history_offsets[1:], strict=False)]
    assert histories == [[6, 8], [5, 5, 8], [6, 8], [5, 6, 5], []]
    last_two = contexts_of(e, rows, 2, "others")
    assert np.diff(last_two.history_offsets).tolist() == [1, 2, 1, 1, 0]


def test_rows_are_sorted_by_buyer_time_and_order_whatever_the_order_read() -> None:
    """Buyers by id, then by time; of one second, by order."""
    log = _log(buyer=[7, 3, 7, 7, 3], item=[0, 1, 2, 3, 4], time=[50, 9, 50, 8, 2], order=[4, 0, 1, 2, 3])
    assert log.buyers.ids.to_list() == [3, 7]
    e = log.engagements
    assert e.offsets.tolist() == [0, 2, 5]
    assert e.buyers.tolist() == [0, 0, 1, 1, 1]
    assert e.items.tolist() == [4, 1, 3, 2, 0]
    assert e.times is not None
    assert e.times.tolist() == [2, 9, 8, 50, 50]
    assert e.context_end.tolist() == [0, 1, 2, 3, 3]
    assert _histories(e) == [[], [4], [], [3], [3]]
    assert e.query_items.tolist() == [-1, 4, -1, 3, 3]
    assert [column.dtype.name for column in (e.items, e.buyers, e.query_items)] == ["int32"] * 3
    assert [column.dtype.name for column in (e.offsets, e.context_end, e.times)] == ["int64"] * 3
    assert (e.parts.dtype.name, e.weights.dtype.name) == ("int8", "float32")


def test_without_times_the_order_of_the_log_is_all_there_is() -> None:
    """No two rows share a moment."""
    log = _log(buyer=["b", "a", "b", "b"], item=["2", "1", "2", "5"], order=[9, 0, 3, 4])
    e = log.engagements
    assert e.times is None
    assert e.items.tolist() == [1, 2, 5, 2]
    assert _histories(e) == [[], [], [2], [2, 5]]
    assert e.query_items.tolist() == [-1, -1, 2, 5]
    assert any("engagements have no time: the log's order stands for it" in line for line in log.notes)


def test_one_row_without_a_time_puts_its_buyer_in_the_logs_order_and_takes_the_times_from_all() -> None:
    """Buyer 1 is ordered by order, though the times that are there say otherwise; buyer 2 by time."""
    log = _log(buyer=[1, 1, 1, 2, 2], item=[0, 1, 2, 3, 4], time=[30, None, 10, 9, 8])
    assert log.engagements.times is None
    assert log.engagements.items.tolist() == [0, 1, 2, 4, 3]
    assert _histories(log.engagements) == [[], [0], [0, 1], [], [4]]
    assert any(line.startswith("1 of 2 buyers have an engagement without a time") for line in log.notes)


def test_views_are_looked_at_and_never_engaged_with() -> None:
    """The message about 3 follows a view of 3, which follows one of 2: the buyer was looking at 2."""
    log = _log(
        buyer=[1] * 6,
        item=[2, 3, 3, 5, 4, 6],
        event=["view", "view", "message", "save", "impression", "purchase"],
        time=[1, 2, 3, 4, 5, 6],
    )
    e = log.engagements
    assert e.items.tolist() == [3, 5, 6]
    assert e.weights.tolist() == [1, 1, 0]
    assert e.query_items.tolist() == [2, 3, 3]
    assert _histories(e) == [[], [3], [3, 5]]
    assert "query item: the last view, else the previous engagement" in log.notes


def test_a_view_of_another_session_is_not_what_was_looked_at() -> None:
    """In a session without a view of another item, the previous engagement is; without a session, any view is."""
    log = _log(
        buyer=[1] * 6,
        item=[1, 2, 3, 4, 5, 6],
        event=["view", "view", "save", "save", "view", "save"],
        session=["s", "t", "s", "u", "u", None],
        time=[1, 2, 3, 4, 5, 6],
    )
    assert log.engagements.items.tolist() == [3, 4, 6]
    assert log.engagements.query_items.tolist() == [1, 3, 5]


def test_two_buyers_may_have_a_session_of_the_same_name() -> None:
    """A session is its buyer's."""
    log = _log(buyer=[1, 2, 1], item=[1, 2, 3], event=["view", "view", "save"], session=[0, 0, 0], time=[1, 2, 3])
    assert log.engagements.query_items.tolist() == [1]


def test_the_logs_own_query_item_comes_first() -> None:
    """Null: as if there were no column; an item that nobody knows: none, and a line says so."""
    log = _log(
        buyer=[1] * 5,
        item=[1, 2, 3, 4, 5],
        event=["view", "save", "save", "save", "save"],
        query_item=[None, 7, None, 99, 5],
        time=[1, 2, 3, 4, 5],
    )
    assert log.engagements.query_items.tolist() == [7, 1, -1, 5]
    assert any("column query_item, else the last view" in line and "1 rows name an item" in line for line in log.notes)


def test_views_that_count_as_positives_are_engagements_like_any_other() -> None:
    """Then rows of one second do not see each other, as the rule for engagements is."""
    frame = {"buyer": [1, 1, 1], "item": [1, 2, 3], "event": ["view"] * 3, "time": [1, 2, 2], "order": [0, 1, 2]}
    log = build_log(_source(pl.DataFrame(frame)), PositivesSettings(events={"view": 1.0}), NONE, 0)
    assert log.engagements.query_items.tolist() == [-1, 1, 1]


def test_views_without_times_are_placed_by_the_logs_order() -> None:
    """A view after the message, in order, is not seen."""
    log = _log(buyer=[1] * 4, item=[1, 2, 3, 4], event=["view", "save", "view", "save"])
    assert log.engagements.query_items.tolist() == [1, 3]


def test_views_of_a_buyer_in_the_logs_order_are_placed_by_it_too() -> None:
    """Buyer 1 has a message without a time: the view first in the log counts, though its time is the latest."""
    log = _log(
        buyer=[1, 1, 1, 1, 2, 2],
        item=[1, 2, 3, 4, 5, 6],
        event=["view", "save", "view", "message", "save", "view"],
        time=[99, 10, 5, None, 7, 7],
    )
    assert log.engagements.items.tolist() == [2, 4, 5]
    assert log.engagements.query_items.tolist() == [1, 3, 6]


def test_query_texts_follow_their_rows_and_equal_ones_are_one_string() -> None:
    """A null is the empty text."""
    log = _log(buyer=[2, 1, 2], item=[1, 2, 3], query=["sofa", None, "sofa"], time=[2, 1, 1])
    texts = log.engagements.query_texts
    assert texts is not None
    assert texts.tolist() == ["", "sofa", "sofa"]
    assert texts[1] is texts[2]
    assert _log(buyer=[1], item=[1]).engagements.query_texts is None


def test_a_given_split_puts_training_first_and_a_context_stops_before_what_is_later() -> None:
    """The training row of day 5 is later than the test row of day 3, which sees day 1 only."""
    log = _log(
        GIVEN,
        buyer=[1] * 5,
        item=[1, 2, 3, 4, 5],
        split=["train", "validation", "test", "test", "train"],
        time=[1, 2, 3, 9, 5],
    )
    e = log.engagements
    assert e.items.tolist() == [1, 5, 2, 3, 4]
    assert e.parts.tolist() == [0, 0, 1, 2, 2]
    assert _histories(e) == [[], [1], [1], [1], [1, 5, 2, 3]]


def test_a_given_split_hides_views_of_later_parts() -> None:
    """A training row after a view of test looks at what training shows; a view without a part is the test's alone."""
    log = _log(
        GIVEN,
        buyer=[1] * 7,
        item=[1, 2, 3, 4, 5, 6, 7],
        event=["view", "view", "view", "view", "save", "save", "save"],
        split=["train", "validation", "test", None, "train", "validation", "test"],
        time=[1, 2, 3, 4, 5, 6, 7],
    )
    assert log.engagements.items.tolist() == [5, 6, 7]
    assert log.engagements.query_items.tolist() == [1, 2, 4]


def test_leave_one_out_and_the_note_about_it() -> None:
    """Buyer 2 has two positives and only trains; the column that is there and not used is mentioned."""
    log = _log(LEAVE_ONE_OUT, buyer=[1, 1, 1, 2, 2], item=[1, 2, 3, 4, 5], split=["test"] * 5)
    assert log.engagements.parts.tolist() == [0, 1, 2, 0, 0]
    assert (
        "split leave-one-out: 3 train, 1 validation, 1 test positives; the log's own column 'split' is not used"
        in log.notes
    )


def test_the_fraction_is_drawn_from_the_seed() -> None:
    """Same seed, same log; another seed, another; validation stands behind training."""
    columns: dict[str, Any] = {"buyer": [1] * 20, "item": list(range(10)) * 2, "split": ["train"] * 18 + ["test"] * 2}
    split = SplitSettings(protocol="given", validation_fraction=0.5)
    first, again, other = (_log(split, seed, **columns).engagements for seed in (3, 3, 4))
    assert first.parts.tolist() == [0] * 9 + [1] * 9 + [2] * 2
    assert first.items.tolist() == again.items.tolist()
    assert first.items.tolist() != other.items.tolist()
    assert sorted(first.items.tolist()) == sorted(columns["item"])


@pytest.mark.parametrize(
    ("split", "columns", "message"),
    [
        (GIVEN, {}, "'given' needs a column 'split', which the log lacks; use 'leave-one-out' or 'none'"),
        (SplitSettings(protocol="global-time"), {}, "'global-time' needs a column 'time'"),
        (SplitSettings(protocol="global-time"), {"time": [5, None]}, "a time for every engagement; 1 of 1 buyers"),
        (LEAVE_ONE_OUT, {}, "the busiest has 2"),
        (NONE, {"event": ["view", "view"]}, r"no event of the log is a positive; it has view \(2\)"),
        (NONE, {"weight": [1.0, 0.0]}, "weigh no finite number above 0"),
    ],
)
def test_a_log_that_cannot_do_what_is_asked_says_why(
    split: SplitSettings, columns: dict[str, Any], message: str
) -> None:
    """And what would work."""
    with pytest.raises(DataError, match=message):
        _log(split, buyer=[1, 1], item=[1, 2], **columns)


def test_an_item_outside_the_catalogue_is_an_error() -> None:
    """A row number of -1 would be some other item's."""
    with pytest.raises(DataError, match="item 77 of the log is not in the catalogue"):
        _log(buyer=[1], item=[77])


def test_a_store_on_disk_gives_the_same_log(tmp_path: Path) -> None:
    """Days in files of their own, read back in whatever order."""
    events = pl.DataFrame(
        {"buyer": ["b", "a", "b", "a"], "item": [4, 2, 2, 9], "time": [3 * DAY, 5, 0, DAY], "event": ["save"] * 4}
    )
    log = build_log(write_store(tmp_path / "store", events), PositivesSettings(), NONE, 0)
    assert log.buyers.external(log.engagements.buyers).to_list() == ["a", "a", "b", "b"]
    assert log.catalogue.external(log.engagements.items).to_list() == [2, 9, 2, 4]
    assert log.engagements.times is not None
    assert log.engagements.times.tolist() == [5, DAY, 0, 3 * DAY]


MARKER = 9


def _traces_in_training(log: Log) -> list[str]:
    """Say where the marker can be found from training rows."""
    e = log.engagements
    rows = np.flatnonzero(e.parts == Part.TRAIN)
    found = {
        "items": e.items[rows],
        "histories": contexts_of(e, rows, 1_000).history,
        "query items": e.query_items[rows],
        "known, 30 days": e.items[ragged_ranges(*known_ranges(e, rows))[0]],
        "known, all": e.items[ragged_ranges(*known_ranges(e, rows, None))[0]],
        "masks of later rows": e.items[ragged_ranges(*known_ranges(e, np.arange(len(e))))[0]],
    }
    traces = [name for name, items in found.items() if (items == MARKER).any()]
    return traces + ["counts"] * bool(training_counts(e, 10)[MARKER])


@pytest.mark.parametrize("held_out", ["validation", "test"])
@pytest.mark.parametrize(
    ("protocol", "timed"),
    [("given", True), ("given", False), ("leave-one-out", True), ("leave-one-out", False), ("global-time", True)],
)
def test_nothing_of_validation_or_test_reaches_training(protocol: str, held_out: str, timed: bool) -> None:
    """An item that one buyer engaged with in one held-out row is nowhere that training looks.

    In the given split the held-out rows are the earliest, and a view of the marker stands before everything.
    """
    buyers, items, names, days = [], [], [], []
    for buyer in range(3):
        for place, name in enumerate(["train", "train", "train", "train", "validation", "test"]):
            buyers.append(buyer)
            items.append(MARKER if buyer == 1 and name == held_out else (3 * buyer + place) % 9)
            names.append(name)
            days.append((place + 2) % 6 if protocol == "given" else place)
    columns: dict[str, Any] = {"buyer": buyers, "item": items, "time": [day * DAY for day in days]}
    frame = pl.DataFrame({**columns, "event": "save", "split": names}).sort("time", maintain_order=True)
    if protocol == "given":
        view = {"buyer": 1, "item": MARKER, "time": 0, "event": "view", "split": held_out}
        frame = pl.concat([pl.DataFrame(view, schema=frame.schema), frame])
    frame = frame.with_row_index("order").cast({"order": pl.Int64})
    if not timed:
        frame = frame.drop("time")
    log = build_log(_source(frame), PositivesSettings(), SplitSettings.parse({"protocol": protocol}), 0)
    where = log.engagements.items == MARKER
    assert log.engagements.parts[where].tolist() == [Part[held_out.upper()]]
    assert _traces_in_training(log) == []


@pytest.mark.parametrize("seed", range(5))
def test_nothing_of_a_drawn_validation_reaches_training(seed: int) -> None:
    """Every item is one buyer's one row here, so whatever is drawn marks itself."""
    columns: dict[str, Any] = {"buyer": [1] * 4 + [2] * 4, "item": list(range(8)), "split": ["train"] * 8}
    log = _log(SplitSettings(protocol="given", validation_fraction=0.5), seed, **columns)
    e = log.engagements
    drawn = set(e.items[e.parts == Part.VALIDATION].tolist())
    assert len(drawn) == 4
    rows = np.flatnonzero(e.parts == Part.TRAIN)
    assert drawn.isdisjoint(contexts_of(e, rows, 100).history.tolist())
    assert drawn.isdisjoint(e.query_items[rows].tolist())
    assert drawn.isdisjoint(e.items[ragged_ranges(*known_ranges(e, np.arange(len(e))))[0]].tolist())
    assert drawn.isdisjoint(np.flatnonzero(training_counts(e, 10)).tolist())


def test_the_traces_would_be_found() -> None:
    """The search for the marker finds it everywhere when it is planted in training."""
    log = _log(buyer=[1, 1, 1], item=[1, MARKER, 2], time=[1, 2, 3])
    assert _traces_in_training(log) == [
        "items", "histories", "query items", "known, 30 days", "known, all", "masks of later rows", "counts",
    ]  # fmt: skip
