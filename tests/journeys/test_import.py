"""``hatchway import`` as a user meets it: output, exit codes, and what lies on disk after a failure or a kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchway.data.store import Store

Command = Callable[..., Any]

LOG = "user_id,sku,what,ts\nann,1,view,1772323200\nben,2,save,1772323260\nann,2,like,1772409600\n"
MAPS = ["--map", "buyer=user_id", "--map", "item=sku", "--map", "event=what", "--map", "time=ts"]


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below ``folder``, hidden ones included, with its bytes."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a small log of somebody's own."""
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def test_a_users_own_table_becomes_a_store(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """The result on stdout says what there is; stderr has nothing to add."""
    ended = hatchway("import", "table", log, tmp_path / "store", *MAPS, "--event", "like=save")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"{tmp_path}/store: 3 events of 2 buyers on 2 items, 2026-03-01 to 2026-03-02",
        "  events:    2 save, 1 view",
        "  columns:   buyer (user_id), item (sku), event (what), time (ts), order",
        "  catalogue: item",
        "no row was rejected",
    ]


def test_the_result_can_be_had_as_json(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """Rejected rows are counted by reason; the digest is the store's."""
    ended = hatchway("import", "table", log, tmp_path / "store", *MAPS, "--max-rejected", 0.5, "--json", "--quiet")
    assert ended.code == 0
    assert ended.json == {
        "store": f"{tmp_path}/store",
        "digest": Store.open(tmp_path / "store").digest,
        "events": 2,
        "buyers": 2,
        "items": 2,
        "by_event": {"save": 1, "view": 1},
        "first_day": "2026-03-01",
        "last_day": "2026-03-01",
        "event_columns": ["buyer", "item", "event", "time", "order"],
        "catalogue_columns": ["item"],
        "mapped": {"buyer": "user_id", "item": "sku", "event": "what", "time": "ts"},
        "mapped_catalogue": {},
        "without_meaning": [],
        "without_meaning_catalogue": [],
        "rejected": {"unknown event": 1},
        "notes": [],
    }


def test_rejected_rows_are_counted_in_the_text(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """The counts by reason, and where the rows are."""
    ended = hatchway("import", "table", log, tmp_path / "store", *MAPS, "--max-rejected", 0.5)
    assert ended.out.splitlines()[-3:] == [
        "rejected       rows",
        "unknown event     1",
        f"they stand in {tmp_path}/store/rejected.parquet, with file, line and reason",
    ]
    assert Store.open(tmp_path / "store").rejected().rows() == [
        ("log.csv", 4, "unknown event", "ann,2,like,1772409600")
    ]


def test_too_many_rejected_rows_end_with_2_and_no_store(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """The default allows one row in a hundred; the message shows the rows."""
    ended = hatchway("import", "table", log, tmp_path / "store", *MAPS)
    assert (ended.code, ended.out) == (2, "")
    assert "error: 1 of 3 rows (33.33%) were rejected, more than the 1.00%" in ended.err
    assert "log.csv:4: ann,2,like,1772409600" in ended.err
    assert list(tree(tmp_path)) == ["log.csv"]


def test_an_existing_store_survives_a_failed_import(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """Byte for byte."""
    assert hatchway("import", "table", log, tmp_path / "store", *MAPS, "--event", "like").code == 0
    before = tree(tmp_path)
    assert hatchway("import", "table", log, tmp_path / "store", *MAPS).code == 2
    assert hatchway("import", "movielens", tmp_path / "nowhere", tmp_path / "store").code == 2
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["table", "LOG", "STORE", "--map", "buyer"], "--map 'buyer': expected OURS=THEIRS"),
        (["table", "LOG", "STORE", "--event", "a="], "--event 'a=': expected NAME or NAME=OURS"),
        (["table", "LOG", "STORE", "--map", "a=b", "--map", "a=c"], "--map names 'a' twice: 'b' and 'c'"),
        (["table", "LOG", "STORE", "--max-rejected", "2"], "max_rejected = 2.0"),
        (["movielens", "LOG", "STORE", "--map", "a=b"], "--map goes with the format table only; movielens knows"),
        (["lightgcn", "LOG", "STORE"], "has no train.txt or train.txt.gz; it holds log.csv"),
        (["excel", "LOG", "STORE"], "'excel' is no format; allowed: movielens, lightgcn, sequences, mind, table"),
        (["movie-lens", "LOG", "STORE"], "'movie-lens' is no format; did you mean 'movielens'?"),
        (["LOG", "STORE", "x"], "before it: hatchway import FORMAT"),
        (["table", "LOG", "LOG"], "exists and is not a store, and is left as it is"),
    ],
)
def test_mistakes_in_the_call_end_with_2(
    hatchway: Command, log: Path, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    """The message has the offending value and what is allowed."""
    places = {"LOG": str(log), "STORE": str(tmp_path / "store")}
    ended = hatchway("import", *(places.get(argument, argument) for argument in arguments))
    assert ended.code == 2
    assert complaint in ended.err
    assert tree(tmp_path) == {"log.csv": LOG.encode()}


def test_a_damaged_source_ends_with_2_and_names_the_file(hatchway: Command, tmp_path: Path) -> None:
    """A download that broke off is the user's to fetch again, not a traceback."""
    (tmp_path / "train.txt.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc")
    (tmp_path / "test.txt").write_text("1 2\n")
    ended = hatchway("import", "lightgcn", tmp_path, tmp_path / "store")
    assert ended.code == 2
    assert "train.txt.gz is cut short or damaged" in ended.err


def ratings(path: Path, rows: int) -> None:
    """Write ``ratings.dat`` as MovieLens-1M has it, over 400 days."""
    at = pl.int_range(rows, eager=True)
    columns = (at % 97 + 1, at * 31 % 911 + 1, at % 5 + 1, 956_703_932 + at * 7_919 % (400 * 86_400))
    pl.select(pl.concat_str([column.cast(pl.String) for column in columns], separator="::")).write_csv(
        path, include_header=False, quote_style="never"
    )


def killed_import(source: Path, store: Path, when: Callable[[], bool]) -> None:
    """Start an import in a process of its own and kill it as soon as ``when`` holds."""
    program = "from hatchway.cli.main import main; main()"
    arguments = ["import", "movielens", str(source), str(store), "--quiet"]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], env=os.environ)
    deadline = time.monotonic() + 60
    while not when():
        assert process.poll() is None, "the import ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("stage", ["reading", "writing days"])
