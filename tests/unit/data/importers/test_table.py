"""The user's own tables: columns, types, events, and everything that may be wrong with a row."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchway.data.importers import TableSettings, import_table
from hatchway.data.store import Store
from hatchway.errors import DataError

MARCH_2026 = 1_772_323_200
LOG = """user,listing,what,when,page
u1,10,view,2026-03-01 10:00:00,3
u1,11,Save,2026-03-01 10:00:05,
u2,10,favourite,2026-03-02,1
"""
COLUMNS = {"buyer": "user", "item": "listing", "event": "what", "time": "when"}

Importer = Callable[..., Store]


@pytest.fixture
def imported(tmp_path: Path) -> Importer:
    """Return a function that imports CSV text with settings."""

    def run(text: str, **settings: Any) -> Store:
        (tmp_path / "log.csv").write_text(text, newline="")
        return import_table(tmp_path / "log.csv", tmp_path / "store", TableSettings(**settings))

    return run


def reasons(store: Store) -> list[tuple[int, str]]:
    """Return (line, reason) of every rejected row."""
    return store.rejected().select("line", "reason").rows()


def test_columns_are_mapped_events_known_and_the_rest_carried_along(imported: Importer) -> None:
    """Canonical columns first, in their order and types; the user's own behind, with a type of its own."""
    store = imported(LOG, columns=COLUMNS, events={"favourite": "save"})
    frame = store.events().collect()
    assert dict(frame.schema) == {
        "buyer": pl.String(),
        "item": pl.Int64(),
        "event": pl.String(),
        "time": pl.Int64(),
        "order": pl.Int64(),
        "page": pl.Int64(),
    }
    assert frame.rows() == [
        ("u1", 10, "view", MARCH_2026 + 36_000, 0, 3),
        ("u1", 11, "save", MARCH_2026 + 36_005, 1, None),
        ("u2", 10, "save", MARCH_2026 + 86_400, 2, 1),
    ]


def test_an_event_of_ones_own_keeps_its_name(imported: Importer) -> None:
    """``--event Favourite`` takes it as it is written there, whatever the case in the log."""
    events = imported(LOG, columns=COLUMNS, events={"Favourite": "Favourite"}).events().collect()["event"]
    assert events.to_list() == ["view", "save", "Favourite"]


def test_canonical_names_need_no_map_and_names_may_be_given_to_own_columns(imported: Importer) -> None:
    """What is called like the store's columns is that; the left side of a map may be any name."""
    store = imported("item,buyer,day,score\na,1,Mo,0.5\nb,2,Tu,1\n", columns={"weekday": "day"})
    assert store.events().collect().rows(named=True) == [
        {"buyer": 1, "item": "a", "order": 0, "weekday": "Mo", "score": 0.5},
        {"buyer": 2, "item": "b", "order": 1, "weekday": "Tu", "score": 1.0},
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("u1,10,view,1772323200", "fields"),
        ("u1,10,view,1772323200,,", "fields"),
        (",10,view,1772323200,", "no buyer"),
        ("u1, ,view,1772323200,", "no item"),
        ("u1,10,view,,", "no time"),
        ("u1,10,view,soon,", "time not understood"),
        ("u1,10,view,-1772323200,", "absurd time"),
        ("u1,10,view,0,", "absurd time"),
        ("u1,10,view,253402300799,", "absurd time"),
        ("u1,10,view,9999-12-31,", "absurd time"),
        ("u1,10,view,1772323200000,", "time in another unit"),
        ("u1,10,,1772323200,", "unknown event"),
        ("u1,10,poke,1772323200,", "unknown event"),
        ("u1,10,view,1772323200,many", "number not understood"),
        ("u1,10,view,1772323200,-1", "number not understood"),
        ("u1,10,view,1772323200,nan", "number not understood"),
        ("u0,9,view,1772323200,1", "repeat"),
        ('u1,10,"view,1772323200,', "fields"),
    ],
)
def test_each_fault_has_its_reason_and_costs_its_own_row_only(imported: Importer, row: str, reason: str) -> None:
    """Line 4 is at fault; the rows around it are kept, with their positions in the file."""
    text = (
        f"buyer,item,event,time,weight\nu0,9,view,1772323200,1\nu0,8,save,1772323201,2\n{row}\nu2,7,view,1772323202,3\n"
    )
    store = imported(text, max_rejected=0.5)
    assert store.rejected().rows() == [("log.csv", 4, reason, row)]
    assert store.manifest.rejected == {reason: 1}
    assert store.events().select("buyer", "item", "order").collect().rows() == [
        ("u0", 9, 0),
        ("u0", 8, 1),
        ("u2", 7, 3),
    ]


