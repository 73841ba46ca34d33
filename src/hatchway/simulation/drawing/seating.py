"""Sofas, armchairs, chairs and beds, each drawn around x = 0 on the floor; a drawing returns its width and height."""

import numpy as np

from hatchway.simulation.drawing.canvas import Canvas, Colour, Look, tint

Extent = tuple[float, float]

_ROUND = {"mid-century": 7.0, "scandinavian": 8.0, "industrial": 4.0, "rustic": 6.0, "art deco": 20.0, "bohemian": 12.0,
          "victorian": 12.0, "modern": 3.0}  # fmt: skip


def sofa_extent(look: Look) -> Extent:
    """Return width and height of a sofa in centimetres."""
    return (150.0, 205.0, 265.0)[look.size] + 12 * look.proportions[0], 84 + 9 * look.proportions[1]


def sofa(canvas: Canvas, look: Look) -> None:
    """Draw a sofa; the largest has a chaise at one side."""
    width, height = sofa_extent(look)
    _couch(canvas, look, width, height, seats=(2, 3, 4)[look.size])
    if look.size == 2:
        side = 1 if look.proportions[2] > 0 else -1
        edge = side * (width / 2 - 14)
        left, right = sorted((edge, edge - side * 72))
        canvas.cushion(left, 5, right, 43, tint(look.fabric, 1.05), _ROUND[look.style])


def armchair_extent(look: Look) -> Extent:
    """Return width and height of an armchair in centimetres."""
    return (72.0, 82.0, 95.0)[look.size] + 5 * look.proportions[0], 92 + 11 * look.proportions[1]


def armchair(canvas: Canvas, look: Look) -> None:
    """Draw an armchair."""
    width, height = armchair_extent(look)
    _couch(canvas, look, width, height, seats=1)


def _couch(canvas: Canvas, look: Look, width: float, height: float, seats: int) -> None:
    """Draw what sofas and armchairs share: base, back, seats, arms, and what the style adds."""
    style, fabric, radius = look.style, look.fabric, _ROUND[look.style]
    half = width / 2
    low = style in ("modern", "art deco")
    bottom = 5.0 if low else 16.0 + 3 * look.proportions[3]
    seat = 42.0
    arm = (13.0 if style != "art deco" else 22.0) + 3 * look.proportions[4]
    arm_height = 58 + 7 * look.proportions[5] + (6 if style == "victorian" else 0)
    framed = style in ("mid-century", "scandinavian", "industrial") and look.proportions[6] > -0.3

    if low:
        canvas.box(-half + 5, 0, half - 5, bottom + 2, tint(look.wood, 0.6))
    else:
        canvas.legs(-half + 3, half - 3, bottom + 2, look)
    inner = half - arm * 0.75
    _back(canvas, look, inner, seat, height, seats)
    canvas.box(-inner - 2, bottom, inner + 2, seat - 10, tint(fabric, 0.72), min(radius, 4))
    each = 2 * inner / seats
    for number in range(seats):
        left = -inner + number * each
        canvas.cushion(left + 0.6, seat - 14, left + each - 0.6, seat + 3, tint(fabric, 1.05), min(radius, 8))
    for side in (-1, 1):
        left, right = sorted((side * half, side * (half - arm)))
        if framed:
            rail = look.metal if style == "industrial" else look.wood
            _frame(canvas, left, right, bottom, arm_height, rail)
        elif style == "victorian":
            canvas.cushion(left, bottom, right, arm_height - 6, tint(fabric, 0.95), 4)
            canvas.ellipse((left + right) / 2, arm_height - 5, arm * 1.35, arm * 1.1, tint(fabric, 1.08))
            canvas.ellipse((left + right) / 2, arm_height - 5, arm * 0.6, arm * 0.5, tint(fabric, 0.8))
        else:
            canvas.cushion(left, bottom, right, arm_height, tint(fabric, 0.96), radius)
    if style == "art deco":
        canvas.box(-half + 3, bottom, half - 3, bottom + 2.2, look.metal)
    if style in ("bohemian", "scandinavian", "rustic") or look.proportions[7] > 0.3:
        _pillows(canvas, look, inner, seat)


def _frame(canvas: Canvas, left: float, right: float, bottom: float, top: float, rail: Colour) -> None:
    """Draw an open wooden or metal armrest."""
    middle = (left + right) / 2
    canvas.box(middle - 2, bottom, middle + 2, top - 3, tint(rail, 0.8))
    canvas.box(left - 1, top - 5, right + 1, top, rail, 2)
    canvas.box(left, bottom, right, bottom + 4, tint(rail, 0.9))


