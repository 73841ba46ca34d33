"""What holds of every import: ids survive, nothing is lost, equal input gives equal bytes."""

import csv
import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.data.importers import TableSettings, import_sequences, import_table
from hatchway.data.store import Store, write_store

# Text that a cell of a text file can hold: no surrounding blanks (they are cut off) and no control characters.
CELLS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=6)
IDS = st.one_of(st.integers(-(2**60), 2**60).map(str), CELLS)
EVENTS = st.sampled_from(["view", "save", "message", "purchase"])
TIMES = st.integers(946_684_800, 1_900_000_000)
ROWS = st.lists(st.tuples(IDS, IDS, EVENTS, TIMES), min_size=1, max_size=30, unique=True)


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below ``folder`` with its bytes."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def imported(folder: Path, rows: list[tuple[str, str, str, int]], name: str = "store") -> Store:
    """Write rows with Python's csv module and import them."""
    with (folder / "log.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["buyer", "item", "event", "time"])
        writer.writerows(rows)
    return import_table(folder / "log.csv", folder / name, TableSettings(max_rejected=0))


@settings(max_examples=15)
@given(ROWS)
def test_every_row_comes_back_as_it_was_written(rows: list[tuple[str, str, str, int]]) -> None:
    """Ids of any letters, quotes and commas survive; time orders the rows, the file orders equal times."""
    with tempfile.TemporaryDirectory() as folder:
        store = imported(Path(folder), rows)
        frame = store.events().collect()
        found = frame.select(pl.col("buyer", "item").cast(pl.String), "event", "time").rows()
        assert found == sorted(rows, key=lambda row: row[3])
        assert set(store.catalogue().ids.cast(pl.String)) == {item for _, item, _, _ in rows}
        for column, kind in (("buyer", store.manifest.buyer_type), ("item", store.manifest.item_type)):
            assert frame.schema[column] == (pl.Int64 if kind == "integer" else pl.String)


@settings(max_examples=15)
@given(ROWS)
def test_importing_twice_gives_identical_bytes(rows: list[tuple[str, str, str, int]]) -> None:
    """Another folder, another moment, an old store in the way: the same files."""
    with tempfile.TemporaryDirectory() as folder:
        first = imported(Path(folder), rows)
        before = tree(first.path)
        assert tree(imported(Path(folder), rows).path) == before
        assert tree(imported(Path(folder), rows, "other").path) == before


@settings(max_examples=15)
@given(ROWS, st.data())
def test_a_repeated_row_is_rejected_wherever_it_stands(
    rows: list[tuple[str, str, str, int]], data: st.DataObject
) -> None:
    """Copies anywhere after the first change nothing but the list of the rejected."""
    copies = data.draw(st.lists(st.sampled_from(rows), max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        once = imported(Path(folder), rows)
        with (Path(folder) / "log.csv").open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(copies)
        again = import_table(Path(folder) / "log.csv", Path(folder) / "again", TableSettings(max_rejected=1))
        assert again.events().collect().equals(once.events().collect())
        assert again.manifest.rejected == ({"repeat": len(copies)} if copies else {})


@settings(max_examples=15)
@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=5)), min_size=1, max_size=10))
def test_sequences_keep_every_item_in_order(lines: list[tuple[str, list[str]]]) -> None:
    """Joined or one a line, the rows are the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        joined = "".join(f"{user} {' '.join(items)}\n" for user, items in lines)
        single = "".join(f"{user} {item}\n" for user, items in lines for item in items)
        (folder / "joined.txt").write_text(joined, encoding="utf-8")
        (folder / "single.txt").write_text(single, encoding="utf-8")
        first = import_sequences(folder / "joined.txt", folder / "a")
        second = import_sequences(folder / "single.txt", folder / "b")
        rows = first.events().select(pl.col("buyer", "item").cast(pl.String)).collect().rows()
        assert rows == [(user, item) for user, items in lines for item in items]
        assert first.digest == second.digest


@given(
    st.lists(
        st.tuples(st.integers(0, 5), CELLS, st.one_of(st.none(), st.integers(0, 4_000_000_000))),
        min_size=1,
        max_size=40,
    )
)
def test_a_written_store_holds_every_row_once(rows: list[tuple[int, str, int | None]]) -> None:
    """Days cut the log and lose nothing; undated rows come first."""
    log = pl.DataFrame(rows, schema={"buyer": pl.Int64, "item": pl.String, "time": pl.Int64}, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        store = write_store(Path(folder) / "store", log)
        found = store.events().collect()
        expected = sorted(range(len(rows)), key=lambda at: (-1 if rows[at][2] is None else rows[at][2], at))
        assert found["order"].to_list() == expected
        assert found.select("buyer", "item", "time").rows() == [rows[at] for at in expected]
        assert sum(part.rows for part in store.manifest.parts if part.path.startswith("events/")) == len(rows)
