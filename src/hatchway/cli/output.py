"""What every command shares: ``--json`` and ``--quiet``, results to stdout, everything else to stderr."""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm

from hatchway.errors import UsageError

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel="Output")
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Say nothing on stderr but warnings and errors.", rich_help_panel="Output"),
]

_NUMBER = re.compile(r"([-+±]?[.\d][\d,.]*(e[-+]?\d+)?\s?[%×x]?|–)?")


class _StderrHandler(logging.Handler):
    """Writes lines above any bar that is being drawn, to whatever stderr is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        tqdm.write(prefix + self.format(record), file=sys.stderr)


def begin(quiet: bool) -> None:
    """Send the library's log lines to stderr; with ``quiet`` only warnings and errors."""
    logger = logging.getLogger("hatchway")
    logger.handlers = [_StderrHandler()]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    logger.propagate = False


def check_place(folder: Path, named: str) -> None:
    """Refuse a place where no folder can be written, before any work is done for it.

    Args:
        folder: where something is to be written; it need not be there yet.
        named: how the user named it, e.g. ``--out run``.

    Raises:
        UsageError: a file is there or further up, or this user may not write there.
    """
    there = folder
    while not os.path.exists(there) and there != there.parent:  # noqa: PTH110 - a folder without rights is no error yet
        there = there.parent
    if not there.is_dir():
        raise UsageError(f"{named}: {there} is a file, and a folder is needed there; name another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{named}: this user may not write in {there}; give the right to it, or name another place")


def _plain(value: object) -> object:
    """Turn an array or array scalar into Python numbers, for JSON."""
    for method in ("tolist", "item"):
        if hasattr(value, method):
            return getattr(value, method)()
    return str(value)


def emit(payload: Mapping[str, object], text: str, json: bool) -> None:
    """Print the command's result to stdout: ``payload`` as one JSON object (keys in its order), or ``text``.

    Paths, dates, dataclasses, pydantic models and arrays are written as JSON; NaN and infinities become null.
    """
    if json:
        from pydantic_core import to_json

        print(to_json(dict(payload), indent=2, inf_nan_mode="null", fallback=_plain).decode())
    else:
        print(text)


def cell(value: object) -> str:
    """Write one table cell: thousands separated, four decimals, a dash for nothing.

    >>> [cell(1234567), cell(0.25), cell(None), cell("head")]
    ['1,234,567', '0.2500', '–', 'head']
    """
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def size(count: int) -> str:
    """Write a number of bytes.

    >>> [size(count) for count in (512, 83_525_632, 327_680_000_000)]
    ['512 bytes', '83.5 MB', '327.7 GB']
    """
    for unit, word in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {word}"
    return f"{count} bytes"


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Lay out an aligned text table; a column whose every cell is a number or empty stands to the right.

    >>> print(table([["popularity", 0.0369], ["model", 0.1]], ["ranking", "hr@10"]))
    ranking      hr@10
    popularity  0.0369
    model       0.1000
    """
    cells = [list(headers), *([cell(value) for value in row] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [any(column[1:]) and all(map(_NUMBER.fullmatch, column[1:])) for column in columns]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at_right else text.ljust(width)
            for text, width, at_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )
