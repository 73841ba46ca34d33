"""The bundle: the same inputs give the same bytes, what is written comes back, and nothing else is served."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError, DataError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, is_bundle, write_bundle

PARTS = {
    "catalogue.parquet",
    "index.safetensors",
    "item_vectors.safetensors",
    "manifest.json",
    "settings.json",
    "weights.safetensors",
}


def contents(ids: pl.Series | None = None, count: int = 60) -> BundleContents:
    """Make up the contents of a bundle; the same each time."""
    generator = np.random.default_rng(5)
    chosen = pl.Series(range(100, 100 + count)) if ids is None else ids
    frame = pl.DataFrame({"item": chosen}).with_columns(
        title=pl.format("Sofa {}", pl.col("item")), price=pl.lit(12.5), secret=pl.lit("the user's own")
    )
    return BundleContents(
        catalogue=Catalogue(frame),
        vectors=generator.normal(size=(len(chosen), 6)).astype(np.float32),
        queries=generator.normal(size=(20, 6)).astype(np.float32),
        weights={"b": torch.arange(6.0).reshape(2, 3).T, "a": torch.ones(2, dtype=torch.int64)},
        settings={"z": 1, "a": {"x": [0.5, "ü"]}},
        origin={"store": "abc", "step": 300},
    )


def files(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["flat", "ivf-sq8"])
def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, kind: str) -> None:
    """Wherever and whenever it is written, over an older one or not."""
    settings = IndexSettings.parse({"kind": kind})
    write_bundle(tmp_path / "a", contents(), settings)
    first = files(tmp_path / "a")
    assert set(first) == PARTS
    write_bundle(tmp_path / "elsewhere" / "b", contents(), settings)
    write_bundle(tmp_path / "a", contents(), settings)
    assert files(tmp_path / "elsewhere" / "b") == first
    assert files(tmp_path / "a") == first
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_another_input_gives_another_digest(tmp_path: Path) -> None:
    """The digest identifies what is served."""
    one = write_bundle(tmp_path / "a", contents(), IndexSettings())
    two = write_bundle(tmp_path / "b", contents(count=61), IndexSettings())
    assert one.digest == Bundle.open(tmp_path / "a").digest != two.digest


@pytest.mark.parametrize("ids", [pl.Series([7, -2, 900]), pl.Series(["a/b", "7", "naïve ☂"])])
def test_what_is_written_comes_back(tmp_path: Path, ids: pl.Series) -> None:
    """Ids, vectors, weights, settings and the index's answers, bit for bit; and of the columns what a page shows."""
    given = contents(ids)
    write_bundle(tmp_path / "bundle", given, IndexSettings())
    bundle = Bundle.open(str(tmp_path / "bundle"))
    assert bundle.catalogue.ids.to_list() == ids.to_list()
    assert bundle.catalogue.frame.columns == ["item", "title", "price"]
    np.testing.assert_array_equal(bundle.vectors, np.asarray(given.vectors))
    assert bundle.settings == {"z": 1, "a": {"x": [0.5, "ü"]}}
    assert {name: tensor.tolist() for name, tensor in bundle.weights.items()} == {
        "a": [1, 1],
        "b": [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]],
    }
    scores, rows = bundle.index.search(np.asarray(given.vectors)[1:2], 3)
    wanted = np.asarray(given.vectors) @ np.asarray(given.vectors)[1]
    assert rows[0].tolist() == np.argsort(-wanted).tolist()
    np.testing.assert_allclose(scores[0], np.sort(wanted)[::-1], rtol=1e-5)


