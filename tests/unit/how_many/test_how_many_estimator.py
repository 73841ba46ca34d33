"""The estimate's parts by hand, what it refuses, and what it says where there is no finite optimum."""

import math
import time
import tracemalloc

import numpy as np
import pydantic
import pytest

from hatchway.errors import SettingsError
from hatchway.how_many.estimator import effectiveness, ratio


def test_shares_by_hand() -> None:
    """With no knowledge on either side each of K + 1 candidates is as likely to win: P = 1 / (K + 1)."""
    by_k = effectiveness(0.0, [0.0], 3, weight=0.8)
    assert by_k.k.tolist() == [1, 2, 3]
    assert by_k.label.tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 4])
    assert by_k.good.tolist() == pytest.approx([1 / 4, 2 / 9, 3 / 16])
    assert by_k.bad.tolist() == pytest.approx([1 / 4, 2 / 9, 3 / 16])
    assert by_k.easy.tolist() == pytest.approx([1 / 2, 5 / 9, 5 / 8])
    assert by_k.value.tolist() == pytest.approx([0.1, 1 / 9, 0.125])


def test_the_curve_is_averaged_over_its_points() -> None:
    """Two points of training count half each."""
    first, second = effectiveness(1.0, [0.2], 5), effectiveness(1.0, [0.9], 5)
    both = effectiveness(1.0, [0.2, 0.9], 5)
    assert both.value.tolist() == pytest.approx(((first.value + second.value) / 2).tolist())


def test_the_range_by_hand() -> None:
    """The range holds the K around K* whose effectiveness is at least 99 % of the best, and no other."""
    answer = ratio(auc=0.95)
    value = answer.by_k.value
    assert value[answer.k - 1] == answer.effectiveness == value.max()
    assert (value[answer.k_low - 1 : answer.k_high] >= 0.99 * answer.effectiveness).all()
    assert value[answer.k_low - 2] < 0.99 * answer.effectiveness
    assert value[answer.k_high] < 0.99 * answer.effectiveness


@pytest.mark.parametrize("auc", [0.501, 0.52, 0.556])
@pytest.mark.parametrize("bound", [100, 1000])
def test_a_low_auc_has_no_finite_optimum(auc: float, bound: int) -> None:
    """Nearly random labels: the effectiveness rises to the end, which is said, with its limit."""
    answer = ratio(auc=auc, bound=bound)
    assert answer.bounded
    assert answer.k == answer.k_high == bound
    assert answer.reason is not None
    assert "no finite optimum" in answer.reason
    assert "0.1000" in answer.reason


def test_an_optimum_beyond_the_bound() -> None:
    """Where a greater bound finds the optimum, the smaller one says that it lies beyond."""
    cut = ratio(mean=3.5, bound=100)
    assert (cut.k, cut.k_high, cut.bounded) == (100, 100, True)
    assert "beyond" in str(cut.reason)
    assert ratio(mean=3.5).k == 192


def test_a_range_that_is_cut() -> None:
    """The optimum is inside the bound, its range is not: bounded, and only because of the range."""
    cut, whole = ratio(auc=0.95, bound=20), ratio(auc=0.95)
    assert (cut.k, cut.k_low, cut.k_high, cut.bounded) == (whole.k, whole.k_low, 20, True)
    assert "range" in str(cut.reason)
    assert (whole.k_high, whole.bounded, whole.reason) == (29, False, None)


def test_the_smallest_local_maximum_where_the_best_is_at_the_bound() -> None:
    """Where easy samples weigh much, a local maximum is passed and then more negatives win again."""
    answer = ratio(mean=1.5, weight=0.78, bound=30)
    value = answer.by_k.value
    assert answer.k == 2
    assert value[0] < value[1] > value[2]
    assert value.argmax() == 29
    assert answer.bounded
    assert "local maximum" in str(answer.reason)


@pytest.mark.parametrize("auc", [0.5, 0.499, 0.0, -1.0, 1.0, 1.5, math.nan, math.inf, -math.inf])
def test_invalid_aucs(auc: float) -> None:
    """What is no AUC above .5 and below 1 is refused with what is needed."""
    with pytest.raises(SettingsError, match=r"above \.5 and below 1 is needed"):
        ratio(auc=auc)


@pytest.mark.parametrize("mean", [0.0, -1.0, math.nan, math.inf, 12.0])
def test_invalid_means(mean: float) -> None:
    """A mean is above 0, and small enough for its AUC to be below 1."""
    with pytest.raises(SettingsError, match=r"a mean of .* is not allowed; it is above 0"):
        ratio(mean=mean)


def test_other_refusals() -> None:
    """Nothing given, two things given, a weight or a bound out of range, a curve of nothing or of no AUC."""
    with pytest.raises(SettingsError, match="nothing to estimate from"):
        ratio()
    with pytest.raises(SettingsError, match="twice"):
        ratio(auc=0.7, mean=1.0)
    for weight in (-0.1, 1.1, math.nan):
        with pytest.raises(SettingsError, match="from 0 to 1"):
            ratio(auc=0.7, weight=weight)
    for bound in (1, 0, -5, 10_000_000):
        with pytest.raises(SettingsError, match="from 2 to 1,000,000"):
            ratio(auc=0.7, bound=bound)
    with pytest.raises(SettingsError, match="no point"):
        ratio(measured=[])
    with pytest.raises(SettingsError, match="point 2 of the measured curve"):
        ratio(measured=[(0.7, 0.6), (0.7, math.nan)])
    with pytest.raises(SettingsError, match="no finite mean"):
        ratio(measured=[(0.7, 1.0)])


def test_a_measured_curve() -> None:
    """The curve ends at the best validation, and the labels' AUC is the training AUC there."""
    points = [(0.60, 0.58), (0.72, 0.68), (0.75, 0.71), (0.93, 0.66)]
    answer = ratio(measured=points)
    assert (answer.auc, answer.points, answer.curve) == (0.75, 3, "measured")
    assert answer == ratio(measured=points[:3])
    assert answer.by_k.value.tolist() != ratio(auc=0.75).by_k.value.tolist()
    other = ratio(auc=0.8, measured=points)
    assert (other.auc, other.points) == (0.8, 3)


def test_the_record() -> None:
    """It is frozen, and written down it has what was asked for, without the thousand values of the curve."""
    answer = ratio(mean=1.0, bound=50)
    assert list(answer.model_dump())[:7] == ["auc", "mean", "k", "k_low", "k_high", "effectiveness", "bounded"]
    assert "by_k" not in answer.model_dump()
    assert len(answer.by_k.value) == 50
    assert answer == ratio(mean=1.0, bound=50) != ratio(mean=1.0, bound=51)
    assert len({answer, ratio(mean=1.0, bound=50)}) == 1
    assert answer.good + answer.bad + answer.easy == pytest.approx(1)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        answer.k = 3


def test_milliseconds_and_little_memory() -> None:
    """A thousand K over 121 points take milliseconds; a hundred thousand stay far below the size of the full table."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        ratio(auc=0.9)
        best = min(best, time.perf_counter() - start)
    assert best < 0.1  # 2 ms on a quiet machine
    tracemalloc.start()
    effectiveness(1.0, np.linspace(0, 1, 121), 100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
