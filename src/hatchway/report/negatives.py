"""What the negatives of a run were: columns by source, and what was masked and why, averaged over its steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SOURCES = {
    "in_batch": ("in-batch", "the other rows' positives: as often as they are popular"),
    "uniform": ("uniform", "drawn from the items on offer at some time of the training part, each alike"),
    "popularity": ("popularity", "drawn as often as the items' counts, raised to a power, say"),
    "queue": ("queue", "positives of past steps, with the vectors that they had then"),
    "impressions": ("impressions", "of the row's own: shown to the buyer with it and not engaged with"),
    "mined": ("mined", "of the row's own: what an earlier model placed near its context"),
}
REASONS = {
    "positive": "the column is the row's own positive",
    "same_item": "another copy of the row's positive (an accidental hit)",
    "engaged": "the buyer is known to have engaged with it",
    "own": "the row has the item on purpose already, mined or shown",
    "repeat": "another column stands for the item already",
    "seller": "the seller of the row's positive offers it: most likely the same thing",
    "photo": "its photo is near-identical to that of the row's positive",
    "title": "its title says the same as that of the row's positive",
}


@dataclass(frozen=True)
class Part:
    """A line of an account: what it is, how much of it, and the share of all columns (0 to 1)."""

    name: str
    amount: float
    share: float
    meaning: str


@dataclass(frozen=True)
class NegativesAccount:
    """The negatives of the average step.

    Attributes:
        sources: columns by source.
        masked: for each reason the columns that a row loses to it, and their share.
        columns: columns that a row is compared with, shared by the batch or its own.
        left: columns that count for a row after masking.
    """

    sources: tuple[Part, ...]
    masked: tuple[Part, ...]
    columns: float
    left: float


def account_of(lines: Sequence[dict[str, Any]]) -> NegativesAccount | None:
    """Sum up the lines of a training log; None where they say nothing of columns.

    Args:
        lines: with ``columns`` (columns a step, by source) and ``masked_share`` (share of all row and column pairs, by
            reason).
    """
    told = [line for line in lines if line.get("columns")]
    if not told:
        return None
    by_source = _means([line["columns"] for line in told])
    by_reason = _means([line.get("masked_share") or {} for line in told])
    columns = sum(by_source.values())
    sources = [
        Part(SOURCES.get(name, (name, ""))[0], amount, amount / columns, SOURCES.get(name, ("", ""))[1])
        for name, amount in by_source.items()
    ]
    masked = [
        Part(name.replace("_", " "), share * columns, share, REASONS.get(name, "")) for name, share in by_reason.items()
    ]
    return NegativesAccount(tuple(sources), tuple(masked), columns, columns * (1 - sum(part.share for part in masked)))


def _means(tables: Sequence[dict[str, float]]) -> dict[str, float]:
    """Average tables of numbers name by name; a name that a table lacks counts 0 there."""
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: sum(float(table.get(name, 0.0)) for table in tables) / len(tables) for name in names}
