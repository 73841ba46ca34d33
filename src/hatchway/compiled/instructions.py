"""What compiled functions may say beside arithmetic: instructions of the processor, and functions written out.

In plain Python the instructions do nothing.
"""

import functools
import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

Written = TypeVar("Written", bound=Callable[..., Any])


def written_out(function: Written) -> Written:
    """Let compiled functions call this one: its lines then stand where it is called, and are compiled with the rest."""
    function.__dict__["written_out"] = True
    return function


def ahead(array: Any, place: Any) -> None:
    """Inside a compiled function: have memory bring ``array[place]``, which the loop will soon read.

    The loop goes on meanwhile. A place that is seldom in any cache costs about as much as a hundred others when it is
    waited for, and next to nothing when it was asked for a hundred turns before. Nothing changes but time, and a place
    that does not exist is no error. Elsewhere, and in the plain paths, this does nothing.

    Args:
        array: contiguous, of one dimension.
        place: a whole number.
    """


def ahead_of_change(array: Any, place: Any) -> None:
    """Do what :func:`ahead` does for a place that will be written as well: it is then nobody else's meanwhile."""


def far_ahead(array: Any, place: Any) -> None:
    """Do what :func:`ahead` does, but bring the place to the second-level cache only.

    That cache waits for more places at a time than the first one can. Asked for twice, far ahead and then ahead,
    places at random arrive a fifth sooner.
    """


def widest() -> None:
    """Inside a compiled function: work with the widest vectors that the processor has.

    By itself the compiler leaves half of AVX-512's width unused, since early processors slowed down with all of it. Of
    use where loops do long arithmetic, beside matrix products that use the whole width anyhow. Elsewhere this does
    nothing.
    """


@written_out
def exponential(x: Any) -> Any:
    """Inside a compiled function: return exp(x) of a float32 that is at most 0, within 3e-7; below −87 it is 0.

    2^n · exp(r), with a polynomial for the remainder (Cephes' expf). There is no branch, so that a loop over it becomes
    vector instructions.
    """
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    y = np.float32(1.9875691500e-4)
    y = y * r + np.float32(1.3981999507e-3)
    y = y * r + np.float32(8.3334519073e-3)
    y = y * r + np.float32(4.1665795894e-2)
    y = y * r + np.float32(1.6666665459e-1)
    y = y * r + np.float32(5.0000001201e-1)
    y = y * r * r + r + np.float32(1.0)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0.0) if x < np.float32(-87.0) else y * power


@written_out
def bf16(x: Any) -> Any:
    """Inside a compiled function: return the bits of a float32, rounded to the nearest bf16 in the upper half.

    The lower half is of no meaning. A NaN stays one.
    """
    bits = np.float32(x).view(np.int32)
    number = np.int32(x == x)  # noqa: PLR0124  0 for NaN, of which a bit of the upper half must stay set
    up = np.int32(0x7FFF) + ((bits >> np.int32(16)) & np.int32(1))
    return np.int32((bits + up * number) | ((np.int32(1) - number) << np.int32(22)))


@written_out
def pair(low: Any, high: Any) -> Any:
    """Inside a compiled function: return two float32 as bf16 in the halves of one element, an int32."""
    lower, upper = (bf16(low) >> np.int32(16)) & np.int32(0xFFFF), bf16(high) & np.int32(-65536)
    return np.int32(lower | upper)


@written_out
def stretch_ahead(array: Any, begin: Any, end: Any) -> None:
    """Do what :func:`far_ahead` does for every line of ``array[begin:end]``; elements have four bytes.

    The processor sees by itself where an array is read from end to end, but not where a few dozen are read together.
    """
    for place in range(begin, end, 16):
        far_ahead(array, place)


@functools.cache
def _teach_written_out(function: Callable[..., Any]) -> None:
    """Tell numba what one function is that is written out."""
    extending: Any = importlib.import_module("numba.extending")
    extending.register_jitable(inline="always")(function)
    teach_called(function)


def teach_called(function: Callable[..., Any]) -> None:
    """Tell numba what the functions written out are that a function calls."""
    for called in _called(function):
        _teach_written_out(called)


def _called(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return the functions written out that a function names."""
    named: list[Any] = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [called for called in named if getattr(called, "written_out", None) is True]


def digest(function: Callable[..., Any]) -> str:
    """Return what changes when machine code of a function must, beside what its own module says.

    That is what any function says that is written out in it, this package, and constants from anywhere. numba itself
    looks at the function's module alone, and would go on with old machine code after an upgrade.
    """
    package = Path(__file__).parent
    seen, waiting, found = {function}, [function], hashlib.sha256()
    sources = set(package.glob("*.py"))
    while waiting:
        one = waiting.pop()
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, int | float | str | np.generic):
                found.update(f"{one.__qualname__} {name} {value!r}".encode())
        new = [called for called in _called(one) if called not in seen]
        seen.update(new)
        waiting += new
        sources.update(Path(called.__code__.co_filename) for called in new)
    for source in sorted(sources):
        found.update(source.read_bytes() if source.is_file() else b"")
    return found.hexdigest()[:16]


@functools.cache
def teach() -> None:
    """Tell numba what becomes of :func:`ahead` and its kin, an instruction of the processor each, and of the rest."""
    extending, numba_types, helpers, ir = (
        cast("Any", importlib.import_module(name))
        for name in ("numba.extending", "numba.core.types", "numba.core.cgutils", "llvmlite.ir")
    )

    def typed(_context: Any) -> Any:
        def typer(array: Any, place: Any) -> Any:
            known = isinstance(array, numba_types.Array) and array.ndim == 1 and array.layout == "C"
            return numba_types.none if known and isinstance(place, numba_types.Integer) else None

        return typer

    def lowered(change: int, near: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        instruction = helpers.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        where = builder.bitcast(builder.gep(array.data, [arguments[1]]), pointer)
        builder.call(instruction, [where, number(change), number(near), number(1)])  # 1: data, no code
        return context.get_dummy_value()

    for function, change, near in ((ahead, 0, 3), (ahead_of_change, 1, 3), (far_ahead, 0, 2)):
        extending.type_callable(function)(typed)
        lower = extending.lower_builtin(function, numba_types.Array, numba_types.Integer)
        lower(functools.partial(lowered, change, near))

    def widened(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        # llvmlite knows a list of attributes that have no value; this one is written out as it stands.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    extending.type_callable(widest)(lambda _context: lambda: numba_types.none)
    extending.lower_builtin(widest)(widened)
