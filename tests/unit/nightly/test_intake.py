"""What is turned away of a day, each rule by itself, with rows made by hand."""

import polars as pl

from hatchway.nightly.intake import clean_day
from hatchway.nightly.settings import IntakeSettings

SETTINGS = IntakeSettings(poisoned_fewest=4, poisoned_share=0.3, poisoned_lift=5)


def day(*rows: tuple[int, int, str, int, int]) -> pl.DataFrame:
    """Make a day of rows (buyer, item, event, time, session)."""
    frame = pl.DataFrame(rows, schema=["buyer", "item", "event", "time", "session"], orient="row")
    return frame.with_row_index("order").with_columns(pl.col("order").cast(pl.Int64))


def test_the_second_of_two_equal_rows_is_turned_away() -> None:
    """The place in the source does not make a row another one; a second later does."""
    frame = day((1, 5, "save", 100, 1), (1, 5, "save", 100, 1), (1, 5, "save", 101, 1))
    kept, facts, rejected = clean_day(frame, ("save",), SETTINGS)
    assert kept["order"].to_list() == [0, 2]
    assert rejected.select("order", "reason").rows() == [(1, "repeat")]
    assert (facts.rows, facts.accepted, facts.positives, facts.rejected) == (3, 2, 2, {"repeat": 1})


def test_a_weight_that_is_no_weight_is_turned_away() -> None:
    """Null weighs one; NaN, infinity, 0 and less weigh nothing that can be learned from."""
    frame = day(*((1, item, "save", item, 1) for item in range(6)))
    weighted = frame.with_columns(weight=pl.Series([None, 1.0, float("nan"), float("inf"), 0.0, -1.0]))
    kept, facts, _ = clean_day(weighted, ("save",), SETTINGS)
    assert kept["item"].to_list() == [0, 1]
    assert facts.rejected == {"weight": 4}


def test_rows_hours_away_from_their_session_are_turned_away_unless_they_are_purchases() -> None:
    """Six hours are the limit: 21,600 s from the middle row stand, 21,601 do not; what is bought may be bought late."""
    far = 40_000
    frame = day(
        (1, 1, "view", 10_000, 1),
        (1, 2, "view", 10_010, 1),
        (1, 3, "save", 10_020, 1),
        (1, 4, "save", 10_010 + 21_600, 1),
        (1, 5, "save", 10_010 + 21_601, 1),
        (1, 6, "purchase", 10_010 + far, 1),
        (1, 7, "view", 9_000, 1),
        (2, 8, "view", far, 2),
    )
    # The median of session 1: 9,000 10,000 10,010 10,020 31,610 31,611 50,010 has 10,020 in the middle.
    kept, facts, rejected = clean_day(frame, ("save",), SETTINGS)
    assert rejected["item"].to_list() == []
    shifted = frame.with_columns(time=pl.when(pl.col("item") == 5).then(10_020 + 21_601).otherwise("time"))
    kept, facts, rejected = clean_day(shifted, ("save",), SETTINGS)
    assert rejected.select("item", "reason").rows() == [(5, "clock")]
    assert 6 in kept["item"].to_list()
    off, _, _ = clean_day(shifted, ("save",), SETTINGS.model_copy(update={"longest_session_hours": 0.0}))
    assert len(off) == len(shifted)
    assert facts.rejected == {"clock": 1}


def test_sessions_of_two_buyers_may_have_one_name() -> None:
    """Where every buyer's first session is 1, the ones in the morning say nothing of the ones in the evening."""
    frame = day(*[(buyer, buyer, "view", 10_000 if buyer < 4 else 70_000, 1) for buyer in range(7)])
    kept, facts, _ = clean_day(frame, ("save",), SETTINGS)
    assert (len(kept), facts.rejected) == (7, {})


def test_an_hour_that_one_item_fills_is_poisoned() -> None:
    """Five of eight positives of an hour, and none of the twenty others: turned away, views of it are not."""
    hour = 3_600
    rows = [(buyer, 77, "save", hour + buyer, buyer) for buyer in range(5)]
    rows += [(buyer, buyer, "save", hour + buyer, buyer) for buyer in range(10, 13)]
    rows += [(buyer, buyer, "save", 5 * hour + buyer, buyer) for buyer in range(20, 40)]
    rows += [(99, 77, "view", hour + 50, 99)]
    kept, facts, rejected = clean_day(day(*rows), ("save",), SETTINGS)
    assert facts.largest_share == 5 / 8
    assert facts.poisoned == ("77",)
    assert set(rejected["reason"]) == {"poisoned"}
    assert (len(rejected), facts.positives) == (5, 23)
    assert kept.filter(pl.col("item") == 77)["event"].to_list() == ["view"]


def test_an_item_that_everybody_wants_all_day_is_not_poison() -> None:
    """Half of the positives of every hour: a share as large, but no more than in the rest of the day."""
    rows = [
        (buyer, 77 if buyer % 2 else buyer, "save", hour * 3_600 + buyer, buyer)
        for hour in range(4)
        for buyer in range(10)
    ]
    _, facts, rejected = clean_day(day(*rows), ("save",), SETTINGS)
    assert facts.largest_share == 0.5
    assert rejected.is_empty()


def test_a_day_is_cleaned_the_same_whatever_came_before() -> None:
    """The rules look at the day alone, so what was turned away once is not there again when the rest is cleaned."""
    frame = day((1, 5, "save", 100, 1), (1, 5, "save", 100, 1), (2, 6, "view", 300, 2))
    kept, _, _ = clean_day(frame, ("save",), SETTINGS)
    again, facts, _ = clean_day(kept, ("save",), SETTINGS)
    assert again.equals(kept)
    assert facts.rejected == {}
