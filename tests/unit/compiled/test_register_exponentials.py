"""Exponentials against NumPy in float64: how near, and what becomes of what is masked, or no number."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from hatchway.compiled import Compiled, available
from hatchway.compiled.llvm import REGISTER
from hatchway.compiled.register_exponentials import round_exponentials, sum_exponentials

Array = npt.NDArray[Any]

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
INF, NAN = float("inf"), float("nan")


@Compiled
def summed(logits: Array, width: int, peak: Array, total: Array) -> None:
    """Call ``sum_exponentials``."""
    sum_exponentials(logits, 2, width, peak, total, REGISTER)


@Compiled
def rounded(logits: Array, step: int, width: int, peak: Array, by_row: Array, by_pair: Array) -> None:
    """Call ``round_exponentials``."""
    round_exponentials(logits, 1, step, width, peak, 1, by_row, 4, by_pair, 3)


def shifted(number: int, array: Array) -> Array:
    """Put something else before an array, flat."""
    return np.concatenate([np.full(number, 9, array.dtype), array.ravel()])


@pytest.mark.parametrize("spread", [1.0, 50.0])
def test_sums_of_exponentials(spread: float) -> None:
    """Twice in a row, over a peak that rises or stays: lanes together have the sum of all."""
    width, generator = 5 * REGISTER, np.random.default_rng(0)
    peak, total = np.full(2 * REGISTER, -3, np.float32), np.zeros(2 * REGISTER, np.float32)
    rows = (spread * generator.standard_normal((2, width))).astype(np.float32)
    rows[1, 3], rows[0, 5] = -INF, -86.0
    for row in rows:
        summed(shifted(2, row), width, peak, total)
    lanes = np.vstack([rows.reshape(-1, REGISTER), np.full(REGISTER, -3, np.float32)]).astype(np.float64)
    assert (peak[REGISTER:] == lanes.max(0)).all()
    wanted = np.exp(lanes[:-1] - lanes.max(0)).sum(0)
    assert np.abs(total[REGISTER:] / wanted - 1).max() < 2e-6
    assert (peak[:REGISTER] == -3).all()
    assert (total[:REGISTER] == 0).all()


def test_exponentials_are_as_near_as_said() -> None:
    """One at a time, from 0 to where they end; that of 0 is 1 itself."""
    for x in [0.0, *np.linspace(-86.9, -1e-3, 500), -87.1, -1e30, -INF]:
        peak, total = np.zeros(2 * REGISTER, np.float32), np.zeros(2 * REGISTER, np.float32)
        summed(np.full(2 + REGISTER, x, np.float32), REGISTER, peak, total)
        exact = np.exp(np.float64(np.float32(x))) if x > -87 else 0.0
        assert np.abs(total[REGISTER:] - exact).max() <= (2e-7 + 1e-7 * abs(x)) * exact if exact else (total == 0).all()
        assert x or (total[REGISTER:] == 1).all()


@pytest.mark.parametrize("bad", [NAN, -NAN, INF])
def test_what_is_no_number_makes_its_lanes_sum_none(bad: float) -> None:
    """And no other lane's."""
    logits = np.zeros(2 + 2 * REGISTER, np.float32)
    logits[2 + REGISTER + 4] = bad
    peak, total = np.zeros(2 * REGISTER, np.float32), np.zeros(2 * REGISTER, np.float32)
    summed(logits, 2 * REGISTER, peak, total)
    assert np.isnan(total[REGISTER + 4])
    assert (np.delete(total[REGISTER:], 4) == 2).all()


def test_exponentials_are_written_twice_as_bf16() -> None:
    """Row by row and in pairs, each the nearest bf16; masked ones, and those of a row with a peak of inf, are 0."""
    width, step = 4 * REGISTER, 6 * REGISTER
    logits = np.random.default_rng(0).uniform(-90, 0, (2, step)).astype(np.float32)
    logits[0, 0], logits[1, 5], logits[1, 6] = -INF, NAN, 0
    for peaks in ((0.0, 0.0), (0.5, INF)):
        by_row, by_pair = np.full(4 + step, 9, np.int32), np.full(3 + width, 9, np.int32)
        rounded(shifted(1, logits), step, width, np.array([7, *peaks], np.float32), by_row, by_pair)
        with np.errstate(invalid="ignore"):
            shares = torch.from_numpy(np.exp(logits[:, :width].astype(np.float64) - np.array(peaks)[:, None]))
        found = torch.from_numpy(by_row[4:].copy()).view(torch.bfloat16).view(2, step)[:, :width].double()
        assert torch.equal(found.isnan(), shares.isnan())
        assert torch.equal(found == 0, shares < np.exp(-87.0))
        assert float((found / shares - 1)[found > 0].abs().max()) <= 2**-8
        both = torch.from_numpy(by_pair[3:].copy()).view(torch.bfloat16).view(width, 2).T.double()
        assert torch.equal(both.nan_to_num(9), found.nan_to_num(9))
        assert (by_row[4:].reshape(2, step // 2)[:, width // 2 :] == 9).all()
        assert (by_row[:4] == 9).all()
        assert (by_pair[:3] == 9).all()


def test_in_plain_python_they_do_nothing() -> None:
    """They are words of compiled functions."""
    out = np.ones(4)
    sum_exponentials(*[out] * 6)
    round_exponentials(*[out] * 10)
    assert (out == 1).all()
