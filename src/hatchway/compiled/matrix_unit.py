"""Products of bf16 matrices in the matrix unit of Intel's processors (AMX), for compiled functions.

A unit of its own multiplies squares of 16 × 16 sums, sixteen times as fast as vector instructions multiply float32.
What costs then is all around it; a library's product goes through slower caches for that, and copies its arguments.

Arrays are flat, an ``_at`` says where in them to begin, and a ``_step`` how far it is from row to row, all in elements:
float32, or int32 that hold two bf16, the first in its lower half. In plain Python these functions do nothing.
"""

import ctypes
import functools
import importlib
import itertools
import sys
from typing import Any

from hatchway.compiled import llvm
from hatchway.compiled.llvm import called, element, loop

SIDE = 16
"""Rows of one of the unit's eight registers, and elements of each row."""

SQUARE = 2 * SIDE
"""Rows and columns of one :func:`multiply`: four registers of sums, which two of each factor meet in."""


def begin_products() -> None:
    """Take the unit for this thread; nothing else may be asked of it before."""


def end_products() -> None:
    """Give the unit back, so that the operating system need not keep its registers when threads take turns."""


def multiply(
    a: Any,
    a_at: Any,
    a_step: Any,
    b: Any,
    b_at: Any,
    b_step: Any,
    count: Any,
    start: Any,
    start_at: Any,
    start_step: Any,
    out: Any,
    out_at: Any,
    out_step: Any,
) -> None:
    """Set ``out[m, v] = start[m, v] + Σ_k a[m, k] · b[k, v]``, of SQUARE × SQUARE numbers.

    ``a`` and ``b`` are int32: an element of ``a`` holds neighbours of a row, one of ``b`` neighbours of a column, and
    ``count`` is in these, a multiple of SIDE. ``start`` may be ``out``, or one row for all with a step of 0.
    """


@functools.cache
def present() -> bool:
    """Whether the processor has such a unit, the operating system lets us use it, and numba compiles for it."""
    _, features = llvm.processor()
    return all(features.get(name) for name in ("amx-tile", "amx-bf16", "avx512bf16")) and _permitted()


def _permitted() -> bool:
    """Ask Linux for the unit's registers, as every process must once (arch_prctl(2), ARCH_REQ_XCOMP_PERM)."""
    if not sys.platform.startswith("linux"):
        return False
    arch_prctl, request, registers = 158, 0x1023, 18
    return bool(ctypes.CDLL(None).syscall(arch_prctl, request, registers) == 0)


@functools.cache
def teach() -> None:
    """Tell numba what the functions are."""
    llvm.teach(begin_products, _begin_products)
    llvm.teach(end_products, _end_products)
    llvm.teach(multiply, llvm.apart("hatchway.multiply", _multiply))


def _begin_products(builder: Any) -> None:
    helpers: Any = importlib.import_module("numba.core.cgutils")
    # Palette 1; then the bytes of a row (64) in two bytes for each register, and its rows (16) in one.
    settings = [1, *[0] * 15, *[4 * SIDE, 0] * 8, *[0] * 16, *[SIDE] * 8, *[0] * 8]
    kind = llvm.ir().ArrayType(llvm.ir().IntType(8), len(settings))
    where = helpers.global_constant(builder, "hatchway.squares", llvm.ir().Constant(kind, settings))
    _told(builder, "ldtilecfg", builder.bitcast(where, _bytes()))


def _end_products(builder: Any) -> None:
    _told(builder, "tilerelease")


def _multiply(
    builder: Any,
    a: Any,
    a_at: Any,
    a_step: Any,
    b: Any,
    b_at: Any,
    b_step: Any,
    count: Any,
    start: Any,
    start_at: Any,
    start_step: Any,
    out: Any,
    out_at: Any,
    out_step: Any,
) -> None:
    """Write :func:`multiply`: sums are in registers 0 to 3, rows of ``a`` in 4 and 5, of ``b`` in 6 and 7."""

    def moved(operation: str, register: int, array: Any, at: Any, step: Any, i: int, j: int) -> None:
        place = element(builder, array, at, builder.mul(step, step.type(SIDE * i)), SIDE * j)
        _told(builder, operation, register, builder.bitcast(place, _bytes()), builder.mul(step, step.type(4)))

    squares = list(itertools.product(range(2), range(2)))
    for i, j in squares:
        moved("tileloadd64", 2 * i + j, start, start_at, start_step, i, j)

    def turn(k: Any, _: list[Any]) -> list[Any]:
        for j in range(2):
            moved("tileloadd64", 6 + j, b, builder.add(b_at, builder.mul(k, b_step)), b_step, 0, j)
        for i in range(2):
            moved("tileloadd64", 4 + i, a, builder.add(a_at, k), a_step, i, 0)
            for j in range(2):
                _told(builder, "tdpbf16ps", 2 * i + j, 4 + i, 6 + j)
        return []

    loop(builder, count, SIDE, [], turn)
    for i, j in squares:
        moved("tilestored64", 2 * i + j, out, out_at, out_step, i, j)


def _bytes() -> Any:
    return llvm.ir().IntType(8).as_pointer()


def _told(builder: Any, instruction: str, *arguments: Any) -> None:
    """Write one of the unit's instructions; whole numbers are the registers that it is about."""
    given = [llvm.ir().IntType(8)(argument) if isinstance(argument, int) else argument for argument in arguments]
    called(builder, f"llvm.x86.{instruction}", llvm.ir().VoidType(), *given)
