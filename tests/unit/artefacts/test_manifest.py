"""Manifests: what is written is found, and every other state of the folder is refused."""

import hashlib
from pathlib import Path
from typing import Literal

import pytest

from hatchway.artefacts.manifest import (
    MANIFEST,
    Manifest,
    describe_parts,
    digest,
    read_manifest,
    verify_parts,
    what_lies_at,
    write_manifest,
)
from hatchway.errors import ArtefactError


class Box(Manifest):
    """A manifest for these tests."""

    format: Literal["box"] = "box"
    version: Literal[2] = 2
    colour: str


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """Return a folder of two parts and its manifest."""
    (tmp_path / "b.bin").write_bytes(b"\x00\x01")
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    write_manifest(tmp_path, Box(colour="red", parts=describe_parts(tmp_path)))
    return tmp_path


def test_parts_are_named_measured_and_hashed(box: Path) -> None:
    """Parts stand in the order of their names, and the manifest does not name itself."""
    parts = read_manifest(box, Box, "").parts
    assert [(part.name, part.bytes) for part in parts] == [("a.txt", 5), ("b.bin", 2)]
    assert parts[0].sha256 == hashlib.sha256(b"hello").hexdigest()
    assert describe_parts(box) == parts
    verify_parts(box, read_manifest(box, Box, ""), "")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "a.txt").unlink(), "a.txt is missing"),
        (lambda folder: (folder / "a.txt").write_text("hell"), "4 bytes; 5 were written"),
        (lambda folder: (folder / "a.txt").write_text("hellO"), "not the file that was written"),
        (lambda folder: (folder / "c.txt").write_text(""), "c.txt, which its manifest does not name"),
    ],
)
def test_another_state_is_refused(box: Path, damage: object, message: str) -> None:
    """A part that is gone, shorter, changed or unknown is named, with the remedy."""
    assert callable(damage)
    damage(box)
    with pytest.raises(ArtefactError, match=message) as caught:
        verify_parts(box, read_manifest(box, Box, ""), "bake it again")
    assert str(caught.value).endswith("bake it again")


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"version": 2', '"version": 3', "version"),
        ('"format": "box"', '"format": "crate"', "format"),
        (',\n "colour": "red"', "", "colour"),
        ('"colour"', '"color"', "color"),
        ('"name": "a.txt"', '"name": "../a.txt"', "parts.0.name"),
        ('"name": "a.txt"', '"name": "/etc/passwd"', "parts.0.name"),
        ('"name": "a.txt"', '"name": ".."', "parts.0.name"),
        ("{", "[", "it"),
    ],
)
def test_another_manifest_is_refused(box: Path, old: str, new: str, where: str) -> None:
    """A manifest of another version or format, damaged, or naming a path outside, is refused, and why."""
    path = box / "manifest.json"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ArtefactError, match=where):
        read_manifest(box, Box, "bake it again")


def test_no_manifest(tmp_path: Path) -> None:
    """A folder without one, or no folder, is said to have none."""
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ArtefactError, match=r"no manifest.json .*; bake it again"):
            read_manifest(folder, Box, "bake it again")


def test_the_digest_follows_every_fact(box: Path) -> None:
    """Equal manifests have equal digests; another fact or another byte in a part makes another."""
    first = read_manifest(box, Box, "")
    assert digest(first) == digest(read_manifest(box, Box, ""))
    assert digest(first) != digest(first.model_copy(update={"colour": "blue"}))
    (box / "b.bin").write_bytes(b"\x00\x02")
    assert digest(first) != digest(first.model_copy(update={"parts": describe_parts(box)}))


def test_what_lies_at_a_path_is_named(tmp_path: Path) -> None:
    """For messages to somebody who gave a store for a run, or nothing at all."""
    for name, file, text in (
        ("run", "run.json", "{}"),
        ("store", MANIFEST, '{"format": "hatchway-store"}'),
        ("bundle", MANIFEST, '{"format": "hatchway-bundle"}'),
        ("list", MANIFEST, "[]"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(text)
    (tmp_path / "file").write_text("")
    nights = tmp_path / "nights"
    nights.mkdir()
    (nights / "current").symlink_to("2026-03-02")
    assert what_lies_at(nights) == f"a folder of nights, which serves the bundle {nights}/current/bundle"
    said = {name: what_lies_at(tmp_path / name) for name in ("run", "store", "bundle", "list", "file", "absent")}
    assert said == {
        "run": "a run",
        "store": "a store",
        "bundle": "a bundle",
        "list": "a folder of something else",
        "file": "a file",
        "absent": "nothing",
    }
