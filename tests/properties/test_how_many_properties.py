"""What holds for every AUC, weight and schedule."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.how_many.curves import auc
from hatchway.how_many.estimator import effectiveness, ratio
from hatchway.how_many.gaussians import auc_of_mean, mean_of_auc, reliability
from hatchway.how_many.schedule import ScheduleSettings, k_at, negatives_of_rows, share_at
from hatchway.randomness import torch_stream

aucs = st.floats(0.5001, 0.9999)
schedules = st.builds(
    ScheduleSettings,
    k=st.floats(1, 500),
    turning_point=st.floats(0, 1),
    decline=st.sampled_from(["linear", "cosine", "exponential"]),
)


@given(aucs)
def test_there_and_back(value: float) -> None:
    """The mean of an AUC has that AUC."""
    assert auc_of_mean(mean_of_auc(value)) == pytest.approx(value, rel=1e-12)


@given(st.floats(-3, 8), st.floats(-3, 8))
def test_reliability_is_a_chance_that_falls_with_k_and_rises_with_the_mean(one: float, other: float) -> None:
    """From 0 to 1, ever smaller with more negatives, never smaller for a higher mean."""
    low, high = sorted((one, other))
    chances = reliability([low, high], [1, 2, 3, 10, 100, 1000])
    assert ((chances > 0) & (chances <= 1 + 1e-12)).all()
    assert (np.diff(chances, axis=1) <= 0).all()
    assert (chances[1] >= chances[0] - 1e-12).all()


@given(aucs, st.floats(0, 1), st.lists(st.floats(0, 4), min_size=1, max_size=5))
def test_shares_add_up(label: float, weight: float, means: list[float]) -> None:
    """Good, bad and easy are all samples, and the effectiveness is what they make of the weight, within ±1."""
    by_k = effectiveness(mean_of_auc(label), means, 50, weight)
    np.testing.assert_allclose(by_k.good + by_k.bad + by_k.easy, 1, rtol=1e-12)
    np.testing.assert_allclose(by_k.good - by_k.bad, by_k.label - by_k.model, atol=1e-12)
    assert (np.abs(by_k.value) <= 1).all()


@given(aucs, st.floats(0, 1), st.integers(2, 2000))
def test_an_answer_is_in_its_range_and_the_range_in_its_bound(label: float, weight: float, bound: int) -> None:
    """1 <= k_low <= k <= k_high <= bound; an answer that touches the bound is bounded and says why."""
    answer = ratio(auc=label, weight=weight, bound=bound)
    assert 1 <= answer.k_low <= answer.k <= answer.k_high <= bound
    assert answer.bounded == (answer.reason is not None)
    assert answer.bounded or answer.k_high < bound
    near = answer.by_k.value[answer.k_low - 1 : answer.k_high]
    assert (near >= answer.effectiveness - 0.01 * abs(answer.effectiveness)).all()


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=40))
def test_auc_and_its_mirror_add_up_to_one(pairs: list[tuple[int, int]]) -> None:
    """Ties count half for both sides."""
    positive, negative = np.array(pairs, dtype=np.float64).T
    assert auc(positive, negative) + auc(negative, positive) == pytest.approx(1)


@given(schedules, st.integers(1, 400))
def test_a_schedule_rises_once_and_falls_once(settings: ScheduleSettings, total: int) -> None:
    """K stays from 1 to K*, never falls before its top and never rises after it."""
    values = np.array([k_at(settings, step, total) for step in range(total)])
    assert (values >= 1 - 1e-9).all()
    assert (values <= settings.k * (1 + 1e-12)).all()
    top = int(values.argmax())
    assert (np.diff(values[: top + 1]) >= -1e-9).all()
    assert (np.diff(values[top:]) <= 1e-9).all()
    assert all(0 < share_at(settings, step, total) <= 1 for step in range(total))


@given(st.floats(0, 40), st.integers(0, 2**31))
def test_rows_have_the_number_below_or_above(k: float, seed: int) -> None:
    """Every row has ⌊k⌋ or ⌊k⌋ + 1, and never more than ⌈k⌉; the same seed gives the same."""
    drawn = negatives_of_rows(k, 200, torch_stream(seed, "rows"))
    assert math.floor(k) <= int(drawn.min()) <= int(drawn.max()) <= math.ceil(k)
    assert drawn.tolist() == negatives_of_rows(k, 200, torch_stream(seed, "rows")).tolist()


@given(st.floats(1, 8))
def test_the_mean_number_is_k(k: float) -> None:
    """Over many rows the mean is k, within six deviations."""
    drawn = negatives_of_rows(k, 20_000, torch_stream(8, "mean"))
    fraction = k - math.floor(k)
    deviation = math.sqrt(fraction * (1 - fraction) / 20_000)
    assert float(drawn.double().mean()) == pytest.approx(k, abs=6 * deviation + 1e-9)
