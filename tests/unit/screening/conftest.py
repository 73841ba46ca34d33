"""Pictures to compare: scenes of shapes and colours, as no two of them are alike."""

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

Draw = Callable[[int], Image.Image]


def scene(number: int) -> Image.Image:
    """Draw a room with a few things in it, 400 by 300, the same for the same number."""
    random = np.random.default_rng(number)
    image = Image.new("RGB", (400, 300), tuple(random.integers(60, 250, 3).tolist()))
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, int(random.integers(180, 260)), 400, 300), fill=tuple(random.integers(30, 220, 3).tolist()))
    for _ in range(9):
        left, top = random.integers(-20, 340), random.integers(-20, 240)
        box = (int(left), int(top), int(left + random.integers(30, 160)), int(top + random.integers(30, 140)))
        colour = tuple(random.integers(0, 255, 3).tolist())
        (pen.ellipse if random.random() < 0.5 else pen.rectangle)(box, fill=colour)
    return image.filter(ImageFilter.GaussianBlur(1.5))


@pytest.fixture(name="draw")
def _draw() -> Draw:
    """Return the drawer of scenes."""
    return scene
