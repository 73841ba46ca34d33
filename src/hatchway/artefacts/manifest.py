"""A manifest says what lies in a folder, and the hash of every part says whether it still does.

Nothing in a manifest depends on the clock or on where the folder lies: the same parts give the same bytes.
"""

import hashlib
import json
from pathlib import Path
from typing import TypeVar

import pydantic

from hatchway.errors import ArtefactError

MANIFEST = "manifest.json"
RUN_RECORD = "run.json"
"""A run grows while it trains, so it has a record in place of a manifest."""

_SERVED = "current"
"""The link of a folder of nights to the one that is served."""


class Part(pydantic.BaseModel):
    """One file of the folder: its name, its length in bytes, and its sha256 in hex."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: str = pydantic.Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
    bytes: int
    sha256: str = pydantic.Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(pydantic.BaseModel):
    """What every manifest has; a kind of folder adds its own facts, and fixes its ``format`` and ``version``.

    Attributes:
        format: the kind of folder, e.g. ``"hatchway-bundle"``.
        version: of that format; a reader takes its own and no other.
        parts: every file but the manifest, by name.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    format: str
    version: int
    parts: tuple[Part, ...]


def what_lies_at(path: Path) -> str:
    """Name what is at ``path``: ``"a run"``, ``"a store"``, ``"a bundle"``, nights, a file, nothing, or else.

    For messages to somebody who gave one for the other.
    """
    if not path.exists():
        return "nothing"
    if not path.is_dir():
        return "a file"
    if (path / RUN_RECORD).is_file():
        return "a run"
    if (path / _SERVED).is_symlink():
        return f"a folder of nights, which serves the bundle {path / _SERVED / 'bundle'}"
    try:
        head = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError):
        head = None
    kinds = {"hatchway-store": "a store", "hatchway-bundle": "a bundle"}
    return kinds.get(str(head.get("format")) if isinstance(head, dict) else "", "a folder of something else")


def is_not(wanted: str, path: Path) -> str:
    """Say that at ``path`` is not what was wanted (``"a run"``), but what is, or that nothing is."""
    what = what_lies_at(path)
    return f"{path} does not exist" if what == "nothing" else f"{path} is not {wanted} but {what}"


Kind = TypeVar("Kind", bound=Manifest)


def describe_parts(folder: Path) -> tuple[Part, ...]:
    """Hash every file that lies in ``folder``, the manifest excepted, in the order of their names."""
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    return tuple(Part(name=path.name, bytes=path.stat().st_size, sha256=sha256_of(path)) for path in files)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of ``folder``, in the bytes that the same facts always have."""
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path, kind: type[Kind], remedy: str) -> Kind:
    """Read the manifest of ``folder``.

    Args:
        folder: where it lies.
        kind: the manifest's class.
        remedy: how to get a good one, for the message.

    Raises:
        ArtefactError: there is none, or it is not of this format and version, or it is damaged.
    """
    path = folder / MANIFEST
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError:
        raise ArtefactError(f"{folder} has no {MANIFEST} that can be read; {remedy}") from None
    except pydantic.ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'it'}: {e['msg']}" for e in error.errors()[:3])
        raise ArtefactError(f"{path} is damaged, or of another format or version ({wrong}); {remedy}") from None


def verify_parts(folder: Path, manifest: Manifest, remedy: str) -> None:
    """Hash every part of ``folder`` and compare with its manifest.

    Args:
        folder: where the parts lie.
        manifest: what they should be.
        remedy: how to get good ones, for the message.

    Raises:
        ArtefactError: a part is missing, cut short or changed, or a file lies there that the manifest does not name.
    """
    named = {part.name for part in manifest.parts}
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in {*named, MANIFEST})
    if strangers:
        raise ArtefactError(f"{folder} holds {strangers[0]}, which its manifest does not name; {remedy}")
    for part in manifest.parts:
        path = folder / part.name
        if not path.is_file():
            raise ArtefactError(f"{path} is missing; {remedy}")
        if path.stat().st_size != part.bytes:
            raise ArtefactError(f"{path} has {path.stat().st_size} bytes; {part.bytes} were written; {remedy}")
        found = sha256_of(path)
        if found != part.sha256:
            raise ArtefactError(
                f"{path} is not the file that was written: its sha256 is {found[:12]}…, the manifest says "
                f"{part.sha256[:12]}…; {remedy}"
            )


def digest(manifest: Manifest) -> str:
    """Return one sha256 in hex over everything the manifest says: equal digests, equal folders."""
    return hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the sha256 of one file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
