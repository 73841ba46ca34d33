"""The catalogue, the buyers, and the ids that both stand on."""

import numpy as np
import polars as pl
import pytest

from hatchway.data.buyers import Buyers
from hatchway.data.catalogue import Catalogue
from hatchway.errors import DataError, UnknownIdError


def _integers() -> Catalogue:
    return Catalogue(pl.DataFrame({"item": [30, 10, 20], "title": ["chair", "lamp", "sofa"]}))


def test_rows_are_positions_in_the_frame_and_unknown_ids_are_minus_one() -> None:
    """Neither sorted nor renumbered: row 0 is the first item of the frame."""
    rows = _integers().rows(pl.Series([10, 99, 30, None, 10]))
    assert rows.tolist() == [1, -1, 0, -1, 1]
    assert rows.dtype == np.int64


def test_external_gives_back_the_users_ids_in_the_order_asked() -> None:
    """Row numbers may repeat and come in any order."""
    catalogue = _integers()
    assert catalogue.external([2, 0, 2]).to_list() == [20, 30, 20]
    assert catalogue.external(np.zeros(0, np.int64)).to_list() == []
    strings = Catalogue(pl.DataFrame({"item": ["é", "07", "7"]}))
    assert strings.external([2, 1, 0]).to_list() == ["7", "07", "é"]


def test_an_integer_catalogue_takes_the_text_of_a_number() -> None:
    """The command line has only text."""
    assert _integers().row("20") == 2
    assert _integers().row(20) == 2
    assert _integers().rows(pl.Series(["20", "lamp", "2.0"])).tolist() == [2, -1, -1]


def test_a_string_catalogue_keeps_leading_zeros_apart() -> None:
    """``"07"`` and ``"7"`` are two items, and the number 7 is the second."""
    strings = Catalogue(pl.DataFrame({"item": ["07", "7"]}))
    assert strings.rows(pl.Series(["7", "07", "007"])).tolist() == [1, 0, -1]
    assert strings.row(7) == 1


@pytest.mark.parametrize("stranger", ["lamp", "", "1.0", -1, 2**70, True])
def test_an_unknown_item_is_named_with_some_that_are_known(stranger: str | int) -> None:
    """The message has the value, how many items there are, and what their ids look like."""
    with pytest.raises(UnknownIdError) as error:
        _integers().row(stranger)
    assert repr(stranger) in str(error.value)
    assert "3 items of the catalogue (integers: 30, 10, 20" in str(error.value)


@pytest.mark.parametrize("row", [-1, 3])
def test_a_row_out_of_range_is_refused(row: int) -> None:
    """A row of -1 means "none" inside; it has no external id, least of all the last item's."""
    with pytest.raises(UnknownIdError, match=f"item row {row} is not in 0..2"):
        _integers().external([0, row])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (pl.Series([1, 2, 1]), "item 1 stands in the catalogue more than once"),
        (pl.Series(["a", "a"]), "item 'a' stands in the catalogue more than once"),
        (pl.Series([1, None]), "1 item ids of the catalogue are null"),
        (pl.Series([1.0, 2.0]), "item ids are Float64; they must be integers or strings"),
        (pl.Series([2**63], dtype=pl.UInt64), "do not fit 64 bits"),
    ],
)
def test_ids_that_are_no_ids_are_refused(ids: pl.Series, message: str) -> None:
    """Twice, null, of another type, too large."""
    with pytest.raises(DataError, match=message):
        Catalogue(pl.DataFrame({"item": ids}))


def test_a_catalogue_needs_the_column_item() -> None:
    """The message lists what there is."""
    with pytest.raises(DataError, match="no column 'item'; its columns are id, title"):
        Catalogue(pl.DataFrame({"id": [1], "title": ["x"]}))


def test_asking_with_fractions_is_refused_instead_of_cut_off() -> None:
    """1.5 is not item 1."""
    with pytest.raises(DataError, match="Float64"):
        _integers().rows(pl.Series([10.5]))


def test_small_integers_and_categories_become_the_two_types_of_ids() -> None:
    """Whatever the width of the integers or the storage of the strings."""
    assert Catalogue(pl.DataFrame({"item": pl.Series([3, 1], dtype=pl.UInt8)})).ids.dtype == pl.Int64
    named = Catalogue(pl.DataFrame({"item": pl.Series(["b", "a"], dtype=pl.Categorical)}))
    assert named.frame.schema["item"] == pl.String
    assert named.row("a") == 1


def test_other_columns_stay_as_they_are() -> None:
    """The catalogue knows which it has."""
    catalogue = _integers()
    assert len(catalogue) == 3
    assert catalogue.has("title")
    assert not catalogue.has("price")
    assert catalogue.frame["title"].to_list() == ["chair", "lamp", "sofa"]


def test_buyers_answer_as_the_catalogue_does() -> None:
    """Same rules, other noun."""
    buyers = Buyers(pl.Series(["ann", "bob"]))
    assert len(buyers) == 2
    assert buyers.row("bob") == 1
    assert buyers.rows(pl.Series(["bob", "eve"])).tolist() == [1, -1]
    assert buyers.external([1, 0]).to_list() == ["bob", "ann"]
    with pytest.raises(UnknownIdError, match="buyer 'eve' is not among the 2 buyers of the log"):
        buyers.row("eve")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("l7", "L7"), ("L77b", "L77a"), (" L7", None), ("X9", None), ("", None), ("L", "L7")],
)
def test_a_slip_in_a_string_id_gets_the_nearest_one(asked: str, meant: str | None) -> None:
    """Of the same first letter, whatever its case; nothing where none is near."""
    catalogue = Catalogue(pl.DataFrame({"item": ["L7", "L70", "L77a", "M7"]}))
    with pytest.raises(UnknownIdError) as error:
        catalogue.row(asked)
    assert f"did you mean {meant!r}?" in str(error.value) if meant else "did you mean" not in str(error.value)


def test_no_number_is_near_another() -> None:
    """Item 1199 is no slip for 1198."""
    with pytest.raises(UnknownIdError) as error:
        Catalogue(pl.DataFrame({"item": [1198, 1197]})).row("1199")
    assert "did you mean" not in str(error.value)
