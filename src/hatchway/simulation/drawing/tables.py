"""Dining tables, coffee tables and desks, each drawn around x = 0 on the floor."""

import numpy as np

from hatchway.simulation.drawing.canvas import Canvas, Look, tint

Extent = tuple[float, float]


def dining_table_extent(look: Look) -> Extent:
    """Return width and height of a dining table in centimetres, with what stands on it."""
    return (115.0, 165.0, 220.0)[look.size] + 8 * look.proportions[0], 100.0


def dining_table(canvas: Canvas, look: Look) -> None:
    """Draw a dining table, laid with a bowl or a vase."""
    width, _ = dining_table_extent(look)
    half, style = width / 2, look.style
    if style in ("art deco", "victorian") or look.proportions[2] > 0.6:
        _pedestal(canvas, look, half, 72)
    elif style in ("rustic", "industrial") and look.proportions[3] > -0.2:
        _trestle(canvas, look, half, 72)
    else:
        canvas.legs(-half + 5, half - 5, 72, look, thick=6)
        canvas.plank(-half + 7, 63, half - 7, 70, look, 0.8)
    _top(canvas, look, half, 72, round_ends=style in ("art deco", "scandinavian") or look.proportions[2] > 0.6)
    _bowl(canvas, look, 0.25 * half * look.proportions[4], 78)


def coffee_table_extent(look: Look) -> Extent:
    """Return width and height of a coffee table in centimetres, with what lies on it."""
    return (62.0, 95.0, 125.0)[look.size] + 6 * look.proportions[0], 64 + 5 * look.proportions[1]


def coffee_table(canvas: Canvas, look: Look) -> None:
    """Draw a coffee table, with a shelf or a drawer where the style has one, and books on it."""
    width, height = coffee_table_extent(look)
    height -= 18
    half, style = width / 2, look.style
    if style == "bohemian":
        canvas.polygon(
            [(-half * 0.9, height - 4), (half * 0.9, height - 4), (half * 0.66, 0), (-half * 0.66, 0)],
            tint(look.wood, 0.85),
        )
        for x in np.linspace(-0.85, 0.85, 12):
            canvas.line([(half * 0.9 * float(x), height - 4), (half * 0.66 * float(x), 0)], tint(look.wood, 0.65), 1)
    elif style == "art deco":
        _pedestal(canvas, look, half, height - 4)
    else:
        canvas.legs(-half + 3, half - 3, height - 4, look, thick=4.5)
    if style in ("mid-century", "industrial", "rustic"):
        canvas.plank(-half + 6, 13, half - 6, 17, look, 0.75)
    elif style in ("victorian", "scandinavian") and look.proportions[3] > 0:
        canvas.plank(-half + 5, height - 16, half - 5, height - 5, look, 0.85)
        canvas.ellipse(0, height - 10, 3, 3, look.metal)
    _top(canvas, look, half, height - 4, round_ends=style in ("art deco", "bohemian", "scandinavian"))
    _books(canvas, look, -half * 0.35, height + 2)


def desk_extent(look: Look) -> Extent:
    """Return width and height of a desk in centimetres, with what lies on it."""
    return (95.0, 130.0, 165.0)[look.size] + 7 * look.proportions[0], 90.0


def desk(canvas: Canvas, look: Look) -> None:
    """Draw a desk: a top, drawers at one side or two, a lamp or books on it."""
    width, _ = desk_extent(look)
    half, style = width / 2, look.style
    canvas.legs(-half + 3, half - 3, 70, look, thick=5)
    side = 1 if look.proportions[2] > 0 else -1
    deep = style in ("victorian", "rustic", "art deco")
    for at in (-1, 1) if deep and look.size else (side,):
        left, right = sorted((at * (half - 5), at * (half - 5 - width * 0.3)))
        bottom = 12.0 if deep else 44.0
        canvas.plank(left, bottom, right, 71, look, 0.88)
        drawers = 3 if deep else 2
        for number in range(drawers):
            low = bottom + 2 + number * (68 - bottom) / drawers
            canvas.plank(left + 2, low, right - 2, low + (68 - bottom) / drawers - 2, look, 1.04)
            canvas.ellipse((left + right) / 2, low + (66 - bottom) / drawers / 2, 4, 2.2, look.metal)
    canvas.plank(-half + 6, 64, half - 6, 71, look, 0.82)
    _top(canvas, look, half, 72, round_ends=False)
    _books(canvas, look, -side * half * 0.55, 78)


