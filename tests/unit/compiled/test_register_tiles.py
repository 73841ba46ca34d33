"""The products against NumPy in float64, of float32 and of pairs of bf16; and where they are used."""

import importlib
import sys
import types
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from hatchway.compiled import Compiled, available, register_tiles
from hatchway.compiled.register_tiles import HEIGHT, LANES, TILE, add_columns, add_rows, score

Array = npt.NDArray[Any]

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
KINDS = ["float32"]
if available() and importlib.import_module("llvmlite.binding").get_host_cpu_features().get("avx512bf16"):
    KINDS.append("bf16")


@Compiled
def scored(a: Array, b: Array, count: int, out: Array, bias: Array) -> None:
    """Call ``score`` with places to begin at."""
    score(a, 5, b, 7, count, out, 3, bias, 1)


@Compiled
def added_rows(a: Array, b: Array, count: int, out: Array, deep: int, scale: Array) -> None:
    """Call ``add_rows``."""
    add_rows(a, 0, b, LANES, count, out, LANES, deep, scale, 2)


@Compiled
def added_columns(a: Array, b: Array, count: int, out: Array, deep: int) -> None:
    """Call ``add_columns``."""
    add_columns(a, 4, b, LANES, count, out, LANES, deep)


def draw(kind: str, *shape: int) -> Array:
    """Draw numbers of a kind, as float64."""
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return (numbers.bfloat16() if kind == "bf16" else numbers).double().numpy()


def elements(kind: str, numbers: Array) -> Array:
    """Put the numbers of a matrix [k, m] in elements, flat: two rows together where they are bf16."""
    if kind == "float32":
        return numbers.astype(np.float32).ravel()
    pairs = torch.from_numpy(numbers).bfloat16().view(-1, 2, numbers.shape[1]).transpose(1, 2).contiguous()
    return pairs.view(torch.int32).flatten().numpy()


def shifted(number: int, array: Array) -> Array:
    """Put something else before an array."""
    return np.concatenate([np.full(number, 9, array.dtype), array])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [2, 50, 64])
def test_scores(kind: str, depth: int) -> None:
    """Every sum is right, and nothing beside the rows' first LANES places is written."""
    a, b = draw(kind, depth, HEIGHT), draw(kind, depth, LANES)
    out = np.full(3 + HEIGHT * TILE, 7.0, np.float32)
    count = depth // (2 if kind == "bf16" else 1)
    bias = draw("float32", LANES)
    scored(
        shifted(5, elements(kind, a)), shifted(7, elements(kind, b)), count, out, shifted(1, bias.astype(np.float32))
    )
    rows = out[3:].reshape(HEIGHT, TILE)
    assert np.abs(rows[:, :LANES] - bias - a.T @ b).max() < 1e-5
    assert (out[:3] == 7).all()
    assert (rows[:, LANES:] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [2, 100, TILE])
def test_rows_are_added(kind: str, depth: int) -> None:
    """Each row with a factor of its own, to what is there; only LANES of the ``deep`` places of a row."""
    deep = 3 * LANES
    a, b, scale = draw(kind, HEIGHT, TILE), draw(kind, depth + 2, deep), draw("float32", HEIGHT + 2)
    before = draw("float32", HEIGHT, deep).astype(np.float32)
    out, pack = before.copy(), 2 if kind == "bf16" else 1
    flat = a.astype(np.float32).ravel()
    if kind == "bf16":
        flat = torch.from_numpy(a).bfloat16().contiguous().view(torch.int32).flatten().numpy()
    added_rows(flat, elements(kind, b), depth // pack, out.ravel(), deep, scale.astype(np.float32))
    wanted = before.astype(np.float64)
    wanted[:, LANES : 2 * LANES] += scale[2:, None] * (a[:, :depth] @ b[:depth, LANES : 2 * LANES])
    assert np.abs(out - wanted).max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [2, 144])
def test_columns_are_added(kind: str, depth: int) -> None:
    """Sums over rows, to what is there; columns of ``a`` become rows."""
    deep = 2 * LANES
    a, b = draw(kind, depth, TILE), draw(kind, depth, deep)
    before = draw("float32", HEIGHT, deep).astype(np.float32)
    out, pack = before.copy(), 2 if kind == "bf16" else 1
    added_columns(elements(kind, a), elements(kind, b), depth // pack, out.ravel(), deep)
    wanted = before.astype(np.float64)
    wanted[:, LANES:] += a[:, 4 : 4 + HEIGHT].T @ b[:, LANES:]
    assert np.abs(out - wanted).max() < 1e-4


def test_no_summand_is_a_sum_of_nothing() -> None:
    """A count of 0 reads nothing: scores are the bias, and what is added to stays."""
    nothing, out = np.empty(0, np.float32), np.full(3 + HEIGHT * TILE, 7.0, np.float32)
    scored(nothing, nothing, 0, out, np.full(LANES + 1, 2.5, np.float32))
    assert (out[3:].reshape(HEIGHT, TILE)[:, :LANES] == 2.5).all()
    out[:] = 7
    added_columns(nothing, nothing, 0, out, LANES)
    assert (out == 7).all()


def test_in_plain_python_they_do_nothing() -> None:
    """They are words of compiled functions."""
    out = np.ones(4)
    for function, number in ((score, 9), (add_rows, 10), (add_columns, 8)):
        function(*[out] * number)
    assert (out == 1).all()


@pytest.mark.parametrize(
    ("processor", "features", "float32", "bf16"),
    [
        ("znver4", {"avx512f", "avx512bf16"}, True, True),
        ("znver3", {"avx2"}, False, False),
        ("skylake-avx512", {"avx512f"}, False, False),
        ("cooperlake", {"avx512f", "avx512bf16"}, False, True),
        ("sapphirerapids", {"avx512f", "avx512bf16", "amx-bf16"}, False, False),
        ("neoverse-v1", {"bf16"}, False, False),
    ],
)
def test_they_are_used_where_they_were_seen_to_be_quicker(
    monkeypatch: pytest.MonkeyPatch, processor: str, features: set[str], float32: bool, bf16: bool
) -> None:
    """A matrix unit is PyTorch's, and so are Intel's float32 products."""
    binding = types.SimpleNamespace(
        get_host_cpu_name=lambda: processor, get_host_cpu_features=lambda: dict.fromkeys(features, True)
    )
    monkeypatch.setitem(sys.modules, "llvmlite.binding", binding)
    assert register_tiles.quicker.__wrapped__("float32") is float32
    assert register_tiles.quicker.__wrapped__("bf16") is bf16


@pytest.mark.parametrize(
    ("setting", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", ""), ("ENABLE_AVX", 0), ("BOUNDSCHECK", 1)]
)
def test_not_where_numba_compiles_for_something_else(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str | int
) -> None:
    """Code for another processor may lack the instructions that this one has."""
    features = dict.fromkeys(("avx512f", "avx512bf16"), True)
    binding = types.SimpleNamespace(get_host_cpu_name=lambda: "znver4", get_host_cpu_features=lambda: features)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", binding)
    config = importlib.import_module("numba.core.config")
    for name, usual in (("CPU_NAME", None), ("CPU_FEATURES", None), ("ENABLE_AVX", 1), ("BOUNDSCHECK", None)):
        monkeypatch.setattr(config, name, usual)
    assert register_tiles.quicker.__wrapped__("float32")
    monkeypatch.setattr(config, setting, value)
    assert not register_tiles.quicker.__wrapped__("float32")
    assert not register_tiles.quicker.__wrapped__("bf16")
