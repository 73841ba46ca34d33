"""Exponentials in registers, for what :mod:`~.matrix_unit` multiplies, and on its processors alone.

Beside the unit they are most of the work, and a compiler that is shown a loop over numbers needs twice as many
instructions. Arrays are flat, and an ``_at`` says where in them to begin; ``width`` is a multiple of LANES. In plain
Python these functions do nothing.
"""

import functools
from typing import Any

import numpy as np

from hatchway.compiled import llvm
from hatchway.compiled.llvm import called, element, everywhere, loaded, loop, multiply_add, stored

LANES = 16

_LEAST = -87.0
"""Below it an exponential is no normal float32, and is taken for 0."""


def sum_exponentials(logits: Any, at: Any, width: Any, peak: Any, total: Any, lanes_at: Any) -> None:
    """Add the exponentials of a row to LANES sums, each over the largest that its own lane has had so far.

    What was summed before is brought over the new peak. No lane waits for another: whoever wants the sum of all joins
    them, once. A lane's peak must be more than −inf to begin with. A NaN, or +inf, makes its lane's sum NaN.
    """


def round_exponentials(
    logits: Any, at: Any, width: Any, peak: Any, peak_at: Any, by_row: Any, row_at: Any, by_pair: Any, pair_at: Any
) -> None:
    """Write the exponentials of two rows of ``width`` logits as bf16, each row's over its peak.

    One row follows the other. ``by_row`` gets them so, two neighbours to an element; ``by_pair`` one of each to an
    element. Rows whose peak is inf become 0.
    """


@functools.cache
def teach() -> None:
    """Tell numba what the functions are."""
    llvm.teach(sum_exponentials, _sum_exponentials)
    llvm.teach(round_exponentials, _round_exponentials)


def _sum_exponentials(builder: Any, logits: Any, at: Any, width: Any, peak: Any, total: Any, lanes_at: Any) -> None:
    def row(place: Any) -> Any:
        return loaded(builder, element(builder, logits, at, place), _registers())

    peaks, totals = element(builder, peak, lanes_at), element(builder, total, lanes_at)
    before = loaded(builder, peaks, _registers())
    # Of a NaN and a number this maximum is the second, here what was there before.
    (after,) = loop(builder, width, LANES, [before], lambda place, top: [_larger(builder, row(place), *top)])
    start = builder.fmul(loaded(builder, totals, _registers()), _exponential(builder, builder.fsub(before, after)))

    def turn(place: Any, sums: list[Any]) -> list[Any]:
        return [builder.fadd(sums[0], _exponential(builder, builder.fsub(row(place), after)))]

    stored(builder, loop(builder, width, LANES, [start], turn)[0], totals)
    stored(builder, after, peaks)


def _round_exponentials(
    builder: Any,
    logits: Any,
    at: Any,
    width: Any,
    peak: Any,
    peak_at: Any,
    by_row: Any,
    row_at: Any,
    by_pair: Any,
    pair_at: Any,
) -> None:
    ir = llvm.ir()
    halves, whole = (ir.VectorType(ir.IntType(bits), LANES) for bits in (16, 32))
    starts = [at, builder.add(at, width)]
    peaks = [everywhere(builder, builder.load(element(builder, peak, peak_at, i)), LANES) for i in range(2)]
    half = builder.lshr(width, width.type(1))

    def turn(place: Any, _: list[Any]) -> list[Any]:
        rounded, middle = [], builder.lshr(place, place.type(1))
        for i in range(2):
            row = loaded(builder, element(builder, logits, starts[i], place), _registers())
            power = _exponential(builder, builder.fsub(row, peaks[i]))
            kind = ir.VectorType(llvm.bfloat(), LANES)
            made = builder.bitcast(called(builder, "llvm.x86.avx512bf16.cvtneps2bf16.512", kind, power), halves)
            stored(builder, made, element(builder, by_row, row_at, middle, *[half] * i))
            rounded.append(builder.zext(made, whole))
        both = builder.or_(rounded[0], builder.shl(rounded[1], ir.Constant(whole, [16] * LANES)))
        stored(builder, both, element(builder, by_pair, pair_at, place))
        return []

    loop(builder, width, LANES, [], turn)


def _exponential(builder: Any, x: Any) -> Any:
    """Return exp of what is at most 0, within 2e-7 + 1e-7·|x| of its size; below −87 it is 0.

    2^n · 2^r with r in [−.5, .5]; n is rounded by adding what leaves no place for digits after the point.
    """
    ir = llvm.ir()

    def all_of(value: float) -> Any:
        return ir.Constant(_registers(), [float(np.float32(value))] * LANES)

    large, factor = all_of(1.5 * 2**23), all_of(np.log2(np.e))
    n = builder.fsub(multiply_add(builder, x, factor, large), large)
    r = multiply_add(builder, x, factor, builder.fneg(n))
    *following, y = (all_of(power) for power in _powers())
    for power in [*reversed(following), all_of(1.0)]:  # exp(0) is 1 to the last digit, and sums stay as they are
        y = multiply_add(builder, y, r, power)
    normal = builder.fcmp_unordered(">=", x, all_of(_LEAST))  # true of a NaN
    mask, usual = builder.bitcast(normal, ir.IntType(LANES)), ir.IntType(32)(4)
    return called(builder, "llvm.x86.avx512.mask.scalef.ps.512", _registers(), y, n, all_of(0.0), mask, usual)


@functools.cache
def _powers() -> list[float]:
    """Return the polynomial of degree 5 that is nearest to (2^r − 1) / r, but for a little, by Chebyshev's points."""
    nearest = np.polynomial.Chebyshev.interpolate(lambda r: np.expm1(r * np.log(2)) / r, 5, domain=[-0.5, 0.5])
    return [float(power) for power in nearest.convert(kind=np.polynomial.Polynomial).coef]


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return called(builder, "llvm.x86.avx512.max.ps.512", _registers(), x, y, llvm.ir().IntType(32)(4))


@functools.cache
def _registers() -> Any:
    return llvm.ir().VectorType(llvm.ir().FloatType(), LANES)
