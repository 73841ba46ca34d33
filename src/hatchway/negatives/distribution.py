"""Distributions over the catalogue that negatives are drawn from, one draw at a time and with replacement."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from hatchway.errors import SettingsError
from hatchway.frequency.item_rows import check_item_rows

_RANDOM = 2**62
"""Random numbers below this are brought below N by the remainder; with N = 20 million no item gains 1e-11 of itself.

``torch.randint(N)`` itself takes the remainder of 32 random bits: of 20 million items, three quarters would be drawn
half a percent more often than the others.
"""


class Distribution(Protocol):
    """Chances of the catalogue's items, and draws that follow them."""

    @property
    def size(self) -> int:
        """The number of items that can be drawn."""
        ...

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Return ``count`` independent draws, [count] int64 item rows, on the generator's device."""
        ...

    def chance(self, items: Tensor) -> Tensor:
        """Return the chance of each item in a single draw, [M] float64; 0 for items that are never drawn.

        Raises:
            DataError: an item row is not in the catalogue: a mistake, not an item that is never drawn.
        """
        ...


def random_numbers(count: int, generator: torch.Generator) -> Tensor:
    """Return ``count`` random whole numbers of 62 bits, [count] int64, on the generator's device."""
    return torch.randint(_RANDOM, (count,), generator=generator, device=generator.device)


def check_living(living: Tensor | None, shape: tuple[int, ...]) -> None:
    """Refuse flags of another catalogue, and numbers in their place.

    Raises:
        SettingsError: there is not one flag an item, or they are not bool.
    """
    if living is not None and (tuple(living.shape) != shape or living.dtype != torch.bool):
        raise SettingsError(
            f"living has shape {tuple(living.shape)} and dtype {living.dtype}; allowed: one flag an item, {shape} bool"
        )


@dataclass(frozen=True)
class UniformDistribution:
    """Each living item with the same chance.

    Attributes:
        catalogue: N, the number of items.
        living: [N] bool, the items that can be drawn; None for all. Nobody ignored a listing that was not on offer.

    Raises:
        SettingsError: there is not one flag an item, or they are not flags.
    """

    catalogue: int
    living: Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse flags of another catalogue."""
        check_living(self.living, (self.catalogue,))

    @cached_property
    def _pool(self) -> Tensor | None:
        return None if self.living is None else torch.nonzero(self.living)[:, 0]

    @property
    def size(self) -> int:
        """The number of items that can be drawn."""
        return self.catalogue if self._pool is None else len(self._pool)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement; see :class:`Distribution`."""
        drawn = random_numbers(count, generator) % self.size
        return drawn if self._pool is None else self._pool.to(drawn.device)[drawn]

    def chance(self, items: Tensor) -> Tensor:
        """``1 / N`` with N the number of living items; 0 for the others; see :class:`Distribution`."""
        check_item_rows(items, self.catalogue)
        everywhere = torch.full(items.shape, 1 / max(self.size, 1), dtype=torch.float64, device=items.device)
        return everywhere if self.living is None else torch.where(self.living.to(items.device)[items], everywhere, 0.0)


def log_absent_of(chance: Tensor, draws: float) -> Tensor:
    """Return ln of the chance that draws with replacement never take the item.

    Args:
        chance: [M] float64, the item's chance in a single draw.
        draws: how many; a fraction is the chance of one draw more.

    >>> float(log_absent_of(torch.tensor(0.5, dtype=torch.float64), 2.5).exp())
    0.1875
    """
    whole = int(draws)
    # 0 times the logarithm of 0 is no number; nothing drawn leaves every item absent.
    never = torch.log1p(-chance) * whole if whole else torch.zeros_like(chance)
    return never + torch.log1p(-chance * (draws - whole))