def test_rejected_rows_do_not_make_ids_text(imported: Importer) -> None:
    """A second header in the middle of joined files is rejected and leaves the integers integers."""
    store = imported("buyer,item,time\n1,2,1772323200\nbuyer,item,time\n3,4,1772323201\n", max_rejected=0.5)
    assert reasons(store) == [(3, "time not understood")]
    assert (store.manifest.buyer_type, store.manifest.item_type) == ("integer", "integer")


def test_without_times_repeats_are_kept_and_a_note_says_so(imported: Importer) -> None:
    """Twice the same item without a time may be two visits."""
    store = imported("buyer,item\n1,2\n1,2\n")
    assert store.manifest.events == 2
    assert store.manifest.notes == ("the log has no column 'time': order stands for it, and repeats are kept",)


def test_rows_that_differ_in_anything_are_no_repeats(imported: Importer) -> None:
    """Another event, another second, another column of the user's own."""
    rows = ["1,2,view,5,a", "1,2,save,5,a", "1,2,view,6,a", "1,2,view,5,b", "1,2,view,5,a", "1,2,view,5,a"]
    text = "\n".join(["buyer,item,event,time,page", *rows])
    store = imported(text, max_rejected=0.5)
    assert reasons(store) == [(6, "repeat"), (7, "repeat")]


def test_an_order_of_ones_own_stands_for_time(imported: Importer) -> None:
    """The rows are sorted by it; equal values keep the order of the file."""
    store = imported("buyer,item,order\n1,a,2\n1,b,1\n2,c,1\n2,d,x\n", max_rejected=0.5)
    assert store.events().select("item", "order").collect().rows() == [("b", 0), ("c", 1), ("a", 2)]
    assert reasons(store) == [(5, "number not understood")]


def test_an_order_has_all_its_digits(imported: Importer) -> None:
    """Nanoseconds differ in digits that a float has not; what does not fit 64 bits is no number, and not the first."""
    store = imported(
        "buyer,item,order\n1,a,1772323200000000002\n1,b,1772323200000000001\n1,c,9223372036854775808\n",
        max_rejected=0.5,
    )
    assert store.events().select("item").collect()["item"].to_list() == ["b", "a"]
    assert store.manifest.rejected == {"number not understood": 1}


def test_a_weight_that_float32_cannot_hold_is_no_number(imported: Importer) -> None:
    """It would be infinite, and every loss with it."""
    store = imported("buyer,item,weight\n1,a,1e40\n1,b,2\n", max_rejected=0.5)
    assert store.events().select("item", "weight").collect().rows() == [("b", 2.0)]
    assert store.manifest.rejected == {"number not understood": 1}


@pytest.mark.parametrize("parquet", [False, True])
def test_names_of_the_importers_own_are_refused(tmp_path: Path, parquet: bool) -> None:
    """Columns that begin with @ are where a row's file and line stand while it is read."""
    frame = pl.DataFrame({"buyer": [1], "item": [2], "@file": [3]})
    source = tmp_path / ("log.parquet" if parquet else "log.csv")
    (frame.write_parquet if parquet else frame.write_csv)(source)
    with pytest.raises(DataError, match="'@file'; names that begin with @ are reserved"):
        import_table(source, tmp_path / "store")


def test_types_of_text_columns_come_from_all_values(imported: Importer) -> None:
    """Leading zeros keep a column text; one odd value does too; blanks are nulls; weights default to 1."""
    text = (
        "buyer,item,weight,zip,number,share,mixed,blank\n"
        "007,10, 2.5,01234,7,0.5,1,\n"
        "8,9999999999999999999,,99999,-3,2,x,\n"
    )
    frame = imported(text).events().collect()
    types = {name: str(dtype) for name, dtype in frame.schema.items()}
    assert types == {
        "buyer": "String",
        "item": "String",
        "order": "Int64",
        "weight": "Float32",
        "zip": "String",
        "number": "Int64",
        "share": "Float64",
        "mixed": "String",
        "blank": "String",
    }
    assert frame.drop("order").rows() == [
        ("007", "10", 2.5, "01234", 7, 0.5, "1", None),
        ("8", "9999999999999999999", 1.0, "99999", -3, 2.0, "x", None),
    ]


