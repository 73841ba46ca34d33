"""How many negatives a positive should have, estimated from the AUC at one negative (Wu, Wu and Huang 2022)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from hatchway.errors import SettingsError
from hatchway.how_many.curves import AucPoint, before_overfitting, simulated_means
from hatchway.how_many.gaussians import Floats, auc_of_mean, label_and_model, mean_of_auc

NEAR = 0.01
"""How far, of the best effectiveness, a number of negatives may be below it and count as good as the best."""

LARGEST_BOUND = 1_000_000


@dataclass(frozen=True, eq=False)
class Effectiveness:
    """What a training sample of a positive and K negatives teaches, averaged over a training curve.

    A label is reliable where the positive truly beats all of its negatives, a prediction where the model says so; the
    two are taken for independent.

    Attributes:
        k: [K] numbers of negatives.
        label: [K] P(A), the share of samples with a reliable label.
        model: [K] P(B), the share with a reliable prediction.
        good: [K] P(A)·(1 − P(B)): right labels that the model does not know yet.
        bad: [K] P(B)·(1 − P(A)): wrong labels that would unteach what the model knows.
        easy: [K] the rest, which teach little.
        value: [K] v = λ·(good − bad) + (1 − λ)·easy.
    """

    k: NDArray[np.int64]
    label: Floats
    model: Floats
    good: Floats
    bad: Floats
    easy: Floats
    value: Floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Effectiveness):
            return NotImplemented
        return all(np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(self))

    def __hash__(self) -> int:
        return hash(self.value.tobytes())


def effectiveness(
    label_mean: float,
    model_means: Sequence[float] | Floats,
    bound: int,
    weight: float = 0.9,
) -> Effectiveness:
    """Return the training effectiveness v of numbers of negatives, averaged over a training curve.

    Args:
        label_mean: mean of the true scores of positives, from :func:`~hatchway.how_many.gaussians.mean_of_auc`.
        model_means: [T] mean of the model's scores of positives at T points of training; one point gives the
            effectiveness at that moment.
        bound: the greatest number of negatives, K; all from 1 are looked at.
        weight: λ, the weight of good and bad samples; easy ones have 1 − λ.

    >>> effectiveness(1.0, [0.0], bound=1, weight=1.0).value.round(4).tolist()
    [0.2602]
    """
    # v is linear in P(B), so the average over the curve may be taken of P(B).
    label, model = label_and_model(label_mean, model_means, bound)
    good, bad = label * (1 - model), model * (1 - label)
    easy = label * model + (1 - label) * (1 - model)
    value = weight * (good - bad) + (1 - weight) * easy
    return Effectiveness(np.arange(1, bound + 1), label, model, good, bad, easy, value)


class Ratio(pydantic.BaseModel):
    """How many negatives a positive should have; see :func:`ratio`.

    Attributes:
        auc: the labels' AUC at one negative a positive.
        mean: the mean of the positives' scores that belongs to it.
        k: K*, the number of negatives of the greatest effectiveness.
        k_low, k_high: around K*, the contiguous range whose effectiveness is within 1 % of that of K*.
        effectiveness: v at K*.
        bounded: K* or its range is cut by the bound, or has no finite optimum at all.
        reason: which of these, in words; None where nothing is.
        good, bad, easy: shares of the samples at K*.
        weight: λ.
        bound: the greatest K that was looked at.
        curve: which training curve it was averaged over.
        points: how many points that has.
        by_k: effectiveness and shares of every K from 1 to the bound; left out where the record is written down.
    """

    model_config = pydantic.ConfigDict(frozen=True, arbitrary_types_allowed=True)

    auc: float
    mean: float
    k: int
    k_low: int
    k_high: int
    effectiveness: float
    bounded: bool
    reason: str | None
    good: float
    bad: float
    easy: float
    weight: float
    bound: int
    curve: Literal["simulated", "measured"]
    points: int
    by_k: Effectiveness = pydantic.Field(exclude=True, repr=False)


def ratio(
    *,
    auc: float | None = None,
    mean: float | None = None,
    measured: Sequence[tuple[float, float]] | None = None,
    weight: float = 0.9,
    bound: int = 1000,
) -> Ratio:
    """Estimate how many negatives a positive should have.

    The effectiveness of K negatives is averaged over a training curve: the simulated one, in which the model's scores
    come near the labels' as 1 − e^−t, over 121 equal points of t from 0 to 3; or a measured one.

    Args:
        auc: the labels' AUC at one negative a positive: in practice the training AUC before overfitting.
        mean: instead, the mean of the positives' scores.
        measured: (training AUC, validation AUC) at one negative a positive, at equal distances in training, oldest
            first. The points up to the best validation AUC are the curve, and the training AUC there is the labels',
            unless ``auc`` or ``mean`` says otherwise.
        weight: λ, the weight of good and bad samples against easy ones, 0 to 1; .9 is the authors' choice.
        bound: the greatest K to look at.

    Raises:
        SettingsError: no or two answers to what the labels' AUC is; an AUC of .5 or less, of 1 or more, or NaN; another
            value out of its range.

    >>> answer = ratio(auc=0.75)
    >>> answer.k, answer.k_low, answer.k_high, answer.bounded
    (4, 3, 7, False)
    """
    if not 0 <= weight <= 1:
        raise SettingsError(f"a weight (lambda) of {weight} is not allowed; it lies from 0 to 1, .9 by default")
    if not 2 <= bound <= LARGEST_BOUND:
        raise SettingsError(f"a bound of {bound} is not allowed; it is a whole number from 2 to {LARGEST_BOUND:,}")
    points = None if measured is None else before_overfitting([AucPoint(*pair) for pair in measured])
    if auc is None and mean is None and points is not None:
        auc = points[-1].training
    auc, mean = _label(auc, mean)
    means = simulated_means(mean) if points is None else np.array([mean_of_auc(point.validation) for point in points])
    by_k = effectiveness(mean, means, bound, weight)
    k, reason = _optimum(by_k.value, 1 - weight)
    low, high = _range_around(by_k.value, k)
    if reason is None and high == bound:
        reason = f"the range within {NEAR:.0%} of the best effectiveness is cut at the bound, K = {bound:,}"
    at = k - 1
    return Ratio(
        auc=auc,
        mean=mean,
        k=k,
        k_low=low,
        k_high=high,
        effectiveness=float(by_k.value[at]),
        bounded=reason is not None,
        reason=reason,
        good=float(by_k.good[at]),
        bad=float(by_k.bad[at]),
        easy=float(by_k.easy[at]),
        weight=weight,
        bound=bound,
        curve="simulated" if points is None else "measured",
        points=len(means),
        by_k=by_k,
    )


def _label(auc: float | None, mean: float | None) -> tuple[float, float]:
    """Return the labels' AUC and mean from the one of them that is given, and refuse what has no answer."""
    if auc is not None and mean is not None:
        raise SettingsError(f"auc {auc} and mean {mean} say the same thing twice; give one of them")
    if mean is not None:
        if not (0 < mean < math.inf and auc_of_mean(mean) < 1):  # NaN too
            raise SettingsError(
                f"a mean of {mean} is not allowed; it is above 0, where positives are no different from negatives, and "
                "below 11.7, where no float is below its AUC of 1"
            )
        return auc_of_mean(mean), mean
    needed = "an AUC above .5 and below 1 is needed"
    if auc is None:
        raise SettingsError(f"nothing to estimate from; give an AUC, a mean, or a measured curve: {needed}")
    if math.isnan(auc):
        raise SettingsError(f"the AUC is NaN; {needed}")
    if auc <= 0.5:
        raise SettingsError(
            f"an AUC of {auc:g} is not allowed: at .5 or below the labels do not say which item is the positive; no "
            f"number of negatives helps; {needed}"
        )
    if auc >= 1:
        raise SettingsError(
            f"an AUC of {auc:g} is not allowed: the labels would never be wrong, and more negatives always better; "
            f"{needed}. A training AUC of 1 is measured after overfitting, or on too few pairs"
        )
    return auc, mean_of_auc(auc)


