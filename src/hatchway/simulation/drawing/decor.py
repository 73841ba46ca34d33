"""Lamps, rugs and mirrors, each drawn around x = 0 on the floor."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hatchway.simulation.drawing.canvas import Canvas, Colour, Look, Point, tint

Extent = tuple[float, float]
_GLOW = (255, 240, 205)


def lamp_extent(look: Look) -> Extent:
    """Return width and height of a lamp in centimetres."""
    return 68.0, (118.0, 146.0, 172.0)[look.size] + 8 * look.proportions[1]


def lamp(canvas: Canvas, look: Look) -> None:
    """Draw a standing lamp: foot, stem, shade."""
    _, height = lamp_extent(look)
    if look.style == "industrial":
        _jointed_lamp(canvas, look.metal, height)
    elif look.style == "modern":
        _arc_lamp(canvas, look.metal, tint(look.fabric, 1.1), height)
    else:
        _lamp_foot(canvas, look, height)
        _lamp_shade(canvas, look, height)


def _jointed_lamp(canvas: Canvas, metal: Colour, height: float) -> None:
    """Draw a metal lamp with a bent arm and a cone for a shade."""
    canvas.box(-14, 0, 14, 3, metal, 1)
    canvas.line([(0, 2), (0, height - 30), (16, height - 8)], metal, 2.6)
    canvas.polygon([(8, height - 4), (20, height), (34, height - 26), (6, height - 26)], metal)
    canvas.ellipse(20, height - 26, 14, 7, _GLOW)


def _arc_lamp(canvas: Canvas, metal: Colour, shade: Colour, height: float) -> None:
    """Draw a lamp whose thin stem rises and bends over to the other side, a quarter of an ellipse at the top."""
    steps = np.linspace(0, np.pi / 2, 24)
    arc = [(22 - 44 * float(np.cos(s)), height * (0.55 + 0.42 * float(np.sin(s)))) for s in steps]
    canvas.box(-36, 0, -8, 4, metal, 1)
    canvas.line([(-22, 3), *arc, (28, height * 0.965)], metal, 2.2)
    canvas.line([(28, height * 0.965), (28, height * 0.9)], metal, 1.2)
    canvas.ellipse(28, height * 0.9 - 10, 34, 22, shade)
    canvas.ellipse(28, height * 0.9 - 18, 26, 6, _GLOW)


def _lamp_foot(canvas: Canvas, look: Look, height: float) -> None:
    """Draw the foot and the stem: a tripod, a turned column, or a plate and a pole."""
    top, style = height - 30, look.style
    stem = look.metal if style == "art deco" else tint(look.wood, 0.9)
    if style in ("mid-century", "scandinavian"):
        for foot in (-20, 3, 20):
            canvas.line([(0, height * 0.62), (foot, 0)], tint(stem, 0.8 if foot == 3 else 1.0), 3)
        canvas.line([(0, height * 0.6), (0, top + 4)], stem, 2.4)
        return
    canvas.box(-2, 3, 2, top + 4, stem)
    if style == "victorian":
        canvas.ellipse(0, 3, 32, 7, stem)
        for at in (0.15, 0.4, 0.62):
            canvas.ellipse(0, top * at + 8, 8, 11, tint(stem, 1.1))
        return
    canvas.box(-14, 0, 14, 4, stem, 2)
    if style == "art deco":
        for at in (8, 14, 20):
            canvas.box(-10 + at * 0.3, at - 4, 10 - at * 0.3, at - 1, look.metal)


def _lamp_shade(canvas: Canvas, look: Look, height: float) -> None:
    """Draw a cloth shade, brightest in the middle, with fringes or bands where the style has them."""
    top, style = height - 30, look.style
    shade = _GLOW if style in ("scandinavian", "rustic", "bohemian") else tint(look.fabric, 1.1)
    wide = 24 + 5 * look.proportions[0]
    narrow = wide * (0.95 if style == "rustic" else 0.6)
    canvas.polygon([(-narrow, height), (narrow, height), (wide, top), (-wide, top)], shade)
    middle = [(-narrow * 0.35, height), (narrow * 0.35, height), (wide * 0.5, top), (-wide * 0.5, top)]
    canvas.polygon(middle, tint(shade, 1.35))
    if style in ("victorian", "bohemian"):
        for x in np.linspace(-wide + 1, wide - 1, 15):
            canvas.line([(float(x), top), (float(x), top - 6)], tint(shade, 0.8), 0.8)
    if style == "bohemian":
        for at in (0.3, 0.6):
            y = top + (height - top) * at
            reach = wide + (narrow - wide) * at
            canvas.line([(-reach, y), (reach, y)], tint(look.wood, 0.9), 1.2)


@dataclass(frozen=True)
class _Cloth:
    """A rug that lies on the floor, ``width`` centimetres wide, with coordinates of its own.

    ``u`` runs across and ``v`` away from the eye, both from -1 to 1.
    """

    canvas: Canvas
    width: float
    fabric: Colour

    depth: ClassVar[float] = 52.0

    @property
    def light(self) -> Colour:
        """The lighter colour of the pattern."""
        return tint(self.fabric, 1.55)

    def at(self, u: float, v: float) -> Point:
        """Return where a point of the rug lies in the picture; what is further away is narrower."""
        return u * self.width / 2 * (1.0 - 0.13 * (v + 1)), -10 + (v + 1) / 2 * self.depth

    def shape(self, points: list[Point], fill: Colour) -> None:
        """Fill a polygon given in the rug's coordinates."""
        self.canvas.polygon([self.at(u, v) for u, v in points], fill)

    def patch(self, left: float, near: float, right: float, far: float, fill: Colour) -> None:
        """Fill a rectangle given in the rug's coordinates."""
        self.shape([(left, near), (right, near), (right, far), (left, far)], fill)

    def diamond(self, u: float, v: float, across: float, away: float, fill: Colour) -> None:
        """Fill a diamond around a point, given half its extent."""
        self.shape([(u - across, v), (u, v - away), (u + across, v), (u, v + away)], fill)

    def stripe(self, first: Point, last: Point, fill: Colour, width: float) -> None:
        """Draw a line given in the rug's coordinates, ``width`` in centimetres."""
        self.canvas.line([self.at(*first), self.at(*last)], fill, width)


