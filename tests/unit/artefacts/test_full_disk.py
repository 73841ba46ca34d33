"""A disk that is full, or a file too large for it: one line that names the target, whichever library met it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.artefacts.atomic import replacing_file, replacing_folder, write_text
from hatchway.data.catalogue import Catalogue
from hatchway.data.importers import import_sequences
from hatchway.errors import FailureError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import BundleContents, write_bundle
from hatchway.index.export import export_vectors

VECTORS = np.random.default_rng(3).normal(size=(400, 16)).astype(np.float32)
CATALOGUE = Catalogue(pl.DataFrame({"item": range(400)}))


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let the system refuse every byte of a file beyond ``size``, which it does as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 8_000])
def test_a_bundle_that_finds_no_room(tmp_path: Path, size: int) -> None:
    """Refused to Polars (the catalogue), and to safetensors (25,600 bytes of vectors)."""
    contents = BundleContents(CATALOGUE, VECTORS, VECTORS[:4])
    with no_file_above(size), pytest.raises(FailureError, match=f"{tmp_path / 'bundle'} cannot be written: File too"):
        write_bundle(tmp_path / "bundle", contents, IndexSettings())
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_finds_no_room(tmp_path: Path) -> None:
    """The source can be read, and is not blamed."""
    lines = "".join(f"{buyer} {' '.join(map(str, range(buyer % 7, 400)))}\n" for buyer in range(50))
    (tmp_path / "log.txt").write_text(lines)
    with no_file_above(5_000), pytest.raises(FailureError, match=f"{tmp_path / 'store'} cannot be written: File too"):
        import_sequences(tmp_path / "log.txt", tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]


def test_files_that_find_no_room(tmp_path: Path) -> None:
    """Text, and NumPy's arrays, whose error does not say why."""
    with no_file_above(100), pytest.raises(FailureError, match=r"a\.json cannot be written: File too large"):
        write_text(tmp_path / "a.json", "x" * 101)
    with no_file_above(10_000), pytest.raises(FailureError, match=r"item_vectors\.parquet cannot be written"):
        export_vectors(tmp_path, CATALOGUE, VECTORS)
    with (
        no_file_above(10_000),
        pytest.raises(FailureError, match=r"a\.npy cannot be written"),
        replacing_file(tmp_path / "a.npy") as partial,
        partial.open("wb") as file,
    ):
        np.save(file, VECTORS)
    assert list(tmp_path.iterdir()) == []


def test_another_error_stays_what_it_is(tmp_path: Path) -> None:
    """A bug, or a source that cannot be read, is not called a full disk."""
    with pytest.raises(FileNotFoundError), replacing_folder(tmp_path / "a"):
        (tmp_path / "absent").read_bytes()
    with pytest.raises(RuntimeError, match="a bug"), replacing_folder(tmp_path / "a"):
        raise RuntimeError("a bug")
    assert list(tmp_path.iterdir()) == []
