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


@pytest.mark.parametrize("dated", [True, False])
def test_in_a_catalogue_of_what_is_for_sale_a_row_that_vanished_is_gone(dated: bool) -> None:
    """Up to so many at once: where more vanish they are lost; a row that comes back is on offer again."""
    store = STORE if dated else STORE.drop("gone", "listed")
    before = catalogue_of_day(store, END + 500, None, vanish=0.5).catalogue.frame
    left = store.filter(pl.col("item") != 1)
    first = catalogue_of_day(left, END + 600, before, vanish=0.5)
    assert first.catalogue.ids.to_list() == [1, 2, 3, 4]
    assert first.offered.tolist() == ([False, False, False, True] if dated else [False, True, True, True])
    assert (first.lost, first.gone) == (1, 1)
    assert first.catalogue.frame.row(0, named=True)["gone"] == END + 599
    assert first.catalogue.frame.row(0, named=True)["title"] == "lamp"
    second = catalogue_of_day(left, END + 700, first.catalogue.frame, vanish=0.5)
    assert second.offered.tolist() == first.offered.tolist(), "and stays gone"
    assert (second.lost, second.gone) == (0, 0)
    assert catalogue_of_day(store, END + 800, second.catalogue.frame, vanish=0.5).offered.tolist()[0]
    logged = pl.concat([left, items(item=[9])], how="diagonal_relaxed")
    for before_it in (None, second.catalogue.frame):
        found = catalogue_of_day(logged, END + 800, before_it, seen=pl.Series([9]), vanish=0.5)
        assert not found.offered[found.catalogue.ids.to_list().index(9)], "the log knows it, the catalogue does not"
    damaged = catalogue_of_day(left, END + 600, before, vanish=0.1)
    assert damaged.offered.tolist()[0], "more vanished than a day sells"


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
