"""Uniform negatives: one set of draws over the living catalogue, shared by every row of the batch."""

from torch import Tensor

from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import Source


class Uniform(SharedDraws):
    """``draws`` independent draws, each living item with the same chance: n(j) = U / N for a living item, else 0.

    Args:
        catalogue: N, the number of items.
        draws: U, the number of draws a batch.
        living: [N] bool, the items that can be drawn; None for all. Nobody ignored a listing that was not on offer.

    Raises:
        SettingsError: the draws are negative, or there is nothing to draw from.
    """

    def __init__(self, catalogue: int, draws: int, living: Tensor | None = None) -> None:
        super().__init__(UniformDistribution(catalogue, living), draws, Source.UNIFORM)
