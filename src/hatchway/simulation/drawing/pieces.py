"""Which drawing belongs to which kind of furniture."""

from collections.abc import Callable

from hatchway.simulation.drawing import decor, seating, storage, tables
from hatchway.simulation.drawing.canvas import Canvas, Look

Drawing = tuple[Callable[[Look], tuple[float, float]], Callable[[Canvas, Look], None]]

PIECES: dict[str, Drawing] = {
    "sofa": (seating.sofa_extent, seating.sofa),
    "armchair": (seating.armchair_extent, seating.armchair),
    "chair": (seating.chair_extent, seating.chair),
    "bed": (seating.bed_extent, seating.bed),
    "dining table": (tables.dining_table_extent, tables.dining_table),
    "coffee table": (tables.coffee_table_extent, tables.coffee_table),
    "desk": (tables.desk_extent, tables.desk),
    "wardrobe": (storage.wardrobe_extent, storage.wardrobe),
    "bookcase": (storage.bookcase_extent, storage.bookcase),
    "sideboard": (storage.sideboard_extent, storage.sideboard),
    "lamp": (decor.lamp_extent, decor.lamp),
    "rug": (decor.rug_extent, decor.rug),
    "mirror": (decor.mirror_extent, decor.mirror),
}
"""For each category of the vocabulary: how wide and high a piece is in centimetres, and how it is drawn."""
