"""Popularity raised to a power: how a flattened popularity divides the draws (Mikolov et al. 2013: 0.75)."""

import torch
from torch import Tensor

from hatchway.errors import SettingsError


def powered_shares(counts: Tensor, power: float) -> Tensor:
    """Return each item's chance per draw when draws follow ``counts ** power``.

    Args:
        counts: [N] counts, 0 or more.
        power: 1 is popularity itself, 0 is uniform over the items with a count above 0; an item without a count is
            never drawn, whatever the power.

    Returns:
        [N] float64, summing to 1.

    Raises:
        SettingsError: the power is not within 0 to 1, or no item has a count.

    >>> powered_shares(torch.tensor([16, 1, 0]), 0.5).tolist()
    [0.8, 0.2, 0.0]
    """
    if not 0 <= power <= 1:
        raise SettingsError(f"the power of popularity is {power}; allowed: 0 (uniform) to 1 (popularity itself)")
    weights = counts.to(torch.float64).clamp(min=0)
    weights = torch.where(weights > 0, weights**power, 0.0)
    total = weights.sum()
    if not float(total) > 0:
        raise SettingsError("no item has a count above 0, so nothing can be drawn by popularity")
    return weights / total
