"""Draws docs/pictures/training-row.svg: one training row's columns by source, with ln n and the corrected logit.

Run ``python docs/pictures/training_row.py``. The figures are computed from the setting below: 4,096 positives a batch,
1,000 shared uniform draws, 20 million listings; every raw score is 2.0, so that only the correction tells them apart.
"""

import math
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(__file__).with_name("training-row.svg")

BATCH, UNIFORM, CATALOGUE, SCORE = 4096, 1000, 20_000_000, 2.0


@dataclass(frozen=True)
class Column:
    """One column: its item, its source, the chance that a positive is this item, and why it is masked, if it is."""

    item: str
    note: str
    source: str
    chance: float
    masked: str = ""

    @property
    def expected(self) -> float:
        """n, the expected number of copies among the row's columns."""
        return (BATCH - 1) * self.chance + UNIFORM / CATALOGUE

    @property
    def log_count(self) -> float:
        """The logarithm of n; 0 for the positive, which enters once and as it is."""
        return 0.0 if self.source == "positive" else math.log(self.expected)

    @property
    def logit(self) -> float:
        """The corrected logit."""
        return SCORE - self.log_count


COLUMNS = (
    Column("Teak sofa", "messaged about", "positive", 1e-5),
    Column("Grey L-sofa", "very popular", "in-batch", 1e-3),
    Column("Record player", "rarely asked for", "in-batch", 1e-6),
    Column("Teak sofa", "once more", "in-batch", 1e-5, "same item"),
    Column("Side table", "saved last week", "in-batch", 1e-5, "engaged"),
    Column("Brass lamp", "never asked for", "uniform", 0.0),
    Column("Grey L-sofa", "drawn again", "uniform", 1e-3),
)

WIDTH, HEIGHT, MARGIN, GUTTER, GAP = 1080, 470, 28, 62, 10
CARD = (WIDTH - 2 * MARGIN - GUTTER - GAP * (len(COLUMNS) - 1)) / len(COLUMNS)
TOP, CARD_HEIGHT, PAD, FLOOR, UNIT = 82, 118, 13, 396, 12.5

STYLE = """
  svg { --paper: #fdfcf9; --ink: #1f2430; --soft: #667085; --line: #e3e0d8; --card: #ffffff;
        --positive: #1a7f4b; --in-batch: #2f62c9; --uniform: #b26a00; --masked: #98a0ad; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #15181e; --ink: #eceff4; --soft: #9aa4b5; --line: #2c323d; --card: #1c2129;
          --positive: #4cc38a; --in-batch: #7ea6f8; --uniform: #e0a458; --masked: #6b7585; }
  }
  text { fill: var(--ink); font-family: system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
  .soft { fill: var(--soft); } .small { font-size: 11.5px; } .item { font-size: 13.5px; font-weight: 600; }
  .number { font-size: 12.5px; font-variant-numeric: tabular-nums; } .middle { text-anchor: middle; }
  .end { text-anchor: end; } .label { font-size: 10.5px; font-weight: 700; letter-spacing: .08em; }
"""


def text(x: float, y: float, words: str, kind: str, colour: str = "") -> str:
    """Write one line of text."""
    fill = f' style="fill: var(--{colour})"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{fill}>{words}</text>'


def box(x: float, y: float, size: tuple[float, float], radius: float, style: str) -> str:
    """Draw a rounded rectangle of a width and a height."""
    width, height = size
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" style="{style}"/>'


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    """Draw a line between two points."""
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'


def signed(value: float) -> str:
    """Write a number with its sign, as a typographer would."""
    return f"{value:+.2f}".replace("-", "−") if value else "0"


def level(logit: float) -> float:
    """Return where a logit stands."""
    return FLOOR - UNIT * logit


def card(column: Column, x: float) -> list[str]:
    """Draw what a column is: source, item, and its entry in the ledger."""
    left = x + PAD
    if column.masked:
        entry = [("masked:", "number soft"), (column.masked, "number soft")]
    elif column.source == "positive":
        entry = [("there once", "number"), ("ln n = 0", "number")]
    else:
        count = f"{column.expected:.5f}" if column.expected < 1 else f"{column.expected:.2f}"
        entry = [(f"n = {count}", "number"), (f"ln n = {signed(column.log_count)}", "number")]
    return [
        box(x, TOP, (CARD, CARD_HEIGHT), 9, "fill: var(--card); stroke: var(--line)"),
        box(x, TOP + 15, (3, 14), 1.5, f"fill: var(--{column.source})"),
        text(left, TOP + 26, column.source.upper(), "label", column.source),
        text(left, TOP + 48, column.item, "item"),
        text(left, TOP + 65, column.note, "small soft"),
        *(text(left, TOP + 88 + 17 * row, words, kind) for row, (words, kind) in enumerate(entry)),
    ]


def bar(column: Column, middle: float) -> list[str]:
    """Draw where the correction moves a column's logit: from the score, the same for all, up or down."""
    if column.masked:
        dots = "stroke: var(--masked); stroke-width: 2; stroke-linecap: round; stroke-dasharray: 1 6"
        return [
            line((middle, FLOOR - 6), (middle, level(6)), dots),
            text(middle, level(6) - 10, "−∞", "number middle", "masked"),
        ]
    y, colour = level(column.logit), column.source
    return [
        box(middle - 19, y, (38, FLOOR - y), 4, f"fill: var(--{colour}); opacity: .2"),
        line((middle, level(SCORE)), (middle, y), f"stroke: var(--{colour}); stroke-width: 2"),
        f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4.5" style="fill: var(--{colour})"/>',
        text(middle, min(y, level(SCORE)) - 11, f"{column.logit:.2f}", "number middle", colour),
    ]


def picture() -> str:
    """Return the SVG."""
    right, raw = WIDTH - MARGIN, level(SCORE)
    about = "The columns of one training row by source, with the expected count of each item and its corrected logit"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{about}">',
        f"<style>{STYLE}</style>",
        box(0.5, 0.5, (WIDTH - 1, HEIGHT - 1), 14, "fill: var(--paper); stroke: var(--line)"),
        text(MARGIN, 38, f"One training row, seven of its {BATCH + UNIFORM:,} columns", "item"),
        text(
            MARGIN,
            58,
            "Each knows its source, and n: how many copies of its item this row had to expect.",
            "small soft",
        ),
        line((MARGIN, FLOOR), (right, FLOOR), "stroke: var(--line)"),
        line((MARGIN, raw), (right, raw), "stroke: var(--soft); stroke-dasharray: 4 4"),
        text(MARGIN, raw - 7, f"score {SCORE:.2f}", "small soft"),
        text(MARGIN, level(12) + 4, "logit", "small soft"),
    ]
    for number, column in enumerate(COLUMNS):
        x = MARGIN + GUTTER + number * (CARD + GAP)
        parts += [*card(column, x), *bar(column, x + CARD / 2)]
    setting = f"B = {BATCH:,} positives, U = {UNIFORM:,} uniform draws, N = {CATALOGUE:,} listings"
    parts += [
        text(MARGIN, 424, "logit = score / temperature − α · ln n", "item"),
        text(MARGIN, 444, "n = (B − 1) · q + U / N, whichever source drew the copy", "small soft"),
        text(right, 424, setting, "small soft end"),
        text(right, 444, "here α = 1 and temperature = 1; served is the score alone", "small soft end"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
