"""Steps that are done once: what a finished step found is kept beside its files, and a rerun takes it from there."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hatchway.artefacts.atomic import write_text
from hatchway.progress import note


class Steps:
    """The steps of one night, each of which depends on those before it.

    A step's key is a hash of what goes into it and of the key of the step before. Where the step was finished under the
    same key, its facts are read; otherwise it is done, and what it found is written after its files.

    Args:
        folder: where facts lie, ``intake.json`` and so on; the steps' own files lie there too.
        origin: what the night starts from, as JSON can hold it.
    """

    def __init__(self, folder: Path, origin: object) -> None:
        self.folder = folder
        self._key = _hash(origin)
        self.facts: dict[str, Mapping[str, Any]] = {}

    def take(
        self, name: str, depends_on: object, work: Callable[[], Mapping[str, Any]], files: tuple[str, ...] = ()
    ) -> Mapping[str, Any]:
        """Do a step, or read what it found when it was done.

        Args:
            name: the step.
            depends_on: the settings that matter to it, and whatever else the steps before do not say.
            work: does the step, leaves its files in the folder whole, and returns what it found, as JSON can hold it.
            files: the files or folders that the step leaves; where one is missing the step is done again, and where
                they were left by other settings they are removed before.
        """
        self._key = _hash([name, self._key, depends_on])
        path = self.folder / f"{name}.json"
        there = self._read(path)
        if there is not None and all((self.folder / file).exists() for file in files):
            self.facts[name] = there
            note(f"{name}: done before")
            return there
        self._begin(name, path, files)
        # Through JSON and back, so that a step that is read says what a step that is done says.
        found: dict[str, Any] = json.loads(json.dumps(dict(work()), allow_nan=False))
        write_text(path, json.dumps({"key": self._key, "facts": found}, indent=1) + "\n")
        self.facts[name] = found
        return found

    def _begin(self, name: str, path: Path, files: tuple[str, ...]) -> None:
        """Remove what a step left under another key, finished or not; what it left under this one it goes on with."""
        path.unlink(missing_ok=True)
        begun = self.folder / f"{name}.begun"
        if begun.is_file() and begun.read_text(encoding="utf-8") == self._key:
            return
        for left in (self.folder / file for file in files):
            if left.is_dir():
                shutil.rmtree(left)
            left.unlink(missing_ok=True)
        write_text(begun, self._key)

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        fits = isinstance(there, dict) and there.get("key") == self._key and isinstance(there.get("facts"), dict)
        return dict(there["facts"]) if fits else None


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