def test_a_time_format_is_used(imported: Importer) -> None:
    """Dates as people write them elsewhere."""
    store = imported("buyer,item,time\n1,2,01.03.2026 00:07\n", time_format="%d.%m.%Y %H:%M")
    assert store.events().collect()["time"].to_list() == [MARCH_2026 + 420]


def test_a_catalogue_in_another_countrys_writing_is_told_what_can_be_read(tmp_path: Path) -> None:
    """The log's --time-format is not the catalogue's, nor is a comma a decimal point; each message says so."""
    (tmp_path / "log.csv").write_text("buyer,item,time\n1,5,01.03.2026\n")
    settings = TableSettings(catalogue=tmp_path / "items.csv", time_format="%d.%m.%Y")
    for row, said in (
        ("5;01.03.2026;3", r"time not understood .*, in the log, in the --time-format given"),
        ("5;2026-03-01;3,50", r"number not understood .* not like 12\.50"),
    ):
        (tmp_path / "items.csv").write_text(f"item;listed;price\n{row}\n")
        with pytest.raises(DataError, match=said) as refused:
            import_table(tmp_path / "log.csv", tmp_path / "store", settings)
        assert str(refused.value).endswith(
            "mend the source, say what columns mean (--map-catalogue), or allow more (--max-rejected)"
        )


def test_a_catalogue_of_ones_own(tmp_path: Path) -> None:
    """Its columns are typed and mapped, its faults rejected, and its item ids are those of the log."""
    (tmp_path / "log.tsv").write_text("buyer\titem\tquery_item\n1\t5\t\n2\t6\t9\n")
    (tmp_path / "items.csv").write_text(
        "sku,title,price,seller,photo,listed,gone,size\n"
        '6,"Chair, oak",12.50,s1,00000000000000ff,2026-03-01,,L\n'
        "4,Lamp,,s2,ffffffffffffffff,2026-03-01,2026-03-02,M\n"
        "6,Chair again,1,s1,0000000000000001,2026-03-01,,L\n"
        "7,Sofa,cheap,s3,0000000000000001,2026-03-01,,L\n"
        ",Table,1,s3,0000000000000001,2026-03-01,,L\n"
        "8,Desk,1,s3,0000000000000001,soon,,L\n"
    )
    settings = TableSettings(catalogue=tmp_path / "items.csv", catalogue_columns={"item": "sku"}, max_rejected=0.7)
    store = import_table(tmp_path / "log.tsv", tmp_path / "store", settings)
    assert store.catalogue().frame.rows(named=True)[:2] == [
        {"item": 6, "title": "Chair, oak", "price": 12.5, "seller": "s1", "photo": 255, "listed": MARCH_2026}
        | {"gone": None, "size": "L"},
        {"item": 4, "title": "Lamp", "price": None, "seller": "s2", "photo": 2**64 - 1, "listed": MARCH_2026}
        | {"gone": MARCH_2026 + 86_400, "size": "M"},
    ]
    assert store.catalogue().frame["item"].to_list() == [6, 4, 5, 9]
    assert store.rejected().rows() == [
        ("items.csv", 4, "repeated item", "6,Chair again,1,s1,0000000000000001,2026-03-01,,L"),
        ("items.csv", 5, "number not understood", "7,Sofa,cheap,s3,0000000000000001,2026-03-01,,L"),
        ("items.csv", 6, "no item", ",Table,1,s3,0000000000000001,2026-03-01,,L"),
        ("items.csv", 7, "time not understood", "8,Desk,1,s3,0000000000000001,soon,,L"),
    ]


@pytest.mark.parametrize(
    ("log_items", "catalogue_items", "expected"),
    [
        ("5", "6", [6, 5]),
        ("5", "06", ["06", "5"]),
        ("x", "6", ["6", "x"]),
    ],
)
def test_item_ids_have_one_type_on_both_sides(
    tmp_path: Path, log_items: str, catalogue_items: str, expected: list[object]
) -> None:
    """Integers only if both sides can be."""
    (tmp_path / "log.csv").write_text(f"buyer,item\n1,{log_items}\n")
    (tmp_path / "items.csv").write_text(f"item\n{catalogue_items}\n")
    settings = TableSettings(catalogue=tmp_path / "items.csv")
    store = import_table(tmp_path / "log.csv", tmp_path / "store", settings)
    assert store.catalogue().frame["item"].to_list() == expected


