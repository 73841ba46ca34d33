"""Compiled functions: when they are used, and how work is cut into parts."""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from hatchway import compiled


def test_the_environment_can_switch_it_off() -> None:
    """``HATCHWAY_NUMBA=0`` is obeyed, as is numba's own switch, and numba is not even imported."""
    program = (
        "import sys, torch; from hatchway.negatives.matching import matching_columns as m; "
        "from hatchway.compiled import available; x = torch.tensor([3]); m(x, x); "
        "print(available(), 'numba' in sys.modules)"
    )
    for name, value, wanted in (
        ("HATCHWAY_NUMBA", "0", "False False"),
        ("HATCHWAY_NUMBA", "1", None),
        ("NUMBA_DISABLE_JIT", "1", "False False"),
        ("NUMBA_DISABLE_JIT", "0", None),
    ):
        said = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={name: value, "OMP_NUM_THREADS": "1", "PATH": ""},
        ).stdout.strip()
        there = importlib.util.find_spec("numba") is not None
        assert said == (wanted or f"{there} {there}")


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_a_compiled_function_keeps_its_name_and_result() -> None:
    """Compiled on the first call, the same on the second."""

    @compiled.Compiled
    def total(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        """Sum."""
        result = 0
        for at in range(len(numbers)):
            result += int(numbers[at])
        return result

    assert [total(np.arange(4)), total(np.arange(5))] == [6, 10]
    assert total.__doc__ == "Sum."


def test_nothing_compiled_works_on_other_devices() -> None:
    """A tensor elsewhere sends the caller to the plain path."""
    assert not compiled.suits(torch.empty(1, device="meta"), torch.empty(1))
    assert compiled.suits(torch.empty(1)) == compiled.available()


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Give PyTorch two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("size", "grain", "parts"), [(10, 1, 2), (11, 6, 1), (12, 6, 2), (1, 1, 1), (0, 1, 1)])
@pytest.mark.usefixtures("two_threads")
def test_parts_cover_everything_once(size: int, grain: int, parts: int) -> None:
    """As many parts as threads, none smaller than the grain."""
    seen: list[list[int]] = [[] for _ in range(parts)]
    compiled.at_once(lambda number, begin, end: seen[number].extend(range(begin, end)), compiled.parts_of(size, grain))
    assert [index for part in seen for index in part] == list(range(size))


@pytest.mark.usefixtures("two_threads")
def test_parts_have_one_thread_each_and_record_no_gradients() -> None:
    """Inside, tensor operations keep to the part's thread; outside, everything is as before."""
    inside: list[tuple[int, bool, bool]] = []

    def work(number: int, begin: int, end: int) -> None:
        inside.append((torch.get_num_threads(), torch.is_grad_enabled(), torch.is_inference_mode_enabled()))

    compiled.at_once(work, [(0, 1), (1, 2)])
    with torch.inference_mode():
        compiled.at_once(work, [(0, 1), (1, 2)])
    assert inside == [(1, False, False)] * 2 + [(1, False, True)] * 2
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (2, True)


@pytest.mark.usefixtures("two_threads")
def test_a_failure_in_any_part_is_raised() -> None:
    """A helper's exception reaches the caller, whose threads are given back."""

    def work(number: int, begin: int, end: int) -> None:
        if end == 10:
            raise ValueError("the second half")

    with pytest.raises(ValueError, match="the second half"):
        compiled.at_once(work, compiled.parts_of(10, 1))
    assert torch.get_num_threads() == 2


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_what_a_signal_raises_goes_on_as_it_is() -> None:
    """Numba's own code makes results; a signal that falls into it is not turned into a SystemError."""

    @compiled.Compiled
    def made(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> object:
        """Return arrays, which are made into objects of Python."""
        return numbers + 1, numbers + 2, numbers + 3

    class RungError(Exception):
        pass

    def ring(*_: object) -> None:
        raise RungError

    numbers = np.arange(3)
    made(numbers)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for turn in range(300):
            with pytest.raises(RungError):  # noqa: PT012  it comes at any time
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + turn * 1e-7)
                while True:
                    made(numbers)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_asking_ahead_and_wide_vectors_change_nothing() -> None:
    """Within the array and beyond its ends; in plain Python they do nothing at all."""

    @compiled.Compiled
    def total(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        """Sum what was asked for before."""
        compiled.widest()
        result = 0
        for at in range(len(numbers)):
            compiled.ahead(numbers, at + 5)
            compiled.far_ahead(numbers, at + 50)
            compiled.ahead_of_change(numbers, at - 5)
            result += int(numbers[at])
        return result

    numbers = np.arange(9)
    assert total(numbers) == 36
    compiled.ahead(numbers, 100)
    compiled.far_ahead(numbers, 100)
    compiled.ahead_of_change(numbers, 100)
    compiled.widest()
    assert numbers.tolist() == list(range(9))
