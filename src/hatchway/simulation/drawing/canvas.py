"""A canvas measured in centimetres, with the floor at height 0, and the few shapes that furniture is made of."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
Point = tuple[float, float]

SUPERSAMPLE = 2


def tint(colour: Colour, factor: float) -> Colour:
    """Darken (``factor`` below 1) or lighten (above 1, towards white) a colour.

    >>> tint((100, 50, 0), 0.5), tint((100, 50, 0), 2.0)
    ((50, 25, 0), (255, 255, 255))
    """
    if factor <= 1:
        red, green, blue = (round(part * factor) for part in colour)
    else:
        share = min(factor - 1, 1.0)
        red, green, blue = (round(part + (255 - part) * share) for part in colour)
    return red, green, blue


def blend(first: Colour, second: Colour, share: float) -> Colour:
    """Mix two colours, ``share`` of the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


@dataclass(frozen=True)
class Look:
    """What a piece looks like, beyond its kind.

    Attributes:
        style: name of the style, as in the vocabulary.
        wood: colour of the wood (or metal, rattan, paint).
        fabric: colour of the fabric.
        size: 0, 1 or 2.
        proportions: [8] numbers in -1..1 that vary height, width, curves and details.
        random: for grain and scatter; the same for every photo of one model.
    """

    style: str
    wood: Colour
    fabric: Colour
    size: int
    proportions: tuple[float, ...]
    random: np.random.Generator

    @property
    def metal(self) -> Colour:
        """Colour of metal parts: black, brass or steel, by style."""
        if self.style in ("art deco", "victorian", "mid-century"):
            return (186, 148, 78)
        return (58, 60, 64) if self.style in ("industrial", "modern") else (120, 112, 104)


