"""What the README shows, run as it stands there, in an empty folder with a small log of one's own.

Every line of its shell blocks runs, in order, and so does its Python. Only what installs or takes minutes (``make …``,
activating the environment) is checked for being there, and a server is started, asked, and stopped.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hatchway.randomness import stream

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text("utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text: str = README) -> list[str]:
    """Return the commands of all shell blocks in order, without comments, lines that go on joined."""
    lines = "\n".join(blocks("sh", text)).replace("\\\n", " ").splitlines()
    return [" ".join(words) for line in lines if (words := shlex.split(line, comments=True, posix=False))]


def write_tables(folder: Path) -> None:
    """Write what a shop would export: ``shop.csv``, who did what with which listing and when, and ``listings.csv``.

    200 buyers with one taste of three each; nine in ten of their clicks follow it, and every third click is a save or a
    message about what was looked at just before.
    """
    draw = stream(1, "a shop of one's own")
    kinds = ("Sofa", "Lamp", "Bicycle")
    listings = ["id,title,category,price"]
    listings += [
        f"L{number},{kinds[number % 3]} no. {number},{kinds[number % 3]},{20 + number}" for number in range(90)
    ]
    rows = ["user_id,listing,action,at"]
    for step in range(24):
        for buyer in range(200):
            taste = buyer % 3 if draw.random() < 0.9 else int(draw.integers(3))
            listing = f"L{taste + 3 * int(30 * draw.random() ** 2)}"
            hour, second = divmod(step * 3000 + buyer * 3, 3600)
            day, hour = divmod(hour, 4)
            when = f"2026-03-{1 + day:02d}T{8 + hour:02d}:{second // 60:02d}:{second % 60:02d}"
            rows.append(f"u{buyer},{listing},view,{when}")
            if draw.random() < 1 / 3:
                rows.append(f"u{buyer},{listing},{draw.choice(['save', 'message'])},{when}")
    (folder / "shop.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "listings.csv").write_text("\n".join(listings) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables that the README's user has."""
    folder = tmp_path_factory.mktemp("readme")
    write_tables(folder)
    return folder


def environment() -> dict[str, str]:
    """Return an environment in which ``hatchway`` and ``python`` are those of the tests."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def answers(command: str, folder: Path) -> bool:
    """Start a server on a free port, ask it whether it is well until it says so (for two minutes), and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*shlex.split(command), "--port", str(port)]
    latest = time.monotonic() + 120
    with subprocess.Popen(words, cwd=folder, env=environment(), stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None and time.monotonic() < latest:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as reply:
                        return bool(reply.status == 200)
                except (urllib.error.URLError, TimeoutError):
                    time.sleep(0.2)
        finally:
            server.terminate()
    return False


def test_every_shell_command_runs(folder: Path) -> None:
    """All commands of the README end with 0, one after the other, in one folder."""
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    ran = 0
    for command in commands():
        if command.startswith("make "):
            assert set(command.split()[1:]) <= set(targets), command
        elif command.startswith("hatchway serve"):
            assert answers(command, folder), command
        elif command != ". .venv/bin/activate":
            ended = subprocess.run(
                ["bash", "-euc", command], cwd=folder, env=environment(), capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
            ran += 1
    assert ran >= 8


def test_the_python_runs(folder: Path) -> None:
    """The first Python that the README shows runs as it stands, on the same tables, in at most fifteen lines."""
    first = blocks("python")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    work = folder / "python"
    work.mkdir()
    write_tables(work)
    ended = subprocess.run([sys.executable, "-c", first], cwd=work, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "L" in ended.stdout


def test_the_blocks_are_found() -> None:
    """The reader of the blocks sees comments, lines that go on, and languages apart."""
    text = (
        "x\n```sh\nmake demo   # long\nhatchway a \\\n  --b 'c d'\n\n```\n```python\nimport x\n```\n```text\nno\n```\n"
    )
    assert commands(text) == ["make demo", "hatchway a --b 'c d'"]
    assert blocks("python", text) == ["import x\n"]
