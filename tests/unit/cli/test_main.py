"""An error becomes a message on stderr and the exit code that says what kind it was."""

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
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


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (FileExistsError(errno.EEXIST, "File exists", "a"), "a: there is a file where a folder is needed", 2),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "a/b"), "a/b: there is a file where a folder is", 2),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "a"), "a: this is a folder, and a file is needed", 2),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied; give this user", 3),
        (OSError(errno.EROFS, "Read-only file system", "a"), "a: Read-only file system; give this user", 3),
        (MemoryError("Unable to allocate 9 TiB"), "not enough memory for it (Unable to allocate 9 TiB); ask for", 3),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12 bytes.\nframe #0: ..."),
            "not enough memory for it (DefaultCPUAllocator: can't allocate memory: you tried to allocate 12 bytes.)",
            3,
        ),
    ],
)
def test_what_the_system_refuses_is_said_with_its_remedy(
    error: Exception, said: str, code: int, hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file for a folder can be mended by the call (2); rights and memory are of the machine (3)."""
    monkeypatch.setattr(program, "app", raising(error))
    ended = hatchway()
    assert ended.code == code
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ("train", "store", "--out", "{}"),
        ("export", "run", "--out", "{}"),
        ("index", "run", "--out", "{}/bundle"),
        ("simulate", "{}/store"),
        ("import", "sequences", "log.txt", "{}/store"),
        ("demo", "--out", "{}/demo"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_refused_before_any_work(
    command: tuple[str, ...], hatchway: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where a folder is needed, or a folder without rights, is named with exit 2; nothing is read or written."""
    (tmp_path / "notes").write_text("mine")
    ended = hatchway(*(part.format(tmp_path / "notes") for part in command))
    assert ended.code == 2
    assert f"{tmp_path / 'notes'} is a file, and a folder is needed there; name another place" in ended.err
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # noqa: ARG005
    ended = hatchway(*(part.format(tmp_path / "new") for part in command))
    assert ended.code == 2
    assert f"this user may not write in {tmp_path}" in ended.err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("notes", "mine")]


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


@pytest.mark.parametrize(
    ("said", "turns"), [({}, "30000"), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "passive"}, "0")]
)
def test_threads_of_pytorch_do_not_wait_long_on_a_processor(said: dict[str, str], turns: str) -> None:
    """GNU's OpenMP says at its start what it was told, which a user who says something himself decides."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("hatchway")), "doctor"],
        env=environment | {"OMP_DISPLAY_ENV": "verbose"} | said,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    if "GOMP_SPINCOUNT" not in ended.stderr:
        pytest.skip("this PyTorch has another OpenMP")
    assert f"GOMP_SPINCOUNT = '{turns}'" in ended.stderr
