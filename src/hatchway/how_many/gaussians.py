"""Scores as two Gaussians one standard deviation wide: negatives around 0, positives around a mean; and their AUC.

Everything here is of Wu, Wu and Huang, "Rethinking InfoNCE: How Many Negative Samples Do You Need?" (2022). A positive
of score y is told from its K negatives where y lies above all of them, which has the chance Φ(y)^K.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hatchway.errors import SettingsError

Floats = NDArray[np.float64]

_NORMAL = NormalDist()

# The trapezoidal rule converges faster than any power of the step on integrands like these, which fall as a Gaussian
# does: with this step and reach what is left is the rounding of float64, also for a million negatives.
_STEP = 1 / 16
_REACH = 9.0
_BLOCK = 64


def mean_of_auc(auc: float) -> float:
    """Return the mean of the positives' scores at which one positive beats one negative with chance ``auc``.

    The two scores' difference has mean μ and standard deviation √2, so AUC = Φ(μ/√2) and μ = √2·Φ⁻¹(AUC).

    Raises:
        SettingsError: ``auc`` is not between 0 and 1, both excluded.

    >>> round(mean_of_auc(0.75), 3), round(mean_of_auc(0.95), 3)
    (0.954, 2.326)
    """
    if not 0 < auc < 1:  # NaN too
        raise SettingsError(f"an AUC of {auc} has no finite mean; an AUC lies between 0 and 1, both excluded")
    return math.sqrt(2) * _NORMAL.inv_cdf(auc)


def auc_of_mean(mean: float) -> float:
    """Return the chance that one positive beats one negative, Φ(μ/√2).

    >>> round(auc_of_mean(1.0), 4), auc_of_mean(0.0)
    (0.7602, 0.5)
    """
    return 0.5 * math.erfc(-mean / 2)


def reliability(means: Sequence[float] | Floats, ks: Sequence[float] | NDArray[np.integer] | Floats) -> Floats:
    """Return the chance that a positive beats all of its negatives, E[Φ(x)^K] for x ~ N(mean, 1).

    Args:
        means: [M] finite means of the positives.
        ks: [K] numbers of negatives, 0 or more; for a number between two whole ones this is the chance with the power
            K, a little below the mixture of the two.

    Returns:
        [M, K] float64, right to 1e-13 of its value for up to ten thousand negatives, to 1e-10 for a million.

    >>> reliability([0.0], [1, 3]).round(12).tolist()
    [[0.5, 0.25]]
    """
    x, density = _densities(np.asarray(means, dtype=np.float64))
    return density @ np.exp(_log_phi(x)[:, None] * np.asarray(ks, dtype=np.float64))


def label_and_model(label_mean: float, model_means: Sequence[float] | Floats, bound: int) -> tuple[Floats, Floats]:
    """Return :func:`reliability` of one mean and, averaged, of others, for every K from 1 to ``bound``.

    The average is taken of the densities, before the integral, so its cost does not grow with how many means there are;
    and Φ^(a+b) = Φ^a·Φ^b, so a few dozen powers are enough for all.

    Returns:
        Two arrays, [bound] each.
    """
    x, density = _densities(np.array([label_mean, *model_means], dtype=np.float64))
    both = np.stack([density[0], density[1:].mean(axis=0)])
    log_phi = _log_phi(x)
    powers = np.exp(log_phi[:, None] * np.arange(1.0, min(bound, _BLOCK) + 1))
    label, model = np.concatenate(
        [(both * np.exp(log_phi * start)) @ powers for start in range(0, bound, _BLOCK)], axis=1
    )[:, :bound]
    return label, model


def _densities(means: Floats) -> tuple[Floats, Floats]:
    """Return the points of the integral [X], and the density of each mean times the step there [M, X]."""
    x = np.arange(float(means.min()) - _REACH, float(means.max()) + _REACH, _STEP)
    return x, np.exp(-0.5 * (x - means[:, None]) ** 2) * (_STEP / math.sqrt(2 * math.pi))


def _log_phi(x: Floats) -> Floats:
    """Return ln Φ, [X]."""
    return np.log([0.5 * math.erfc(-point / math.sqrt(2)) for point in x.tolist()])