def test_the_manifest_says_what_it_is(tmp_path: Path) -> None:
    """Format, version, counts, origin, the measured recall; and no time and no place."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings(recall_at=10))
    text = (tmp_path / "bundle" / "manifest.json").read_text(encoding="utf-8")
    said = json.loads(text)
    assert (said["format"], said["version"], said["score"]) == ("hatchway-bundle", 1, "dot product")
    assert (said["items"], said["dimension"], said["item_type"]) == (60, 6, "integer")
    assert said["origin"] == {"step": 300, "store": "abc"}
    assert said["index"] == {
        "kind": "flat",
        "vectors": 60,
        "dimension": 6,
        "cells": 0,
        "probes": 0,
        "recall": 1.0,
        "recall_at": 10,
        "recall_queries": 20,
        "recall_low": 1.0,
        "recall_high": 1.0,
    }
    assert {part["name"] for part in said["parts"]} == PARTS - {"manifest.json"}
    assert str(tmp_path) not in text


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_changed_part_is_refused(tmp_path: Path, part: str) -> None:
    """One byte in the middle of any file is enough."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    path = tmp_path / "bundle" / part
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0x01
    path.write_bytes(whole)
    named = "" if part == "manifest.json" else part  # a hash that changed there accuses the part that it belongs to
    with pytest.raises(ArtefactError, match=rf"{named}.*hatchway index RUN"):
        Bundle.open(tmp_path / "bundle")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
    ],
)
@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_missing_or_short_part_is_refused(tmp_path: Path, part: str, damage: Callable[[Path], object]) -> None:
    """Gone, empty, or one byte short."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    damage(tmp_path / "bundle" / part)
    if part == "manifest.json" and (tmp_path / "bundle" / part).exists() and (tmp_path / "bundle" / part).read_bytes():
        Bundle.open(tmp_path / "bundle")  # the last byte of the manifest is the end of its last line
        return
    with pytest.raises(ArtefactError, match=rf"{part}.*hatchway index RUN"):
        Bundle.open(tmp_path / "bundle")


def test_nothing_is_pickled(tmp_path: Path) -> None:
    """No part begins like a pickle, or like the zip archive in which PyTorch keeps one."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    for name, data in files(tmp_path / "bundle").items():
        assert not data.startswith((b"\x80", b"PK")), name


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((59, 6)), "59 item vectors for 60 items"),
        (np.full((60, 6), np.nan), "row 0 of the item vectors"),
    ],
)
def test_a_refused_write_leaves_the_old_bundle(tmp_path: Path, vectors: np.ndarray, message: str) -> None:
    """What cannot be served is not written, and what was there stays."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    before = files(tmp_path / "bundle")
    given = contents()
    broken = BundleContents(given.catalogue, vectors, given.queries)
    with pytest.raises(DataError, match=message):
        write_bundle(tmp_path / "bundle", broken, IndexSettings())
    assert files(tmp_path / "bundle") == before


def test_a_crash_while_writing_leaves_the_old_bundle(tmp_path: Path) -> None:
    """A failure after the first parts have been written leaves no half bundle, not even beside the old one."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    before = files(tmp_path / "bundle")
    given = contents(count=61)
    broken = BundleContents(given.catalogue, given.vectors, given.queries, settings={"not": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        write_bundle(tmp_path / "bundle", broken, IndexSettings())
    assert files(tmp_path / "bundle") == before
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize(
    ("fact", "value", "message"),
    [
        ("items", 61, "the manifest says items = 61, .* has 60"),
        ("dimension", 7, "the manifest says dimension = 7, item_vectors.safetensors has 6"),
        ("item_type", "string", "the manifest says item_type = string, catalogue.parquet has integer"),
    ],
)
def test_a_manifest_that_says_another_thing_than_its_parts_is_refused(
    tmp_path: Path, fact: str, value: object, message: str
) -> None:
    """The hashes of the parts do not cover the manifest's own words, so they are compared when a part is read."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    path = tmp_path / "bundle" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {fact: value}), encoding="utf-8")
    bundle = Bundle.open(tmp_path / "bundle")
    with pytest.raises(ArtefactError, match=f"{message}; make the bundle again"):
        _ = bundle.catalogue, bundle.vectors


def test_an_index_of_another_size_than_the_manifest_says_is_refused(tmp_path: Path) -> None:
    """It would answer with fewer items than ``/health`` promises."""
    write_bundle(tmp_path / "bundle", contents(), IndexSettings())
    path = tmp_path / "bundle" / "manifest.json"
    said = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(said | {"index": said["index"] | {"vectors": 59}}), encoding="utf-8")
    with pytest.raises(ArtefactError, match=r"index\.safetensors has 60 vectors, the manifest says 59"):
        _ = Bundle.open(tmp_path / "bundle").index


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds something else is not replaced by a bundle."""
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="is no bundle, and is left as it is"):
        write_bundle(tmp_path, contents(), IndexSettings())
    assert not is_bundle(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_only_the_rows_asked_for_are_found(tmp_path: Path) -> None:
    """Items that are not to be shown have vectors in the bundle, and no place in its index."""
    given = contents()
    some = BundleContents(given.catalogue, given.vectors, given.queries, rows=np.array([3, 50, 8]))
    bundle = write_bundle(tmp_path / "bundle", some, IndexSettings())
    assert Bundle.open(tmp_path / "bundle").manifest.index.vectors == 3
    assert sorted(bundle.index.search(np.ones((1, 6)), 5).rows[0].tolist()) == [-1, -1, 3, 8, 50]


def test_no_bundle(tmp_path: Path) -> None:
    """A folder without a bundle is said to have none, with the command that makes one."""
    with pytest.raises(ArtefactError, match="hatchway index RUN"):
        Bundle.open(tmp_path / "bundle")
