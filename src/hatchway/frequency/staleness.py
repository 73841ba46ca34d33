"""Whether an estimate of frequencies still describes what is being engaged with: top items, last hour, age."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import DataError, SettingsError

_SMALLEST_EXPECTED = 5.0
"""Expected positives below which an item is no bin of its own: the usual rule for the chi-square approximation."""


@dataclass(frozen=True)
class Staleness:
    """How far an estimate is from the positives of the last hour.

    Attributes:
        top: how many of the estimate's items were looked at.
        positives: how many positives the last hour had.
        covered: share of the last hour's positives that the estimate's top items cover.
        expected_covered: the share that the estimate itself expects them to cover.
        overlap: share of the last hour's most frequent items (as many as ``top``, or as there are) that are among the
            estimate's top.
        divergence: Kullback-Leibler divergence of the last hour from the estimate in nats a positive; each top item is
            a bin, as long as it expects five positives, and all other items are one bin together.
        divergence_by_chance: what sampling alone makes of it on average, ``(bins - 1) / (2 positives)``.
        p_value: chance of a divergence as large by sampling alone (likelihood-ratio test, chi-square approximation).
        seconds: time since the estimate was last updated.
    """

    top: int
    positives: int
    covered: float
    expected_covered: float
    overlap: float
    divergence: float
    divergence_by_chance: float
    p_value: float
    seconds: float


def staleness(chances: Tensor, recent: Tensor, *, top: int, updated: float, now: float) -> Staleness:
    """Compare an estimate with the positives of the last hour.

    Args:
        chances: [N] chance per draw of every item of the catalogue, as ``frequency.whole_batch(every_item, 1)`` gives
            it; they are scaled to sum to 1.
        recent: [P] int64 item rows of the last hour's positives, copies and all.
        top: how many of the most frequent items by the estimate are looked at; among equals, the smaller row is first.
        updated: Unix seconds of the estimate's last update.
        now: Unix seconds.

    Raises:
        DataError: there is no positive, an item row outside the catalogue, or no chance above 0.
        SettingsError: ``top`` is below 1, or the update lies in the future.
    """
    if top < 1 or updated > now:
        raise SettingsError(
            f"top is {top} and the last update is {now - updated:.0f} s ago; "
            "allowed: 1 item or more, updated in the past"
        )
    shares = chances.to(torch.float64)
    if not len(recent) or int(recent.min()) < 0 or int(recent.max()) >= len(shares) or not float(shares.sum()) > 0:
        raise DataError(
            f"{len(recent)} positives against {len(shares)} items whose chances sum to {float(shares.sum()):.6g}; "
            "allowed: at least one positive, item rows of the catalogue, chances above 0"
        )
    shares = shares / shares.sum()
    counts = torch.bincount(recent, minlength=len(shares)).to(torch.float64)
    total = len(recent)
    order = torch.sort(shares, descending=True, stable=True).indices[:top]
    busiest = torch.sort(counts, descending=True, stable=True).indices[: min(top, int((counts > 0).sum()))]
    bins = order[shares[order] * total >= _SMALLEST_EXPECTED]
    seen, expected = counts[bins], shares[bins] * total
    seen = torch.cat([seen, (total - seen.sum())[None]])
    expected = torch.cat([expected, (total - expected.sum()).clamp(min=0.0)[None]])
    if float(expected[-1]) < 1e-9 * total and not float(seen[-1]):  # the bins are the whole catalogue
        seen, expected = seen[:-1], expected[:-1]
    divergence = float(torch.special.xlogy(seen, seen / expected).sum()) / total
    degrees = len(seen) - 1
    return Staleness(
        top=len(order),
        positives=total,
        covered=float(counts[order].sum()) / total,
        expected_covered=float(shares[order].sum()),
        overlap=float(torch.isin(busiest, order).double().mean()),
        divergence=max(divergence, 0.0),
        divergence_by_chance=degrees / (2 * total),
        p_value=_chi_square_tail(2 * total * max(divergence, 0.0), degrees),
        seconds=now - updated,
    )


def _chi_square_tail(statistic: float, degrees: int) -> float:
    if not degrees:
        return 1.0
    if math.isinf(statistic):
        return 0.0
    half = torch.tensor([degrees / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))
