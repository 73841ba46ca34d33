"""The program ``hatchway``: the visible list of its commands, and how an error becomes a message and an exit code."""

import contextlib
import errno
import io
import os
import sys
import traceback
from typing import Annotated

import typer

import hatchway
from hatchway.cli import (
    cost,
    demo,
    doctor,
    evaluate,
    export,
    import_,
    index,
    nightly,
    ratio,
    recommend,
    report,
    rollback,
    serve,
    simulate,
    train,
)
from hatchway.errors import HatchwayError

_TURNS = "30000"
"""How often PyTorch's threads look for more work before they sleep. By themselves they do so for milliseconds (300,000
times), on processors for which the threads of the loss and of the tables are waiting."""

app = typer.Typer(
    name="hatchway",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        print(f"hatchway {hatchway.__version__}")
        raise typer.Exit


@app.callback()
def hatchway_command(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train and serve the embedding models behind "More like this", with every negative accounted for.

    Results go to stdout, progress and logs to stderr. Exit codes: 0 success; 2 the call, a setting or the input can be
    mended; 3 the work failed; 4 a gate refused the result; 130 interrupted; 141 whoever read the output went away.
    """


# The commands, in the order of the work; each lives in the module of its name. What is heavy (torch, polars, faiss,
# matplotlib) they import when they run, so that help and mistakes answer at once.
app.command("demo")(demo.run)
app.command("import")(import_.run)
app.command("train")(train.run)
app.command("evaluate")(evaluate.run)
app.command("report")(report.run)
app.command("index")(index.run)
app.command("recommend")(recommend.run)
app.command("serve")(serve.run)
app.command("export")(export.run)
app.command("nightly")(nightly.run)
app.command("rollback")(rollback.run)
app.command("simulate")(simulate.run)
app.command("ratio")(ratio.run)
app.command("cost")(cost.run)
app.command("doctor")(doctor.run)


def main() -> None:
    """Run the command line; ends the process with the exit code of what happened."""
    _let_threads_sleep()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of few letters gets question marks, not a failure
        sys.stdout.reconfigure(errors="replace")
    try:
        _answer()
    except BrokenPipeError:
        _end_unread()
    except HatchwayError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == 130:
            print("interrupted", file=sys.stderr)
        if end.code == 1:  # Click's word for a pipe that nobody reads; nothing of ours ends with 1
            _end_unread()
        raise
    except (OSError, MemoryError) as error:  # a full disk, no rights, no room: nothing a traceback would explain
        if os.environ.get("HATCHWAY_DEBUG") == "1":
            traceback.print_exc()
        said, code = _refused_by_system(error)
        print(f"error: {said}", file=sys.stderr)
        sys.exit(code)
    except Exception as error:  # noqa: BLE001 - the outermost edge: a traceback is no message
        print(
            traceback.format_exc() if os.environ.get("HATCHWAY_DEBUG") == "1" else _unforeseen(error), file=sys.stderr
        )
        sys.exit(3)


def _let_threads_sleep() -> None:
    """Say so where the user says nothing about it; PyTorch, which is not imported yet, will read it then."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _TURNS)


def _answer() -> None:
    """Run the command, and write out what is left: it shall not fail after the last line that could say so."""
    try:
        app()
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def _unforeseen(error: Exception) -> str:
    """Put an error that nobody foresaw into words; PyTorch has no name for memory that ran out, only these words."""
    words = ("can't allocate memory", "not enough memory", "out of memory")
    if isinstance(error, RuntimeError) and any(said in str(error) for said in words):
        return f"error: {_refused_by_system(MemoryError(str(error).splitlines()[0]))[0]}"
    message = "".join(traceback.format_exception_only(error)).strip()
    return f"unexpected error: {message}\nrun it again with HATCHWAY_DEBUG=1 for the whole traceback"


def _refused_by_system(error: OSError | MemoryError) -> tuple[str, int]:
    """Put what the system refused into words, with the remedy where there is one, and the exit code."""
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"there is not enough memory for it{detail}; ask for less, or use a larger machine", 3
    place = f"{error.filename}: " if error.filename else ""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{place}there is a file where a folder is needed (here, or further up); name another place", 2
    if isinstance(error, IsADirectoryError):
        return f"{place}this is a folder, and a file is needed; name the file", 2
    said = error.strerror or str(error)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return f"{place}{said}; give this user the right to it, or name another place", 3
    return f"{place}{said}", 3


def _end_unread() -> None:
    """End without a word, as programs do in ``hatchway … | head -1``; Python would complain of what it cannot flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    sys.exit(141)


if __name__ == "__main__":
    main()