def _top(canvas: Canvas, look: Look, half: float, height: float, *, round_ends: bool) -> None:
    """Draw a table top seen a little from above."""
    thick = {"rustic": 6.0, "industrial": 4.5, "modern": 2.5}.get(look.style, 3.5)
    surface = tint(look.wood, 1.12)
    if round_ends:
        canvas.ellipse(0, height + 3.5, 2 * half + 6, 11, tint(look.wood, 0.85))
        canvas.ellipse(0, height + 5, 2 * half + 6, 10, surface)
    else:
        back = half - 5
        canvas.polygon(
            [(-half - 3, height + 3), (half + 3, height + 3), (back, height + 9), (-back, height + 9)], surface
        )
        canvas.plank(-half - 3, height + 3 - thick, half + 3, height + 3, look, 0.96)
        for depth in look.random.uniform(3.5, 8.5, 3):
            reach = half + 2 - (depth - 3) * 1.2
            canvas.line([(-reach, height + float(depth)), (reach, height + float(depth))], tint(surface, 0.93), 0.4)


def _pedestal(canvas: Canvas, look: Look, half: float, top: float) -> None:
    """Draw a column on a foot."""
    wood = tint(look.wood, 0.85)
    spread = min(half * 0.5, 34)
    canvas.polygon([(-spread, 0), (spread, 0), (7, 10), (-7, 10)], wood)
    canvas.box(-6, 6, 6, top, wood, 2)
    canvas.box(-8, top * 0.45, 8, top * 0.58, tint(wood, 1.1), 3)
    if look.style == "art deco":
        canvas.box(-spread, 0, spread, 2.5, look.metal)


def _trestle(canvas: Canvas, look: Look, half: float, top: float) -> None:
    """Draw crossed legs at both ends and a bar between them."""
    colour = look.metal if look.style == "industrial" else tint(look.wood, 0.78)
    for x in (-half + 24, half - 24):
        canvas.line([(x - 17, 0), (x + 15, top)], colour, 5)
        canvas.line([(x + 17, 0), (x - 15, top)], tint(colour, 0.85), 5)
    canvas.box(-half + 22, 28, half - 22, 33, tint(colour, 0.8))


def _bowl(canvas: Canvas, look: Look, x: float, height: float) -> None:
    """Set a bowl of fruit or a vase on a table."""
    if look.proportions[5] > 0:
        canvas.ellipse(x - 5, height + 7, 8, 8, (214, 120, 60))
        canvas.ellipse(x + 4, height + 7, 8, 8, (196, 168, 70))
        canvas.polygon([(x - 14, height + 7), (x + 14, height + 7), (x + 7, height), (x - 7, height)], (233, 229, 220))
    else:
        for lean in (-9, -3, 4, 10):
            canvas.line([(x, height + 10), (x + lean, height + 30)], (94, 120, 82), 0.9)
            canvas.ellipse(x + lean, height + 31, 7, 6, (226, 178, 160))
        canvas.box(x - 5, height, x + 5, height + 15, (150, 164, 172), 4)


def _books(canvas: Canvas, look: Look, x: float, height: float) -> None:
    """Lay a few books on a table."""
    colours = ((176, 74, 62), (63, 92, 120), (222, 205, 170))
    for number in range(2 + (look.proportions[6] > 0)):
        shift = 2.0 * ((number * 7) % 3 - 1)
        canvas.box(
            x - 12 + shift, height + 3.2 * number, x + 12 + shift, height + 3.2 * number + 3, colours[number], 0.6
        )
