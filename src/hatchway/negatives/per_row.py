"""Negatives drawn for each row by itself: K of them, a real number, from any distribution over the catalogue."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import SettingsError
from hatchway.negatives.distribution import Distribution, log_absent_of
from hatchway.negatives.sources import Source


@dataclass(frozen=True)
class PerRow:
    """K independent draws a row: n(j) = K · chance(j), in rows and for columns of every other source alike.

    A real K is ``floor(K)`` draws, and one more with the chance of its fraction, for each row by itself (Wu et al.,
    "Rethinking InfoNCE", 2021); their expected number is K.

    Attributes:
        distribution: what is drawn from.
        draws: K, 0 or more, not necessarily whole.
        source: the name of the source.

    Raises:
        SettingsError: K is negative or no finite number, or there is nothing to draw from.
    """

    distribution: Distribution
    draws: float
    source: Source

    on_purpose = False
    log_weight = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 0 <= self.draws < math.inf or (self.draws > 0 and self.distribution.size < 1):
            raise SettingsError(
                f"{self.draws} {self.source.name.lower()} draws a row from a catalogue of {self.distribution.size} "
                "items; allowed: 0 or more (a finite number, not necessarily whole), from at least one item"
            )

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Draw with replacement; see :class:`~hatchway.negatives.sources.OwnSource`."""
        batch, most = len(positives), math.ceil(self.draws)
        if not most:
            return positives.new_empty(batch, 0)
        drawn = self.distribution.sample(batch * most, generator).view(batch, most)
        if self.draws < most:
            chance = self.draws - math.floor(self.draws)
            one_more = torch.rand(batch, generator=generator, device=generator.device, dtype=torch.float64) < chance
            drawn[:, -1] = torch.where(one_more, drawn[:, -1], -1)
        return drawn.to(positives.device)

    def expected(self, items: Tensor) -> Tensor:
        """``K · chance(j)``."""
        return self.distribution.chance(items) * self.draws

    def log_absent(self, items: Tensor) -> Tensor:
        """``floor(K) ln(1 - chance(j)) + ln(1 - fraction(K) chance(j))``."""
        return log_absent_of(self.distribution.chance(items), self.draws)
