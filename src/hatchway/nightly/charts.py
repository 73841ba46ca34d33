"""Small charts over nights, drawn as SVG that takes the page's colours; a night without a value is a gap."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 520, 206
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 92, 12, 26
_LABEL_GAP = 13.0
_TICKS = 4


@dataclass(frozen=True)
class Series:
    """One line of a chart.

    Attributes:
        name: stands at its end.
        values: one for each night, None where nothing was measured.
        tone: which of the page's tones it has, from 1.
        dashed: drawn thin and dashed, as limits are.
    """

    name: str
    values: Sequence[float | None]
    tone: int = 1
    dashed: bool = False


def chart(series: Sequence[Series], days: Sequence[str], write: Callable[[float], str], *, bars: bool = False) -> str:
    """Draw a chart; an empty text where there is nothing to draw.

    Args:
        series: the lines; with ``bars`` the first is drawn as bars.
        days: the nights, as in ``2026-03-02``.
        write: how a value is written.
        bars: see there.
    """
    there = [value for line in series for value in line.values if value is not None]
    if not there or not any(value is not None for line in series if not line.dashed for value in line.values):
        return ""
    ticks = nice_ticks(max(there))
    scale = _Scale(len(days), ticks[-1])
    parts = [_grid(scale, ticks, days, write)]
    for number, line in enumerate(series):
        parts.append(_bars(scale, line, days, write) if bars and not number else _line(scale, line, days, write))
    parts.append(_labels(scale, series, write))
    named = ", ".join(line.name for line in series)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(named)} over {len(days)} '
        f'nights">{"".join(parts)}</svg>'
    )


def nice_ticks(highest: float) -> list[float]:
    """Return ticks from 0 to a round number at or above ``highest``.

    >>> nice_ticks(0.83), nice_ticks(0)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 1.0])
    """
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / _TICKS
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * (1 - 1e-9))
    return [round(step * number, 12) for number in range(math.ceil(highest / step - 1e-9) + 1)]


@dataclass(frozen=True)
class _Scale:
    """Where a night and a value lie in the picture."""

    nights: int
    top: float

    def x(self, night: int) -> float:
        span = WIDTH - _LEFT - _RIGHT
        return _LEFT + span * (night + 0.5) / self.nights

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / self.top


def _grid(scale: _Scale, ticks: Sequence[float], days: Sequence[str], write: Callable[[float], str]) -> str:
    """Draw the lines behind, the values on the left and some days below."""
    parts = []
    for tick in ticks:
        y = scale.y(tick)
        parts.append(f'<path class="rule" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{_LEFT - 7}" y="{y + 3.5:.1f}" text-anchor="end">{escape(write(tick))}</text>'
        )
    shown = sorted({0, (len(days) - 1) // 2, len(days) - 1})
    parts += [
        f'<text class="tick" x="{scale.x(night):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{days[night][5:]}</text>'
        for night in shown
    ]
    return "".join(parts)


def _line(scale: _Scale, line: Series, days: Sequence[str], write: Callable[[float], str]) -> str:
    """Draw a line with its gaps, and a dot for every night that says its value."""
    pieces: list[list[tuple[float, float]]] = [[]]
    dots = []
    for night, value in enumerate(line.values):
        if value is None:
            pieces.append([])
            continue
        point = (scale.x(night), scale.y(value))
        pieces[-1].append(point)
        if not line.dashed:
            said = f"{days[night]} · {line.name} {write(value)}"
            dots.append(
                f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="2.6"><title>{escape(said)}</title></circle>'
            )
    paths = [
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (piece if len(piece) > 1 else piece * 2))
        for piece in pieces
        if piece
    ]
    kind = "dashed" if line.dashed else f"tone{line.tone}"
    return f'<g class="{kind}"><path class="line" d="{"".join(paths)}"/>{"".join(dots)}</g>'


def _bars(scale: _Scale, line: Series, days: Sequence[str], write: Callable[[float], str]) -> str:
    """Draw a bar for every night."""
    width = max(2.0, min(22.0, 0.66 * (WIDTH - _LEFT - _RIGHT) / scale.nights))
    parts = []
    for night, value in enumerate(line.values):
        if value is None:
            continue
        top, foot = scale.y(value), scale.y(0.0)
        said = f"{days[night]} · {line.name} {write(value)}"
        parts.append(
            f'<rect x="{scale.x(night) - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{max(foot - top, 0.8):.1f}" rx="2"><title>{escape(said)}</title></rect>'
        )
    return f'<g class="tone{line.tone}">{"".join(parts)}</g>'


def _labels(scale: _Scale, series: Sequence[Series], write: Callable[[float], str]) -> str:
    """Write every line's name and last value at its end, none over another."""
    ends = []
    for line in series:
        last = next((value for value in reversed(line.values) if value is not None), None)
        if last is not None:
            ends.append((scale.y(last), line, last))
    ends.sort(key=lambda end: end[0])
    places: list[float] = []
    for wanted, _, _ in ends:
        places.append(max(wanted, places[-1] + _LABEL_GAP) if places else wanted)
    lowest = HEIGHT - _BOTTOM + 2.0
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], lowest)
        lowest = places[number] - _LABEL_GAP
    parts = []
    for place, (_, line, last) in zip(places, ends, strict=True):
        tone = "limit" if line.dashed else f"tone{line.tone}"
        words = f"{escape(line.name)} <tspan>{escape(write(last))}</tspan>"
        parts.append(f'<text class="label {tone}" x="{WIDTH - _RIGHT + 8}" y="{place + 4:.1f}">{words}</text>')
    return "".join(parts)