def _back(canvas: Canvas, look: Look, inner: float, seat: float, height: float, seats: int) -> None:
    """Draw the backrest: one shell, split cushions, tufts or channels, by style."""
    fabric, radius, style = look.fabric, _ROUND[look.style], look.style
    if style == "victorian":
        steps = np.linspace(-1, 1, 25)
        crest = [(float(s) * (inner + 4), height - 12 + 12 * float(np.cos(s * np.pi / 2)) ** 1.5) for s in steps]
        frame = [(-inner - 4, seat - 8), *[(x, y + 4) for x, y in crest], (inner + 4, seat - 8)]
        canvas.polygon(frame, tint(look.wood, 0.85))
        canvas.polygon([(-inner, seat - 8), *[(x * 0.97, y) for x, y in crest], (inner, seat - 8)], fabric)
        _tufts(canvas, fabric, inner * 0.9, seat + 8, height - 9)
        return
    if style == "art deco":
        canvas.cushion(-inner - 6, seat - 6, inner + 6, height, fabric, radius)
        for x in np.linspace(-inner, inner, 3 * seats + 4)[1:-1]:
            canvas.line([(float(x), seat), (float(x), height - 6)], tint(fabric, 0.82), 0.9)
        return
    canvas.cushion(-inner - 3, seat - 8, inner + 3, height - 5, tint(fabric, 0.85), radius)
    each = 2 * inner / seats
    for number in range(seats):
        left = -inner + number * each
        canvas.cushion(left + 1, seat, left + each - 1, height, fabric, radius)
        if style == "mid-century":
            middle = left + each / 2
            for x in (middle - each / 5, middle + each / 5):
                canvas.ellipse(x, (seat + height) / 2 + 4, 2.4, 2.4, tint(fabric, 0.7))
        if style == "industrial":
            canvas.line([(left + 3, height - 13), (left + each - 3, height - 13)], tint(fabric, 0.75), 0.7)


def _tufts(canvas: Canvas, fabric: Colour, half: float, bottom: float, top: float) -> None:
    """Draw buttons in a diamond pattern."""
    across = max(3, round(half / 9))
    for row, y in enumerate(np.linspace(bottom, top - 5, 3)):
        for x in np.linspace(-half, half, across) + (half / across if row % 2 else 0):
            if abs(x) < half:
                canvas.ellipse(float(x), float(y), 2.6, 2.6, tint(fabric, 0.68))


