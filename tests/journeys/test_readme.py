"""What the README shows, run as it stands there, in an empty folder with a small log of one's own.

Every line of its shell blocks runs, in order, and so does its Python. Only what installs or takes minutes (``make …``,
activating the environment) is checked for being there, and a server is started, asked, and stopped.
"""

import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text("utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text: str = README) -> list[str]:
    """Return the commands of all shell blocks in order, without comments, lines that go on joined."""
    lines = "\n".join(blocks("sh", text)).replace("\\\n", " ").splitlines()
    return [" ".join(words) for line in lines if (words := shlex.split(line, comments=True, posix=False))]


def write_log(path: Path) -> None:
    """Write a log of 120 buyers and 60 listings, as a shop would export it: each buyer has one taste of three."""
    rows = ["user_id,listing,action,at"]
    for step in range(12):
        for buyer in range(120):
            listing = buyer % 3 * 20 + (buyer * 7 + step * 11) % 20
            action = ("view", "view", "save", "message")[(buyer + step) % 4]
            minute = step * 120 + buyer
            rows.append(
                f"u{buyer},L{listing},{action},2026-03-{1 + step:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00"
            )
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the log that the README's user has."""
    folder = tmp_path_factory.mktemp("readme")
    write_log(folder / "shop.csv")
    return folder


def environment() -> dict[str, str]:
    """Return an environment in which ``hatchway`` and ``python`` are those of the tests."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def answers(command: str, folder: Path) -> bool:
    """Start a server, ask it whether it is well until it says so, and stop it."""
    port = re.search(r"--port (\d+)", command)
    url = f"http://127.0.0.1:{port[1] if port else 8000}/health"
    with subprocess.Popen(shlex.split(command), cwd=folder, env=environment(), stderr=subprocess.PIPE) as server:
        try:
            for _ in range(300):
                assert server.poll() is None, server.stderr.read().decode() if server.stderr else ""
                try:
                    with urllib.request.urlopen(url, timeout=2) as reply:
                        return bool(reply.status == 200)
                except (urllib.error.URLError, TimeoutError):
                    time.sleep(0.1)
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
    assert ran >= 2


def test_the_blocks_are_found() -> None:
    """The reader of the blocks sees comments, lines that go on, and languages apart."""
    text = (
        "x\n```sh\nmake demo   # long\nhatchway a \\\n  --b 'c d'\n\n```\n```python\nimport x\n```\n```text\nno\n```\n"
    )
    assert commands(text) == ["make demo", "hatchway a --b 'c d'"]
    assert blocks("python", text) == ["import x\n"]
