"""Functions that numba compiles, where it is installed; whoever calls one has a plain path beside it.

Integer work on arrays (joins, draws, sums by row) is a few instructions an element, which a chain of tensor operations
turns into several passes over memory. The plain paths give the same results without numba
(``pip install 'hatchway[speed]'``), and tests hold each pair together.
"""

import functools
import importlib.util
import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

import torch
from torch import Tensor

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


@functools.cache
def available() -> bool:
    """Whether numba is installed and not switched off by ``HATCHWAY_NUMBA=0`` in the environment."""
    return os.environ.get("HATCHWAY_NUMBA", "1") != "0" and importlib.util.find_spec("numba") is not None


def suits(*tensors: Tensor) -> bool:
    """Whether compiled functions can work on these tensors: numba is there, and they lie in the CPU's memory."""
    return all(tensor.device.type == "cpu" for tensor in tensors) and available()


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


@functools.cache
def _teach() -> None:
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


class Compiled(Generic[*Arguments, Result]):
    """A function of NumPy arrays and numbers, compiled when it is first called with arguments of their types.

    It does not hold Python's lock while it runs, so that several threads can work on parts of an array. It may not call
    another compiled function. Machine code is kept beside the module, or in the user's cache where that cannot be
    written, so that only the first process ever waits for the compiler.
    """

    _liberties: frozenset[str] = frozenset()

    def __init__(self, function: Callable[[*Arguments], Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @functools.cached_property
    def _machine_code(self) -> Callable[[*Arguments], Result]:
        numba: Any = importlib.import_module("numba")
        _teach()
        compiler = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath=set(self._liberties))
        try:
            code: Callable[[*Arguments], Result] = compiler(cache=True)(self._function)
        except RuntimeError:  # there is no folder for machine code that can be written
            code = compiler()(self._function)
        return code

    def __call__(self, *arguments: *Arguments) -> Result:
        """Run the machine code."""
        try:
            return self._machine_code(*arguments)
        except SystemError as error:
            # Ctrl-C, or what else a signal raises, that comes while numba makes the result is wrapped, once or twice.
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None


class CompiledInAnyOrder(Compiled[*Arguments, Result]):
    """The same, where sums of floats may be taken in any order, which lets them use vector instructions.

    NaNs and infinities keep their meaning.
    """

    _liberties = frozenset({"reassoc", "contract", "nsz"})


def parts_of(size: int, grain: int) -> list[tuple[int, int]]:
    """Cut ``range(size)`` into as many equal parts as PyTorch has threads, none smaller than ``grain``.

    >>> torch.set_num_threads(2)
    >>> parts_of(10, 4), parts_of(7, 4)
    ([(0, 5), (5, 10)], [(0, 7)])
    """
    number = max(1, min(torch.get_num_threads(), size // max(grain, 1)))
    return list(itertools.pairwise(size * part // number for part in range(number + 1)))


def at_once(work: Callable[[int, int, int], object], parts: list[tuple[int, int]]) -> None:
    """Call ``work(number, begin, end)`` for every part, each in a thread of its own, without recording gradients.

    Tensor operations inside keep to the part's thread: parts that meet only at the end lose less to each other, and to
    other programs, than operations that meet at every one's end.

    Args:
        work: spends its time in tensor operations and compiled functions; its parts must not disturb each other.
        parts: from :func:`parts_of`; a single one is done as if it had been called directly.
    """
    if len(parts) == 1:
        with torch.no_grad():
            work(0, *parts[0])
        return
    threads, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()
    failures: list[BaseException] = []

    def guarded(number: int, begin: int, end: int) -> None:
        torch.set_num_threads(1)  # of the thread that says it
        try:
            with torch.inference_mode(inference), torch.no_grad():
                work(number, begin, end)
        except BaseException as error:  # noqa: BLE001  raised again below, in the caller's thread
            failures.append(error)

    # Threads of the moment: a pool would have to survive forks, and starting one costs some tens of microseconds.
    helpers = [threading.Thread(target=guarded, args=(number, *parts[number])) for number in range(1, len(parts))]
    try:
        for helper in helpers:
            helper.start()
        guarded(0, *parts[0])
        for helper in helpers:
            helper.join()
    finally:
        torch.set_num_threads(threads)
    if failures:
        raise failures[0]