def _optimum(value: Floats, limit: float) -> tuple[int, str | None]:
    """Return K*, and where it is none in the full sense, why.

    Args:
        value: [K] the effectiveness of 1, 2, …, K.
        limit: 1 − λ, to which the effectiveness tends as K grows: all samples become easy ones, unreliable in label and
            prediction alike.
    """
    bound, best = len(value), int(value.argmax()) + 1
    if best < bound and value[best - 1] >= limit:
        return best, None
    inner = np.flatnonzero((value[1:-1] > value[:-2]) & (value[1:-1] >= value[2:])) + 2
    if len(inner):
        k = int(inner[0])
        return k, (
            f"K = {k:,} is the smallest local maximum ({value[k - 1]:.4f}), not the best: the effectiveness rises "
            f"again after it, to {value[-1]:.4f} at the bound, K = {bound:,}, and tends to {limit:.4f} as K grows"
        )
    if value[best - 1] >= limit:
        return best, f"the effectiveness still rises at the bound, K = {bound:,}; the optimum lies beyond it"
    return best, (
        f"no finite optimum up to the bound, K = {bound:,}: labels and predictions are so noisy that the effectiveness "
        f"nowhere passes {limit:.4f}, to which it tends as K grows and nothing but easy samples is left"
    )


def _range_around(value: Floats, k: int) -> tuple[int, int]:
    """Return the ends of the contiguous range around ``k`` whose values are within 1 % of its value."""
    best = float(value[k - 1])
    # Less than the best by 1 % of its size, also where the best is negative.
    worse = np.flatnonzero(value < best - NEAR * abs(best)) + 1
    below, above = worse[worse < k], worse[worse > k]
    return (int(below[-1]) + 1 if len(below) else 1), (int(above[0]) - 1 if len(above) else len(value))