def _pillows(canvas: Canvas, look: Look, inner: float, seat: float) -> None:
    """Lay one or two pillows on the seat, in a colour that goes with the fabric."""
    red, green, blue = look.fabric
    other = (blue // 2 + 90, red // 2 + 90, green // 2 + 70)
    for side in (-1, 1) if inner > 45 else (-1,):
        x = side * (inner - 17)
        canvas.cushion(x - 15, seat + 1, x + 15, seat + 27, other, 6)
        if look.style == "bohemian":
            for step in range(-10, 11, 5):
                canvas.line([(x + step, seat + 5), (x + step + 3, seat + 23)], tint(other, 0.75), 1.0)


def chair_extent(look: Look) -> Extent:
    """Return width and height of one chair, two or four in centimetres."""
    return (46.0, 108.0, 226.0)[look.size], 84 + 10 * look.proportions[1]


def chair(canvas: Canvas, look: Look) -> None:
    """Draw one chair, two or four."""
    width, height = chair_extent(look)
    count = (1, 2, 4)[look.size]
    for number in range(count):
        x = (number - (count - 1) / 2) * (width - 46) / max(count - 1, 1)
        _chair(canvas, look, x, height)


def _chair(canvas: Canvas, look: Look, x: float, height: float) -> None:
    """Draw one chair around ``x``."""
    style, wood = look.style, look.wood
    half, seat = 21 + 2 * look.proportions[0], 45.0
    rail = look.metal if style == "industrial" else tint(wood, 0.9)
    canvas.legs(x - half, x + half, seat - 3, look, thick=3.8)
    if style in ("rustic", "scandinavian"):
        for post in np.linspace(x - half + 3, x + half - 3, 5 if style == "scandinavian" else 3):
            canvas.line([(float(post), seat), (x + (float(post) - x) * 1.08, height - 4)], rail, 1.8)
        canvas.box(x - half - 1, height - 9, x + half + 1, height, wood, 4)
        if style == "rustic":
            canvas.box(x - half, height - 24, x + half, height - 19, wood, 1)
    elif style == "victorian":
        canvas.ellipse(x, seat + (height - seat) * 0.58, half * 2.1, (height - seat) * 0.84, tint(wood, 0.85))
        canvas.ellipse(x, seat + (height - seat) * 0.58, half * 1.6, (height - seat) * 0.64, look.fabric)
        canvas.box(x - 3, seat, x + 3, seat + 8, tint(wood, 0.85))
    elif style == "bohemian":
        canvas.ellipse(x, seat + (height - seat) * 0.5, half * 2.2, (height - seat) * 1.1, rail)
        canvas.ellipse(x, seat + (height - seat) * 0.5, half * 1.9, (height - seat) * 0.95, tint(rail, 1.25))
        for step in np.linspace(-0.7, 0.7, 7):
            canvas.line([(x + float(step) * half, seat + 6), (x + float(step) * half * 0.6, height - 6)], rail, 0.7)
    else:
        for side in (-1, 1):
            canvas.box(x + side * (half - 2) - 1.7, seat, x + side * (half - 2) + 1.7, height - 2, rail)
        back = look.fabric if style in ("art deco", "modern") else wood
        canvas.cushion(x - half, height - 24 - 8 * look.proportions[2], x + half, height, back, _ROUND[style] * 0.7)
    seat_colour = look.fabric if style in ("mid-century", "art deco", "modern", "victorian") else tint(wood, 1.05)
    canvas.cushion(x - half - 1.5, seat - 4, x + half + 1.5, seat + 3, seat_colour, 2.5)


def bed_extent(look: Look) -> Extent:
    """Return width and height of a bed in centimetres."""
    return (100.0, 155.0, 195.0)[look.size] + 6 * look.proportions[0], 102 + 16 * look.proportions[1]


def bed(canvas: Canvas, look: Look) -> None:
    """Draw a bed from its foot end: headboard, pillows, mattress and blanket."""
    width, height = bed_extent(look)
    half, style, fabric = width / 2, look.style, look.fabric
    canvas.legs(-half + 2, half - 2, 24, look, thick=6)
    _headboard(canvas, look, half, height)
    canvas.cushion(-half + 4, 34, half - 4, 58, (240, 236, 228), 7)
    pillows = 1 if look.size == 0 else 2
    for number in range(pillows):
        x = 0.0 if pillows == 1 else (number - 0.5) * width * 0.46
        canvas.cushion(x - 31, 56, x + 31, 76, (250, 248, 243), 9)
    canvas.cushion(-half + 2, 26, half - 2, 54, fabric, 6)
    canvas.box(-half + 2, 47, half - 2, 55, tint(fabric, 1.25), 3)
    if style == "bohemian":
        for x in np.linspace(-half + 10, half - 10, 9):
            canvas.polygon([(float(x) - 6, 30), (float(x), 43), (float(x) + 6, 30)], tint(fabric, 1.35))
    canvas.plank(-half, 14, half, 30, look, 0.92)


def _headboard(canvas: Canvas, look: Look, half: float, height: float) -> None:
    """Draw the headboard of the style."""
    style = look.style
    if style == "industrial":
        canvas.box(-half, 20, -half + 4, height, look.metal)
        canvas.box(half - 4, 20, half, height, look.metal)
        canvas.box(-half, height - 5, half, height, look.metal, 2)
        for x in np.linspace(-half + 14, half - 14, 8):
            canvas.box(float(x) - 1, 40, float(x) + 1, height - 4, look.metal)
    elif style in ("art deco", "modern"):
        canvas.cushion(-half - 3, 20, half + 3, height, tint(look.fabric, 0.9), 4 if style == "modern" else 24)
        for x in np.linspace(-half, half, 6)[1:-1]:
            canvas.line([(float(x), 40), (float(x), height - 4)], tint(look.fabric, 0.75), 0.9)
    elif style == "victorian":
        steps = np.linspace(-1, 1, 25)
        crest = [(float(s) * half, height - 14 + 22 * float(np.cos(s * np.pi / 2))) for s in steps]
        canvas.polygon([(-half, 20), *crest, (half, 20)], tint(look.wood, 0.85))
        canvas.polygon([(-half + 7, 30), *[(x * 0.9, y - 7) for x, y in crest], (half - 7, 30)], look.wood)
    elif style == "bohemian":
        steps = np.linspace(0, np.pi, 25)
        arch = [(float(np.cos(s)) * half, 40 + float(np.sin(s)) * (height - 32)) for s in steps]
        canvas.polygon(arch, tint(look.wood, 1.1))
        for step in np.linspace(0.1, 0.9, 11):
            x = float(np.cos(step * np.pi)) * half
            canvas.line([(x * 0.2, 44), (x, 40 + float(np.sin(step * np.pi)) * (height - 32))], tint(look.wood, 0.8), 1)
    else:
        boards = 3 if style == "rustic" else 1
        for number in range(boards):
            low = 34 + number * (height - 34) / boards
            canvas.plank(-half, low, half, low + (height - 34) / boards - 1, look)
