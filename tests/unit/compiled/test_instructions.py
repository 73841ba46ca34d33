"""Functions that are written out in compiled ones: as such, and where they stand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from hatchway.compiled import Compiled, available, bf16, exponential, stretch_ahead, written_out

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
Array = npt.NDArray[Any]


@Compiled
def rounded(numbers: Array, out: Array) -> None:
    """Round each."""
    for at in range(len(numbers)):
        out[at] = bf16(numbers[at])


@Compiled
def exponentials(numbers: Array, out: Array) -> None:
    """Take each one's, and ask memory for more than there is."""
    stretch_ahead(numbers, 0, 2 * len(numbers))
    for at in range(len(numbers)):
        out[at] = exponential(numbers[at])


@written_out
def _twice(x: Any) -> Any:
    return x + x


@written_out
def _four_times(x: Any) -> Any:
    return _twice(_twice(x))


@Compiled
def four_times(x: int) -> int:
    """Call one that calls another."""
    result: int = _four_times(x)
    return result


def test_bf16_is_rounded_as_pytorch_rounds() -> None:
    """Random bits: every sign and size, subnormals, infinities, NaNs of any payload, ties."""
    bits = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32)
    bits[:8] = [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000]
    numbers = bits.view(np.float32)
    out = np.empty(len(numbers), np.int32)
    rounded(numbers, out)
    found = (out & np.int32(-65536)).view(np.float32)
    wanted = torch.from_numpy(numbers).bfloat16().float().numpy()
    assert np.array_equal(found, wanted, equal_nan=True)


def test_exponentials_to_seven_digits_and_nothing_below() -> None:
    """From −87 to 0 within 5e-7 of float64; 0 below, and NaN for NaN."""
    numbers = np.linspace(-87, 0, 100_001).astype(np.float32)
    out = np.empty_like(numbers)
    exponentials(numbers, out)
    wanted = np.exp(numbers.astype(np.float64))
    assert (np.abs(out - wanted) / wanted).max() < 5e-7
    beyond = np.array([-87.5, -1e4, -np.inf, np.nan], np.float32)
    out = np.empty_like(beyond)
    exponentials(beyond, out)
    assert out[:3].tolist() == [0, 0, 0]
    assert np.isnan(out[3])


def test_one_that_is_written_out_may_call_another() -> None:
    """Numba knows all of them before it compiles."""
    assert four_times(3) == 12
    assert _four_times(3) == 12


def test_machine_code_is_made_anew_when_what_is_written_out_in_it_changes(tmp_path: Path) -> None:
    """A function elsewhere, one that it calls, and a constant from a third place, each after code was put on disk."""
    (tmp_path / "constants.py").write_text("HUNDRED = 100\n")
    (tmp_path / "below.py").write_text(
        "from hatchway.compiled import written_out\n@written_out\ndef below(x):\n    return x + 1\n"
    )
    (tmp_path / "between.py").write_text(
        "from hatchway.compiled import written_out\nfrom below import below\n"
        "@written_out\ndef between(x):\n    return below(x) + 10\n"
    )
    (tmp_path / "program.py").write_text(
        "from hatchway.compiled import Compiled\nfrom between import between\nfrom constants import HUNDRED\n"
        "@Compiled\ndef summed(x):\n    return between(x) + HUNDRED\n"
        "print(summed(0), len(summed._machine_code.stats.cache_hits))\n"
    )

    def run() -> str:
        command = [sys.executable, "-W", "error", "program.py"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert [run(), run()] == ["111 0", "111 1"]  # the second from disk
    for name, before, after, wanted in (
        ("below", "+ 1", "+ 2", "112 0"),
        ("between", "+ 10", "+ 20", "122 0"),
        ("constants", "100", "200", "222 0"),
    ):
        file = tmp_path / f"{name}.py"
        file.write_text(file.read_text().replace(before, after))
        assert run() == wanted
