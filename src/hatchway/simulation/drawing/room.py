"""The room a piece is photographed in: wall, floor, light. A seller's photos are all taken in the same room."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from hatchway.simulation.drawing import palette
from hatchway.simulation.drawing.canvas import SUPERSAMPLE, Canvas, Colour, tint


@dataclass(frozen=True)
class Room:
    """A room, or a studio with a plain backdrop.

    Attributes:
        wall, floor: their colours.
        panelled: whether the wall has panels up to the height of a table.
        boards: whether the floor is of boards (else it is plain).
        extra: what else is in the picture: 0 nothing, 1 a picture on the wall, 2 a plant, 3 a window's light.
        side: -1 or 1, the side of the extra, and where the light comes from.
        studio: a backdrop without a corner between wall and floor.
    """

    wall: Colour
    floor: Colour
    panelled: bool
    boards: bool
    extra: int
    side: int
    studio: bool = False


STUDIO = Room((246, 245, 242), (232, 230, 226), panelled=False, boards=False, extra=0, side=1, studio=True)


def draw_room(random: np.random.Generator) -> Room:
    """Draw a room."""
    return Room(
        wall=palette.WALLS[int(random.integers(len(palette.WALLS)))],
        floor=palette.FLOORS[int(random.integers(len(palette.FLOORS)))],
        panelled=bool(random.random() < 0.25),
        boards=bool(random.random() < 0.7),
        extra=int(random.integers(4)),
        side=int(random.choice([-1, 1])),
    )


def paint_room(canvas: Canvas, room: Room, corner: float, extent: tuple[float, float]) -> None:
    """Paint wall and floor behind a piece.

    Args:
        canvas: the picture.
        room: the room.
        corner: height in centimetres at which the floor meets the wall in the picture.
        extent: width and height of the piece; what else is in the room stands beside it.
    """
    width, height = canvas.image.size
    meets = canvas.pixel((0, corner))[1]
    canvas.draw.rectangle((0, 0, width, height), fill=room.wall)
    if room.studio:
        canvas.draw.rectangle((0, meets, width, height), fill=room.floor)
        steps = 24
        for step in range(steps):
            y = meets - steps * 3 + step * 6
            share = (step + 1) / steps
            mixed = tuple(round(a + (b - a) * share) for a, b in zip(room.wall, room.floor, strict=True))
            canvas.draw.rectangle((0, y, width, y + 6), fill=(mixed[0], mixed[1], mixed[2]))
        return
    if room.panelled:
        _panels(canvas, room, meets)
    canvas.draw.rectangle((0, meets, width, height), fill=room.floor)
    if room.boards:
        _boards(canvas, room, meets)
    skirting = 7 * canvas.scale
    canvas.draw.rectangle((0, meets - skirting, width, meets), fill=tint(room.wall, 1.45))
    canvas.draw.rectangle((0, meets - 2, width, meets), fill=tint(room.floor, 0.7))
    _extra(canvas, room, corner, extent)


def _panels(canvas: Canvas, room: Room, meets: float) -> None:
    """Panel the lower part of the wall."""
    width = canvas.image.size[0]
    top = meets - 92 * canvas.scale
    canvas.draw.rectangle((0, top, width, meets), fill=tint(room.wall, 0.93))
    canvas.draw.rectangle((0, top - 3 * canvas.scale, width, top), fill=tint(room.wall, 1.3))
    step = 62 * canvas.scale
    for number in range(-8, 9):
        x = canvas.centre + number * step
        edge = 7 * canvas.scale
        outline = (x + edge, top + edge, x + step - edge, meets - 2.5 * edge)
        canvas.draw.rectangle(outline, outline=tint(room.wall, 0.82), width=max(1, round(canvas.scale)))


def _boards(canvas: Canvas, room: Room, meets: float) -> None:
    """Lay floorboards that run away from the eye."""
    height = canvas.image.size[1]
    for number in range(-30, 31):
        near = canvas.centre + number * 26 * canvas.scale
        far = canvas.centre + number * 19 * canvas.scale
        colour = tint(room.floor, 0.88 if number % 2 else 0.93)
        canvas.draw.line([(far, meets), (near, height)], fill=colour, width=2)
        at = meets + (height - meets) * ((number * 37) % 10) / 10
        share = (at - meets) / max(height - meets, 1)
        left = far + (near - far) * share
        canvas.draw.line([(left, at), (left + (19 + 7 * share) * canvas.scale, at)], fill=colour, width=2)


def _extra(canvas: Canvas, room: Room, corner: float, extent: tuple[float, float]) -> None:
    """Add what else is in the room, beside or above the piece."""
    width, height = extent
    beside = room.side * (width / 2 + 30)
    if room.extra == 1:
        x = room.side * width * 0.22
        low = max(height + 16, corner + 95)
        canvas.box(x - 24, low, x + 24, low + 62, (70, 62, 56))
        canvas.box(x - 22, low + 2, x + 22, low + 60, (240, 236, 228))
        canvas.polygon([(x - 16, low + 10), (x - 2, low + 40), (x + 14, low + 10)], tint(room.floor, 0.9))
        canvas.ellipse(x + 7, low + 45, 12, 12, (222, 160, 96))
    elif room.extra == 2:
        base = corner - 3
        for lean in (-20, -11, -3, 6, 14, 22):
            top = base + 72 - abs(lean) * 0.8
            canvas.line(
                [(beside, base + 20), (beside + lean * 0.7, base + 50), (beside + lean, top)], (78, 108, 72), 1.6
            )
            canvas.ellipse(beside + lean, top, 15, 24, (92, 130, 88))
            canvas.ellipse(beside + lean * 0.75, top - 18, 13, 20, (104, 144, 98))
        canvas.polygon(
            [(beside - 13, base + 25), (beside + 13, base + 25), (beside + 10, base), (beside - 10, base)],
            (196, 128, 98),
        )
    elif room.extra == 3:
        # The light of a window out of the picture falls on the wall.
        light = tint(room.wall, 1.3)
        for column in (0, 1):
            for row in (0, 1):
                x, y = room.side * (30 + 44 * column), corner + 70 + 56 * row
                canvas.polygon([(x, y), (x + 38, y + 9), (x + 38, y + 59), (x, y + 50)], light)


def cast_shadow(canvas: Canvas, width: float, strength: float) -> None:
    """Darken the floor under a piece of ``width`` centimetres."""
    x, y = canvas.centre, canvas.floor + 1.0 * canvas.scale
    half, deep = (width / 2 + 5) * canvas.scale, 7 * canvas.scale
    # Blurred at an eighth of the size, and only where it falls.
    left, top = round(x - half) - 64, round(y - deep) - 64
    small = (round(2 * half / 8) + 16, round(2 * deep / 8) + 16)
    mask = Image.new("L", small)
    ellipse = ((x - half - left) / 8, (y - deep - top) / 8, (x + half - left) / 8, (y + deep - top) / 8)
    ImageDraw.Draw(mask).ellipse(ellipse, fill=round(255 * strength))
    mask = mask.filter(ImageFilter.GaussianBlur(2.2)).resize((small[0] * 8, small[1] * 8), Image.Resampling.BILINEAR)
    canvas.image.paste((18, 14, 12), (left, top), mask)


def develop(canvas: Canvas, side: int, warmth: float, exposure: float) -> Image.Image:
    """Bring the picture to its size, light from one side, dark corners, and a colour of light.

    Args:
        canvas: the picture.
        side: where the light comes from, -1 or 1.
        warmth: -1 (blue) to 1 (yellow).
        exposure: factor on the brightness.
    """
    image = canvas.image.reduce(SUPERSAMPLE)
    image = ImageChops.multiply(image, _light(image.size, side))
    return brighten(image, (exposure * (1 + 0.05 * warmth), exposure, exposure * (1 - 0.07 * warmth)))


def brighten(image: Image.Image, factors: tuple[float, float, float]) -> Image.Image:
    """Multiply each colour of an image by its factor, at most to white."""
    table = np.minimum(np.round(np.outer(factors, np.arange(256))), 255)
    return image.point(table.astype(int).ravel().tolist())


_LIGHTS: dict[tuple[tuple[int, int], int], Image.Image] = {}


def _light(size: tuple[int, int], side: int) -> Image.Image:
    """Return the light that falls on a picture as an image to multiply with; made once for each size and side."""
    if (size, side) not in _LIGHTS:
        x = np.linspace(-1, 1, size[0])[None, :]
        y = np.linspace(-1, 1, size[1])[:, None]
        light = 1.0 - 0.10 * (1 - side * x) / 2 - 0.05 * (y + 1) / 2 - 0.10 * np.clip(x * x + y * y - 0.5, 0, None)
        pixels = np.clip(light * 255, 0, 255).astype(np.uint8)
        _LIGHTS[size, side] = Image.fromarray(np.repeat(pixels[:, :, None], 3, axis=2), "RGB")
    return _LIGHTS[size, side]
