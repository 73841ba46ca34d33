"""Compiled functions: when they are used, and how work is cut into parts."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch

from hatchway import compiled


def test_the_environment_can_switch_it_off() -> None:
    """``HATCHWAY_NUMBA=0`` is obeyed, and numba is not even imported."""
    program = (
        "import sys, torch; from hatchway.negatives.matching import matching_columns as m; "
        "from hatchway.compiled import available; x = torch.tensor([3]); m(x, x); "
        "print(available(), 'numba' in sys.modules)"
    )
    for value, wanted in (("0", "False False"), ("1", None)):
        said = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"HATCHWAY_NUMBA": value, "OMP_NUM_THREADS": "1", "PATH": ""},
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


@pytest.mark.parametrize(
    ("threads", "size", "grain", "parts"), [(1, 10, 1, 1), (4, 10, 1, 4), (4, 10, 4, 2), (4, 0, 1, 1)]
)
def test_parts_cover_everything_once(
    threads: int, size: int, grain: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many parts as threads, none smaller than the grain."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    seen: list[tuple[int, int]] = []
    compiled.over_parts(lambda begin, end: seen.append((begin, end)), size, grain)
    assert len(seen) == parts
    assert sorted(index for begin, end in seen for index in range(begin, end)) == list(range(size))


def test_a_failure_in_any_part_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper's exception reaches the caller."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)

    def work(begin: int, end: int) -> None:
        if end == 10:
            raise ValueError("the second half")

    with pytest.raises(ValueError, match="the second half"):
        compiled.over_parts(work, 10, 1)
