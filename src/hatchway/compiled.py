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

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


@functools.cache
def available() -> bool:
    """Whether numba is installed and not switched off by ``HATCHWAY_NUMBA=0`` in the environment."""
    return os.environ.get("HATCHWAY_NUMBA", "1") != "0" and importlib.util.find_spec("numba") is not None


def suits(*tensors: Tensor) -> bool:
    """Whether compiled functions can work on these tensors: numba is there, and they lie in the CPU's memory."""
    return all(tensor.device.type == "cpu" for tensor in tensors) and available()


class Compiled(Generic[*Arguments, Result]):
    """A function of NumPy arrays and numbers, compiled when it is first called with arguments of their types.

    It does not hold Python's lock while it runs, so that several threads can work on parts of an array. It may not call
    another compiled function. Machine code is kept beside the module, or in the user's cache where that cannot be
    written, so that only the first process ever waits for the compiler.
    """

    def __init__(self, function: Callable[[*Arguments], Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @functools.cached_property
    def _machine_code(self) -> Callable[[*Arguments], Result]:
        numba: Any = importlib.import_module("numba")
        compiler = functools.partial(numba.njit, nogil=True, error_model="numpy")
        try:
            code: Callable[[*Arguments], Result] = compiler(cache=True)(self._function)
        except RuntimeError:  # there is no folder for machine code that can be written
            code = compiler()(self._function)
        return code

    def __call__(self, *arguments: *Arguments) -> Result:
        """Run the machine code."""
        return self._machine_code(*arguments)


def over_parts(work: Callable[[int, int], object], size: int, grain: int) -> None:
    """Call ``work(begin, end)`` on parts of ``range(size)``, as many at once as PyTorch has threads.

    Args:
        work: must not hold Python's lock for long, and its parts must not disturb each other.
        size: the whole.
        grain: no part is smaller than this, so that little work is done without waking threads.
    """
    parts = max(1, min(torch.get_num_threads(), size // max(grain, 1)))
    bounds = [size * part // parts for part in range(parts + 1)]
    failures: list[BaseException] = []

    def guarded(begin: int, end: int) -> None:
        try:
            work(begin, end)
        except BaseException as error:  # noqa: BLE001  raised again below, in the caller's thread
            failures.append(error)

    # Threads of the moment: a pool would have to survive forks, and starting one costs some tens of microseconds.
    helpers = [threading.Thread(target=guarded, args=part) for part in itertools.pairwise(bounds[1:])]
    for helper in helpers:
        helper.start()
    guarded(bounds[0], bounds[1])
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
