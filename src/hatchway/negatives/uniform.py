"""Uniform negatives: one set of draws over the living catalogue, shared by every row of the batch."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hatchway.errors import SettingsError
from hatchway.negatives.sources import Source


@dataclass(frozen=True)
class Uniform:
    """``draws`` independent draws, each living item with the same chance.

    Attributes:
        catalogue: N, the number of items.
        draws: U, the number of draws a batch.
        living: [N] bool, the items that can be drawn; None for all. Nobody ignored a listing that was not on offer.

    Raises:
        SettingsError: the draws are negative, or there is nothing to draw from.
    """

    catalogue: int
    draws: int
    living: Tensor | None = None
    source: Source = Source.UNIFORM

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if self.living is not None and self.living.shape != (self.catalogue,):
            raise SettingsError(
                f"living has shape {tuple(self.living.shape)}; allowed: one flag an item, ({self.catalogue},)"
            )
        if self.draws < 0 or (self.draws > 0 and self.size < 1):
            raise SettingsError(
                f"{self.draws} uniform draws from a catalogue of {self.size} items; "
                "allowed: 0 or more draws, from at least one item"
            )

    @cached_property
    def _pool(self) -> Tensor | None:
        return None if self.living is None else torch.nonzero(self.living)[:, 0]

    @property
    def size(self) -> int:
        """The number of items that can be drawn."""
        return self.catalogue if self._pool is None else len(self._pool)

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:
        """Draw with replacement, on the generator's device, and move to the positives' device."""
        if self.draws == 0:
            return positives.new_empty(0)
        drawn = torch.randint(self.size, (self.draws,), generator=generator, device=generator.device)
        return (drawn if self._pool is None else self._pool.to(drawn.device)[drawn]).to(positives.device)

    def _expected(self, items: Tensor) -> Tensor:
        count = self.draws / max(self.size, 1)
        everywhere = torch.full(items.shape, count, dtype=torch.float64, device=items.device)
        return everywhere if self.living is None else torch.where(self.living.to(items.device)[items], everywhere, 0.0)

    def expected_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002  draws do not depend on the batch
        """``U / N`` with N the number of living items; 0 for the others."""
        return self._expected(items)

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``U / N``: a draw does not know the row."""
        return self._expected(items)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``U / N``."""
        return self._expected(items)
