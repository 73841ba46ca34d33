"""Wardrobes, bookcases and sideboards, each drawn around x = 0 on the floor."""

import numpy as np

from hatchway.simulation.drawing.canvas import Canvas, Colour, Look, tint

Extent = tuple[float, float]


def _base(canvas: Canvas, look: Look, half: float) -> float:
    """Draw what the body stands on, and return the height at which it begins."""
    if look.style in ("mid-century", "scandinavian", "industrial"):
        canvas.legs(-half, half, 16, look, thick=5)
        return 14.0
    if look.style in ("victorian", "bohemian"):
        canvas.legs(-half, half, 10, look, thick=5.5)
        return 9.0
    canvas.box(-half + 3, 0, half - 3, 7, tint(look.wood, 0.6))
    return 6.0


def _crown(canvas: Canvas, look: Look, half: float, top: float) -> None:
    """Finish the upper edge as the style does."""
    if look.style == "victorian":
        steps = np.linspace(-1, 1, 21)
        crest = [(float(s) * (half + 3), top + 12 * float(np.cos(s * np.pi / 2))) for s in steps]
        canvas.polygon([(-half - 3, top), *crest, (half + 3, top)], tint(look.wood, 0.85))
    if look.style in ("victorian", "rustic", "art deco"):
        canvas.box(-half - 4, top - 3, half + 4, top + 2, tint(look.wood, 0.8), 1)
    if look.style == "art deco":
        canvas.box(-half - 2, top - 5, half + 2, top - 3, look.metal)


def _door(canvas: Canvas, look: Look, left: float, bottom: float, right: float, top: float, handle_right: bool) -> None:
    """Draw a door with the panel and the handle of the style."""
    canvas.plank(left + 0.8, bottom, right - 0.8, top, look, 1.02)
    wide, tall = right - left, top - bottom
    style = look.style
    if style in ("victorian", "rustic"):
        inset = min(6.0, wide * 0.14)
        canvas.box(left + inset, bottom + inset, right - inset, top - inset, tint(look.wood, 0.86), 3)
        canvas.box(left + inset + 2, bottom + inset + 2, right - inset - 2, top - inset - 2, tint(look.wood, 1.08), 2)
    elif style == "bohemian":
        inset = min(5.0, wide * 0.12)
        canvas.box(left + inset, bottom + inset, right - inset, top - inset, (222, 198, 156))
        for step in np.arange(left + inset, right - inset, 3.2):
            canvas.line([(float(step), bottom + inset), (float(step), top - inset)], (190, 160, 112), 0.5)
    elif style == "art deco":
        for ring in (0.86, 0.6, 0.34):
            canvas.ellipse(
                (left + right) / 2, (bottom + top) / 2, wide * ring, tall * ring, tint(look.wood, 1.3 - ring * 0.4)
            )
    elif style == "mid-century" and look.proportions[6] > 0:
        for step in np.arange(left + 4, right - 2, 4.0):
            canvas.line([(float(step), bottom + 1), (float(step), top - 1)], tint(look.wood, 0.84), 0.9)
    elif style == "industrial":
        canvas.box(left + 1, bottom + 1, right - 1, top - 1, (96, 99, 102))
        canvas.box(left + 4, bottom + 4, right - 4, top - 4, (112, 115, 118))
    x = right - 5 if handle_right else left + 5
    middle = bottom + tall * 0.52
    if style in ("modern", "scandinavian", "industrial"):
        canvas.box(x - 0.9, middle - 7, x + 0.9, middle + 7, look.metal)
    else:
        canvas.ellipse(x, middle, 3.2, 3.2, look.metal)


def wardrobe_extent(look: Look) -> Extent:
    """Return width and height of a wardrobe in centimetres."""
    return (70.0, 112.0, 150.0)[look.size] + 6 * look.proportions[0], 192 + 12 * look.proportions[1]


def wardrobe(canvas: Canvas, look: Look) -> None:
    """Draw a wardrobe with one to three doors, a drawer below where the style has one."""
    width, height = wardrobe_extent(look)
    half = width / 2
    bottom = _base(canvas, look, half)
    canvas.plank(-half, bottom, half, height, look, 0.82)
    doors_from = bottom + 3
    if look.style in ("victorian", "rustic", "mid-century") and look.proportions[3] > 0:
        canvas.plank(-half + 3, bottom + 3, half - 3, bottom + 26, look, 1.05)
        for x in (-half / 2, half / 2):
            canvas.ellipse(x, bottom + 15, 4, 3, look.metal)
        doors_from = bottom + 29
    count = look.size + 1
    each = (width - 6) / count
    for number in range(count):
        left = -half + 3 + number * each
        _door(canvas, look, left, doors_from, left + each, height - 5, handle_right=number % 2 == 0)
    if count == 3 and look.proportions[4] > 0:
        canvas.box(-each / 2 + 6, doors_from + 12, each / 2 - 6, height - 14, (196, 212, 218), 2)
        canvas.polygon(
            [
                (-each / 2 + 8, height - 60),
                (each / 2 - 8, height - 24),
                (each / 2 - 8, height - 16),
                (-each / 2 + 8, height - 48),
            ],
            (218, 230, 234),
        )
    _crown(canvas, look, half, height)