class Canvas:
    """An image under construction.

    Args:
        width, height: of the image, in pixels.
        scale: pixels a centimetre.
        centre: pixel column of x = 0.
        floor: pixel row of y = 0; y grows upwards.
    """

    def __init__(self, width: int, height: int, scale: float, centre: float, floor: float) -> None:
        self.image = Image.new("RGB", (width * SUPERSAMPLE, height * SUPERSAMPLE))
        self.draw = ImageDraw.Draw(self.image)
        self.scale = scale * SUPERSAMPLE
        self.centre = centre * SUPERSAMPLE
        self.floor = floor * SUPERSAMPLE

    def pixel(self, point: Point) -> Point:
        """Return where a point in centimetres lies in the large image."""
        return self.centre + point[0] * self.scale, self.floor - point[1] * self.scale

    def polygon(self, points: list[Point], fill: Colour) -> None:
        """Fill a polygon."""
        self.draw.polygon([self.pixel(point) for point in points], fill=fill)

    def box(self, left: float, bottom: float, right: float, top: float, fill: Colour, radius: float = 0.0) -> None:
        """Fill a box, its corners rounded by ``radius`` centimetres."""
        x0, y0 = self.pixel((left, top))
        x1, y1 = self.pixel((right, bottom))
        if x1 - x0 < 1 or y1 - y0 < 1:
            x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)
        limit = min(radius * self.scale, (x1 - x0) / 2, (y1 - y0) / 2)
        if limit >= 1:
            self.draw.rounded_rectangle((x0, y0, x1, y1), radius=limit, fill=fill)
        else:
            self.draw.rectangle((x0, y0, x1, y1), fill=fill)

    def cushion(self, left: float, bottom: float, right: float, top: float, fill: Colour, radius: float) -> None:
        """Draw something upholstered: a rounded box, lighter at its upper edge and darker at its lower edge."""
        height = top - bottom
        self.box(left, bottom, right, top, tint(fill, 0.8), radius)
        self.box(left, bottom + 0.07 * height, right, top, fill, radius)
        inset = min(radius * 0.6, (right - left) / 4)
        self.box(left + inset, top - 0.2 * height, right - inset, top - 0.07 * height, tint(fill, 1.12), radius / 2)

    def plank(self, left: float, bottom: float, right: float, top: float, look: Look, shade: float = 1.0) -> None:
        """Draw a wooden board with some grain, lit from above."""
        colour = tint(look.wood, shade)
        self.box(left, bottom, right, top, colour)
        wide = right - left > top - bottom
        length = (top - bottom) if wide else (right - left)
        for at in look.random.uniform(0.1, 0.9, int(np.clip(length / 3, 1, 7))):
            grain = tint(colour, float(look.random.uniform(0.86, 0.95)))
            if wide:
                self.line([(left, bottom + at * length), (right, bottom + at * length)], grain, 0.4)
            else:
                self.line([(left + at * length, bottom), (left + at * length, top)], grain, 0.4)
        self.line([(left, top), (right, top)], tint(colour, 1.18), 0.9)

    def line(self, points: list[Point], fill: Colour, width: float) -> None:
        """Draw a line of ``width`` centimetres, a pixel at least."""
        self.draw.line(
            [self.pixel(point) for point in points], fill=fill, width=max(1, round(width * self.scale)), joint="curve"
        )

    def ellipse(self, x: float, y: float, across: float, upright: float, fill: Colour) -> None:
        """Fill an ellipse around a point, given its two diameters."""
        x0, y0 = self.pixel((x - across / 2, y + upright / 2))
        x1, y1 = self.pixel((x + across / 2, y - upright / 2))
        self.draw.ellipse((x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)), fill=fill)

    def leg(self, x: float, top: float, look: Look, *, splay: float = 0.0, thick: float = 4.5) -> None:
        """Draw a leg of the style from the floor to ``top``; ``splay`` moves its foot aside."""
        wood, metal = tint(look.wood, 0.82), look.metal
        if look.style == "industrial":
            self.box(x - 1.6, 0, x + 1.6, top, metal)
        elif look.style == "modern":
            self.box(x - 1.3, 0, x + 1.3, top, tint(metal, 1.2))
        elif look.style == "rustic":
            self.box(x - thick * 0.8, 0, x + thick * 0.8, top, wood)
            self.line([(x - thick * 0.4, 0), (x - thick * 0.4, top)], tint(wood, 0.85), 0.5)
        elif look.style == "art deco":
            self.polygon(
                [(x - thick * 0.6, top), (x + thick * 0.6, top), (x + thick * 0.35, 0), (x - thick * 0.35, 0)], wood
            )
            self.box(x - thick * 0.4, 0, x + thick * 0.4, min(5, top * 0.3), metal)
        elif look.style == "victorian":
            steps = np.linspace(0, 1, 9)
            side = np.sign(splay) or 1.0
            bend = side * (4.5 * np.sin(steps * np.pi * 1.6) + 2.0 * steps)
            points = [(x + float(b), top * (1 - float(s))) for s, b in zip(steps, bend, strict=True)]
            self.line(points, wood, thick * 0.8)
            self.ellipse(points[-1][0], 1.5, 6, 3.4, wood)
        elif look.style == "bohemian":
            self.box(x - 1.5, 0, x + 1.5, top, wood)
            for height in np.linspace(0.2, 0.8, 3):
                self.ellipse(x, top * float(height), 5.5, 4, tint(wood, 1.08))
        else:
            foot = x + splay
            narrow = 1.3 if look.style == "mid-century" else 1.8
            self.polygon([(x - thick * 0.5, top), (x + thick * 0.5, top), (foot + narrow, 0), (foot - narrow, 0)], wood)

    def legs(self, left: float, right: float, top: float, look: Look, thick: float = 4.5) -> None:
        """Draw the two front legs under ``left..right``, and the two behind in shadow, as the style has them."""
        splay = {"mid-century": 5.0, "scandinavian": 2.0, "victorian": 1.0}.get(look.style, 0.0) * min(1.0, top / 20)
        inset = 3.0 + 3.0 * (look.style in ("mid-century", "scandinavian"))
        behind = Look(look.style, tint(look.wood, 0.65), look.fabric, look.size, look.proportions, look.random)
        for x, side in ((left + inset + 7, -1), (right - inset - 7, 1)):
            self.leg(x, top, behind, splay=side * splay * 0.5, thick=thick * 0.85)
        for x, side in ((left + inset, -1), (right - inset, 1)):
            self.leg(x, top, look, splay=side * splay, thick=thick)
