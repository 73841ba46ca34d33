"""The chance that a batch drawn without replacement holds no copy of an item, in logarithms that do not cancel."""

import torch
from torch import Tensor

_SERIES_FROM = 16.0
"""Smallest argument of the series: the first term left out is then below 1e-11."""


def log_absent(counts: Tensor, population: int, draws: int) -> Tensor:
    """Return ln of the chance that ``draws`` draws without replacement take none of an item's copies.

    That is ``C(population - c, draws) / C(population, draws)``. As a difference of four log-gammas of the size of the
    population it would lose every digit for a rare item (with a thousand million positives an error of 4e-6 stands
    against a result of 4e-6), so the four Stirling series are subtracted term by term first: what is left are three
    terms of the result's own size.

    Args:
        counts: [M] copies c of each item in the population, 0 to ``population``.
        population: how many there are to draw from.
        draws: how many are drawn; more than there are is as good as all.

    Returns:
        [M] float64, at most 0; -inf where the item cannot be missed.

    >>> log_absent(torch.tensor([0, 1, 2, 3]), population=4, draws=2).exp().round(decimals=6).tolist()
    [1.0, 0.5, 0.166667, 0.0]
    """
    c = counts.to(torch.float64)
    top, b = float(population + 1), float(min(draws, population))
    # All four arguments of the log-gammas; the smallest is 1 when the draws take exactly all of the rest.
    rest = top - c - b
    # Where nothing is left, any harmless number does: the answer is -inf.
    z = rest.clamp(min=1.0)
    result = (
        (top - 0.5) * torch.log1p(c * b / (top * z)) - c * torch.log1p(b / z) - b * torch.log1p(c / z)
        + (_series(top - c) - _series(torch.full_like(c, top)))
        + (_series(torch.full_like(c, top - b)) - _series(z))
    )  # fmt: skip
    small = torch.lgamma(top - c) - torch.lgamma(z) - torch.lgamma(torch.full_like(c, top))
    small = small + torch.lgamma(torch.full_like(c, top - b))
    result = torch.where(z < _SERIES_FROM, small, result).clamp(max=0.0)
    result = torch.where(rest < 1.0, -torch.inf, result)
    return torch.where(c == 0, 0.0, result)


def _series(z: Tensor) -> Tensor:
    """Return what ``lgamma(z)`` has beyond ``(z - 1/2) ln z - z + ln(2 pi)/2``."""
    square = 1.0 / (z * z)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / z
