"""n(j), the number that everything rests on: expected copies of an item among a row's columns, over all sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hatchway.negatives.own_columns import OwnDraw
from hatchway.negatives.sources import SharedSource

PositiveCorrection = Literal["uncorrected", "count", "yi"]
"""What happens to the row's positive p, and to copies of it among the columns.

``uncorrected``: p enters once with its raw logit; copies are masked. The columns stand for the normaliser *without* p
    (Yang et al. 2020, eq. 5, with the count restored; same gradient as Khrylchenko et al. 2025).
``count``: copies stay, and p and its copies share n(p) = 1 + the copies to be expected beside it, given the row. The
    columns and p together stand for the *whole* normaliser, for every row.
``yi``: as published by Yi et al. 2019, p is corrected like any column, with n(p) = B·q(p) + U/N + K·p(p). The whole
    normaliser too, but only on average over positives drawn with chance q; row by row a popular p weighs too little, a
    rare one too much. Without in-batch columns, of which the row's own positive is one, n has no B·q(p), the columns
    alone stand for the whole normaliser, and the corrected p is one more term (the usual sampled softmax).

De-duplicated columns hold no copy of p beside p itself: ``count`` is then the same as ``uncorrected``.
"""


@dataclass(frozen=True)
class Counting:
    """The expected counts of all sources together, as the correction asks for them.

    Attributes:
        sources: the shared sources.
        own: what the sources of own columns gave.
        batch: B, the rows whose positives are in-batch columns.
        correction: the positive's switch.
        distinct: the shared columns are de-duplicated.
    """

    sources: Sequence[SharedSource]
    own: Sequence[OwnDraw]
    batch: int
    correction: PositiveCorrection
    distinct: bool

    def of_columns(self, items: Tensor) -> Tensor:
        """Return n of items that are not the row's positive, float64 of the items' shape."""
        flat = items.reshape(-1)
        zero = torch.zeros(flat.shape, dtype=torch.float64, device=flat.device)
        average = self.correction == "yi"
        if self.distinct:
            absent = sum(
                (
                    s.log_absent_on_average(flat, self.batch) if average else s.log_absent_others(flat, self.batch)
                    for s in self.sources
                ),
                sum((draw.source.log_absent(flat) for draw in self.own), zero),
            )
            return -torch.expm1(absent).reshape(items.shape)
        shared = (
            s.expected_on_average(flat, self.batch) if average else s.expected_others(flat, self.batch)
            for s in self.sources
        )
        return sum(shared, self._drawn(flat, zero)).reshape(items.shape)

    def of_positives(self, positives: Tensor) -> Tensor:
        """Return n of the rows' positives, [B] float64; 1 where the positive is not corrected."""
        zero = torch.zeros(positives.shape, dtype=torch.float64, device=positives.device)
        if self.correction == "yi":
            return self.of_columns(positives)
        if self.correction == "uncorrected" or self.distinct:
            return zero + 1
        shared = (source.expected_of_positive(positives, self.batch) for source in self.sources)
        return sum(shared, self._drawn(positives, zero)) + 1

    def _drawn(self, items: Tensor, zero: Tensor) -> Tensor:
        return sum((draw.source.expected(items) for draw in self.own), zero)
