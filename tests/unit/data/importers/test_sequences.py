"""Sequences and the LightGCN form: a line is a user and their items."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from hatchway.data.importers import ImportSettings, import_lightgcn, import_sequences
from hatchway.errors import DataError


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Write text files (gzipped where the name says so) and return their folder."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        content = text.encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "1 5 3 5\n2 3\n",
        "1 5\n1 3\n1 5\n2 3\n",
        "1 5 3\r\n\r\n 1\t5 \n2  3",
    ],
    ids=["user item item …", "user item", "mixed, with odd spaces"],
)
@pytest.mark.parametrize("name", ["log.txt", "log.txt.gz"])
def test_both_forms_give_the_same_rows_in_order(tmp_path: Path, text: str, name: str) -> None:
    """Order is that of the text; a repeated item stays, since nobody knows when it happened."""
    source = written(tmp_path / "source", {name: text}) / name
    store = import_sequences(source, tmp_path / "store")
    assert store.events().collect().to_dict(as_series=False) == {
        "buyer": [1, 1, 1, 2],
        "item": [5, 3, 5, 3],
        "order": [0, 1, 2, 3],
    }
    assert store.catalogue().frame.to_dict(as_series=False) == {"item": [5, 3]}


def test_ids_that_are_not_all_plain_integers_stay_text(tmp_path: Path) -> None:
    """A leading zero would not survive as an integer, so all items are strings; the buyers are integers still."""
    source = written(tmp_path / "source", {"log.txt": "1 5 07\n2 -3\n"}) / "log.txt"
    store = import_sequences(source, tmp_path / "store")
    assert store.events().collect()["item"].to_list() == ["5", "07", "-3"]
    assert store.events().collect()["buyer"].to_list() == [1, 1, 2]
    assert (store.manifest.buyer_type, store.manifest.item_type) == ("integer", "string")


def test_a_user_without_an_item_is_rejected(tmp_path: Path) -> None:
    """In a file of sequences a lone user is a line cut short."""
    source = written(tmp_path / "source", {"log.txt": "1 5\n2\n3 4\n"}) / "log.txt"
    store = import_sequences(source, tmp_path / "store", ImportSettings(max_rejected=0.5))
    assert store.rejected().rows() == [("log.txt", 2, "no item", "2 ")]
    with pytest.raises(DataError, match=r"1 of 3 rows \(33.33%\)(.|\n)*no item(.|\n)*log.txt:2: 2"):
        import_sequences(source, tmp_path / "store")


def test_one_file_only_and_not_empty(tmp_path: Path) -> None:
    """A folder of several files says which there are; an empty file says what it should hold."""
    folder = written(tmp_path / "source", {"a.txt": "1 2\n", "b.txt": ""})
    with pytest.raises(DataError, match=r"holds 2 files \(a.txt, b.txt\); name the one"):
        import_sequences(folder, tmp_path / "store")
    with pytest.raises(DataError, match=r"b\.txt is empty"):
        import_sequences(folder / "b.txt", tmp_path / "store")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lightgcn_keeps_the_split(tmp_path: Path, suffix: str) -> None:
    """Training rows first, then the test's; a user without a test item makes no row and is no fault."""
    folder = written(tmp_path / "source", {f"train.txt{suffix}": "0 5 3\n1 3\n", f"test.txt{suffix}": "0 4\n1\n1 \n"})
    store = import_lightgcn(folder, tmp_path / "store")
    assert store.events().collect().to_dict(as_series=False) == {
        "buyer": [0, 0, 1, 0],
        "item": [5, 3, 3, 4],
        "order": [0, 1, 2, 3],
        "split": ["train", "train", "train", "test"],
    }
    assert store.manifest.rejected == {}


def test_lightgcn_takes_a_validation_file(tmp_path: Path) -> None:
    """Some editions have a third file; it stands between the two."""
    files = {"train.txt": "0 5\n", "valid.txt": "0 6\n", "test.txt": "0 7\n"}
    store = import_lightgcn(written(tmp_path / "source", files), tmp_path / "store")
    assert store.events().select("item", "split").collect().rows() == [(5, "train"), (6, "validation"), (7, "test")]


def test_lightgcn_needs_both_files(tmp_path: Path) -> None:
    """The message names the missing one and what there is."""
    folder = written(tmp_path / "source", {"train.txt": "0 5\n", "readme.md": "x"})
    with pytest.raises(DataError, match=r"has no test.txt or test.txt.gz; it holds readme.md, train.txt"):
        import_lightgcn(folder, tmp_path / "store")


def test_public_sequences_are_read_whole(data_folder: Path, tmp_path: Path) -> None:
    """The published sizes: Beauty 198,502 of 22,363 on 12,101; Gowalla 810,128 and 217,242 of 29,858 on 40,981."""
    beauty = import_sequences(data_folder / "amazon" / "Beauty.txt.gz", tmp_path / "beauty").manifest
    assert (beauty.events, beauty.buyers, beauty.items) == (198_502, 22_363, 12_101)
    gowalla = import_lightgcn(data_folder / "gowalla", tmp_path / "gowalla")
    assert (gowalla.manifest.buyers, gowalla.manifest.items) == (29_858, 40_981)
    counts = gowalla.events().group_by("split").agg(pl.len()).collect()
    assert dict(counts.iter_rows()) == {"train": 810_128, "test": 217_242}
