"""Item vectors in their file: read, or mapped where they are large."""

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from hatchway.errors import ArtefactError
from hatchway.index import files
from hatchway.index.approximate import build_ivf
from hatchway.index.exact import ExactIndex


def test_large_vectors_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same numbers, in the file and not in memory, and can be searched."""
    vectors = np.random.default_rng(1).standard_normal((300, 5)).astype(np.float32)
    path = tmp_path / "item_vectors.safetensors"
    safetensors.numpy.save_file({"another": np.ones(3), "item_vectors": vectors}, path)
    read = files.read_vectors(path)
    assert not isinstance(read, np.memmap)
    monkeypatch.setattr(files, "_MAPPED_FROM", 1)
    mapped = files.read_vectors(path)
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(read, vectors)
    np.testing.assert_array_equal(mapped, vectors)
    for index in (ExactIndex(mapped), build_ivf(mapped)):
        assert index.search(vectors[7:8], 300).rows[0].tolist() == np.argsort(-(vectors @ vectors[7])).tolist()
    files.save_index(tmp_path / "index", ExactIndex(mapped), mapped)
    assert len(files.load_index(tmp_path / "index", vectors)) == 300


@pytest.mark.parametrize("mapped_from", [1, 1 << 30])
def test_what_is_no_file_of_vectors_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped_from: int
) -> None:
    """Missing, cut short, or without vectors: mapped or not, it is said."""
    monkeypatch.setattr(files, "_MAPPED_FROM", mapped_from)
    path = tmp_path / "item_vectors.safetensors"
    with pytest.raises(ArtefactError, match="missing"):
        files.read_vectors(path)
    safetensors.numpy.save_file({"item_vectors": np.ones((30, 5), np.float32)}, path)
    whole = path.read_bytes()
    for left in (0, 3, 40, len(whole) - 1):
        path.write_bytes(whole[:left])
        with pytest.raises(ArtefactError, match="cut short"):
            files.read_vectors(path)
    safetensors.numpy.save_file({"other": np.ones((30, 5), np.float32)}, path)
    with pytest.raises(ArtefactError, match="no item vectors"):
        files.read_vectors(path)
