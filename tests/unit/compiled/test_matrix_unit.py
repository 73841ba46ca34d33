"""The unit's products, and the exponentials beside it, against NumPy in float64; and where they are used."""

import ctypes
import importlib
import sys
import types
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from hatchway.compiled import Compiled, available, matrix_unit
from hatchway.compiled.matrix_unit import SIDE, SQUARE, begin_products, end_products, multiply
from hatchway.compiled.matrix_unit_exponentials import LANES, round_exponentials, sum_exponentials

Array = npt.NDArray[Any]

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
HAS_UNIT = pytest.mark.skipif(
    not (available() and matrix_unit.present()), reason="the processor has no matrix unit, or we may not use it"
)
INF, NAN = float("inf"), float("nan")


@Compiled
def multiplied(a: Array, a_step: int, b: Array, b_step: int, count: int, start: Array, step: int, out: Array) -> None:
    """Call ``multiply`` with places to begin at."""
    begin_products()
    multiply(a, 3, a_step, b, 5, b_step, count, start, 1, step, out, 2, step or b_step)
    end_products()


@Compiled
def summed(logits: Array, width: int, peak: Array, total: Array) -> None:
    """Call ``sum_exponentials``."""
    sum_exponentials(logits, 2, width, peak, total, LANES)


@Compiled
def rounded(logits: Array, width: int, peak: Array, by_row: Array, by_pair: Array) -> None:
    """Call ``round_exponentials``."""
    round_exponentials(logits, 1, width, peak, 1, by_row, 4, by_pair, 3)


def shifted(number: int, array: Array) -> Array:
    """Put something else before an array, flat."""
    return np.concatenate([np.full(number, 9, array.dtype), array.ravel()])


def draw(*shape: int) -> torch.Tensor:
    """Draw numbers that bf16 has."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def pairs(numbers: torch.Tensor) -> Array:
    """Put neighbours of a row in one element."""
    return numbers.contiguous().view(torch.int32).numpy()


def pairs_of_rows(numbers: torch.Tensor) -> Array:
    """Put neighbours of a column in one element."""
    return pairs(numbers.view(-1, 2, numbers.shape[1]).transpose(1, 2))[..., 0]


@HAS_UNIT
@pytest.mark.parametrize("count", [SIDE, 3 * SIDE])
def test_products(count: int) -> None:
    """Every sum is right, begins with what there was, and nothing beside the square is written."""
    depth, wide = 2 * count, SQUARE + 7
    a, b = draw(SQUARE, depth + 4), draw(depth, wide)
    before = torch.randn(SQUARE, wide, generator=torch.Generator().manual_seed(1)).numpy()
    out = shifted(2, before)
    multiplied(
        shifted(3, pairs(a)), depth // 2 + 2, shifted(5, pairs_of_rows(b)), wide, count, shifted(1, before), wide, out
    )
    wanted = before.astype(np.float64)
    wanted[:, :SQUARE] += (a[:, :depth].double() @ b[:, :SQUARE].double()).numpy()
    assert np.abs(out[2:].reshape(SQUARE, wide) - wanted).max() < 1e-4
    assert (out[2:].reshape(SQUARE, wide)[:, SQUARE:] == before[:, SQUARE:]).all()
    assert (out[:2] == 9).all()


@HAS_UNIT
def test_one_row_may_begin_all_and_there_may_be_no_summand() -> None:
    """A step of 0 reads the same row again; a count of 0 reads nothing else."""
    bias = np.arange(SQUARE, dtype=np.float32)
    nothing, out = np.zeros(8, np.int32), np.zeros(2 + SQUARE * SQUARE, np.float32)
    multiplied(nothing, 0, nothing, SQUARE, 0, shifted(1, bias), 0, out)
    assert (out[2:].reshape(SQUARE, SQUARE) == bias).all()


@HAS_UNIT
@pytest.mark.parametrize("spread", [1.0, 50.0])
def test_sums_of_exponentials(spread: float) -> None:
    """Twice in a row, over a peak that rises or stays: lanes together have the sum of all."""
    width, generator = 5 * LANES, np.random.default_rng(0)
    peak, total = np.full(2 * LANES, -3, np.float32), np.zeros(2 * LANES, np.float32)
    rows = (spread * generator.standard_normal((2, width))).astype(np.float32)
    rows[1, 3], rows[0, 5] = -INF, -86.0
    for row in rows:
        summed(shifted(2, row), width, peak, total)
    lanes = np.vstack([rows.reshape(-1, LANES), np.full(LANES, -3, np.float32)]).astype(np.float64)
    assert (peak[LANES:] == lanes.max(0)).all()
    wanted = np.exp(lanes[:-1] - lanes.max(0)).sum(0)
    assert np.abs(total[LANES:] / wanted - 1).max() < 2e-6
    assert (peak[:LANES] == -3).all()
    assert (total[:LANES] == 0).all()


@HAS_UNIT
def test_exponentials_are_as_near_as_said() -> None:
    """One at a time, from 0 to where they end; that of 0 is 1 itself."""
    for x in [0.0, *np.linspace(-86.9, -1e-3, 500), -87.1, -1e30, -INF]:
        peak, total = np.zeros(2 * LANES, np.float32), np.zeros(2 * LANES, np.float32)
        summed(np.full(2 + LANES, x, np.float32), LANES, peak, total)
        exact = np.exp(np.float64(np.float32(x))) if x > -87 else 0.0
        assert np.abs(total[LANES:] - exact).max() <= (2e-7 + 1e-7 * abs(x)) * exact if exact else (total == 0).all()
        assert x or (total[LANES:] == 1).all()


@HAS_UNIT
@pytest.mark.parametrize("bad", [NAN, -NAN, INF])
def test_what_is_no_number_makes_its_lanes_sum_none(bad: float) -> None:
    """And no other lane's."""
    logits = np.zeros(2 + 2 * LANES, np.float32)
    logits[2 + LANES + 4] = bad
    peak, total = np.zeros(2 * LANES, np.float32), np.zeros(2 * LANES, np.float32)
    summed(logits, 2 * LANES, peak, total)
    assert np.isnan(total[LANES + 4])
    assert (np.delete(total[LANES:], 4) == 2).all()


