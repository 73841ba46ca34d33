"""What a page shows of an item, and what a search finds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.index.bundle import Bundle
from hatchway.serving.listings import Listings, PageSettings
from hatchway.serving.placeholder import placeholder
from hatchway.serving.stock import Stock

MakeBundle = Callable[[pl.DataFrame, np.ndarray], Bundle]


def test_an_item_in_words(bundle: Bundle, photos: Path) -> None:
    """Everything that the catalogue knows, as it is printed."""
    listings = Listings(Stock.of(bundle), PageSettings(photos=photos, currency="€"))
    bed, nameless = listings.at(np.array([0, 3]))
    assert (bed.item, bed.title, bed.category, bed.price, bed.seller) == (10, "Oak bed", "bed", "€120", "Ann & Co")
    assert (bed.listed, bed.gone, bed.engagements, bed.photo, bed.link) == ("1 March 2026", "", 3, True, "10")
    assert (nameless.title, nameless.category, nameless.price, nameless.seller) == ("Item 40", "", "", "")
    assert (nameless.photo, nameless.score) == (False, None)
    assert [entry.price for entry in listings.at(np.array([1, 2, 4]))] == ["€9.50", "€1,250", "€80"]
    assert listings.at(np.array([4]), np.array([2.5], np.float32))[0].score == 2.5
    assert listings.at(np.array([4]))[0].gone == "2 March 2026"
    assert listings.at(np.array([], np.int64)) == []


def test_a_catalogue_of_ids_alone(make_bundle: MakeBundle) -> None:
    """An item without anything known of it has a title, a link that survives any id, and a picture."""
    bundle = make_bundle(pl.DataFrame({"item": ["a/b?c#d", "ü ", "<script>"]}), np.eye(3, dtype=np.float32))
    listings = Listings(Stock.of(bundle), PageSettings())
    slash, umlaut, script = listings.at(np.array([0, 1, 2]))
    assert (slash.title, slash.link, slash.engagements) == ("Item a/b?c#d", "a%2Fb%3Fc%23d", None)
    assert umlaut.link == "%C3%BC%20"
    assert script.link == "%3Cscript%3E"
    assert "<script>" not in script.drawing
    assert listings.popular(2).tolist() == [0, 1]
    assert listings.search("a/b", 5)[0].tolist() == [0]


def test_categories_may_be_lists(make_bundle: MakeBundle) -> None:
    """Several categories stand side by side."""
    frame = pl.DataFrame({"item": [1, 2], "category": [["sofa", "teak"], []]})
    listings = Listings(Stock.of(make_bundle(frame, np.eye(2, dtype=np.float32))), PageSettings())
    assert [entry.category for entry in listings.at(np.array([0, 1]))] == ["sofa · teak", ""]
    assert listings.words.categories == ("sofa",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("oak", [4, 0, 1]),  # by engagements: 9, 3, 1
        ("OAK  sofa", [4]),  # both words, in any order and case
        ("so", [2, 4]),  # a part of a word; ties in the order of the catalogue
        ("40", [3]),  # an id
        ("0", [2, 4, 0, 1, 3]),  # a part of every id
        (".*", []),  # no pattern
        ("nothing", []),
    ],
)
def test_search(bundle: Bundle, text: str, found: list[int]) -> None:
    """Every word has to be in the title or the id."""
    rows, total = Listings(Stock.of(bundle), PageSettings()).search(text, 10)
    assert (rows.tolist(), total) == (found, len(found))


def test_an_exact_id_stands_first(make_bundle: MakeBundle) -> None:
    """Item 7 before the more popular items that have a 7 somewhere; it counts once, and the limit holds."""
    frame = pl.DataFrame({"item": [77, 17, 7, 8], "title": ["a", "b", "c", "7 chairs"], "engagements": [5, 9, 0, 7]})
    listings = Listings(Stock.of(make_bundle(frame, np.eye(4, dtype=np.float32))), PageSettings())
    assert listings.search(" 7 ", 10)[0].tolist() == [2, 1, 3, 0]
    rows, total = listings.search("7", 2)
    assert (rows.tolist(), total) == ([2, 1], 4)


def test_what_is_gone_is_no_beginning(bundle: Bundle) -> None:
    """Items 30 and 50 are as popular, but 50 is gone."""
    assert Listings(Stock.of(bundle), PageSettings()).popular(5).tolist() == [2, 0, 1, 3, 4]


def test_photos_come_from_their_folder_only(bundle: Bundle, photos: Path) -> None:
    """No way out of the folder, no other kind of file, nothing without a folder."""
    listings = Listings(Stock.of(bundle), PageSettings(photos=photos))
    assert listings.photo_file("bed.jpg") == (photos / "bed.jpg").resolve()
    (photos / "link.jpg").symlink_to(photos.parent / "secret.jpg")
    (photos / "ring.jpg").symlink_to("ring.jpg")
    outside = str((photos.parent / "secret.jpg").resolve())
    for name in (
        "../secret.jpg",
        outside,
        "link.jpg",
        "missing.jpg",
        "notes.txt",
        "",
        ".",
        None,
        12,
        "bed.jpg\x00.txt",
        "x" * 300 + ".jpg",
        "ring.jpg",
    ):
        assert listings.photo_file(name) is None, name
    assert listings.photo_file(str((photos / "bed.jpg").resolve())) is not None
    assert Listings(Stock.of(bundle), PageSettings()).photo_file("bed.jpg") is None


def test_placeholders_are_the_same_each_time() -> None:
    """The category decides the colour of the paper, the title the shapes, and the id where there is no title."""
    picture = placeholder("Oak bed", "bed", "1")
    assert picture == placeholder("Oak bed", "bed", "2")
    assert picture != placeholder("Oak beds", "bed", "1")
    paper = picture.split('fill="')[1].split('"')[0]
    assert placeholder("Pine bunk", "bed", "3").split('fill="')[1].startswith(paper)
    assert not placeholder("Oak bed", "rug", "1").split('fill="')[1].startswith(paper)
    assert placeholder("", "", "1") != placeholder("", "", "2")


def test_placeholders_cannot_be_broken_out_of() -> None:
    """Whatever stands in a title, the picture is one SVG image, hidden from screen readers, without script or style."""
    for title in ("<<script>", '"><img src=x>', "& &amp;", "😀 🎹", "\u202e right to left"):
        picture = placeholder(title, title, title)
        assert picture.startswith("<svg ")
        assert picture.count("<svg") == picture.count("</svg>") == 1
        assert 'aria-hidden="true"' in picture
        for bad in ("<script", "<img", "style=", "href", " on"):
            assert bad not in picture
