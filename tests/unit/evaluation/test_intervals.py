"""Bootstrap intervals against what theory says of them."""

import numpy as np
import pytest

from hatchway.evaluation.intervals import bootstrap_interval
from hatchway.randomness import stream


def interval(values: np.ndarray, clusters: np.ndarray, resamples: int = 4000) -> tuple[float, float]:
    """Return the interval of one column."""
    got = bootstrap_interval(
        values[:, None], clusters, resamples=resamples, level=0.95, generator=stream(1, "bootstrap")
    )
    assert got is not None
    return float(got[0][0]), float(got[1][0])


def test_a_share_has_the_binomial_interval() -> None:
    """Of 1,000 cases 100 hit: the mean of a resample is Binomial(1000, 0.1)/1000, whose quantiles are .082 and .119."""
    values = np.repeat([1.0, 0.0], [100, 900])
    low, high = interval(values, np.arange(1000))
    assert low == pytest.approx(0.082, abs=0.0015)
    assert high == pytest.approx(0.119, abs=0.0015)


def test_cases_of_one_buyer_are_drawn_together() -> None:
    """Ten equal cases a buyer tell no more than one: the interval is that of 100 buyers, not of 1,000 cases."""
    values = np.repeat(np.repeat([1.0, 0.0], [10, 90]), 10)
    low, high = interval(values, np.repeat(np.arange(100), 10))
    assert low == pytest.approx(0.05, abs=0.011)  # Binomial(100, 0.1)/100 has its quantiles at .05 and .16
    assert high == pytest.approx(0.16, abs=0.011)


@pytest.mark.parametrize(("level", "bounds"), [(0.4, (0.75, 0.75)), (0.9, (0.0, 1.0))])
def test_buyers_of_unequal_size_weigh_by_their_cases(level: float, bounds: tuple[float, float]) -> None:
    """The mean is over cases: buyer A with three cases of 1 and B with one of 0 give 0, 3/4 (half the time) or 1."""
    values, clusters = np.array([1.0, 0.0, 1.0, 1.0]), np.array([7, 2, 7, 7])
    generator = stream(1, "bootstrap")
    got = bootstrap_interval(values[:, None], clusters, resamples=2000, level=level, generator=generator)
    assert got is not None
    assert (got[0][0], got[1][0]) == bounds


def test_the_same_stream_gives_the_same_interval() -> None:
    """Nothing else than the stream decides; another stream gives another."""
    values, clusters = np.arange(50.0)[:, None], np.arange(50)

    def draw(name: str) -> list[list[float]]:
        got = bootstrap_interval(values, clusters, resamples=200, level=0.9, generator=stream(1, name))
        assert got is not None
        return [bound.tolist() for bound in got]

    assert draw("a") == draw("a")
    assert draw("a") != draw("b")


@pytest.mark.parametrize(("clusters", "resamples"), [([4, 4, 4], 100), ([1, 2, 3], 0)])
def test_where_nothing_is_known_of_the_spread_there_is_no_interval(clusters: list[int], resamples: int) -> None:
    """One buyer has no spread to show, however many cases, and zero resamples ask for none."""
    values = np.array([[0.0], [1.0], [1.0]])
    generator = stream(1, "bootstrap")
    assert bootstrap_interval(values, np.array(clusters), resamples=resamples, level=0.95, generator=generator) is None
