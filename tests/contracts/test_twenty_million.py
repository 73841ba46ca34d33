"""Draws at 20 million items: ten million of them follow the chances, by chi-square, where tables and sums get large."""

import numpy as np
import pytest
import torch
from scipy import stats

from hatchway.negatives.distribution import Distribution, UniformDistribution
from hatchway.negatives.popularity import PopularityDistribution
from hatchway.randomness import torch_stream

ITEMS, DRAWS, BINS, SINGLY = 20_000_000, 10_000_000, 1_000, 100


def distribution(name: str) -> Distribution:
    """Make a distribution; counts fall off as a power of the rank, a tenth of the items has none, a fifth is dead."""
    living = torch.arange(ITEMS) % 5 != 3 if name.endswith("living") else None
    if name.startswith("uniform"):
        return UniformDistribution(ITEMS, living)
    counts = (1e7 / torch.arange(1, ITEMS + 1, dtype=torch.float64) ** 0.8).long()
    counts[7::10] = 0
    return PopularityDistribution(counts, 0.75, living)


@pytest.mark.parametrize("name", ["uniform", "popularity", "uniform of the living", "popularity of the living"])
def test_draws_follow_the_chances(name: str) -> None:
    """A thousand bins of equal mass and the hundred most popular items singly, p > 1e-4; what has no chance is absent.

    ``torch.multinomial`` refuses so many items, and sums in float32 stop growing long before the last of them. As many
    different items are found as there should be, and every one that is expected more than forty times.
    """
    drawn_from = distribution(name)
    drawn = drawn_from.sample(DRAWS, torch_stream(1, name))
    chances = drawn_from.chance(torch.arange(ITEMS)).numpy()
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    assert bool((torch.from_numpy(chances)[drawn] > 0).all())
    found = np.zeros(ITEMS, np.bool_)
    found[drawn.numpy()] = True
    assert bool(found[chances * DRAWS > 40].all())
    present = -np.expm1(DRAWS * np.log1p(-chances))  # different items vary less than independent ones would
    assert found.sum() == pytest.approx(present.sum(), abs=5 * float((present * (1 - present)).sum()) ** 0.5)
    # Bins of neighbours in the catalogue, cut where the mass of the others than the singles is equal.
    singles = np.argpartition(-chances, SINGLY)[:SINGLY] if name.startswith("popularity") else np.arange(SINGLY)
    rest = chances.copy()
    rest[singles] = 0
    mass = np.cumsum(rest)
    bins = np.minimum((mass * (BINS / mass[-1])).astype(np.int16), BINS - 1)
    wanted = np.concatenate([np.bincount(bins, weights=rest, minlength=BINS), chances[singles]]) * DRAWS
    bins[singles] = BINS + np.arange(SINGLY)
    seen = np.bincount(bins[drawn.numpy()], minlength=BINS + SINGLY)
    kept = wanted > 5  # a chi-square needs a few; a uniform catalogue's single items have half a draw each
    assert kept.sum() == (BINS + SINGLY if name.startswith("popularity") else BINS)
    statistic = ((seen - wanted)[kept] ** 2 / wanted[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > 1e-4
