"""Exported vectors: the same numbers and ids in Parquet and NumPy, readable without pickle."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.data.catalogue import Catalogue
from hatchway.index.export import export_vectors

VECTORS = np.array([[1, 0.5], [0, -2], [3, 3]], np.float32)


@pytest.mark.parametrize("ids", [[7, -2, 900], ["a/b", "7", "naïve ☂"]])
def test_vectors_and_ids_agree(tmp_path: Path, ids: list[int] | list[str]) -> None:
    """The order is the catalogue's in every file."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    files = export_vectors(tmp_path / "out", Catalogue(pl.DataFrame({"item": ids, "title": "x"})), VECTORS)
    assert [file.name for file in files] == ["item_vectors.parquet", "item_vectors.npy", "item_ids.npy"]
    frame = pl.read_parquet(files[0])
    assert frame.schema == {"item": pl.Series(ids).dtype, "vector": pl.Array(pl.Float32, 2)}
    assert frame["item"].to_list() == ids
    np.testing.assert_array_equal(frame["vector"].to_numpy(), VECTORS)
    np.testing.assert_array_equal(np.load(files[1], allow_pickle=False), VECTORS)
    assert np.load(files[2], allow_pickle=False).tolist() == ids
    assert (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_an_empty_catalogue_is_exported(tmp_path: Path) -> None:
    """Nothing is written as nothing, in the right types."""
    catalogue = Catalogue(pl.DataFrame({"item": pl.Series([], dtype=pl.String)}))
    files = export_vectors(tmp_path, catalogue, np.empty((0, 2), np.float32))
    assert pl.read_parquet(files[0]).shape == (0, 2)
    assert np.load(files[1]).shape == (0, 2)
    assert np.load(files[2], allow_pickle=False).dtype.kind == "U"
