"""What a server wrote down joins the day's log in one import, and what is printed says what became of every column."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchway.data.engagements import Part
from hatchway.data.importers import shown
from hatchway.data.log import build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import Store
from hatchway.serving.settings import ServingSettings
from hatchway.serving.shown import Shown, ShownLog, put_together

NOON = 1_772_452_800  # 2 March 2026
LOG = f"""who,item,event,time,session,page
b1,7,save,{NOON + 60},s1,x
b1,8,view,{NOON + 61},s1,y
b2,7,save,{NOON + 90},s2,z
"""
CALL = ("--map", "buyer=who", "--catalogue", "{}/items.csv", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a log, a catalogue that lacks one of its items, and what a server showed to two buyers and to nobody."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "items.csv").write_text("item,title,colour\n7,bed,red\n9,desk,blue\n10,lamp,green\n")
    log = ShownLog(tmp_path / "state", ServingSettings(), lambda: NOON + 120)
    for buyer, items in (("b1", (9, 7)), ("b2", (10,)), (None, (10, 9))):
        log.add(Shown(NOON + 30, buyer, f"s{buyer[1]}" if buyer else None, items, 8, "d1", "r1", "similar"))
    log.close()
    return tmp_path


def imported(hatchway: Callable[..., Any], folder: Path, *more: object) -> Any:
    """Import the log with its catalogue."""
    call = [part.format(folder) for part in CALL]
    return hatchway("import", "table", folder / "log.csv", folder / "store", *call, *more)


def test_shown_rows_join_the_log_and_teach(hatchway: Callable[..., Any], folder: Path) -> None:
    """In the log's types, where their time is; those of nobody are left out and counted. Training rows have them."""
    ended = imported(hatchway, folder, "--shown", folder / "state", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["by_event"] == {"impression": 3, "save": 2, "view": 1}
    assert ended.json["notes"][:2] == [
        "2 shown rows of nobody in particular are left out: an impression needs its buyer, so ask with buyer=ID",
        f"3 shown rows of {folder / 'state'} are impressions of the log",
    ]
    store = Store.open(folder / "store")
    rows = store.events().filter(event="impression").select("buyer", "item", "time", "session", "position", "bundle")
    assert rows.collect().rows() == [
        ("b1", 9, NOON + 30, "s1", 1, "d1"),
        ("b1", 7, NOON + 30, "s1", 2, "d1"),
        ("b2", 10, NOON + 30, "s2", 1, "d1"),
    ]
    log = build_log(store, PositivesSettings(), SplitSettings(protocol="none"), 1, impressions=True)
    assert log.impressions is not None
    found = {
        str(log.buyers.external(log.engagements.buyers[row : row + 1])[0]): log.catalogue.external(
            log.impressions.items[log.impressions.begin[row] : log.impressions.end[row]]
        ).to_list()
        for row in log.engagements.positives(Part.TRAIN).tolist()
    }
    assert found == {"b1": [9], "b2": [10]}, "what was shown in the session, without what was engaged with"


def test_the_columns_are_there_before_anything_was_shown(hatchway: Callable[..., Any], folder: Path) -> None:
    """So that the log of every night has the same columns."""
    assert imported(hatchway, folder, "--shown", folder / "state").code == 0
    with_rows = Store.open(folder / "store").manifest.event_columns
    ended = imported(hatchway, folder, "--shown", folder / "nothing yet")
    assert ended.code == 0, ended.err
    assert Store.open(folder / "store").manifest.event_columns == with_rows


@pytest.mark.parametrize("ended", ["before they are read", "never"])
def test_files_that_a_server_puts_together_meanwhile_count_once(
    hatchway: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """Listed before and read after, or by a server that was killed in between: every row is there, and once."""
    log = ShownLog(folder / "state", ServingSettings(), lambda: NOON + 240)
    log.add(Shown(NOON + 200, "b1", "s1", (9, 7), 8, "d1", "r2", "similar"))
    log.close()
    day = folder / "state" / "served" / "day=2026-03-02"
    parts = [(path, number, number) for number, path in enumerate(sorted(day.glob("part-*.parquet")))]
    assert len(parts) == 2
    if ended == "never":
        content = [path.read_bytes() for path, _, _ in parts]
        put_together(day, parts)
        for (path, _, _), bytes_ in zip(parts, content, strict=True):
            path.write_bytes(bytes_)
    else:
        listed = shown._files

        def then_put_together(source: Path | str) -> list[Path]:
            found = listed(source)
            if parts[0][0].exists():
                put_together(day, parts)
            return found

        monkeypatch.setattr(shown, "_files", then_put_together)
    made = imported(hatchway, folder, "--shown", folder / "state", "--json")
    assert made.code == 0, made.err
    assert made.json["by_event"]["impression"] == 5


def test_what_cannot_join_is_told(hatchway: Callable[..., Any], folder: Path) -> None:
    """Exit 2: rows of nobody as a log, files that no server wrote, ids of another type, a log without times."""
    anonymous = folder / "state" / "anonymous"
    ended = hatchway("import", "table", anonymous, folder / "other")
    assert ended.code == 2
    assert "served to nobody in particular: they have no buyer" in ended.err
    pl.DataFrame({"item": [1]}).write_parquet(folder / "mine.parquet")
    ended = imported(hatchway, folder, "--shown", folder / "mine.parquet")
    assert ended.code == 2
    assert "so hatchway serve did not write it" in ended.err
    (folder / "log.csv").write_text(LOG.replace("b1,", "1,").replace("b2,", "2,"))
    ended = imported(hatchway, folder, "--shown", folder / "state")
    assert ended.code == 2
    assert "buyer 'b1' is not of the log's type, Int64" in ended.err
    (folder / "log.csv").write_text("who,item\nb1,7\n")
    ended = imported(hatchway, folder, "--shown", folder / "state")
    assert ended.code == 2
    assert "the log has no column 'time'" in ended.err
    assert not (folder / "store").exists()


def test_what_became_of_every_column_is_printed(hatchway: Callable[..., Any], folder: Path) -> None:
    """The source's name behind each mapped one, what has no meaning apart, and the items that only the log has."""
    ended = imported(hatchway, folder)
    lines = ended.out.splitlines()
    columns = "buyer (who), item, event, time, order, session; carried along without a meaning: page"
    assert f"  columns:   {columns}" in lines
    assert "  catalogue: item, title; carried along without a meaning: colour" in lines
    found = imported(hatchway, folder, "--json").json
    assert found["mapped"] == {"buyer": "who"}
    assert found["without_meaning"] == ["page"]
    assert found["without_meaning_catalogue"] == ["colour"]
    assert found["notes"] == [
        "1 of 4 items are in the log and not in the catalogue (item 8 is one): they are known by their ids alone"
    ]
