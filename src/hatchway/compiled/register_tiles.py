"""Products of small matrices in the processor's registers, for compiled functions that do more than multiply.

A matrix product of a library copies its arguments into an order that suits the processor, and writes its result to
memory. Where a result is turned into something else at once and multiplied again, most of that can be spared. These
three functions take arguments that lie in order already, and keep HEIGHT × LANES sums in registers: 24 of the 32 that
AVX-512 has, each of 16 float32.

Arrays are flat, and an ``_at`` says where in them to begin. An element is a float32; or an int32 that holds two bf16,
the first in its lower half: the products of both are added, in float32 (VDPBF16PS). ``count`` is in elements. In plain
Python these functions do nothing.
"""

import functools
import itertools
from typing import Any

from hatchway.compiled import llvm
from hatchway.compiled.llvm import REGISTER, called, element, everywhere, loaded, loop, multiply_add, stored, times

HEIGHT, LANES = 12, 2 * REGISTER
"""Two registers share each number that is read for one row: one alone would wait for the numbers."""

_PARTS = range(0, LANES, REGISTER)

TILE = 288
"""Columns of a tile: whole HEIGHTs and LANES; rows of that length do not compete for the same places of a cache."""


def score(a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, bias: Any, bias_at: Any) -> None:
    """Set ``out[m, v] = bias[v] + Σ_k a[k, m] · b[k, v]``; rows are HEIGHT, LANES and, of ``out``, TILE elements."""


def add_rows(
    a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, deep: Any, scale: Any, scale_at: Any
) -> None:
    """Do ``out[m, v] += scale[m] · Σ_k a[m, k] · b[k, v]``; rows of ``a`` are a TILE, of ``b`` and ``out`` ``deep``."""


def add_columns(a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, deep: Any) -> None:
    """Do ``out[m, v] += Σ_k a[k, m] · b[k, v]``; rows of ``a`` are TILE elements, of ``b`` and ``out`` ``deep``."""


@functools.cache
def quicker(products: str) -> bool:
    """Whether these functions were seen to beat PyTorch's on a processor of this kind.

    float32: AMD's with AVX-512 (Zen 4). bf16: what multiplies bf16 in vectors but has no matrix unit (AMX); there
    PyTorch's float32 products are never rounded to bf16, whatever its switches say. Neither where numba was told to
    compile for another processor than this one, or to check every index.
    """
    name, features = llvm.processor()
    if products == "bf16":
        return bool(features.get("avx512bf16")) and not features.get("amx-bf16")
    return bool(features.get("avx512f")) and name.startswith("znver")


@functools.cache
def teach() -> None:
    """Tell numba what the three functions are."""
    llvm.teach(score, _score)
    llvm.teach(add_rows, _add_rows)
    llvm.teach(add_columns, _add_columns)


_Sums = dict[tuple[int, int], Any]
"""The registers of a product: by row, and by the place in it where a register begins."""


def _score(
    builder: Any, a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, bias: Any, bias_at: Any
) -> None:
    """Write :func:`score`: every row of sums begins with the bias."""
    start = {v: loaded(builder, element(builder, bias, bias_at, v), _registers()) for v in _PARTS}
    sums = _summed(builder, element(builder, a, a_at), element(builder, b, b_at), count, (1, HEIGHT, LANES), start)
    for (m, v), made in sums.items():
        stored(builder, made, element(builder, out, out_at, m * TILE + v))


def _add_rows(
    builder: Any,
    a: Any,
    a_at: Any,
    b: Any,
    b_at: Any,
    count: Any,
    out: Any,
    out_at: Any,
    deep: Any,
    scale: Any,
    scale_at: Any,
) -> None:
    """Write :func:`add_rows`: a row's factor meets its sum, once."""
    down = TILE // 2 if _holds_pairs(a) else TILE
    sums = _summed(builder, element(builder, a, a_at), element(builder, b, b_at), count, (down, 1, deep), _nothing())
    for (m, v), made in sums.items():
        place = element(builder, out, out_at, times(builder, deep, m), v)
        factor = builder.load(element(builder, scale, scale_at, m))
        before = loaded(builder, place, _registers())
        stored(builder, multiply_add(builder, made, everywhere(builder, factor, REGISTER), before), place)


def _add_columns(
    builder: Any, a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, deep: Any
) -> None:
    """Write :func:`add_columns`."""
    sums = _summed(builder, element(builder, a, a_at), element(builder, b, b_at), count, (1, TILE, deep), _nothing())
    for (m, v), made in sums.items():
        place = element(builder, out, out_at, times(builder, deep, m), v)
        stored(builder, builder.fadd(made, loaded(builder, place, _registers())), place)


def _summed(builder: Any, a: Any, b: Any, count: Any, steps: tuple[int, int, Any], start: dict[int, Any]) -> _Sums:
    """Write the loop over ``count``; return the registers after it.

    The steps are from row to row of ``out`` in ``a``, and from one k to the next in ``a`` and in ``b``; every row of
    registers begins with ``start``.
    """
    a_down, a_step, b_step = steps
    places = list(itertools.product(range(HEIGHT), _PARTS))
    elements = llvm.ir().VectorType(a.type.pointee, REGISTER)
    operation = _multiply_add_pairs if _holds_pairs(a) else multiply_add

    def turn(k: Any, sums: list[Any]) -> list[Any]:
        a_row = element(builder, a, times(builder, k, a_step))
        b_row = element(builder, b, times(builder, k, b_step) if isinstance(b_step, int) else builder.mul(k, b_step))
        many = {v: loaded(builder, element(builder, b_row, v), elements) for v in _PARTS}
        one = [everywhere(builder, builder.load(element(builder, a_row, m * a_down)), REGISTER) for m in range(HEIGHT)]
        return [operation(builder, one[m], many[v], before) for (m, v), before in zip(places, sums, strict=True)]

    return dict(zip(places, loop(builder, count, 1, [start[v] for _, v in places], turn), strict=True))


def _multiply_add_pairs(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return z and the products of both bf16 of each element."""
    kind = llvm.ir().VectorType(llvm.bfloat(), 2 * REGISTER)
    x, y = (builder.bitcast(pairs, kind) for pairs in (x, y))
    return called(builder, "llvm.x86.avx512bf16.dpbf16ps.512", z.type, z, x, y)


def _holds_pairs(array: Any) -> bool:
    return bool(array.type.pointee == llvm.ir().IntType(32))


def _nothing() -> dict[int, Any]:
    return dict.fromkeys(_PARTS, llvm.ir().Constant(_registers(), [0.0] * REGISTER))


def _registers() -> Any:
    return llvm.ir().VectorType(llvm.ir().FloatType(), REGISTER)
