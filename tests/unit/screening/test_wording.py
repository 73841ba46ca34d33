"""How titles are read: what is dropped, what is translated, what is taken for a slip."""

import numpy as np
import polars as pl
import pytest

from hatchway.screening.wording import read_titles


def words(*titles: str | None) -> list[str]:
    """Return the words of each title."""
    read = read_titles(pl.Series(titles, dtype=pl.String))
    return [read.text(row) for row in range(len(read))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Teak SOFA, three-seater", "3 seater sofa teak"),
        ("Café tàble", "cafe TABLE"),
        ("Große Straße", "GROSSE STRASSE"),
        ("art-déco: lamp!", "Art Deco (lamp)"),
        ("Ёлка новая", "елка НОВАЯ"),
        ("ﬁne ｃｈａｉｒ", "fine chair"),
        ("τραπέζι", "ΤΡΑΠΕΖΙ"),
    ],
)
def test_titles_that_are_read_alike(one: str, other: str) -> None:
    """Order, case, accents, punctuation, ligatures, number words, in Latin and other alphabets."""
    first, second = words(one, other)
    assert first == second != ""


@pytest.mark.parametrize(
    ("title", "kind", "amount"),
    [
        ("rug 3ft", 0, 91.44),
        ("rug 3 feet wide", 0, 91.44),
        ("rug 90cm", 0, 90),
        ("rug 0.9 m", 0, 90),
        ("rug 0,9m", 0, 90),
        ("rug 900 mm", 0, 90),
        ('rug 36"', 0, 91.44),
        ("rug 36 inches", 0, 91.44),
        ("rug, 36 in, red", 0, 91.44),
        ("rug 36 in", 0, 91.44),
        ("rug 5'11\" long", 0, 180.34),
        ("rug 5 ft 11 in", 0, 180.34),
        ("rug 5ft11in", 0, 180.34),
        ("rug 140 x 200 cm", 0, 200),
        ("rug 140×200cm", 0, 200),
        ("rug 4 x 6 ft", 0, 182.88),
        ("weights 2 kg", 1, 2000),
        ("weights 10 lbs", 1, 4536),
        ("flask 1.5 l", 2, 1500),
        ("flask 500ml", 2, 500),
    ],
)
def test_measures_are_translated(title: str, kind: int, amount: float) -> None:
    """Lengths to centimetres, weights to grams, volumes to millilitres; they are no words."""
    read = read_titles(pl.Series([title]))
    assert read.measures[0, kind] == pytest.approx(amount)
    assert np.isnan(np.delete(read.measures[0], kind)).all()
    assert not any(letter.isdigit() for letter in read.text(0))


@pytest.mark.parametrize(
    "title",
    [
        "2 in one bed",
        "table 4 mountain",
        "sofa 3-seater",
        "ps5",
        "model 36",
        "60s",
        "1 lot",
        "644 mln",
        "3 games",
        "2 inlays",
    ],
)
def test_numbers_without_a_unit_are_words(title: str) -> None:
    """A preposition after a number is no inch, and a word that begins like a unit is no unit."""
    read = read_titles(pl.Series([title]))
    assert np.isnan(read.measures).all()
    assert any(letter.isdigit() for letter in read.text(0))


def test_decimals_and_thousands_are_one_number() -> None:
    """2.1 is not 1.2, in either way of writing it; a thousand is a thousand with or without its comma."""
    assert words("up 2.1 billion", "up 1.2 billion", "up 2,1 billion") == [
        "2.1 billion up", "1.2 billion up", "2.1 billion up",
    ]  # fmt: skip
    assert words("1,200 bricks", "1200 bricks", "1,200,000 bricks") == ["1200 bricks", "1200 bricks", "1200000 bricks"]


def test_a_slip_of_a_frequent_word_is_taken_for_it() -> None:
    """Letters left out, added, changed, swapped; but no word that is as frequent, short, or has a digit."""
    usual = ["mahogany sideboard"] * 30 + ["mirror"] * 30 + ["oak"] * 30 + ["ps55s"] * 30
    slips = ["mahogny sidebooard", "mahogany sidebaord", "mirrir", "oaks", "ps54s", "terror"]
    found = words(*usual, *slips)[len(usual) :]
    assert found == ["mahogany sideboard", "mahogany sideboard", "mirror", "oaks", "ps54s", "terror"]
    assert words(*["table"] * 20, *["cable"] * 20)[::20] == ["table", "cable"]


def test_scripts_without_spaces_are_read_letter_by_letter() -> None:
    """Two Japanese titles share what they share; a Korean or Arabic one has words."""
    first, second, korean, arabic = words("木製テーブル", "テーブル木製", "원목 식탁", "طاولة خشب")
    assert first == second
    assert len(first.split()) == 6
    assert len(korean.split()) == len(arabic.split()) == 2


def test_nothing_is_read_where_nothing_stands() -> None:
    """Missing titles, empty ones, mere punctuation, and no titles at all."""
    assert words(None, "", "  ", "!!! – ***") == ["", "", "", ""]
    read = read_titles(pl.Series([], dtype=pl.String))
    assert len(read) == 0
    assert read.measures.shape == (0, 3)
