"""A picture for a listing without a photo: drawn from its category and title, the same every time.

Listings of one category share a colour, so that a glance at a row says whether it stays on its subject; the title
decides the shapes.
"""

import hashlib
import re
from collections.abc import Iterator
from html import escape

_WIDTH, _HEIGHT = 400, 300


def placeholder(title: str, category: str, item: str) -> str:
    """Return an SVG image of 400 × 300 units that fills whatever box it is put into.

    It is decoration: hidden from screen readers, because the title stands beside it.

    Args:
        title: decides the shapes, and gives the letters; may be empty.
        category: decides the colour; where it is empty, the title does.
        item: the id, which decides where there is no title.
    """
    numbers = _numbers(title or item)
    hue = next(_numbers(category or title or item)) * 360
    paper, ink = _colour(hue, 0.32, 0.89), _colour(hue, 0.38, 0.28)
    tones = [_colour(hue + shift, 0.34, light) for shift, light in ((0, 0.82), (16, 0.77), (-18, 0.72))]
    shapes = "".join(_shape(tone, numbers) for tone in tones)
    return (
        f'<svg class="placeholder" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="xMidYMid slice" '
        f'aria-hidden="true" focusable="false"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="{paper}"/>{shapes}'
        f'<text x="{_WIDTH // 2}" y="{_HEIGHT // 2}" dy=".36em" text-anchor="middle" font-size="68" font-weight="500" '
        f'letter-spacing="6" fill="{ink}" fill-opacity=".8">{escape(_initials(title))}</text></svg>'
    )


def _numbers(text: str) -> Iterator[float]:
    """Yield numbers from 0 to 1 that are a function of the text, as many as anybody asks for."""
    block = text.encode()
    while True:
        block = hashlib.blake2b(block, digest_size=32).digest()
        yield from (byte / 255 for byte in block)


def _colour(hue: float, saturation: float, lightness: float) -> str:
    """Write a colour."""
    return f"hsl({hue % 360:.0f},{saturation:.0%},{lightness:.0%})"


def _shape(tone: str, numbers: Iterator[float]) -> str:
    """Draw one large quiet shape: a disc, a ring, or a slanting band."""
    kind, x, y, size = (next(numbers) for _ in range(4))
    across, down, radius = 40 + x * 320, 20 + y * 260, 60 + size * 80
    if kind < 0.4:
        return f'<circle cx="{across:.0f}" cy="{down:.0f}" r="{radius:.0f}" fill="{tone}"/>'
    if kind < 0.7:
        return (
            f'<circle cx="{across:.0f}" cy="{down:.0f}" r="{radius:.0f}" fill="none" stroke="{tone}" '
            f'stroke-width="{radius / 2.2:.0f}"/>'
        )
    return (
        f'<rect x="-100" y="{down - radius / 2:.0f}" width="600" height="{radius:.0f}" fill="{tone}" '
        f'transform="rotate({x * 70 - 35:.0f} 200 150)"/>'
    )


def _initials(title: str) -> str:
    """Take the first letters of the first two words that begin with a letter, or of the only one.

    >>> [_initials(title) for title in ("Teak 3-seater sofa", "Sofa (1984)", "1984", "")]
    ['TS', 'SO', '19', '']
    """
    words = re.findall(r"\b[^\W\d_]\w*", title) or re.findall(r"\w+", title)[:1]
    return "".join(word[0] for word in words[:2]).upper() if len(words) > 1 else "".join(words)[:2].upper()
