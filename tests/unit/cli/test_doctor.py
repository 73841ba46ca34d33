"""The doctor tells what is there from what is not, and says how to get it."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchway.cli import doctor


def test_everything_needed_works(hatchway: Callable[..., Any]) -> None:
    """In the environment of the tests every needed part loads, with the version that is installed."""
    ended = hatchway("doctor", "--json")
    assert ended.code == 0
    found = {part["name"]: part for part in ended.json["parts"]}
    assert found["torch"]["version"] == importlib.metadata.version("torch")
    assert all(part["works"] for part in found.values() if part["needed"])
    assert ended.json["sound"] is True
    assert ended.json["threads"]["cpus"] >= 1
    assert ended.json["memory_bytes"]["total"] > ended.json["memory_bytes"]["free"] > 0


def test_a_missing_optional_part_has_a_remedy(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is optional and missing is named with the command that installs it, and is no failure."""
    monkeypatch.setattr(doctor, "_OPTIONAL", (("no-such-part", "no_such_part", "pip install 'hatchway[dev]'"),))
    ended = hatchway("doctor")
    assert ended.code == 0
    assert "no-such-part" in ended.out
    assert "pip install 'hatchway[dev]'" in ended.out


def test_a_missing_needed_part_is_a_failure(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is needed and missing ends with 3, after everything else was said."""
    monkeypatch.setattr(doctor, "_NEEDED", (("no-such-part", "no_such_part"),))
    ended = hatchway("doctor")
    assert ended.code == 3
    assert "no-such-part" in ended.err
    assert "not sound: no-such-part" in ended.out


def test_a_part_that_does_not_load_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed is not enough: a library that cannot be loaded is told with its reason."""
    monkeypatch.setattr(doctor, "_NEEDED", (("numpy", "hatchway_has_no_such_module"),))
    part = doctor.parts()[0]
    assert part.version is not None
    assert not part.works
    assert "hatchway_has_no_such_module" in part.remark


def test_the_data_folder(hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HATCHWAY_DATA is shown with what it holds; a folder that is not there is said so."""
    (tmp_path / "gowalla").mkdir()
    monkeypatch.setenv("HATCHWAY_DATA", str(tmp_path))
    assert hatchway("doctor", "--json").json["data_sets"] == ["gowalla"]
    monkeypatch.setenv("HATCHWAY_DATA", str(tmp_path / "gone"))
    assert "is no folder" in hatchway("doctor").out
