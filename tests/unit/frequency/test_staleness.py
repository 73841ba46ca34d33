"""Staleness: hand-computed shares, the likelihood ratio, and that sampling alone raises no alarm."""

import math

import pytest
import torch
from scipy import stats

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.staleness import staleness
from hatchway.randomness import stream


def test_by_hand() -> None:
    """Twenty positives against four items; the top two are bins, the rest is one."""
    chances = torch.tensor([0.5, 0.25, 0.125, 0.125])
    recent = torch.tensor([0] * 10 + [2] * 6 + [1] * 2 + [3] * 2)
    found = staleness(chances, recent, top=2, updated=1_000.0, now=4_600.0)
    assert (found.top, found.positives, found.seconds) == (2, 20, 3_600)
    assert found.covered == pytest.approx(12 / 20)
    assert found.expected_covered == pytest.approx(0.75)
    assert found.overlap == pytest.approx(1 / 2)  # items 0 and 2 were the busiest; 0 is among the top
    observed, expected = [10, 2, 8], [10, 5, 5]
    divergence = sum(o * math.log(o / e) for o, e in zip(observed, expected, strict=True)) / 20
    assert found.divergence == pytest.approx(divergence)
    assert found.divergence_by_chance == pytest.approx(2 / 40)
    assert found.p_value == pytest.approx(stats.chi2.sf(2 * 20 * divergence, 2))


def test_a_fresh_estimate_is_left_alone_and_a_stale_one_is_found() -> None:
    """Positives drawn from the estimate give p-values like any other draw; from shifted popularity they do not."""
    shares = 1 / torch.arange(1, 2_001).double()
    shares = shares / shares.sum()
    fresh = [
        staleness(
            shares, torch.from_numpy(stream(1, n).choice(2_000, 5_000, p=shares.numpy())), top=100, updated=0, now=1
        )
        for n in range(40)
    ]
    assert sum(found.p_value < 0.05 for found in fresh) <= 7
    mean = sum(found.divergence for found in fresh) / 40
    assert mean == pytest.approx(fresh[0].divergence_by_chance, rel=0.15)
    drifted = torch.from_numpy(stream(1, "drift").choice(2_000, 5_000, p=shares.roll(300).numpy()))
    stale = staleness(shares, drifted, top=100, updated=0, now=1)
    assert stale.p_value < 1e-6
    assert stale.covered < 0.2 * stale.expected_covered
    assert stale.overlap < 0.1
    assert stale.divergence > 10 * stale.divergence_by_chance


def test_unscaled_chances_and_items_beyond_the_estimate() -> None:
    """Expected counts do as well as chances; a positive that the estimate holds for impossible is infinitely far."""
    recent = torch.tensor([0, 1, 1, 0])
    one = staleness(torch.tensor([0.5, 0.5]), recent, top=5, updated=0, now=0)
    assert one == staleness(torch.tensor([64.0, 64.0]), recent, top=5, updated=0, now=0)
    assert (one.covered, one.overlap, one.divergence, one.p_value) == (1, 1, 0, 1)
    many = torch.tensor([0] * 60 + [2])
    impossible = staleness(torch.tensor([0.5, 0.5, 0.0]), many, top=2, updated=0, now=0)
    assert (impossible.divergence, impossible.p_value) == (math.inf, 0)


def test_what_cannot_be_compared_is_refused() -> None:
    """No positives, rows outside the catalogue, no top, and an update in the future."""
    chances = torch.ones(3)
    with pytest.raises(DataError, match="at least one positive"):
        staleness(chances, torch.empty(0, dtype=torch.int64), top=1, updated=0, now=0)
    with pytest.raises(DataError, match="item rows of the catalogue"):
        staleness(chances, torch.tensor([3]), top=1, updated=0, now=0)
    with pytest.raises(DataError, match="chances above 0"):
        staleness(torch.zeros(3), torch.tensor([1]), top=1, updated=0, now=0)
    with pytest.raises(SettingsError, match="in the past"):
        staleness(chances, torch.tensor([1]), top=1, updated=5, now=0)
    with pytest.raises(SettingsError, match="1 item or more"):
        staleness(chances, torch.tensor([1]), top=0, updated=0, now=0)
