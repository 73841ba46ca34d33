"""From a catalogue to a screen: what is found, what is off and said to be, what is kept beside the photos."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import safetensors.numpy
from PIL import Image

from hatchway.data.catalogue import Catalogue
from hatchway.negatives.sources import Reason
from hatchway.screening import kept
from hatchway.screening.build import build_screen
from hatchway.screening.kept import KEPT, photos_in
from hatchway.screening.photos import PhotoHashes, perceptual_hashes
from hatchway.screening.settings import ScreeningSettings

Draw = Callable[[int], Image.Image]
DEFAULT = ScreeningSettings()


@pytest.fixture(name="shop")
def _shop(tmp_path: Path, draw: Draw) -> tuple[Catalogue, Path]:
    """Return eight listings: 0 and 1 of one seller, 2 and 3 with one photo, 4 and 5 of one title, the rest bare."""
    for number, picture in enumerate((1, 2, 3, 3, 4, 5)):
        draw(picture).save(tmp_path / f"{number}.jpg", quality=90)
    frame = pl.DataFrame(
        {
            "item": range(8),
            "seller": ["anna", "anna", "bert", "carl", "dora", "emil", None, None],
            "photo": [f"{number}.jpg" for number in range(6)] + [None, "absent.jpg"],
            "title": [
                "teak desk",
                "oak lamp",
                "grey rug",
                "blue chair",
                "quilted velvet ottoman",
                "ottoman quilted velvet",
                None,
                "",
            ],
        }
    )
    return Catalogue(frame), tmp_path


def test_each_reason_finds_its_pair(shop: tuple[Catalogue, Path]) -> None:
    """And nothing else; what could not be used is told."""
    catalogue, folder = shop
    screen = build_screen(catalogue, DEFAULT, folder)
    assert screen.reasons == (Reason.SELLER, Reason.PHOTO, Reason.TITLE)
    positives, candidates = np.indices((8, 8)).reshape(2, -1)
    told = screen.pairs(positives, candidates).reshape(8, 8)
    np.fill_diagonal(told, 0)
    wanted = np.zeros((8, 8), int)
    for (one, other), reason in {(0, 1): Reason.SELLER, (2, 3): Reason.PHOTO, (4, 5): Reason.TITLE}.items():
        wanted[one, other] = wanted[other, one] = reason
    assert told.tolist() == wanted.tolist()
    assert screen.notes == (
        "screening: 6 photos looked at, 1 no file, 1 no photo; 1 near-identical pairs",
        "screening: 6 titles read; 1 pairs say the same",
    )


def test_what_is_absent_is_said_and_what_is_switched_off_is_not(shop: tuple[Catalogue, Path]) -> None:
    """One line each for a column that is not there or empty, and for paths without a folder."""
    catalogue, folder = shop
    bare = Catalogue(catalogue.frame.select("item").with_columns(title=pl.lit(None, pl.String)))
    screen = build_screen(bare, DEFAULT, folder)
    assert screen.reasons == ()
    assert screen.notes == (
        "screening: the catalogue has no column 'seller', so screening.seller is off",
        "screening: the catalogue has no column 'photo', so screening.photo is off",
        "screening: column 'title' is empty, so screening.title is off",
    )
    off = ScreeningSettings(seller=False, photo=False, title=False)
    assert build_screen(bare, off, folder).notes == ()
    assert build_screen(catalogue, off, folder).reasons == ()
    (line,) = build_screen(catalogue, off.model_copy(update={"photo": True})).notes
    assert "no folder of photos is given" in line
    nowhere = build_screen(catalogue, off.model_copy(update={"photo": True}), folder / "nowhere")
    assert nowhere.reasons == ()
    assert nowhere.notes[-1] == "screening: no photo can be used, so screening.photo is off"


def test_an_empty_catalogue_is_screened(tmp_path: Path) -> None:
    """Nothing to find, nothing to break."""
    frame = pl.DataFrame(schema={"item": pl.Int64, "seller": pl.Int64, "photo": pl.String, "title": pl.String})
    assert build_screen(Catalogue(frame), DEFAULT, tmp_path).reasons == ()


def test_hashes_of_the_catalogue_need_no_files() -> None:
    """A column of 64-bit numbers; null is no photo, and a shop is not screened by seller."""
    hashes = [0x123456789ABCDEF0, 0x123456789ABCDEF3, None, 0] + [0xF0F0F0F00F0F0F0F] * 26
    frame = pl.DataFrame(
        {"item": range(30), "photo": pl.Series(hashes, dtype=pl.UInt64), "seller": [5, 5, 5] + [1] * 25 + [2, 2]}
    )
    screen = build_screen(Catalogue(frame), ScreeningSettings(photo_most=20))
    assert screen.pairs(np.array([0, 4, 28, 5]), np.array([1, 5, 29, 6])).tolist() == [6, 0, 6, 0]
    assert screen.photos is not None
    assert screen.photos.pairs == 1
    shops, photos, titles = screen.notes
    assert "1 sellers offer more than 10% of the catalogue each (the largest 25 of 30 items)" in shops
    assert "28 photos looked at, 1 no photo, 1 blank; 1 near-identical pairs; 26 photos are like more than 20" in photos
    assert "the largest group of one hash has 26" in photos
    assert titles == "screening: the catalogue has no column 'title', so screening.title is off"


def test_what_was_found_is_kept_until_a_photo_or_a_setting_changes(
    shop: tuple[Catalogue, Path], monkeypatch: pytest.MonkeyPatch, draw: Draw
) -> None:
    """Files are read once; another size or time, another name or another setting of the photos reads them again."""
    catalogue, folder = shop
    read = 0

    def counted(*arguments: object) -> PhotoHashes:
        nonlocal read
        read += 1
        return perceptual_hashes(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(kept, "perceptual_hashes", counted)
    names = catalogue.frame["photo"].to_list()
    first = photos_in(names, folder, DEFAULT)
    again = photos_in(names, folder, DEFAULT.model_copy(update={"title_most": 9}))
    assert read == 1
    assert again.faults == first.faults
    assert again.usable == first.usable == 6
    assert again.found.similar.items.tolist() == first.found.similar.items.tolist() == [3, 2]
    assert again.found.crowded.tolist() == first.found.crowded.tolist()
    photos_in(names, folder, DEFAULT.model_copy(update={"photo_radius": 2}))
    assert read == 2
    photos_in(names[:-1], folder, DEFAULT)
    assert read == 3
    photos_in(names, folder, DEFAULT)
    draw(9).save(folder / "3.jpg", quality=90)
    os.utime(folder / "3.jpg", (1, 1))
    assert photos_in(names, folder, DEFAULT).found.similar.pairs == 0
    assert read == 5
    for damage in (b"", (folder / KEPT).read_bytes()[:-20], b"no safetensors"):
        (folder / KEPT).write_bytes(damage)
        assert photos_in(names, folder, DEFAULT).usable == 6
    assert read == 8


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_cannot_be_written_to_is_read(shop: tuple[Catalogue, Path]) -> None:
    """Nothing is kept there, and everything is found."""
    catalogue, folder = shop
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert photos_in(catalogue.frame["photo"].to_list(), folder, DEFAULT).found.similar.pairs == 1
    finally:
        folder.chmod(stat.S_IRWXU)
    assert not (folder / KEPT).exists()


def test_a_refused_write_is_said_and_nothing_more(
    shop: tuple[Catalogue, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk: what was found is returned."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    catalogue, folder = shop
    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    with caplog.at_level("INFO", logger="hatchway"):
        assert photos_in(catalogue.frame["photo"].to_list(), folder, DEFAULT).found.similar.pairs == 1
    assert "is not kept" in caplog.text
    assert not (folder / KEPT).exists()
