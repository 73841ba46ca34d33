"""Uniform negatives: one set of draws over the catalogue, shared by every row of the batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import SettingsError
from hatchway.negatives.sources import Source


@dataclass(frozen=True)
class Uniform:
    """``draws`` independent draws, each item with chance 1/N.

    Attributes:
        catalogue: N, the number of items.
        draws: U, the number of draws a batch.
    """

    catalogue: int
    draws: int
    source: Source = Source.UNIFORM

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if self.draws < 0 or (self.draws > 0 and self.catalogue < 1):
            raise SettingsError(
                f"{self.draws} uniform draws from a catalogue of {self.catalogue} items; "
                "allowed: 0 or more draws, from at least one item"
            )

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:
        """Draw with replacement, on the generator's device, and move to the positives' device."""
        if self.draws == 0:
            return positives.new_empty(0)
        drawn = torch.randint(self.catalogue, (self.draws,), generator=generator, device=generator.device)
        return drawn.to(positives.device)

    def _expected(self, items: Tensor) -> Tensor:
        return torch.full(items.shape, self.draws / max(self.catalogue, 1), dtype=torch.float64, device=items.device)

    def expected_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002  draws do not depend on the batch
        """``U / N``."""
        return self._expected(items)

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``U / N``: a draw does not know the row."""
        return self._expected(items)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``U / N``."""
        return self._expected(items)
