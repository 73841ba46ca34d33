"""The store: what is written is what is read, in its order, whole or not at all."""

import json
from pathlib import Path

import polars as pl
import pytest

from hatchway.data.days import spans_of_days
from hatchway.data.store import Store, write_store
from hatchway.errors import ArtefactError, DataError

DAY = 86_400
LOG = pl.DataFrame(
    {
        "item": ["b", "a", "c", "a", "d"],
        "buyer": [7, 7, 9, 9, 8],
        "time": [3 * DAY + 5, 3 * DAY + 5, None, 0, 3 * DAY + 4],
        "colour": ["red", None, "blue", "red", "red"],
    }
)


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below ``folder``, hidden ones included, with its bytes."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_rows_come_back_by_time_and_then_by_order_with_undated_rows_first(tmp_path: Path) -> None:
    """The log is read in the order that everything downstream relies on; known columns stand first."""
    store = write_store(tmp_path / "store", LOG)
    assert store.events().collect().rows(named=True) == [
        {"buyer": 9, "item": "c", "time": None, "order": 2, "colour": "blue"},
        {"buyer": 9, "item": "a", "time": 0, "order": 3, "colour": "red"},
        {"buyer": 8, "item": "d", "time": 3 * DAY + 4, "order": 4, "colour": "red"},
        {"buyer": 7, "item": "b", "time": 3 * DAY + 5, "order": 0, "colour": "red"},
        {"buyer": 7, "item": "a", "time": 3 * DAY + 5, "order": 1, "colour": None},
    ]


def test_each_day_is_a_folder_of_its_own(tmp_path: Path) -> None:
    """The layout on disk is the documented one, and nothing else is left beside it."""
    write_store(tmp_path / "store", LOG)
    assert sorted(tree(tmp_path)) == [
        "store/catalogue.parquet",
        "store/events/day=1970-01-01/part-0.parquet",
        "store/events/day=1970-01-04/part-0.parquet",
        "store/events/day=undated/part-0.parquet",
        "store/manifest.json",
        "store/rejected.parquet",
    ]


def test_the_catalogue_keeps_its_order_and_then_has_the_items_of_the_log_by_first_appearance(tmp_path: Path) -> None:
    """Row numbers follow from the catalogue's file and, after it, from the log's order in time."""
    catalogue = pl.DataFrame({"item": ["z", "a"], "price": [3, 4], "size": [1, 2]})
    log = LOG.with_columns(query_item=pl.Series(["q", None, "a", None, "z"]))
    frame = write_store(tmp_path / "store", log, catalogue).catalogue().frame
    assert frame["item"].to_list() == ["z", "a", "c", "d", "b", "q"]
    assert frame["price"].to_list() == [3.0, 4.0, None, None, None, None]
    assert frame.columns == ["item", "price", "size"]


def test_the_manifest_says_what_is_there(tmp_path: Path) -> None:
    """Counts, types and columns can be had without reading a part."""
    manifest = write_store(tmp_path / "store", LOG, origin="me").manifest
    assert (manifest.events, manifest.buyers, manifest.items) == (5, 3, 4)
    assert (manifest.buyer_type, manifest.item_type, manifest.origin) == ("integer", "string", "me")
    assert manifest.event_columns == ("buyer", "item", "time", "order", "colour")
    assert sum(part.rows for part in manifest.parts) == 5 + 4


def test_equal_rows_make_equal_bytes_and_equal_digests(tmp_path: Path) -> None:
    """Where a store lies and when it was written leave no trace in it."""
    first, second = write_store(tmp_path / "one", LOG), write_store(tmp_path / "deep" / "two", LOG)
    assert tree(first.path) == tree(second.path)
    assert first.digest == second.digest
    assert write_store(tmp_path / "three", LOG.reverse()).digest != first.digest


def test_columns_that_are_not_there_are_not_there(tmp_path: Path) -> None:
    """``has`` answers from the manifest."""
    store = write_store(tmp_path / "store", LOG.drop("time"))
    assert store.has("colour")
    assert not store.has("time")
    assert store.events().collect()["order"].to_list() == [0, 1, 2, 3, 4]


def test_verify_finds_a_changed_part(tmp_path: Path) -> None:
    """A part of the right name with other bytes is found by its hash."""
    store = write_store(tmp_path / "store", LOG)
    store.verify()
    part = store.path / "events/day=1970-01-01/part-0.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(ArtefactError, match=r"day=1970-01-01/part-0.parquet is not the file that was written"):
        Store.open(store.path).verify()


def test_open_refuses_what_is_no_store_and_what_is_not_whole(tmp_path: Path) -> None:
    """A wrong path is the caller's mistake; a damaged store is a failure."""
    with pytest.raises(DataError, match="nowhere does not exist; make one with: hatchway import"):
        Store.open(tmp_path / "nowhere")
    store = write_store(tmp_path / "store", LOG)
    manifest = store.path / "manifest.json"
    text = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(text | {"version": 2}))
    with pytest.raises(ArtefactError, match="version"):
        Store.open(store.path)
    manifest.write_text(json.dumps(text))
    (store.path / "catalogue.parquet").unlink()
    with pytest.raises(ArtefactError, match=r"lacks catalogue\.parquet"):
        Store.open(store.path)


@pytest.mark.parametrize("target", [".", "..", "/", "a/.."])
def test_a_place_without_a_name_of_its_own_is_refused(target: str) -> None:
    """The folder one stands in is no place for a store."""
    with pytest.raises(DataError, match="cannot become a store"):
        write_store(target, LOG)


def test_a_folder_that_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    """Somebody's other files survive a wrong argument."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="is not a store, and is left as it is"):
        write_store(tmp_path / "home", LOG)
    assert tree(tmp_path) == {"home/letter.txt": b"dear"}


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        (LOG.head(0), "no rows"),
        (LOG.drop("item"), "no column 'item'"),
        (LOG.with_columns(buyer=pl.Series([1, None, 2, None, 3])), "2 rows of the log have no buyer and 0 no item"),
        (LOG.with_columns(buyer=pl.Series([1.5, 2, 3, 4, 5])), "Float64; ids must be integers or strings"),
    ],
)
def test_a_log_that_cannot_be_one_is_refused_and_an_old_store_stays(
    tmp_path: Path, log: pl.DataFrame, complaint: str
) -> None:
    """Every refusal leaves the store that was there."""
    before = tree(write_store(tmp_path / "store", LOG).path)
    with pytest.raises(DataError, match=complaint):
        write_store(tmp_path / "store", log)
    assert tree(tmp_path / "store") == before
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_ids_of_two_types_are_refused(tmp_path: Path) -> None:
    """Integers in the catalogue and strings in the log would never meet."""
    with pytest.raises(DataError, match="item ids are String in the log and Int64 in the catalogue"):
        write_store(tmp_path / "store", LOG, pl.DataFrame({"item": [1, 2]}))


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 100])
def test_runs_of_days_cover_every_row_once_in_order(rows_at_once: int) -> None:
    """However little fits in memory, every day is whole and comes in its turn, undated rows first."""
    spans = [(span.collect(), days) for span, days in spans_of_days(LOG.lazy(), rows_at_once)]
    assert [day for _, days in spans for day in days["day"]] == [None, 0, 3]
    assert [rows for _, days in spans for rows in days["rows"]] == [1, 1, 3]
    assert [len(rows) for rows, _ in spans] == [days["rows"].sum() for _, days in spans]
    assert pl.concat([rows for rows, _ in spans]).sort("buyer", "item").equals(LOG.sort("buyer", "item"))
    assert len(spans) == {1: 3, 2: 2, 3: 2, 100: 1}[rows_at_once]
