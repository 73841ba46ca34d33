"""Photos: kinds differ, colours show, one object looks like itself, and the same seed gives the same bytes."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.drawing import palette
from hatchway.simulation.drawing.canvas import Canvas, Look, blend, tint
from hatchway.simulation.drawing.pieces import PIECES
from hatchway.simulation.listings import Listings, draw_listings, draw_models
from hatchway.simulation.photos import HEIGHT, WIDTH, photograph, published, take_photos
from hatchway.simulation.settings import MarketSettings

SETTINGS = MarketSettings(listings=600, days=5, relist_share=0.1)


@pytest.fixture(scope="module")
def listings() -> Listings:
    """Return the listings of one market."""
    return draw_listings(SETTINGS, draw_models(SETTINGS, 8), 8)


def drawn(kind: str, style: str = "modern", fabric: str = "teal", wood: str = "oak") -> npt.NDArray[np.int16]:
    """Draw a piece alone on white."""
    look = Look(style, palette.WOODS[wood], palette.FABRICS[fabric], 1, (0.1,) * 8, np.random.default_rng(0))
    extent, draw = PIECES[kind]
    width, height = extent(look)
    canvas = Canvas(200, 150, min(150 / width, 110 / height), 100, 130)
    canvas.draw.rectangle((0, 0, 400, 300), fill=(255, 255, 255))
    draw(canvas, look)
    return np.asarray(canvas.image, np.int16)


def apart(first: npt.NDArray[np.int16], second: npt.NDArray[np.int16]) -> float:
    """Return the share of pixels that differ clearly."""
    return float((np.abs(first - second).max(axis=-1) > 24).mean())


def test_every_kind_has_a_drawing_and_every_word_a_colour() -> None:
    """The vocabulary and the drawings know the same words."""
    assert set(PIECES) == {category.name for category in vocabulary.CATEGORIES}
    assert set(palette.WOODS) == set(vocabulary.WOODS)
    assert set(palette.FABRICS) == set(vocabulary.FABRICS)


def test_every_kind_looks_different_from_every_other() -> None:
    """A sofa is not a lamp: of any two kinds at least a fiftieth of all pixels differ."""
    pictures = {kind: drawn(kind) for kind in PIECES}
    kinds = list(pictures)
    for place, one in enumerate(kinds):
        for other in kinds[place + 1 :]:
            assert apart(pictures[one], pictures[other]) > 0.02, (one, other)
    assert apart(pictures["sofa"], pictures["lamp"]) > 0.2


@pytest.mark.parametrize("kind", list(PIECES))
def test_every_style_of_every_kind_shows(kind: str) -> None:
    """All eight styles of a kind can be told apart, and all stay within the picture."""
    pictures = [drawn(kind, style) for style in vocabulary.STYLES]
    for place, one in enumerate(pictures):
        assert one.min() < 200
        assert (one[0] == 255).all()
        assert (one[:, [0, -1]] == 255).all()
        for other in pictures[place + 1 :]:
            assert apart(one, other) > 0.002


def test_fabric_and_wood_show() -> None:
    """A mustard sofa has mustard on it and a teal one does not; a black table is dark where a birch one is light."""
    mustard, teal = drawn("sofa", fabric="mustard"), drawn("sofa", fabric="teal")
    wanted = np.array(palette.FABRICS["mustard"])
    assert (np.abs(mustard - wanted).max(axis=-1) < 12).mean() > 0.1
    assert (np.abs(teal - wanted).max(axis=-1) < 12).mean() == 0
    assert drawn("dining table", wood="black").mean() < drawn("dining table", wood="birch").mean() - 3


def test_tints_and_blends() -> None:
    """Half as bright, half way to white, half of each."""
    assert tint((100, 200, 0), 0.5) == (50, 100, 0)
    assert tint((100, 200, 0), 1.5) == (178, 228, 128)
    assert blend((0, 100, 200), (100, 100, 100), 0.5) == (50, 100, 150)


def fingerprint(image: Image.Image) -> npt.NDArray[np.bool_]:
    """Return a 64-bit difference hash: whether each of 8 x 8 cells is brighter than its left neighbour."""
    small = np.asarray(image.convert("L").resize((9, 8), Image.Resampling.BOX), np.int16)
    return (small[:, 1:] > small[:, :-1]).ravel()


def test_a_relist_shows_the_same_photo_cut_anew(listings: Listings) -> None:
    """Not the same bytes, and yet nearer to it than to other listings' photos by a perceptual hash."""
    copies = [int(row) for row in np.flatnonzero(listings.relists >= 0)[:12]]
    same, other = [], []
    for row in copies:
        shots = [photograph(listings, at, 8) for at in (int(listings.relists[row]), row, (row + 7) % len(listings))]
        images = [
            published(shot, first=number != 1 and not shot.studio, random=stream(1, number))[0]
            for number, shot in enumerate(shots)
        ]
        assert images[0].tobytes() != images[1].tobytes()
        hashes = [fingerprint(image) for image in images]
        same.append(int((hashes[0] != hashes[1]).sum()))
        other.append(int((hashes[0] != hashes[2]).sum()))
    assert np.median(same) <= 10
    assert np.median(other) >= 16


def test_a_photo_is_shown_again_in_three_ways(listings: Listings) -> None:
    """A third is only compressed anew, a third is cut by up to a tenth, a third is turned besides."""
    shot = photograph(listings, 0, 8)
    again = [published(shot, first=False, random=stream(3, number)) for number in range(90)]
    untouched = np.mean([image.tobytes() == shot.image.tobytes() for image, _ in again])
    assert untouched == pytest.approx(1 / 3, abs=0.15)
    assert len({quality for _, quality in again}) > 25
    assert min(quality for _, quality in again) >= 40
    assert max(quality for _, quality in again) <= 85


def test_one_photo_in_a_hundred_shows_nothing(listings: Listings) -> None:
    """One grey, whatever is offered; never the maker's picture."""
    alone = [row for row in range(600) if not listings.makers[row] and listings.relists[row] < 0]
    empty = [row for row in alone[:400] if len(photograph(listings, row, 8).image.getcolors(100_000) or ()) == 1]
    assert 0 < len(empty) < 14


def test_sellers_share_the_makers_picture(listings: Listings) -> None:
    """Some sellers use the maker's picture: two objects of one model are then the same shot."""
    shots: dict[int, bytes] = {}
    met = 0
    for row in range(200):
        shot = photograph(listings, row, 8)
        model = int(listings.model[row])
        if shot.studio:
            met += model in shots
            assert shots.setdefault(model, shot.image.tobytes()) == shot.image.tobytes()
    assert met > 0
    assert 0.1 < len(shots) / 200 < 0.4


def test_files_are_jpegs_of_the_stated_size_and_the_same_every_time(listings: Listings, tmp_path: Path) -> None:
    """Two runs write the same bytes, and other seeds others."""
    few = Listings(
        models=listings.models,
        **{name: getattr(listings, name)[:70] for name in listings.__dataclass_fields__ if name != "models"},
    )
    paths = [f"photos/{row // 50}/{row}.jpg" for row in range(70)]
    written = []
    for name, seed in (("a", 8), ("b", 8), ("c", 9)):
        take_photos(few, paths, tmp_path / name, seed)
        written.append([(tmp_path / name / path).read_bytes() for path in paths])
    assert written[0] == written[1]
    assert sum(one != other for one, other in zip(written[0], written[2], strict=True)) > 60
    with Image.open(tmp_path / "a" / paths[0]) as image:
        assert (image.format, image.size) == ("JPEG", (WIDTH, HEIGHT))
    assert np.mean([len(data) for data in written[0]]) < 12_000