def _medallion(rug: _Cloth) -> None:
    """Weave a medallion with four small ones, and fringes."""
    for scale, colour in ((0.6, rug.light), (0.42, tint(rug.fabric, 0.7)), (0.2, rug.light)):
        rug.diamond(0, 0, scale, scale * 1.1, colour)
    for u in (-0.7, 0.7):
        for v in (-0.5, 0.5):
            rug.canvas.ellipse(*rug.at(u, v), 12, 5, rug.light)
    _fringe(rug)


def _diamonds(rug: _Cloth) -> None:
    """Weave rows of small diamonds."""
    for v in np.linspace(-0.55, 0.55, 4):
        for u in np.linspace(-0.75, 0.75, 8):
            rug.diamond(float(u), float(v), 0.07, 0.12, rug.light)


def _fringed_diamonds(rug: _Cloth) -> None:
    """Weave rows of small diamonds, and fringes."""
    _diamonds(rug)
    _fringe(rug)


def _fringe(rug: _Cloth) -> None:
    """Hang fringes from the near edge."""
    for u in np.linspace(-0.97, 0.97, 40):
        x, y = rug.at(float(u), -1)
        rug.canvas.line([(x, y), (x, y - 3)], (226, 216, 196), 0.6)


def _chevrons(rug: _Cloth) -> None:
    """Weave triangles within triangles."""
    for number, size in enumerate(np.linspace(0.95, 0.25, 5)):
        reach = float(size)
        corners = [(-0.8 * reach, -0.7), (0.0, -0.7 + 1.35 * reach), (0.8 * reach, -0.7)]
        rug.shape(corners, rug.fabric if number % 2 else rug.light)


def _spots(rug: _Cloth) -> None:
    """Weave a few large ovals."""
    dark, pale = tint(rug.fabric, 0.65), tint(rug.fabric, 1.3)
    for u, v, colour in ((-0.5, 0.2, rug.light), (0.05, -0.25, dark), (0.5, 0.3, rug.light), (0.45, -0.5, pale)):
        rug.canvas.ellipse(*rug.at(u, v), rug.width * 0.24, 15, colour)


def _stripes(rug: _Cloth) -> None:
    """Weave stripes across."""
    for v in np.linspace(-0.75, 0.75, 7):
        rug.stripe((-0.95, float(v)), (0.95, float(v)), rug.light, 1.4)


def _ribs(rug: _Cloth) -> None:
    """Weave ribs that run away from the eye."""
    for u in np.linspace(-0.9, 0.9, 13):
        rug.stripe((float(u), -0.92), (float(u), 0.92), tint(rug.fabric, 0.88), 0.9)


def _blocks(rug: _Cloth) -> None:
    """Weave blocks of colour."""
    rug.patch(-0.97, -0.94, 0.1, 0.25, rug.light)
    rug.patch(0.1, 0.25, 0.97, 0.94, tint(rug.fabric, 0.7))


