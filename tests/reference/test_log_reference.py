"""The log against a slow and obvious account of the same rules: one buyer, one row, one event at a time."""

from dataclasses import dataclass, field
from typing import Any

import hypothesis
import numpy as np
import polars as pl
from event_sources import FrameSource
from hypothesis import strategies as st

from hatchway.data.contexts import contexts_of
from hatchway.data.engagements import Part, known_ranges, training_counts
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.errors import DataError

DAY = 86_400
ITEMS = 6
WEIGHTS = {"message": 2.0, "save": 0.5}
DAYS = 2.0
SCHEMA = {
    "buyer": pl.Int64,
    "item": pl.Int64,
    "event": pl.String,
    "order": pl.Int64,
    "time": pl.Int64,
    "session": pl.Int64,
    "query_item": pl.Int64,
    "split": pl.String,
}


@dataclass
class _Row:
    """An engagement as the reference knows it."""

    event: dict[str, Any]
    key: int
    part: int = 0
    before: list["_Row"] = field(default_factory=list)
    query_item: int = -1

    @property
    def item(self) -> int:
        return int(self.event["item"]) // 10

    @property
    def weight(self) -> float:
        return WEIGHTS.get(self.event["event"], 0.0)


def _split(rows: list[_Row], protocol: str, last_day: int) -> None:
    """Give a buyer's chronological rows their parts: one day of test, one of validation, where the split is global."""
    positives = [place for place, row in enumerate(rows) if row.weight > 0]
    for place, row in enumerate(rows):
        if protocol == "given":
            row.part = ["train", "validation", "test"].index(row.event["split"])
        elif protocol == "global-time":
            row.part = max(0, row.event["time"] // DAY - (last_day - 2))
            row.part = min(row.part, 2)
        elif protocol == "leave-one-out" and len(positives) >= 3:
            row.part = 2 if place >= positives[-1] else 1 if place >= positives[-2] else 0


def _looked_at(row: _Row, views: list[tuple[int, dict[str, Any]]], protocol: str) -> int:
    """Apply the rule of the query item to one row."""
    if row.event.get("query_item") is not None:
        return int(row.event["query_item"]) // 10
    best: tuple[int, int] | None = None
    chosen = -1
    for key, view in views:
        if key > row.key or view["item"] // 10 == row.item:
            continue
        if row.event.get("session") is not None and view["session"] != row.event["session"]:
            continue
        if protocol == "given" and ["train", "validation", "test"].index(view["split"]) > row.part:
            continue
        if best is None or (key, view["order"]) > best:
            best, chosen = (key, view["order"]), view["item"] // 10
    if chosen < 0:
        others = [earlier.item for earlier in row.before if earlier.item != row.item]
        chosen = others[-1] if others else -1
    return chosen


def reference(events: list[dict[str, Any]], protocol: str) -> list[_Row]:
    """Return the engagements in the order in which the log has them."""
    engaged = ("message", "save", "purchase")
    days = [event["time"] // DAY for event in events if event["event"] in WEIGHTS and event.get("time") is not None]
    out = []
    for buyer in sorted({event["buyer"] for event in events if event["event"] in engaged}):
        own = [event for event in events if event["buyer"] == buyer]
        timed = all(event.get("time") is not None for event in own if event["event"] in engaged)
        key_name = "time" if timed else "order"
        rows = [_Row(event, event[key_name]) for event in own if event["event"] in engaged]
        rows.sort(key=lambda row: (row.key, row.event["order"]))
        _split(rows, protocol, max(days, default=0))
        rows.sort(key=lambda row: row.part)
        views = [(e[key_name], e) for e in own if e["event"] == "view" and e.get(key_name) is not None]
        for place, row in enumerate(rows):
            for earlier in rows[:place]:
                if earlier.key >= row.key:
                    break
                row.before.append(earlier)
            row.query_item = _looked_at(row, views, protocol)
        out += rows
    return out


@st.composite
def _logs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], str]:
    """Draw a small log, dense with ties, and a protocol that it may have the columns for."""
    protocol = draw(st.sampled_from(["none", "given", "leave-one-out", "global-time"]))
    times = "all" if protocol == "global-time" else draw(st.sampled_from(["all", "some", "none"]))
    second = st.builds(lambda day, second: day * DAY + second, st.integers(0, 5), st.integers(0, 1))
    columns = {
        "buyer": st.integers(1, 3),
        "item": st.integers(0, ITEMS - 1).map(lambda row: 10 * row),
        "event": st.sampled_from(["message", "save", "save", "purchase", "view", "view", "impression"]),
    }
    if times != "none":
        columns["time"] = second if times == "all" else st.one_of(second, second, second, st.none())
    if draw(st.booleans()):
        columns["session"] = st.one_of(st.none(), st.integers(0, 1), st.integers(0, 1))
    if draw(st.booleans()):
        columns["query_item"] = st.one_of(st.none(), st.none(), st.integers(0, ITEMS - 1).map(lambda row: 10 * row))
    if protocol == "given":
        columns["split"] = st.sampled_from(["train", "train", "train", "validation", "test"])
    events = draw(st.lists(st.fixed_dictionaries(columns), min_size=4, max_size=40))
    orders = draw(st.permutations(range(len(events))))
    return [{**event, "order": order} for event, order in zip(events, orders, strict=True)], protocol


def _build(events: list[dict[str, Any]], protocol: str) -> Log:
    frame = pl.DataFrame(events, schema={name: SCHEMA[name] for name in events[0]})
    positives = PositivesSettings(events=WEIGHTS, engagements=("purchase",))
    try:
        return build_log(
            FrameSource(frame, pl.Series([10 * row for row in range(ITEMS)])),
            positives,
            SplitSettings.parse({"protocol": protocol}),
            0,
        )
    except DataError:
        hypothesis.reject()


@hypothesis.settings(max_examples=80)
@hypothesis.given(_logs())
def test_the_log_is_what_the_slow_account_says(drawn: tuple[list[dict[str, Any]], str]) -> None:
    """Rows, parts, weights, contexts, query items, known ranges and counts."""
    events, protocol = drawn
    log = _build(events, protocol)
    e = log.engagements
    expected = reference(events, protocol)

    assert log.buyers.external(e.buyers).to_list() == [row.event["buyer"] for row in expected]
    assert e.items.tolist() == [row.item for row in expected]
    assert e.parts.tolist() == [row.part for row in expected]
    assert e.weights.tolist() == [row.weight for row in expected]
    assert e.query_items.tolist() == [row.query_item for row in expected]
    all_timed = all(row.event.get("time") is not None for row in expected)
    assert (e.times.tolist() if e.times is not None else None) == (
        [row.event["time"] for row in expected] if all_timed else None
    )

    every = np.arange(len(e))
    contexts = contexts_of(e, every, 3)
    begin, end = known_ranges(e, every, DAYS)
    for place, row in enumerate(expected):
        history = contexts.history[contexts.history_offsets[place] : contexts.history_offsets[place + 1]]
        assert history.tolist() == [earlier.item for earlier in row.before][-3:]
        same = [other for other in expected if other.event["buyer"] == row.event["buyer"] and other.part == Part.TRAIN]
        if all_timed:
            seen = [id(earlier) for earlier in row.before]
            same = [other for other in same if id(other) in seen and other.key >= row.key - DAYS * DAY]
        assert e.items[begin[place] : end[place]].tolist() == [other.item for other in same]

    trained = [row.item for row in expected if row.part == Part.TRAIN and row.weight > 0]
    assert training_counts(e, ITEMS).tolist() == [trained.count(item) for item in range(ITEMS)]
