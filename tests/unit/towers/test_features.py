"""Item columns as arrays: fitted once, applied to items that were not there."""

import polars as pl
import pytest

from hatchway.errors import DataError
from hatchway.towers.features import FeatureReading, fit_reading, read_features
from hatchway.towers.settings import ItemSettings

FRAME = pl.DataFrame(
    {
        "item": [1, 2, 3],
        "category": ["sofa", None, "lamp"],
        "price": [10.0, None, 30.0],
        "title": ["red sofa", "", "lamp"],
        "photo_vector": [[1.0, 2.0], [3.0, 4.0], None],
    }
)
SETTINGS = ItemSettings(categories=("category",), numbers=("price",), texts=("title",), vectors=("photo_vector",))


def test_columns_by_hand() -> None:
    """Categories are numbered from 1 in sorted order; prices have mean 20 and deviation 10; missing is marked.

    The text "lamp" has 8 n-grams: the word, 4 of three characters, 3 of four.
    """
    features = read_features(FRAME, fit_reading(FRAME, SETTINGS, 100))
    assert features.categories[:, 0].tolist() == [2, 0, 1]
    assert features.dense.tolist() == [[-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 3.0, 4.0], [1.0, 0.0, 0.0, 0.0]]
    assert features.gram_offsets.tolist()[1:3] == [len(features.grams) - 8] * 2


def test_new_items_are_read_with_the_old_scale() -> None:
    """An unknown category is 0, a price is scaled as at training, an absent column is missing, and ids play no part."""
    reading = fit_reading(FRAME, SETTINGS, 100)
    new = pl.DataFrame({"item": ["x"], "category": ["desk"], "price": [40]})
    features = read_features(new, reading)
    assert features.categories.tolist() == [[0]]
    assert features.dense.tolist() == [[2.0, 0.0, 0.0, 0.0]]
    assert len(features.grams) == 0


def test_the_reading_survives_json() -> None:
    """It is kept as JSON beside the weights."""
    reading = fit_reading(FRAME, SETTINGS, 100)
    assert FeatureReading.model_validate_json(reading.model_dump_json()) == reading


def test_lists_of_names_count_by_their_first() -> None:
    """Genres of a film: the first."""
    frame = pl.DataFrame({"item": [1, 2], "genres": [["b", "a"], []]})
    reading = fit_reading(frame, ItemSettings(categories=("genres",)), 10)
    assert reading.categories == {"genres": ("b",)}
    assert read_features(frame, reading).categories.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ItemSettings(categories=("colour",)), "item column 'colour', which the catalogue does not have; it has item"),
        (ItemSettings(numbers=("category",)), "declared a number but holds String"),
        (ItemSettings(vectors=("price",)), "declared a vector but holds Float64"),
    ],
)
def test_wrong_columns_are_named(settings: ItemSettings, message: str) -> None:
    """The message names the column and what it holds."""
    with pytest.raises(DataError, match=message):
        fit_reading(FRAME, settings, 10)


def test_vectors_of_two_lengths_are_refused() -> None:
    """All vectors of a column have one length."""
    frame = pl.DataFrame({"item": [1, 2], "v": [[1.0], [1.0, 2.0]]})
    with pytest.raises(DataError, match=r"lengths \[1, 2\]"):
        fit_reading(frame, ItemSettings(vectors=("v",)), 10)


def test_a_number_that_is_infinite_counts_as_missing() -> None:
    """NaN and infinity must not reach the weights."""
    frame = pl.DataFrame({"item": [1, 2, 3], "price": [1.0, float("inf"), float("nan")]})
    settings = ItemSettings(numbers=("price",))
    assert read_features(frame, fit_reading(frame, settings, 10)).dense[:, 1].tolist() == [0.0, 1.0, 1.0]


def test_numbers_whose_squares_are_too_large_have_a_scale() -> None:
    """Of 1e308 and -1e308 the mean is 0 and the deviation 1e308, although neither sum of squares is a float."""
    frame = pl.DataFrame({"item": [1, 2, 3], "price": [1e308, -1e308, None]})
    settings = ItemSettings(numbers=("price",))
    reading = fit_reading(frame, settings, 16)
    assert reading.numbers["price"].deviation == pytest.approx(1e308)
    assert read_features(frame, reading).dense.tolist() == [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]


def test_a_list_is_no_text() -> None:
    """It is said which column, and where lists of names belong."""
    frame = pl.DataFrame({"item": [1], "tags": [["oak", "bed"]]})
    with pytest.raises(DataError, match="'tags' is declared a text but holds List"):
        fit_reading(frame, ItemSettings(texts=("tags",)), 16)
