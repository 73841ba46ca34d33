"""Distributions and alias tables: exact chances, on small catalogues in full and on very large ones where it shows."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hatchway.errors import SettingsError
from hatchway.negatives.alias import build_alias, chances_of, draw_alias
from hatchway.negatives.distribution import UniformDistribution, log_absent_of
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity, PopularityDistribution
from hatchway.negatives.sources import Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=60).filter(any))
def test_a_table_has_the_chances_of_its_weights(weights: list[float]) -> None:
    """Whatever the weights, and to nine digits of the mean chance; no bin leads outside, none to a weight of 0."""
    given_weights = np.array(weights)
    table = build_alias(given_weights)
    wanted = given_weights / given_weights.sum()
    np.testing.assert_allclose(chances_of(table), wanted, atol=2e-9)
    assert ((table[:, 1] >= 0) & (table[:, 1] < len(weights))).all()
    assert (given_weights[table[:, 1]][table[:, 0] < 2**31 - 1] > 0).all()
    assert (table[given_weights == 0, 0] == 0).all()


def test_a_weight_of_zero_is_never_drawn() -> None:
    """Not even by the smallest or the largest random number of its bin."""
    table = torch.from_numpy(build_alias(np.array([0.0, 3.0, 0.0, 1.0, 0.0])))
    edges = torch.tensor([(at + place) / 5 for at in range(5) for place in (0.0, 0.5, 1 - 1e-12)], dtype=torch.float64)
    assert set(draw_alias(table, edges).tolist()) == {1, 3}


def test_weights_all_alike_are_drawn_as_the_bins_are() -> None:
    """No item is above the mean, and nothing goes wrong."""
    table = torch.from_numpy(build_alias(np.full(7, 1 / 7)))
    places = (torch.arange(7) + 0.999) / 7
    assert draw_alias(table, places.double()).tolist() == list(range(7))


def test_rare_items_keep_their_digits() -> None:
    """One in 30 million beside items of all sizes: a running sum in float32 would have lost it, a floor lifted it."""
    counts = torch.tensor([10**9, 10**6, 1_000, 1])
    popular = PopularityDistribution(counts, 1.0)
    assert float(popular.chance(torch.tensor([3]))) == pytest.approx(1 / 1_001_001_001, rel=1e-12)
    assert float(chances_of(build_alias(counts.numpy().astype(np.float64)))[3]) == pytest.approx(1e-9, rel=0.2)
    flattened = PopularityDistribution(counts, 0.75)
    wanted = counts.double() ** 0.75
    torch.testing.assert_close(flattened.chance(torch.arange(4)), wanted / wanted.sum())


def test_popularity_is_of_the_living_only() -> None:
    """Chances are shared among the living with a count; the others have n = 0."""
    living = torch.tensor([True, False, True, True])
    source = Popularity(torch.tensor([9, 100, 1, 0]), 1_000, 0.5, living)
    assert source.expected_others(torch.arange(4), 8).tolist() == pytest.approx([750, 0, 250, 0])
    assert source.distribution.size == 2
    assert set(source.draw(torch.tensor([0]), torch_stream(1)).tolist()) == {0, 2}


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_counts_that_are_none_are_refused(wrong: float) -> None:
    """A negative or missing count would pass for 0 and never be drawn; an infinite one would be every draw."""
    with pytest.raises(SettingsError, match=r"counts are from .* allowed: finite numbers, 0 or more"):
        PopularityDistribution(torch.tensor([3.0, wrong, 2.0]))


def test_uniform_draws_reach_the_living_only() -> None:
    """A listing that is not on offer is never drawn and has n = 0; the others share the draws."""
    living = torch.tensor([True, False, True, True])
    source = Uniform(4, 3_000, living)
    drawn = source.draw(torch.zeros(1, dtype=torch.int64), torch_stream(1)).bincount(minlength=4)
    assert drawn[1] == 0
    assert source.expected_others(torch.arange(4), 8).tolist() == [1_000, 0, 1_000, 1_000]
    assert stats.chisquare(drawn[living].numpy()).pvalue > 1e-4


def test_uniform_draws_are_uniform_on_very_large_catalogues() -> None:
    """Remainders of 32 random bits would draw the first 295 of 800 million items a fifth more often than the rest."""
    catalogue = 800_000_000
    drawn = UniformDistribution(catalogue).sample(200_000, torch_stream(1))
    numbers = torch.bincount(drawn * 16 // catalogue, minlength=16)
    assert stats.chisquare(numbers.numpy()).pvalue > 1e-4


@pytest.mark.parametrize("k", [0.25, 1.0, 2.5, 7.9])
def test_a_real_number_of_draws_is_real_on_average(k: float) -> None:
    """Rows have floor(K) or one more, K on average (within five standard errors), and K chance(j) copies of item j."""
    living = torch.tensor([True, True, False, True])
    source = PerRow(UniformDistribution(4, living), k, Source.UNIFORM)
    found = source.draw(torch.zeros(20_000, dtype=torch.int64), None, torch_stream(3))
    lengths = (found >= 0).sum(1)
    assert set(lengths.tolist()) <= {math.floor(k), math.ceil(k)}
    fraction = k - math.floor(k)
    error = math.sqrt(fraction * (1 - fraction) / 20_000)
    assert abs(float(lengths.double().mean()) - k) <= 5 * error + 1e-12
    numbers = torch.bincount(found[found >= 0], minlength=4)
    assert numbers[2] == 0
    assert stats.chisquare(numbers[living].numpy()).pvalue > 1e-4
    assert source.expected(torch.arange(4)).tolist() == pytest.approx([k / 3, k / 3, 0, k / 3])


def test_other_numbers_of_draws_share_the_tables() -> None:
    """A schedule changes the number every step; what is drawn from stays the same object."""
    source = Popularity(torch.tensor([9, 100, 1, 0]), 10)
    larger = source.resized(40)
    assert larger.distribution is source.distribution
    assert larger.source is Source.POPULARITY
    torch.testing.assert_close(
        larger.expected_others(torch.arange(4), 2), 4 * source.expected_others(torch.arange(4), 2)
    )


def test_absence_by_hand() -> None:
    """Certain items are never absent once something is drawn, and nothing drawn leaves all absent."""
    chance = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    assert log_absent_of(chance, 0).exp().tolist() == [1, 1, 1]
    assert log_absent_of(chance, 2).exp().tolist() == [1, 0.25, 0]
    assert log_absent_of(chance, 1.5).exp().tolist() == [1, 0.375, 0]
    assert log_absent_of(chance, 0.5).exp().tolist() == [1, 0.75, 0.5]


def test_a_catalogue_of_which_nothing_is_on_offer_is_said_in_words() -> None:
    """All gone: the message says what is empty, where to look, and which setting asks for the draws."""
    with pytest.raises(SettingsError, match=r"1000 uniform draws, and there is no item to draw.*listed and gone"):
        Uniform(3, 1000, torch.zeros(3, dtype=torch.bool))
    with pytest.raises(SettingsError, match=r"negatives\.uniform = 0"):
        Uniform(0, 1000)
    assert len(Uniform(3, 0, torch.zeros(3, dtype=torch.bool)).draw(torch.tensor([1]), torch_stream(1))) == 0
    with pytest.raises(SettingsError, match="-1 uniform draws; allowed: 0 or more"):
        Uniform(3, -1)
