"""Sellers as numbers: ids of any type, unknown ones, and shops that are too large to be screened."""

import numpy as np
import polars as pl

from hatchway.screening.sellers import seller_rows, without_shops


def test_integer_and_text_ids_give_the_same_numbers() -> None:
    """Numbers in the order of first coming; null and empty are unknown."""
    assert seller_rows(pl.Series([30, None, 7, 30])).tolist() == [0, -1, 1, 0]
    assert seller_rows(pl.Series(["30", "", "07", "30"])).tolist() == [0, -1, 1, 0]
    assert seller_rows(pl.Series("s", [], dtype=pl.Int64)).tolist() == []
    assert seller_rows(pl.Series("s", [None, None], dtype=pl.String)).tolist() == [-1, -1]


def test_a_catalogue_of_one_seller_keeps_its_negatives() -> None:
    """Whoever offers more than the share is a shop; below twenty-one items nobody is."""
    rows, shops = without_shops(np.zeros(1000, np.int64), 0.1)
    assert (rows == -1).all()
    assert shops.tolist() == [1000]
    rows, shops = without_shops(np.zeros(20, np.int64), 0.1)
    assert (rows == 0).all()
    assert shops.tolist() == []
    rows, shops = without_shops(np.full(5, -1), 0.1)
    assert (rows == -1).all()
    assert shops.tolist() == []
