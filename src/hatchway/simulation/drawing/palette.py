"""What the woods and fabrics of the vocabulary look like."""

from hatchway.simulation.drawing.canvas import Colour

WOODS: dict[str, Colour] = {
    "teak": (168, 106, 58),
    "oak": (196, 156, 104),
    "walnut": (104, 70, 48),
    "pine": (222, 184, 128),
    "mahogany": (116, 52, 40),
    "birch": (226, 206, 172),
    "sheesham": (134, 82, 56),
    "rattan": (206, 168, 112),
    "black": (48, 46, 48),
    "white": (236, 233, 226),
}

FABRICS: dict[str, Colour] = {
    "grey": (148, 150, 152),
    "navy": (46, 62, 98),
    "forest green": (50, 88, 68),
    "mustard": (206, 156, 56),
    "terracotta": (190, 98, 68),
    "cream": (230, 218, 192),
    "blush": (222, 172, 164),
    "charcoal": (74, 78, 84),
    "tan leather": (172, 112, 66),
    "oxblood": (112, 40, 44),
    "teal": (44, 116, 120),
    "sage": (152, 170, 142),
}

WALLS: tuple[Colour, ...] = (
    (232, 226, 214), (214, 220, 220), (224, 210, 192), (198, 208, 196), (206, 196, 206), (240, 238, 232),
    (180, 192, 202), (220, 198, 178), (202, 206, 186), (166, 178, 174), (226, 214, 206), (190, 180, 168),
)  # fmt: skip

FLOORS: tuple[Colour, ...] = (
    (176, 134, 92), (204, 172, 130), (120, 88, 64), (154, 150, 146), (196, 190, 180), (146, 118, 96), (222, 208, 186),
)  # fmt: skip