def test_photos_may_be_paths(tmp_path: Path) -> None:
    """What is not a hash throughout is a path."""
    (tmp_path / "log.csv").write_text("buyer,item\n1,5\n")
    (tmp_path / "items.csv").write_text("item,photo\n5,photos/5.jpg\n6,00000000000000ff\n")
    settings = TableSettings(catalogue=tmp_path / "items.csv")
    store = import_table(tmp_path / "log.csv", tmp_path / "store", settings)
    assert store.catalogue().frame["photo"].to_list() == ["photos/5.jpg", "00000000000000ff"]


def test_types_of_parquet_are_kept(tmp_path: Path) -> None:
    """Text that looks like integers stays text, datetimes become seconds, vectors and lists come along."""
    stamp = datetime(2026, 3, 1, 12, tzinfo=UTC)
    log = pl.DataFrame(
        {
            "buyer": pl.Series(["1", "2"], dtype=pl.Categorical),
            "item": pl.Series([5, 6], dtype=pl.Int16),
            "time": pl.Series([stamp, stamp]),
            "tags": [["a"], []],
            "kind": ["07", None],
        }
    )
    items = pl.DataFrame({"item": [6, 5], "vector": pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float32, 2))})
    log.write_parquet(tmp_path / "log.parquet")
    items.write_parquet(tmp_path / "items.parquet")
    settings = TableSettings(catalogue=tmp_path / "items.parquet")
    store = import_table(tmp_path / "log.parquet", tmp_path / "store", settings)
    assert store.events().collect().rows() == [
        ("1", 5, MARCH_2026 + 43_200, 0, ["a"], "07"),
        ("2", 6, MARCH_2026 + 43_200, 1, [], None),
    ]
    assert store.catalogue().frame.schema["vector"] == pl.Array(pl.Float32, 2)


