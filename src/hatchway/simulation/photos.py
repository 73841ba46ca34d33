"""The photo of every listing, drawn: the model decides what it looks like, the seller's room and camera the rest.

One object is photographed once. A relist shows that photo again, compressed anew and mostly cut and turned as well; a
quarter of the sellers do not photograph at all but use the maker's picture of the model, each in their own way. So
near-identical photos exist within and across sellers, as they do on a real market.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from hatchway.progress import Progress
from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.drawing import palette
from hatchway.simulation.drawing.canvas import Canvas, Look
from hatchway.simulation.drawing.pieces import PIECES
from hatchway.simulation.drawing.room import STUDIO, brighten, cast_shadow, develop, draw_room, paint_room
from hatchway.simulation.listings import Listings

WIDTH, HEIGHT = 360, 270
NOTHING = 0.01  # share of objects whose photo shows nothing
ONLY_COMPRESSED, ONLY_CUT = 1 / 3, 1 / 3  # of the photos that are shown again; the others are cut and turned
CUT = 0.1  # how much of the width and of the height is cut away at most
_BATCH = 64


@dataclass(frozen=True)
class Shot:
    """One photo as it was taken.

    Attributes:
        image: the photo as it left the camera.
        studio: whether it is the maker's picture.
    """

    image: Image.Image
    studio: bool


def photograph(listings: Listings, row: int, seed: int) -> Shot:
    """Take the photo of the object that a listing offers; the same for all listings of the object.

    Args:
        listings: the listings.
        row: row of the listing.
        seed: the market's seed.
    """
    seller, thing, number = int(listings.seller[row]), int(listings.thing[row]), int(listings.model[row])
    makers = bool(listings.makers[row])
    if not makers and stream(seed, "photo", "nothing", thing).random() < NOTHING:
        return Shot(Image.new("RGB", (WIDTH, HEIGHT), (58, 58, 60)), studio=False)
    camera = stream(seed, "photo", "model", number) if makers else stream(seed, "photo", "object", thing)
    room = STUDIO if makers else draw_room(stream(seed, "photo", "room", seller))
    models = listings.models
    category = vocabulary.CATEGORIES[models.category[number]].name
    extent_of, draw = PIECES[category]
    look = Look(
        style=vocabulary.STYLES[models.style[number]],
        wood=palette.WOODS[vocabulary.WOODS[models.wood[number]]],
        fabric=palette.FABRICS[vocabulary.FABRICS[models.fabric[number]]],
        size=int(models.size[number]),
        proportions=tuple(float(part) for part in np.tanh(models.latent[number])),
        random=stream(seed, "photo", "grain", number),
    )
    extent = extent_of(look)
    near = 1.0 if makers else float(camera.uniform(0.84, 1.06))
    scale = min(0.72 * WIDTH / extent[0], 0.68 * HEIGHT / extent[1]) * near
    middle = WIDTH * (0.5 if makers else float(camera.uniform(0.44, 0.56)))
    flat = category == "rug"
    floor = HEIGHT * (0.80 if makers else float(camera.uniform(0.76, 0.86)))
    if flat:
        floor = HEIGHT * 0.72
    canvas = Canvas(WIDTH, HEIGHT, scale, middle, floor)
    corner = 56.0 if flat else 13.0
    paint_room(canvas, room, corner, extent)
    cast_shadow(canvas, extent[0], {"rug": 0.0, "mirror": 0.15}.get(category, 0.45))
    draw(canvas, look)
    warmth, exposure = (0.0, 1.06) if makers else (float(camera.uniform(-0.6, 1.0)), float(camera.uniform(0.92, 1.12)))
    return Shot(develop(canvas, room.side, warmth, exposure), makers)


def published(shot: Shot, first: bool, random: np.random.Generator) -> tuple[Image.Image, int]:
    """Prepare a photo as one seller publishes it, and choose the JPEG quality.

    Args:
        shot: the photo as taken.
        first: whether it is shown as it was taken; otherwise it is compressed anew, and two in three times cut by up
            to a tenth, its brightness changed, and half of those turned by up to two degrees.
        random: the listing's stream.
    """
    if first:
        return shot.image, 86
    quality, how = int(random.integers(40, 86)), random.random()
    if how < ONLY_COMPRESSED:
        return shot.image, quality
    # What is turned has to be cut on every side, or the corners would show what is beyond the photo.
    turned = how >= ONLY_COMPRESSED + ONLY_CUT
    angle = np.deg2rad(random.uniform(-2, 2)) if turned else 0.0
    left, right, top, bottom = random.uniform(0.025 if turned else 0.0, CUT / 2, 4)
    # One affine map does both: where each pixel of the result lies in the photo.
    across, down = 1 - left - right, 1 - top - bottom
    cos, sin = float(np.cos(angle)), float(np.sin(angle))
    x, y = WIDTH * (left + across / 2), HEIGHT * (top + down / 2)
    matrix = (
        across * cos, -down * sin, x - across * cos * WIDTH / 2 + down * sin * HEIGHT / 2,
        across * sin, down * cos, y - across * sin * WIDTH / 2 - down * cos * HEIGHT / 2,
    )  # fmt: skip
    cut = shot.image.transform((WIDTH, HEIGHT), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    bright = float(random.uniform(0.92, 1.08))
    return brighten(cut, (bright, bright, bright)), quality


def take_photos(listings: Listings, paths: list[str], folder: Path, seed: int) -> None:
    """Draw the photo of every listing and write it as JPEG.

    Args:
        listings: the listings.
        paths: [N] where each photo goes, relative to ``folder``.
        folder: the store's folder.
        seed: the market's seed; the same listings and seed give the same bytes.
    """
    for parent in sorted({Path(path).parent for path in paths}):
        (folder / parent).mkdir(parents=True, exist_ok=True)

    def take(rows: range) -> int:
        for row in rows:
            shot = photograph(listings, row, seed)
            first = listings.relists[row] < 0 and not shot.studio
            image, quality = published(shot, first, stream(seed, "photo", "listing", row))
            image.save(folder / paths[row], "JPEG", quality=quality)
        return len(rows)

    # Pillow lets go of the interpreter while it scales and compresses, so two threads are worth having.
    with ThreadPoolExecutor(2) as pool, Progress(len(listings), "photos", "photo") as progress:
        for done in pool.map(take, _batches(len(listings))):
            progress.advance(done)


def _batches(count: int) -> Iterator[range]:
    """Cut ``0..count`` into short runs."""
    for start in range(0, count, _BATCH):
        yield range(start, min(start + _BATCH, count))