_PATTERNS = {
    "mid-century": _spots,
    "scandinavian": _stripes,
    "industrial": _ribs,
    "rustic": _diamonds,
    "art deco": _chevrons,
    "bohemian": _fringed_diamonds,
    "victorian": _medallion,
    "modern": _blocks,
}


def rug_extent(look: Look) -> Extent:
    """Return width and the height that a rug takes up in the picture, in centimetres."""
    return (140.0, 190.0, 245.0)[look.size] + 9 * look.proportions[0], 62.0


def rug(canvas: Canvas, look: Look) -> None:
    """Draw a rug lying on the floor, seen from above at a slant, with the pattern of its style."""
    width, _ = rug_extent(look)
    cloth = _Cloth(canvas, width, look.fabric)
    if look.proportions[2] > 0.5 and look.style in ("scandinavian", "bohemian", "modern"):
        for ring, colour in ((1.0, cloth.fabric), (0.8, cloth.light), (0.66, cloth.fabric), (0.3, cloth.light)):
            canvas.ellipse(0, cloth.depth / 2 - 10, width * 0.9 * ring, cloth.depth * ring, colour)
        return
    cloth.patch(-1, -1, 1, 1, tint(cloth.fabric, 0.82))
    cloth.patch(-0.97, -0.94, 0.97, 0.94, cloth.fabric)
    if look.style in ("victorian", "art deco", "rustic"):
        cloth.patch(-0.9, -0.82, 0.9, 0.82, cloth.light)
        cloth.patch(-0.84, -0.72, 0.84, 0.72, cloth.fabric)
    _PATTERNS[look.style](cloth)


def mirror_extent(look: Look) -> Extent:
    """Return width and height of a mirror in centimetres, from the floor it leans on."""
    return (52.0, 68.0, 86.0)[look.size] + 5 * look.proportions[0], (92.0, 128.0, 160.0)[
        look.size
    ] + 9 * look.proportions[1]


def mirror(canvas: Canvas, look: Look) -> None:
    """Draw a mirror that leans against the wall; round ones hang."""
    width, height = mirror_extent(look)
    half, style = width / 2, look.style
    frame = look.metal if style in ("industrial", "art deco", "modern") else look.wood
    glass, shine = (188, 204, 210), (214, 226, 230)
    if style in ("art deco", "bohemian", "mid-century") and look.proportions[2] > -0.3:
        middle = height - half
        canvas.ellipse(2.5, middle - 4, width * 1.06, width * 1.06, (168, 162, 154))  # its shadow on the wall
        if style != "mid-century":
            for step in np.linspace(0, 2 * np.pi, 25)[:-1]:
                reach = half * (1.18 if round(step * 12 / np.pi) % 2 else 1.06)
                tip = (float(np.cos(step)) * reach, middle + float(np.sin(step)) * reach)
                canvas.line([(0, middle), tip], frame, 2.2)
        canvas.ellipse(0, middle, width, width, frame)
        canvas.ellipse(0, middle, width - 9, width - 9, glass)
        canvas.polygon(
            [
                (-half * 0.5, middle - half * 0.25),
                (half * 0.2, middle + half * 0.6),
                (half * 0.42, middle + half * 0.5),
                (-half * 0.34, middle - half * 0.42),
            ],
            shine,
        )
        return
    edge = {"industrial": 2.5, "modern": 1.8, "scandinavian": 3.0}.get(style, 6.0)
    arched = style in ("victorian", "rustic") or look.proportions[3] > 0.4
    radius = half if arched and style != "rustic" else (half * 0.5 if arched else 2.0)
    canvas.box(-half, 0, half, height, tint(frame, 0.9), radius)
    canvas.box(-half, 0, half, height * 0.4, tint(frame, 0.9))
    canvas.box(-half + edge, edge, half - edge, height - edge, glass, radius)
    canvas.box(-half + edge, edge, half - edge, height * 0.4, glass)
    canvas.polygon(
        [
            (-half + edge, height * 0.35),
            (half - edge, height * 0.72),
            (half - edge, height * 0.82),
            (-half + edge, height * 0.5),
        ],
        shine,
    )
    if style == "victorian":
        for x in (-9, 0, 9):
            canvas.ellipse(x, height + 2 - abs(x) * 0.4, 12, 9, tint(frame, 1.05))
    if style == "industrial":
        canvas.box(-0.8, edge, 0.8, height - edge, frame)
        canvas.box(-half, height * 0.5, half, height * 0.5 + 1.6, frame)
