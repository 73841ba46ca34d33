"""The script of docs/nightly.md: what it calls, how it ends, and that it runs alone."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "nightly.md"
pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock, which util-linux has")
PROGRAM = """#!/bin/sh
echo "$*" >> calls
while [ -e waiting ]; do sleep 0.05; done
[ "$1" = import ] || exit "$ENDS"
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the script where it can be run, beside a program that notes how it is called and ends as it is told."""
    (text,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    for name, content in (("night.sh", text.replace("/srv/hatchway", str(tmp_path))), ("hatchway", PROGRAM)):
        (tmp_path / name).write_text(content, "utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ENDS", "0")
    return tmp_path / "night.sh"


@pytest.mark.parametrize("ends", [0, 2, 3, 4])
def test_the_night_follows_its_import_and_its_exit_code_is_the_scripts(
    script: Path, monkeypatch: pytest.MonkeyPatch, ends: int
) -> None:
    """It tells systemd whether to try again."""
    monkeypatch.setenv("ENDS", str(ends))
    assert subprocess.run([script], check=False).returncode == ends
    first, second = script.with_name("calls").read_text("utf-8").splitlines()
    assert first.startswith("import table logs/*.parquet store --catalogue items.parquet --shown store-nights-serving")
    assert re.match(r"nightly store --day \d{4}-\d\d-\d\d --recipe", second)


def test_a_second_call_takes_no_store_away_from_the_first(script: Path) -> None:
    """It ends at once, with an error and without an import."""
    script.with_name("waiting").touch()
    with subprocess.Popen([script]) as first:
        while not script.with_name("calls").exists():
            time.sleep(0.01)
        assert subprocess.run([script], check=False).returncode == 1
        assert len(script.with_name("calls").read_text("utf-8").splitlines()) == 1
        script.with_name("waiting").unlink()
        assert first.wait(timeout=60) == 0
