"""Exponentials in the processor's registers, for compiled functions that multiply what comes of them.

A compiler that is shown a loop over numbers needs twice as many instructions. Arrays are flat, and an ``_at`` says
where in them to begin; ``width`` is a multiple of REGISTER. In plain Python these functions do nothing.
"""

import functools
from typing import Any

import numpy as np

from hatchway.compiled import llvm
from hatchway.compiled.llvm import REGISTER, element, everywhere, loaded, loop, multiply_add, stored

_LEAST = -87.0
"""Below it an exponential is no normal float32, and is taken for 0."""


def sum_exponentials(logits: Any, at: Any, width: Any, peak: Any, total: Any, lanes_at: Any) -> None:
    """Add the exponentials of a row to REGISTER sums, each over the largest that its own lane has had so far.

    What was summed before is brought over the new peak. No lane waits for another: whoever wants the sum of all joins
    them, once. A lane's peak must be more than −inf to begin with. A NaN, or +inf, makes its lane's sum NaN.
    """


def round_exponentials(
    logits: Any,
    at: Any,
    step: Any,
    width: Any,
    peak: Any,
    peak_at: Any,
    by_row: Any,
    row_at: Any,
    by_pair: Any,
    pair_at: Any,
) -> None:
    """Write the exponentials of two rows of ``width`` logits as bf16, each row's over its peak.

    The second row is ``step`` after the first. ``by_row`` gets them so, two neighbours to an element and ``step`` / 2
    apart; ``by_pair`` one of each to an element. Rows whose peak is inf become 0.
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
    (after,) = loop(builder, width, REGISTER, [before], lambda place, top: [_larger(builder, row(place), *top)])
    so_far = builder.fmul(loaded(builder, totals, _registers()), _exponential(builder, builder.fsub(before, after)))

    def turn(place: Any, sums: list[Any]) -> list[Any]:
        return [builder.fadd(*sums, _exponential(builder, builder.fsub(row(place), after)))]

    # A row from nothing, and then to what is there: a sum of many alike to which each is added drifts.
    (added,) = loop(builder, width, REGISTER, [llvm.ir().Constant(_registers(), [0.0] * REGISTER)], turn)
    stored(builder, builder.fadd(so_far, added), totals)
    stored(builder, after, peaks)


def _round_exponentials(
    builder: Any,
    logits: Any,
    at: Any,
    step: Any,
    width: Any,
    peak: Any,
    peak_at: Any,
    by_row: Any,
    row_at: Any,
    by_pair: Any,
    pair_at: Any,
) -> None:
    ir = llvm.ir()
    halves, whole, narrow = (ir.VectorType(kind, REGISTER) for kind in (ir.IntType(16), ir.IntType(32), llvm.bfloat()))
    peaks = [everywhere(builder, builder.load(element(builder, peak, peak_at, i)), REGISTER) for i in range(2)]
    rows = [at, builder.add(at, step)]
    rows_out = [row_at, builder.add(row_at, builder.lshr(step, step.type(1)))]

    def turn(place: Any, _: list[Any]) -> list[Any]:
        rounded = []
        for largest, row, row_out in zip(peaks, rows, rows_out, strict=True):
            logit = loaded(builder, element(builder, logits, row, place), _registers())
            share = builder.fptrunc(_exponential(builder, builder.fsub(logit, largest)), narrow)
            rounded.append(builder.bitcast(share, halves))
            stored(builder, rounded[-1], element(builder, by_row, row_out, builder.lshr(place, place.type(1))))
        one, two = (builder.zext(half, whole) for half in rounded)
        both = builder.or_(one, builder.shl(two, ir.Constant(whole, [16] * REGISTER)))
        stored(builder, both, element(builder, by_pair, pair_at, place))
        return []

    loop(builder, width, REGISTER, [], turn)


def _exponential(builder: Any, x: Any) -> Any:
    """Return exp of what is at most 0, within 2e-7 + 1e-7·|x| of its size; below −87 it is 0.

    2^n · 2^r with r in [−.5, .5]. Added to 1.5 · 2^23, n stands in the lowest bits, rounded: what comes after the point
    has no place there.
    """
    ir = llvm.ir()
    whole = ir.VectorType(ir.IntType(32), REGISTER)

    def all_of(value: float) -> Any:
        return ir.Constant(_registers(), [float(np.float32(value))] * REGISTER)

    def all_of_whole(value: int) -> Any:
        return ir.Constant(whole, [value] * REGISTER)

    large, factor = all_of(1.5 * 2**23), all_of(np.log2(np.e))
    lowest = multiply_add(builder, x, factor, large)
    r = multiply_add(builder, x, factor, builder.fsub(large, lowest))
    *following, y = (all_of(power) for power in _powers())
    for power in [*reversed(following), all_of(1.0)]:  # exp(0) is 1 to the last digit, and sums stay as they are
        y = multiply_add(builder, y, r, power)
    exponent = builder.shl(builder.bitcast(lowest, whole), all_of_whole(23))
    power = builder.bitcast(builder.add(exponent, all_of_whole(127 << 23)), _registers())
    tiny = builder.fcmp_ordered("<", x, all_of(_LEAST))  # not of a NaN, which times anything is one
    return builder.select(tiny, all_of(0.0), builder.fmul(y, power))


@functools.cache
def _powers() -> list[float]:
    """Return the polynomial of degree 5 that is nearest to (2^r − 1) / r, but for a little, by Chebyshev's points."""
    nearest = np.polynomial.Chebyshev.interpolate(lambda r: np.expm1(r * np.log(2)) / r, 5, domain=[-0.5, 0.5])
    return [float(power) for power in nearest.convert(kind=np.polynomial.Polynomial).coef]


def _larger(builder: Any, x: Any, y: Any) -> Any:
    """Return the larger of two, and ``y`` where one is NaN: a single instruction where processors have that."""
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _registers() -> Any:
    return llvm.ir().VectorType(llvm.ir().FloatType(), REGISTER)