def test_faults_of_parquet_have_row_numbers(tmp_path: Path) -> None:
    """Row 2 of the file is its line 2; a null is shown as nothing."""
    log = pl.DataFrame({"buyer": [1, None, 3], "item": ["a", "b", "c"], "time": [10**9, 10**9, 10**9]})
    log.write_parquet(tmp_path / "log.parquet")
    store = import_table(tmp_path / "log.parquet", tmp_path / "store", TableSettings(max_rejected=0.5))
    assert store.rejected().rows() == [("log.parquet", 2, "no buyer", ",b,1000000000")]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    """Sorted by name, columns in whatever order, an empty one passed over; each row knows its file."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "b.csv").write_text("item,buyer\nx,\ny,2\n")
    (tmp_path / "logs" / "a.csv").write_text("buyer,item\n1,z\n")
    (tmp_path / "logs" / "c.csv").write_text("")
    (tmp_path / "logs" / "README.md").write_text("not data")
    for source in (tmp_path / "logs", f"{tmp_path}/logs/*.csv"):
        store = import_table(source, tmp_path / "store", TableSettings(max_rejected=0.5))
        assert store.events().collect().rows() == [(1, "z", 0), (2, "y", 2)]
        assert store.rejected().select("file", "line", "reason").rows() == [("b.csv", 2, "no buyer")]


@pytest.mark.parametrize(
    ("text", "settings", "complaint"),
    [
        (
            "user,item\n1,2\n",
            {},
            r"has no column 'buyer'; say which one it is, as in --map buyer=user; its columns are user",
        ),
        (
            "user,item\n1,2\n",
            {"columns": {"buyer": "usr"}},
            r"has no column 'usr'; did you mean 'user'\? its columns are",
        ),
        ("user,item,buyer\n1,2,3\n", {"columns": {"buyer": "user"}}, "has a column 'buyer' of its own besides"),
        ("buyer,item,day\n1,2,3\n", {}, "the column name 'day' is reserved"),
        ("buyer,buyer\n1,2\n", {}, "has the column 'buyer' twice"),
        ("7,9\n1,2\n", {}, "the first line of .* should name the columns, but looks like data: 7, 9"),
        ("buyer,item\n", {}, "the source has no rows"),
        ("", {}, "is empty"),
        ("buyer,item,time\n1,2,x\n", {"time_format": "today"}, "'today' is no format of dates"),
        ("buyer,item,time\n1,2,x\n", {}, r"1 of 1 rows \(100.00%\) were rejected(.|\n)*log.csv:2: 1,2,x"),
        ("buyer,item,time\n1,2,\n", {"max_rejected": 1.0}, "all 1 rows were rejected"),
    ],
)
def test_a_table_that_cannot_be_used_is_told(
    imported: Importer, tmp_path: Path, text: str, settings: Mapping[str, Any], complaint: str
) -> None:
    """Each message has what was found and what would help, and nothing is left behind."""
    with pytest.raises(DataError, match=complaint):
        imported(text, **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        ({"buyer": [1.5], "item": [1]}, "'buyer' is Float64; ids must be integers or strings"),
        ({"buyer": [1], "item": [1], "time": [True]}, "'time' is Boolean and cannot be read as times"),
        ({"buyer": [1], "item": [1], "weight": [[1]]}, r"'weight' is List\(Int64\) and must hold numbers"),
        ({"buyer": [1], "item": [1], "event": [1]}, "'event' is Int64 and must hold text"),
    ],
)
def test_parquet_columns_of_the_wrong_kind_are_told(
    tmp_path: Path, frame: Mapping[str, list[object]], complaint: str
) -> None:
    """The column and its type stand in the message."""
    pl.DataFrame(frame).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=complaint):
        import_table(tmp_path / "log.parquet", tmp_path / "store")


def test_files_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    """Other columns, other kinds, no Parquet at all."""
    for folder, files in {
        "columns": {"a.csv": b"buyer,item\n1,2\n", "b.csv": b"buyer,thing\n1,2\n"},
        "kinds": {"a.csv": b"buyer,item\n1,2\n", "b.parquet": b"x"},
        "broken": {"b.parquet": b"PAR1 and so on"},
        "none": {"a.docx": b"x"},
    }.items():
        (tmp_path / folder).mkdir()
        for name, content in files.items():
            (tmp_path / folder / name).write_bytes(content)
    with pytest.raises(DataError, match=r"a\.csv and b\.csv differ in the column 'item'"):
        import_table(tmp_path / "columns", tmp_path / "store")
    with pytest.raises(DataError, match="mixes Parquet and text files"):
        import_table(tmp_path / "kinds", tmp_path / "store")
    with pytest.raises(DataError, match=r"b\.parquet is no Parquet file, or damaged"):
        import_table(tmp_path / "broken", tmp_path / "store")
    with pytest.raises(DataError, match=r"holds no \.csv, \.tsv, \.txt or \.parquet file, but a\.docx"):
        import_table(tmp_path / "none", tmp_path / "store")


def test_a_store_is_not_made_of_itself(imported: Importer, tmp_path: Path) -> None:
    """Reading from the folder that is to be replaced would lose the source."""
    store = imported("buyer,item\n1,2\n")
    with pytest.raises(DataError, match="lies within the store"):
        import_table(store.path / "events", tmp_path / "store")
    assert Store.open(store.path).digest == store.digest


def test_a_store_can_be_made_of_another_ones_events(imported: Importer, tmp_path: Path) -> None:
    """The store's own Parquet is a table like any other."""
    store = imported(LOG, columns=COLUMNS, events={"favourite": "save"})
    again = import_table(store.path / "events", tmp_path / "again")
    assert again.events().collect().equals(store.events().collect())


def test_unknown_events_are_named_with_their_counts(imported: Importer) -> None:
    """So that one sees at once what --event has to say, the most frequent first."""
    rows = ["view", "Fav", "Fav", "buy", "", "Fav"]
    text = "buyer,item,event\n" + "".join(f"u{at},{at},{event}\n" for at, event in enumerate(rows))
    with pytest.raises(
        DataError, match=r"the log's are Fav \(3\), \(blank\) \(1\), buy \(1\); e\.g\. --event NAME=save"
    ):
        imported(text)


def test_events_for_a_log_without_a_column_of_them_are_refused(imported: Importer) -> None:
    """The column was not mapped; every row would count as an engagement, whatever was said of events."""
    with pytest.raises(DataError, match=r"--event fav: .* has no column 'event'.*--map event=action"):
        imported("buyer,item,what\nu1,1,fav\nu2,2,fav\n", events={"fav": "save"})
