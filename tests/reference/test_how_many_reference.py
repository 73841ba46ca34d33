"""The estimate against a brute-force Monte Carlo of its definitions, and against adaptive quadrature."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

from hatchway.how_many.estimator import effectiveness, ratio
from hatchway.how_many.gaussians import auc_of_mean, mean_of_auc, reliability
from hatchway.randomness import stream

SAMPLES = 200_000


def win_share(mean: float, k: int, generator: np.random.Generator) -> float:
    """Draw positives and K negatives each, and return how often the positive is above all."""
    positives = generator.normal(mean, 1, SAMPLES)
    best = np.full(SAMPLES, -np.inf)
    for _ in range(k):
        np.maximum(best, generator.standard_normal(SAMPLES), out=best)
    return float((positives > best).mean())


@pytest.mark.parametrize(("mean", "k"), [(0.0, 1), (0.5, 3), (1.0, 4), (2.4, 20), (2.4, 1)])
def test_reliability_by_monte_carlo(mean: float, k: int) -> None:
    """The chance that a positive beats K negatives is the share of draws in which it does, within five deviations."""
    found = win_share(mean, k, stream(3, "wins", k, round(mean * 10)))
    expected = float(reliability([mean], [k])[0, 0])
    assert found == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / SAMPLES))


def test_effectiveness_by_monte_carlo() -> None:
    """Shares and effectiveness follow from samples that are labelled and predicted independently, point by point."""
    generator, label_mean, weight = stream(5, "samples"), 1.2, 0.9
    model_means = [0.0, 0.6, 1.1]
    for k in (1, 3, 8):
        good, bad, easy = 0.0, 0.0, 0.0
        for model_mean in model_means:
            labels = generator.normal(label_mean, 1, SAMPLES) > generator.standard_normal((k, SAMPLES)).max(axis=0)
            guesses = generator.normal(model_mean, 1, SAMPLES) > generator.standard_normal((k, SAMPLES)).max(axis=0)
            good += float((labels & ~guesses).mean()) / len(model_means)
            bad += float((guesses & ~labels).mean()) / len(model_means)
            easy += float((labels == guesses).mean()) / len(model_means)
        by_k = effectiveness(label_mean, model_means, k, weight)
        tolerance = 5 * 0.5 / math.sqrt(SAMPLES * len(model_means))
        assert (by_k.good[-1], by_k.bad[-1], by_k.easy[-1]) == pytest.approx((good, bad, easy), abs=tolerance)
        assert by_k.value[-1] == pytest.approx(weight * (good - bad) + (1 - weight) * easy, abs=2 * tolerance)


@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.0, 2.4, 5.0, 9.0])
def test_reliability_by_adaptive_quadrature(mean: float) -> None:
    """An adaptive rule gives the same integral, also for ten thousand negatives."""
    for k in (1, 7, 100, 10_000):

        def integrand(x: float, k: int = k) -> float:
            density: Any = math.exp(-0.5 * (x - mean) ** 2) / math.sqrt(2 * math.pi)
            return float(density * math.exp(k * special.log_ndtr(x)))

        pieces = np.linspace(mean - 10, mean + 10, 41)
        exact = sum(
            integrate.quad(integrand, a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in itertools.pairwise(pieces)
        )
        assert float(reliability([mean], [k])[0, 0]) == pytest.approx(exact, rel=1e-10)


def test_all_numbers_at_once_equal_each_alone() -> None:
    """The powers that are built up from blocks agree with one power each, across the ends of the blocks."""
    by_k = effectiveness(1.5, [0.2, 1.4], 300)
    chances = reliability([1.5, 0.2, 1.4], np.arange(1, 301))
    np.testing.assert_allclose(by_k.label, chances[0], rtol=1e-12)
    np.testing.assert_allclose(by_k.model, chances[1:].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("auc", [0.5000001, 0.6, 0.75, 0.95, 0.9999999])
def test_mean_and_auc_are_each_others_inverse(auc: float) -> None:
    """The closed form solves AUC = P(positive > negative), which an independent cdf confirms."""
    mean = mean_of_auc(auc)
    assert float(special.ndtr(mean / math.sqrt(2))) == pytest.approx(auc, rel=1e-12)
    assert auc_of_mean(mean) == pytest.approx(auc, rel=1e-12)
    assert float(reliability([mean], [1])[0, 0]) == pytest.approx(auc, rel=1e-12)


def test_the_optimum_is_the_largest_of_a_direct_sum() -> None:
    """K* of the whole function is the argmax of a plain Riemann sum over the published points."""
    x = np.arange(-9, 14, 0.01)
    for mean in (0.6, 1.0, 2.0):
        means = [mean, *(mean * (1 - math.exp(-3 * i / 120)) for i in range(121))]
        density = np.exp(-0.5 * (x - np.array(means)[:, None]) ** 2) / math.sqrt(2 * math.pi) * 0.01
        won = density @ special.ndtr(x)[:, None] ** np.arange(1, 61)
        label, model = won[:1], won[1:]
        value = 0.9 * (label - model) + 0.1 * (label * model + (1 - label) * (1 - model))
        assert ratio(mean=mean, bound=60).k == int(value.mean(axis=0).argmax()) + 1