def bookcase_extent(look: Look) -> Extent:
    """Return width and height of a bookcase in centimetres: low, tall or wide."""
    return (92.0, 80.0, 155.0)[look.size] + 8 * look.proportions[0], (98.0, 190.0, 165.0)[
        look.size
    ] + 9 * look.proportions[1]


def bookcase(canvas: Canvas, look: Look) -> None:
    """Draw an open bookcase with books and a few ornaments."""
    width, height = bookcase_extent(look)
    half = width / 2
    bottom = _base(canvas, look, half)
    open_back = look.style in ("industrial", "modern", "scandinavian") and look.proportions[5] > -0.2
    rail = look.metal if look.style == "industrial" else tint(look.wood, 0.8)
    if not open_back:
        canvas.box(-half, bottom, half, height, tint(look.wood, 0.55))
    for x in (-half, half - 3.5):
        canvas.box(x, 0 if open_back else bottom, x + 3.5, height, rail)
    columns = 2 if look.size == 2 else 1
    if columns == 2:
        canvas.box(-1.7, bottom, 1.7, height, rail)
    shelves = 3 if look.size == 0 else 5
    for number, y in enumerate(np.linspace(bottom, height - 3, shelves + (look.size != 0))):
        canvas.plank(-half, float(y), half, float(y) + 3, look)
        room = (height - bottom) / shelves
        if y < height - 10:
            for column in range(columns):
                left = -half + 5 + column * (width / columns)
                _fill_shelf(
                    canvas, look, left, left + width / columns - 9, float(y) + 3, room * 0.72, number + 3 * column
                )
    _crown(canvas, look, half, height)


_SPINES: tuple[Colour, ...] = (
    (168, 72, 60), (60, 86, 112), (220, 204, 168), (92, 112, 84),
    (196, 148, 72), (92, 72, 88), (232, 226, 214), (48, 60, 66),
)  # fmt: skip


def _fill_shelf(canvas: Canvas, look: Look, left: float, right: float, floor: float, room: float, number: int) -> None:
    """Put books on one shelf, with a gap for an ornament."""
    x = left
    stop = left + (right - left) * float(look.random.uniform(0.45, 0.9))
    while x < stop - 3:
        thick = float(look.random.uniform(2.2, 5.0))
        tall = room * float(look.random.uniform(0.6, 0.95))
        colour = _SPINES[int(look.random.integers(len(_SPINES)))]
        canvas.box(x, floor, min(x + thick, stop), floor + tall, colour)
        canvas.line([(x, floor), (x, floor + tall)], tint(colour, 0.75), 0.5)
        x += thick
    if right - stop > 12:
        middle = (stop + right) / 2
        if number % 3 == 0:
            canvas.box(middle - 4, floor, middle + 4, floor + 8, (206, 142, 108), 1)
            for lean in (-6, 0, 6):
                canvas.ellipse(middle + lean, floor + 13, 9, 10, (98, 132, 92))
        elif number % 3 == 1:
            canvas.ellipse(middle, floor + 6, 11, 12, (224, 220, 210))
        else:
            canvas.box(middle - 6, floor, middle + 6, floor + min(15, room), (236, 230, 220))
            canvas.box(middle - 4, floor + 2, middle + 4, floor + min(13, room - 2), (150, 172, 182))


def sideboard_extent(look: Look) -> Extent:
    """Return width and height of a sideboard in centimetres, with what stands on it."""
    return (118.0, 160.0, 205.0)[look.size] + 8 * look.proportions[0], 100 + 7 * look.proportions[1]


def sideboard(canvas: Canvas, look: Look) -> None:
    """Draw a sideboard: doors, some with drawers beside them, and things on top."""
    width, height = sideboard_extent(look)
    height -= 20
    half = width / 2
    bottom = _base(canvas, look, half)
    canvas.plank(-half, bottom, half, height, look, 0.8)
    count = look.size + 2
    each = (width - 6) / count
    drawers_at = int((look.proportions[3] + 1) / 2 * count) if look.proportions[4] > -0.4 else -1
    for number in range(count):
        left = -half + 3 + number * each
        if number == drawers_at:
            for step in range(3):
                low = bottom + 3 + step * (height - bottom - 8) / 3
                canvas.plank(left + 0.8, low, left + each - 0.8, low + (height - bottom - 8) / 3 - 1.5, look, 1.05)
                canvas.ellipse(left + each / 2, low + (height - bottom - 8) / 6, 4, 2.4, look.metal)
        else:
            _door(canvas, look, left, bottom + 3, left + each, height - 6, handle_right=number % 2 == 0)
    canvas.plank(-half - 2, height - 4, half + 2, height, look, 1.1)
    if look.style in ("victorian", "art deco"):
        canvas.box(-half - 3, height - 1, half + 3, height + 1.5, tint(look.wood, 0.8))
    canvas.box(-half * 0.62, height, -half * 0.62 + 9, height + 17, (202, 196, 186), 4)
    canvas.ellipse(half * 0.55, height + 9, 16, 18, (96, 128, 96))
    canvas.box(half * 0.55 - 5, height, half * 0.55 + 5, height + 8, (214, 176, 148), 1)
