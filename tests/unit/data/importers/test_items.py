"""A table of items that goes with a store that is there already."""

from pathlib import Path

import polars as pl
import pytest

from hatchway.data.importers import read_items
from hatchway.errors import DataError


def test_a_text_file(tmp_path: Path) -> None:
    """Columns are mapped, times and prices read, blanks are nulls, one's own columns stay as they are written."""
    path = tmp_path / "new.tsv"
    path.write_text("id\tkind\tprice\tgone\n 7 \t007\t2.5\t2026-03-01\n8\t \t\t\n", encoding="utf-8")
    found = read_items(path, {"item": "id"}, integer_ids=True)
    assert found.schema == pl.Schema({"item": pl.Int64, "kind": pl.String, "price": pl.Float64, "gone": pl.Int64})
    assert found.rows() == [(7, "007", 2.5, 1_772_323_200), (8, None, None, None)]


@pytest.mark.parametrize(("ids", "integer_ids"), [(["7", "8"], False), (["7", "x8"], True), (["7", "08"], True)])
def test_ids_stay_text(tmp_path: Path, ids: list[str], integer_ids: bool) -> None:
    """Where the store's are, and where one is no integer, or another as an integer."""
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["item", *ids]), encoding="utf-8")
    assert read_items(path, {}, integer_ids=integer_ids)["item"].to_list() == ids


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    """Also where the store's ids are of another type: whoever uses the table says so."""
    frame = pl.DataFrame({"item": [7, 8], "vector": [[1.0, 2.0], None]})
    frame.write_parquet(tmp_path / "new.parquet")
    assert read_items(tmp_path / "new.parquet", {}, integer_ids=False).equals(frame)


def test_every_row_must_be_fit(tmp_path: Path) -> None:
    """The first that is not is named with its file, line, reason and text."""
    path = tmp_path / "new.csv"
    path.write_text("item,price\n1,5\n,6\n2,-3\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"2 of 3 items of .*new\.csv:3, no item \(the item is missing\): ,6"):
        read_items(path, {}, integer_ids=True)