def test_a_killed_import_leaves_no_store_and_the_next_one_gives_the_same_bytes(
    hatchway: Command, tmp_path: Path, stage: str
) -> None:
    """Kill -9 while the source is staged, and while days are being written."""
    source, store, undisturbed = tmp_path / "ratings.dat", tmp_path / "store", tmp_path / "undisturbed"
    ratings(source, 60_000)
    partial = tmp_path / ".store.partial"
    marks = {"reading": partial / "work", "writing days": partial / "events" / "day=2000-09-01"}
    killed_import(source, store, marks[stage].exists)
    assert not store.exists()
    assert hatchway("import", "movielens", source, undisturbed, "--quiet").code == 0
    assert hatchway("import", "movielens", source, store, "--quiet").code == 0
    assert tree(store) == tree(undisturbed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.dat", "store", "undisturbed"]


def test_a_killed_import_leaves_the_old_store_whole(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """What was there stays readable until the new store is whole."""
    store = tmp_path / "store"
    assert hatchway("import", "table", log, store, *MAPS, "--event", "like", "--quiet").code == 0
    before = tree(store)
    ratings(tmp_path / "ratings.dat", 60_000)
    killed_import(tmp_path / "ratings.dat", store, (tmp_path / ".store.partial" / "events").exists)
    assert tree(store) == before
    Store.open(store).verify()


def test_importing_again_into_a_folder_of_the_source_gives_the_same(
    hatchway: Command, log: Path, tmp_path: Path
) -> None:
    """The store of the first time is not read as a part of the log."""
    call = ("import", "table", log.parent, log.parent / "store", *MAPS, "--event", "like", "--quiet")
    assert hatchway(*call).code == 0
    before = tree(tmp_path)
    assert hatchway(*call).code == 0
    assert tree(tmp_path) == before


def test_a_ring_of_links_is_said(hatchway: Command, log: Path, tmp_path: Path) -> None:
    """As a source it does not exist, as a target it is refused."""
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    ended = hatchway("import", "table", tmp_path / "ring", tmp_path / "store")
    assert (ended.code, "ring does not exist" in ended.err) == (2, True)
    ended = hatchway("import", "table", log, tmp_path / "ring", *MAPS)
    assert (ended.code, "is a link in a ring of links" in ended.err) == (2, True)
    ended = hatchway("train", tmp_path / "ring", "--out", tmp_path / "run")
    assert (ended.code, "ring does not exist" in ended.err) == (2, True)