@HAS_UNIT
def test_exponentials_are_written_twice_as_bf16() -> None:
    """Row by row and in pairs, each the nearest bf16; masked ones, and those of a row with a peak of inf, are 0."""
    width = 4 * LANES
    logits = np.random.default_rng(0).uniform(-90, 0, (2, width)).astype(np.float32)
    logits[0, 0], logits[1, 5], logits[1, 6] = -INF, NAN, 0
    for peaks in ((0.0, 0.0), (0.5, INF)):
        by_row, by_pair = np.full(4 + width, 9, np.int32), np.full(3 + width, 9, np.int32)
        rounded(shifted(1, logits), width, np.array([7, *peaks], np.float32), by_row, by_pair)
        with np.errstate(invalid="ignore"):
            shares = torch.from_numpy(np.exp(logits.astype(np.float64) - np.array(peaks)[:, None]))
        shares[shares < 1.2e-38] = 0  # no normal number
        found = torch.from_numpy(by_row[4:].copy()).view(torch.bfloat16).view(2, width).double()
        assert torch.equal(found.isnan(), shares.isnan())
        assert torch.equal(found == 0, shares < np.exp(-87.0))
        assert float((found / shares - 1)[found > 0].abs().max()) <= 2**-8
        both = torch.from_numpy(by_pair[3:].copy()).view(torch.bfloat16).view(width, 2).T.double()
        assert torch.equal(both.nan_to_num(9), found.nan_to_num(9))
        assert (by_row[:4] == 9).all()
        assert (by_pair[:3] == 9).all()


def test_in_plain_python_they_do_nothing() -> None:
    """They are words of compiled functions."""
    out = np.ones(4)
    begin_products()
    end_products()
    multiply(*[out] * 13)
    sum_exponentials(*[out] * 6)
    round_exponentials(*[out] * 9)
    assert (out == 1).all()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Give Linux, a processor with a unit, and a permission; return the processor's features, to be changed."""
    features = dict.fromkeys(("amx-tile", "amx-bf16", "avx512bf16"), True)
    binding = types.SimpleNamespace(get_host_cpu_features=lambda: features)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", binding)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: types.SimpleNamespace(syscall=lambda *_: 0))
    config = importlib.import_module("numba.core.config")
    for name, usual in (("CPU_NAME", None), ("CPU_FEATURES", None), ("ENABLE_AVX", 1), ("BOUNDSCHECK", None)):
        monkeypatch.setattr(config, name, usual)
    assert matrix_unit.present.__wrapped__()
    return features


@pytest.mark.parametrize("feature", ["amx-tile", "amx-bf16", "avx512bf16"])
def test_not_without_a_unit(machine: dict[str, bool], feature: str) -> None:
    """Products, registers and roundings are all needed."""
    machine[feature] = False
    assert not matrix_unit.present.__wrapped__()


@pytest.mark.usefixtures("machine")
def test_not_where_it_is_not_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Using the unit would end the process: an operating system that refuses, or that was never asked."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: types.SimpleNamespace(syscall=lambda *_: -1))
    assert not matrix_unit.present.__wrapped__()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: types.SimpleNamespace(syscall=lambda *_: 0))
    monkeypatch.setattr(sys, "platform", "win32")
    assert not matrix_unit.present.__wrapped__()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("setting", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", ""), ("ENABLE_AVX", 0), ("BOUNDSCHECK", 1)]
)
def test_not_where_numba_compiles_for_something_else(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str | int
) -> None:
    """Code for another processor may lack the instructions that this one has."""
    monkeypatch.setattr(importlib.import_module("numba.core.config"), setting, value)
    assert not matrix_unit.present.__wrapped__()
