"""An error becomes a message on stderr and the exit code that says what kind it was."""

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from hatchway.cli import main as program
from hatchway.errors import DataError, FailureError, GateRefusedError, HatchwayError


def raising(error: BaseException) -> Callable[[], None]:
    """Return a program that does nothing but raise ``error``."""

    def app() -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("x.csv is empty"), 2),
        (FailureError("no room"), 3),
        (GateRefusedError("worse"), 4),
        (HatchwayError("?"), 3),
    ],
)
def test_exit_codes(
    error: HatchwayError, code: int, hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each branch of the tree has its code, and its message is printed without a traceback."""
    monkeypatch.setattr(program, "app", raising(error))
    ended = hatchway("anything")
    assert (ended.code, ended.out, ended.err) == (code, "", f"error: {error}\n")


def test_the_unexpected_is_short_until_asked(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody planned ends with 3 and its last line; the traceback is there on request."""
    monkeypatch.delenv("HATCHWAY_DEBUG", raising=False)
    monkeypatch.setattr(program, "app", raising(ZeroDivisionError("by nothing")))
    ended = hatchway("anything")
    assert ended.code == 3
    assert ended.err.splitlines()[0] == "unexpected error: ZeroDivisionError: by nothing"
    assert "HATCHWAY_DEBUG=1" in ended.err
    monkeypatch.setenv("HATCHWAY_DEBUG", "1")
    assert "Traceback" in hatchway("anything").err


def test_a_full_disk_is_said_in_one_line(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses is the work's failure: place and cause, and no talk of tracebacks."""
    monkeypatch.delenv("HATCHWAY_DEBUG", raising=False)
    monkeypatch.setattr(program, "app", raising(OSError(errno.ENOSPC, "No space left on device", "runs/a/x")))
    ended = hatchway("anything")
    assert (ended.code, ended.out, ended.err) == (3, "", "error: runs/a/x: No space left on device\n")


def test_interrupted(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a command ends with 130 and a word."""
    monkeypatch.setattr("hatchway.cost.cost_of", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    ended = hatchway("cost")
    assert (ended.code, ended.err.strip()) == (130, "interrupted")


@pytest.mark.parametrize("arguments", [["no-such-command"], ["cost", "--batc", "3"], ["cost", "--batch", "many"]])
def test_mistakes_on_the_command_line(arguments: list[str], hatchway: Callable[..., Any]) -> None:
    """A command, option or value that does not exist ends with 2 and says which."""
    ended = hatchway(*arguments)
    assert ended.code == 2
    assert arguments[-1].strip("-") in ended.err or arguments[-2] in ended.err
    assert ended.out == ""


def test_settings_out_of_range(hatchway: Callable[..., Any]) -> None:
    """A value of the right type that is not allowed ends with 2, too."""
    ended = hatchway("cost", "--batch", "0")
    assert ended.code == 2
    assert ended.err.startswith("error: batch = 0")


def test_version(hatchway: Callable[..., Any]) -> None:
    """The version is that of the package."""
    assert hatchway("--version").out == f"hatchway {version('hatchway')}\n"


def test_a_terminal_of_few_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot show is a question mark; the result is there all the same."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(program, "app", lambda: sys.stdout.write("recall \u2013\n"))
    program.main()
    sys.stdout.flush()
    assert written.getvalue() == b"recall ?\n"


@pytest.mark.parametrize("arguments", [["--version"], ["cost", "--help"], ["cost", "--json"]])
def test_a_reader_that_went_away_ends_it_without_a_word(arguments: list[str]) -> None:
    """As in ``hatchway … | head -1``: 141, as the shell says of any program that the closed pipe ended."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from hatchway.cli.main import main; main()", *arguments]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_stdout_that_is_closed_is_no_failure() -> None:
    """As in ``hatchway … >&-``: nobody wants to read the result."""
    command = f"{sys.executable} -c 'from hatchway.cli.main import main; main()' cost >&-"
    ended = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
