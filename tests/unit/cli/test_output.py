"""Results on stdout, everything else on stderr; one shape of JSON and one of tables."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hatchway.cli.output import begin, emit, size, table
from hatchway.progress import note


@pytest.fixture(autouse=True)
def _logger_as_before() -> Iterator[None]:
    logger = logging.getLogger("hatchway")
    before = (logger.handlers, logger.level, logger.propagate)
    yield
    logger.handlers, logger.level, logger.propagate = before


def test_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A note is a line of its own on stderr; a warning says that it is one."""
    begin(quiet=False)
    note("12 rows rejected")
    logging.getLogger("hatchway").warning("no times")
    assert capsys.readouterr() == ("", "12 rows rejected\nwarning: no times\n")


def test_quiet_keeps_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """Quiet drops notes and keeps warnings; beginning twice does not say things twice."""
    begin(quiet=True)
    begin(quiet=True)
    note("12 rows rejected")
    logging.getLogger("hatchway").warning("no times")
    assert capsys.readouterr() == ("", "warning: no times\n")


@dataclass(frozen=True)
class Found:
    """Something a command reports."""

    where: Path
    score: float


def test_json_keeps_order_and_turns_nan_to_null(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in their order, whole numbers whole, arrays as lists, NaN as null: any JSON reader can read it."""
    payload = {
        "z": 5_242_880_000_000,
        "a": Found(Path("runs/a"), float("nan")),
        "ids": np.array([3, 1]),
        "count": np.int64(7),
        "text": "ünï",
    }
    emit(payload, "unused", json=True)
    read = json.loads(capsys.readouterr().out)
    assert list(read) == ["z", "a", "ids", "count", "text"]
    assert read == {
        "z": 5_242_880_000_000,
        "a": {"where": "runs/a", "score": None},
        "ids": [3, 1],
        "count": 7,
        "text": "ünï",
    }


def test_text_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json only the text is printed."""
    emit({"a": 1}, "one line", json=False)
    assert capsys.readouterr().out == "one line\n"


def test_columns_of_numbers_stand_to_the_right() -> None:
    """A column with a word in it stands to the left, a column of numbers, dashes and gaps to the right."""
    assert table([["a", 1, "1.2×", "x"], ["bb", None, "", 22]], ["name", "n", "t", "mixed"]).splitlines() == [
        "name  n     t  mixed",
        "a     1  1.2×  x",
        "bb    –        22",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    """No rows are no error."""
    assert table([], ["a", "b"]) == "a  b"


@pytest.mark.parametrize(
    ("count", "written"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (10**12, "1.0 TB")]
)
def test_sizes(count: int, written: str) -> None:
    """The borders between the units."""
    assert size(count) == written
