"""What all tests share: one thread each, the folder of public data sets, and hypothesis without a clock."""

import os

# Before anything imports NumPy, PyTorch or Polars: two workers on two cores, one thread each.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import json  # noqa: E402
import logging  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from hatchway.cli.main import main  # noqa: E402

hypothesis.settings.register_profile("hatchway", deadline=None, derandomize=True, database=None, max_examples=50)
hypothesis.settings.load_profile("hatchway")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of public data sets that HATCHWAY_DATA names; skip the test where it names none."""
    value = os.environ.get("HATCHWAY_DATA", "")
    if not value:
        pytest.skip("needs the public data sets; HATCHWAY_DATA names no folder that holds them")
    folder = Path(value)
    if not folder.is_dir():
        pytest.skip(f"needs the public data sets; HATCHWAY_DATA={value} is no folder")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it wrote to stdout and to stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote to stdout, decoded."""
        return json.loads(self.out)


@pytest.fixture
def hatchway(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """Return a function that runs ``hatchway ARGUMENTS`` in this process: ``hatchway("cost", "--json").json``."""
    logger = logging.getLogger("hatchway")
    before = (logger.handlers, logger.level, logger.propagate)

    def command(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["hatchway", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(end.value.code or 0), *capsys.readouterr())

    yield command
    logger.handlers, logger.level, logger.propagate = before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for ``data_folder`` with ``data``, so that ``-m "not data"`` leaves them out."""
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)
