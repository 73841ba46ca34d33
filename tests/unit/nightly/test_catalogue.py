"""The catalogue as of a day: rows that keep their numbers, what is new, gone, and lost."""

import polars as pl
import pytest

from hatchway.nightly.catalogue import catalogue_of_day

END = 1_000


def items(**columns: list[object]) -> pl.DataFrame:
    """Make a catalogue."""
    return pl.DataFrame(columns, strict=False)


STORE = items(
    item=[1, 2, 3, 4],
    title=["lamp", "sofa", "chair", "desk"],
    price=[5.0, float("nan"), 7.0, 8.0],
    listed=[10, 20, 990, 1_000],
    gone=[None, 500, 1_000, None],
)


def test_what_comes_later_is_not_known_yet() -> None:
    """Item 4 is listed after the day, item 3 goes after it, item 2 went before; NaN is no price."""
    found = catalogue_of_day(STORE, END, None, ("price",))
    assert found.catalogue.ids.to_list() == [1, 2, 3]
    assert found.offered.tolist() == [True, False, True]
    assert found.catalogue.frame["gone"].to_list() == [None, 500, None]
    assert found.missing == {"price": 0.0}, "of those on offer"
    assert catalogue_of_day(STORE, 100, None, ("price",)).missing == {"price": 0.5}


def test_rows_keep_their_numbers_and_new_ones_follow() -> None:
    """The store sorts its items otherwise every day: yesterday's order holds, with today's values."""
    before = catalogue_of_day(STORE, END, None).catalogue.frame
    tomorrow = STORE.reverse().with_columns(price=pl.Series([80.0, 70.0, 60.0, 50.0]))
    found = catalogue_of_day(tomorrow, END + 500, before)
    assert found.catalogue.ids.to_list() == [1, 2, 3, 4]
    assert found.catalogue.frame["price"].to_list() == [50.0, 60.0, 70.0, 80.0]
    assert found.offered.tolist() == [True, False, False, True]
    assert (found.known, found.added, found.gone, found.lost) == (3, 1, 1, 0)


@pytest.mark.parametrize("bare", [False, True])
def test_yesterdays_row_stands_in_for_one_that_vanished(bare: bool) -> None:
    """A listing is not sold because its row is missing, or because only the log still knows its id."""
    before = catalogue_of_day(STORE, END, None).catalogue.frame
    left = STORE.filter(pl.col("item") != 1)
    if bare:
        left = pl.concat([left, items(item=[1])], how="diagonal_relaxed")
    found = catalogue_of_day(left, END, before)
    assert (found.lost, found.lost_share) == (1, 0.5)
    assert found.catalogue.frame.row(0, named=True)["title"] == "lamp"
    assert found.offered.tolist() == [True, False, True]


def test_what_is_gone_may_be_taken_out_of_the_catalogue() -> None:
    """Item 2 was gone yesterday: its row keeps its place, and nothing is lost."""
    before = catalogue_of_day(STORE, END, None).catalogue.frame
    found = catalogue_of_day(STORE.filter(pl.col("item") != 2), END, before)
    assert (found.lost, found.gone) == (0, 0)
    assert found.catalogue.ids.to_list() == [1, 2, 3]


def test_an_item_that_the_log_has_seen_is_there_whatever_the_catalogue_says() -> None:
    """Item 4 was engaged with before its own listing date; item 9 is known by the log alone, item 8 not yet."""
    bare = pl.concat([STORE, items(item=[8, 9])], how="diagonal_relaxed")
    found = catalogue_of_day(bare, END, None, seen=pl.Series([1, 4, 9]))
    assert found.catalogue.ids.to_list() == [1, 2, 3, 4, 9]


def test_a_catalogue_without_dates_offers_everything() -> None:
    """Nothing says when an item comes or goes."""
    found = catalogue_of_day(items(item=["a", "b"]), END, items(item=["b"]))
    assert found.catalogue.ids.to_list() == ["b", "a"]
    assert found.offered.all()
    assert found.lost == 0
