"""The unit's products against NumPy in float64, and where they are used."""

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

Array = npt.NDArray[Any]

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
HAS_UNIT = pytest.mark.skipif(
    not (available() and matrix_unit.present()), reason="the processor has no matrix unit, or we may not use it"
)


@Compiled
def multiplied(a: Array, a_step: int, b: Array, b_step: int, count: int, start: Array, step: int, out: Array) -> None:
    """Call ``multiply`` with places to begin at."""
    begin_products()
    multiply(a, 3, a_step, b, 5, b_step, count, start, 1, step, out, 2, step or b_step)
    end_products()


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


def test_in_plain_python_they_do_nothing() -> None:
    """They are words of compiled functions."""
    out = np.ones(4)
    begin_products()
    end_products()
    multiply(*[out] * 13)
    assert (out == 1).all()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Give Linux, a processor with a unit, and a permission; return the processor's features, to be changed."""
    features = dict.fromkeys(("amx-tile", "amx-bf16", "avx512bf16"), True)
    binding = types.SimpleNamespace(get_host_cpu_name=lambda: "graniterapids", get_host_cpu_features=lambda: features)
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
