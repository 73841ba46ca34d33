"""The sources of negatives by name, the reasons a candidate is masked, and what a source must answer."""

from enum import IntEnum
from typing import Protocol

import torch
from torch import Tensor


class Source(IntEnum):
    """What put a column there."""

    IN_BATCH = 1
    UNIFORM = 2
    POPULARITY = 3
    QUEUE = 4
    IMPRESSIONS = 5
    MINED = 6


class Reason(IntEnum):
    """Why a candidate may not stand as a negative for a row."""

    POSITIVE = 1
    """The very column that carries the row's own positive."""
    SAME_ITEM = 2
    """Another copy of the row's positive (an accidental hit)."""
    ENGAGED = 3
    """The buyer is known to have engaged with it."""
    OWN = 4
    """The row has the item on purpose, as a column of its own; it would count twice."""
    REPEAT = 5
    """Another column of the row stands for the item already (de-duplicated columns only)."""
    SELLER = 6
    """The seller of the row's positive offers it: a relist, most likely."""
    PHOTO = 7
    """Its photo is near-identical to that of the row's positive."""
    TITLE = 8
    """Its title says the same as that of the row's positive."""
    LOOKED_AT = 9
    """It is the listing whose page the row's buyer was on (mined columns only)."""
    NOT_ON_OFFER = 10
    """It was not on offer in the training part, or is not in the log's catalogue (mined columns only)."""
    SCORE = 11
    """An earlier model scores it outside the bounds, say too close to the positive (mined columns only)."""
    JUDGE = 12
    """A stronger model does not put it below the positive (mined columns only)."""


class SharedSource(Protocol):
    """A source whose columns all rows of a batch share."""

    @property
    def source(self) -> Source:
        """Which source this is."""
        ...

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:
        """Return the item rows of this source's columns, [M] int64, for a batch with ``positives`` [B] int64."""
        ...

    def expected_others(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item among this source's columns, given a row whose positive is another item.

        Args:
            items: [M] int64 item rows.
            batch: B.

        Returns:
            [M] float64. Columns that carry a row's own positive are not counted as this source's.
        """
        ...

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item, beside the positive itself, given a row whose positive is this very item."""
        ...

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:
        """Expected copies of each item among all columns, own positives too, knowing nothing of the row."""
        ...

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """Logarithm of the chance that no column holds the item, given a row whose positive is another, [M] float64."""
        ...

    def log_absent_on_average(self, items: Tensor, batch: int) -> Tensor:
        """Logarithm of the chance that no column holds the item, knowing nothing of the row, [M] float64."""
        ...


class OwnSource(Protocol):
    """A source that gives every row columns of its own.

    Either they are there *on purpose* (mined for this row, shown to this buyer): each is unique within its row and
    stands for itself, n = 1. Or they are *drawn* at random for each row; then n is an expected count like that of a
    shared draw, and adds up with the shared sources' counts.
    """

    @property
    def source(self) -> Source:
        """Which source this is."""
        ...

    @property
    def on_purpose(self) -> bool:
        """Whether the columns stand for themselves instead of for a distribution."""
        ...

    @property
    def log_weight(self) -> float:
        """Natural logarithm of a weight, added to the logits; 0 for none."""
        ...

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:
        """Return the rows' own columns.

        Args:
            positives: [B] int64 item rows of the positives.
            rows: [B] int64 engagement rows, for sources that look the row up in a table.
            generator: where the draws come from.

        Returns:
            [B, H] int64 item rows, −1 where a row has fewer than H.
        """
        ...

    def expected(self, items: Tensor) -> Tensor:
        """Expected copies of each item among a row's columns of this source, [M] float64; 0 for those on purpose."""
        ...

    def log_absent(self, items: Tensor) -> Tensor:
        """Logarithm of the chance that a row draws no copy of the item, [M] float64; 0 for those on purpose."""
        ...
