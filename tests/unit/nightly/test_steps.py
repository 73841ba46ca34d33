"""Steps are done once under one key, again under another, and leave nothing of the other behind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hatchway.nightly.steps import Steps


def take(folder: Path, origin: object, setting: int, done: list[str], *, dies: bool = False) -> Mapping[str, Any]:
    """Take two steps; the second leaves a file."""
    steps = Steps(folder, origin)

    def first() -> dict[str, int]:
        done.append("first")
        return {"found": 1}

    def second() -> dict[str, int]:
        done.append("second")
        file = folder / "file"
        file.write_text((file.read_text() if file.exists() else "") + f"{setting}")
        if dies:
            raise KeyboardInterrupt
        return {"setting": setting}

    steps.take("first", None, first)
    return steps.take("second", {"setting": setting}, second, ("file",))


def test_what_was_done_is_read(tmp_path: Path) -> None:
    """The same origin and settings: nothing is done again."""
    done: list[str] = []
    assert take(tmp_path, "a", 1, done) == take(tmp_path, "a", 1, done) == {"setting": 1}
    assert done == ["first", "second"]


def test_another_setting_does_its_step_again_and_another_origin_all_of_them(tmp_path: Path) -> None:
    """A step depends on those before it."""
    done: list[str] = []
    take(tmp_path, "a", 1, done)
    take(tmp_path, "a", 2, done)
    assert done == ["first", "second", "second"]
    assert (tmp_path / "file").read_text() == "2", "what the other setting left is gone"
    take(tmp_path, "b", 2, done)
    assert done[3:] == ["first", "second"]


def test_a_step_that_was_killed_goes_on_with_its_own_files_only(tmp_path: Path) -> None:
    """Under the same key it finds what it left; under another one it does not."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path, "a", 1, done, dies=True)
    take(tmp_path, "a", 1, done)
    assert (tmp_path / "file").read_text() == "11"
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path, "a", 2, done, dies=True)
    take(tmp_path, "a", 3, done)
    assert (tmp_path / "file").read_text() == "3"


def test_a_step_whose_file_is_missing_is_done_again(tmp_path: Path) -> None:
    """Facts alone are not enough."""
    done: list[str] = []
    take(tmp_path, "a", 1, done)
    (tmp_path / "file").unlink()
    take(tmp_path, "a", 1, done)
    assert done == ["first", "second", "second"]
