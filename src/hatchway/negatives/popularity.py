"""Popularity negatives: draws that follow the items' counts raised to a power, shared by every row of the batch."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hatchway.compiled import suits
from hatchway.errors import SettingsError
from hatchway.frequency.item_rows import check_item_rows
from hatchway.negatives.alias import Int32, build_alias, draw_alias, look_up
from hatchway.negatives.distribution import check_living
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import Source


@dataclass(frozen=True, eq=False)
class PopularityDistribution:
    """Each living item with a chance that is proportional to ``count ** beta`` (Mikolov et al. 2013: beta 0.75).

    The table takes 8 bytes an item, is built at the first draw, and knows no largest catalogue below 2^31 items.

    Attributes:
        counts: [N] whole numbers, 0 or more. What has none is never drawn, whatever beta is.
        beta: 0 (the items with a count alike) to 1 (popularity itself).
        living: [N] bool, the items that can be drawn; None for all.

    Raises:
        SettingsError: beta is not within 0 to 1, a count is negative, NaN or infinite or there is not one an item,
            there is not one flag an item, or no living item has a count or all together more than float64 holds.
    """

    counts: Tensor
    beta: float = 0.75
    living: Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 0 <= self.beta <= 1:
            raise SettingsError(f"beta is {self.beta}; allowed: 0 (counted items alike) to 1 (popularity itself)")
        if self.counts.ndim != 1:
            raise SettingsError(f"counts have shape {tuple(self.counts.shape)}; allowed: one an item, [N]")
        # A comparison with NaN is false too.
        if len(self.counts) and not (float(self.counts.min()) >= 0 and float(self.counts.max()) < math.inf):
            raise SettingsError(
                f"counts are from {float(self.counts.min()):g} to {float(self.counts.max()):g}; allowed: finite "
                "numbers, 0 or more (how many training positives an item has)"
            )
        check_living(self.living, tuple(self.counts.shape))
        if self._total == math.inf:
            raise SettingsError("the counts are finite and their sum is not; allowed: a sum that float64 can hold")
        if not self._total > 0:
            raise SettingsError("no living item has a count above 0, so nothing can be drawn by popularity")

    @property
    def size(self) -> int:
        """The number of items that can be drawn."""
        return int(self._drawn(self.counts, self.living).sum())

    @staticmethod
    def _drawn(counts: Tensor, living: Tensor | None) -> Tensor:
        return counts > 0 if living is None else (counts > 0) & living

    def _weights(self, counts: Tensor, living: Tensor | None) -> Tensor:
        return torch.where(self._drawn(counts, living), counts.to(torch.float64) ** self.beta, 0.0)

    @cached_property
    def _total(self) -> float:
        return float(self._weights(self.counts, self.living).sum())

    @cached_property
    def _table(self) -> Tensor:
        weights = self._weights(self.counts, self.living)
        return torch.from_numpy(build_alias(weights.cpu().numpy())).to(weights.device)

    @cached_property
    def _bins(self) -> Int32 | None:
        """The table as the compiled loop reads it, which costs as much to ask for anew as hundreds of draws."""
        return self._table.view(-1).numpy() if suits(self._table) else None

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement; see :class:`~hatchway.negatives.distribution.Distribution`."""
        places = torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
        if self._bins is not None and places.device.type == "cpu":
            return torch.from_numpy(look_up(self._bins, places.numpy()))
        return draw_alias(self._table, places.to(self._table.device))

    def chance(self, items: Tensor) -> Tensor:
        """``count ** beta`` of the living items, divided by its sum over them; another row is refused (DataError)."""
        check_item_rows(items, len(self.counts))
        at = items.to(self.counts.device)
        living = None if self.living is None else self.living[at]
        return (self._weights(self.counts[at], living) / self._total).to(items.device)


class Popularity(SharedDraws):
    """``draws`` independent draws that follow ``count ** beta``: n(j) = draws · count(j)^beta / Σ count^beta.

    Args:
        counts: [N] whole numbers, 0 or more; what has none is never drawn.
        draws: the number of draws a batch.
        beta: 0 to 1.
        living: [N] bool, the items that can be drawn; None for all.

    Raises:
        SettingsError: see :class:`PopularityDistribution`; or the draws are negative.
    """

    def __init__(self, counts: Tensor, draws: int, beta: float = 0.75, living: Tensor | None = None) -> None:
        super().__init__(PopularityDistribution(counts, beta, living), draws, Source.POPULARITY)
