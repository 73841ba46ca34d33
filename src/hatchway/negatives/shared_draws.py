"""Draws from a distribution that every row of the batch shares: their account is the same whatever the distribution."""

import torch
from torch import Tensor

from hatchway.errors import SettingsError
from hatchway.negatives.distribution import Distribution, log_absent_of
from hatchway.negatives.sources import Source


class SharedDraws:
    """``draws`` independent draws, shared by the batch: n(j) = draws · chance(j), whatever the row.

    Args:
        distribution: what is drawn from.
        draws: the number of draws a batch.
        source: the name of the source.

    Raises:
        SettingsError: the draws are negative, or there is nothing to draw from.
    """

    def __init__(self, distribution: Distribution, draws: int, source: Source) -> None:
        name = source.name.lower()
        if draws < 0:
            raise SettingsError(f"{draws} {name} draws; allowed: 0 or more")
        if draws > 0 and distribution.size < 1:
            raise SettingsError(
                f"{draws} {name} draws, and there is no item to draw: the catalogue is empty, or none of its items was "
                "on offer in the time that is trained on; see to its columns listed and gone (all of them gone?), or "
                f"draw none with negatives.{name} = 0"
            )
        self.distribution = distribution
        self.draws = draws
        self.source = source

    def resized(self, draws: int) -> "SharedDraws":
        """Return as good a source with another number of draws; the distribution and its tables are shared."""
        return SharedDraws(self.distribution, draws, self.source)

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:
        """Draw with replacement, on the generator's device, and move to the positives' device."""
        if self.draws == 0:
            return positives.new_empty(0)
        return self.distribution.sample(self.draws, generator).to(positives.device)

    def expected_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002  draws do not depend on the batch
        """``draws · chance(j)``."""
        return self.distribution.chance(items) * self.draws

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """``draws · chance(j)``: a draw does not know the row."""
        return self.expected_others(items, batch)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:
        """``draws · chance(j)``."""
        return self.expected_others(items, batch)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``draws · ln(1 - chance(j))``."""
        return log_absent_of(self.distribution.chance(items), self.draws)

    def log_absent_on_average(self, items: Tensor, batch: int) -> Tensor:
        """``draws · ln(1 - chance(j))``."""
        return self.log_absent_others(items, batch)
