"""Every source, frequency and loss with a batch on another device; the cases are in doubles/elsewhere_cases.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent.parent / "doubles" / "elsewhere_cases.py"


@pytest.mark.parametrize("numba", ["0", "1"])
def test_everything_runs_on_another_device(numba: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device must be known before the first way back, so the cases have a process of their own."""
    monkeypatch.setenv("HATCHWAY_NUMBA", numba)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(CASES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-1000:]
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) >= 40, ended.stdout
    assert "skipped" not in ended.stdout, ended.stdout
