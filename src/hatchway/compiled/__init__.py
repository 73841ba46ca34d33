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
from typing import Any, Generic, TypeVar, TypeVarTuple

import torch
from torch import Tensor

from hatchway.compiled import instructions, matrix_unit, register_exponentials, register_tiles
from hatchway.compiled.instructions import (
    ahead,
    ahead_of_change,
    bf16,
    exponential,
    far_ahead,
    pair,
    stretch_ahead,
    widest,
    written_out,
)

__all__ = [
    "Compiled",
    "CompiledInAnyOrder",
    "ahead",
    "ahead_of_change",
    "at_once",
    "available",
    "bf16",
    "exponential",
    "far_ahead",
    "pair",
    "parts_of",
    "stretch_ahead",
    "suits",
    "widest",
    "written_out",
]

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


@functools.cache
def available() -> bool:
    """Whether numba is installed and not switched off in the environment.

    That is done by ``HATCHWAY_NUMBA=0``, or numba's own ``NUMBA_DISABLE_JIT=1``: compiled functions would then run in
    Python, to which instructions of the processor mean nothing.
    """
    off = os.environ.get("HATCHWAY_NUMBA", "1") == "0" or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not off and importlib.util.find_spec("numba") is not None


def suits(*tensors: Tensor) -> bool:
    """Whether compiled functions can work on these tensors: numba is there, and they lie in the CPU's memory."""
    return all(tensor.device.type == "cpu" for tensor in tensors) and available()


class Compiled(Generic[*Arguments, Result]):
    """A function of NumPy arrays and numbers, compiled when it is first called with arguments of their types.

    It does not hold Python's lock while it runs, so that several threads can work on parts of an array. It may call
    functions that are :func:`written_out`, and no other compiled ones. Machine code is kept beside the module, or in
    the user's cache where that cannot be written, so that only the first process ever waits for the compiler.
    """

    _liberties: frozenset[str] = frozenset()

    def __init__(self, function: Callable[[*Arguments], Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @functools.cached_property
    def _machine_code(self) -> Callable[[*Arguments], Result]:
        numba: Any = importlib.import_module("numba")
        instructions.teach()
        register_tiles.teach()
        matrix_unit.teach()
        register_exponentials.teach()
        instructions.teach_called(self._function)
        # The name is part of that of the file with the machine code.
        self._function.__qualname__ = f"{self._function.__name__}_{instructions.digest(self._function)}"
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
