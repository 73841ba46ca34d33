"""Shown rows: tomorrow's impressions, whole files, one a day when the day is over, and nothing that a crash breaks."""

import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from hatchway.data.importers.table import TableSettings, import_table
from hatchway.data.store import write_store
from hatchway.serving.settings import ServingSettings
from hatchway.serving.shown import Shown, ShownLog

NIGHT = 1_772_496_000  # 3 March 2026, 00:00
EVENING = NIGHT - 3600


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """Say what time it is."""
        return self.now


def shown(time: int = EVENING, buyer: int | str | None = "b1", items: tuple[int | str, ...] = ("i1", "i2")) -> Shown:
    """Return a row of two items."""
    return Shown(time, buyer, "v7", items, "i9", "digest", "request", "similar")


MakeLog = Callable[..., ShownLog]


@pytest.fixture
def make(tmp_path: Path) -> MakeLog:
    """Return a function that makes a log."""

    def log(clock: Clock, **settings: object) -> ShownLog:
        return ShownLog(tmp_path / "state", ServingSettings.parse(settings), clock)

    return log


def rows(folder: Path, kind: str = "served") -> pl.DataFrame:
    """Read all that was written."""
    return pl.read_parquet(sorted(folder.glob(f"{kind}/*/*.parquet")), hive_partitioning=False)


def test_shown_rows_are_impressions_of_the_store(make: MakeLog, tmp_path: Path) -> None:
    """As the importer reads them: positions from 1, the listing whose page it was, and the bundle that answered."""
    log = make(Clock(EVENING))
    log.add(shown())
    log.add(Shown(NIGHT + 5, "b2", None, ("i3",), None, "other", "r2", "recommend"))
    log.add(shown(buyer=None))
    log.add(shown(items=()))
    log.flush()
    store = import_table(tmp_path / "state" / "served", tmp_path / "store", TableSettings())
    events = store.events().collect()
    assert store.manifest.rejected == {}
    assert events.select("buyer", "item", "event", "time", "session", "position", "query_item").rows() == [
        ("b1", "i1", "impression", EVENING, "v7", 1, "i9"),
        ("b1", "i2", "impression", EVENING, "v7", 2, "i9"),
        ("b2", "i3", "impression", NIGHT + 5, None, 1, None),
    ]
    assert events["bundle"].to_list() == ["digest", "digest", "other"]
    assert sorted(path.name for path in (tmp_path / "state" / "served").iterdir()) == [
        "day=2026-03-02",
        "day=2026-03-03",
    ]
    anonymous = rows(tmp_path / "state", "anonymous")
    assert "buyer" not in anonymous.columns
    assert anonymous["item"].to_list() == ["i1", "i2"]
    assert (log.written, log.dropped) == (5, 0)


def test_ids_have_the_types_of_the_store(make: MakeLog, tmp_path: Path) -> None:
    """So that a day of impressions stands in one log with yesterday's events."""
    log = make(Clock(EVENING), buyer_ids="integer")
    log.add(Shown(EVENING, 7, "v", (1, 2), 3, "d", "r", "similar"))
    log.flush()
    found = rows(tmp_path / "state")
    earlier = pl.DataFrame({"buyer": [7], "item": [1], "event": ["save"], "time": [EVENING - 100]})
    store = write_store(tmp_path / "store", pl.concat([earlier, found], how="diagonal"))
    assert (store.manifest.buyer_type, store.manifest.item_type, store.manifest.events) == ("integer", "integer", 3)


def test_a_day_that_is_over_becomes_one_file(make: MakeLog, tmp_path: Path) -> None:
    """Whatever it was written in; the new day has its own."""
    clock = Clock(EVENING)
    log = make(clock)
    for number in range(5):
        log.add(shown(EVENING + number))
        log.flush()
        log._put_together()
    folder = tmp_path / "state" / "served" / "day=2026-03-02"
    assert len(list(folder.iterdir())) == 5
    clock.now = NIGHT + 1
    log.add(shown(NIGHT))
    log.flush()
    log._put_together()
    assert [path.name for path in folder.iterdir()] == ["part-00000000-00000004.parquet"]
    assert pl.read_parquet(folder)["time"].to_list() == [EVENING + number // 2 for number in range(10)]
    log.add(shown(EVENING + 99))  # late, after midnight
    log.flush()
    log._put_together()
    assert [path.name for path in folder.iterdir()] == ["part-00000000-00000005.parquet"]
    assert len(pl.read_parquet(folder)) == 12


def test_many_small_files_are_put_together_during_the_day(
    make: MakeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of two-second files would be forty thousand."""
    monkeypatch.setattr("hatchway.serving.shown._MOST_PARTS", 3)
    log = make(Clock(EVENING))
    for number in range(10):
        log.add(shown(EVENING + number))
        log.flush()
        log._put_together()
    assert len(list((tmp_path / "state" / "served" / "day=2026-03-02").iterdir())) == 4
    assert sorted(rows(tmp_path / "state")["time"].to_list()) == [EVENING + number // 2 for number in range(20)]


def test_a_crash_leaves_no_row_twice_and_no_torn_file(
    make: MakeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the big file has its name and before the small ones are gone; or in the middle of a write."""

    def stay(self: Path, missing_ok: bool = False) -> None:
        """Remove nothing."""

    log = make(Clock(EVENING))
    for number in range(4):
        log.add(shown(EVENING + number))
        log.flush()
    folder = tmp_path / "state" / "served" / "day=2026-03-02"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stay)
        log._clock = Clock(NIGHT)
        log._put_together()
    assert len(list(folder.glob("part-*"))) == 5
    (folder / ".part-00000009.parquet.partial").write_bytes(b"PAR1 torn")
    again = make(Clock(EVENING))
    again.start()
    again.add(shown(EVENING + 50))
    again.close()
    assert len(pl.read_parquet(sorted(folder.glob("part-*")))) == 10
    third = make(Clock(NIGHT))
    third.start()
    third.close()
    assert [path.name for path in folder.glob("part-*")] == ["part-00000000-00000004.parquet"]
    assert len(import_table(folder, tmp_path / "store").events().collect()) == 10


def test_a_full_disk_keeps_rows_waiting_and_then_drops_them(
    make: MakeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests never wait; what did not fit is counted; when there is room again, the rest is written."""
    log = make(Clock(EVENING), waiting_limit=6)

    def full(self: pl.DataFrame, path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", full)
        for number in range(5):
            log.add(shown(EVENING + number))
            log.flush()
    assert (log.written, log.dropped) == (0, 4)
    log.flush()
    assert log.written == 6
    assert (
        rows(tmp_path / "state")["time"].to_list() == [EVENING, EVENING, EVENING + 1, EVENING + 1] + [EVENING + 2] * 2
    )
    log.add(shown())
    assert log.dropped == 4


def test_rows_are_written_within_seconds_while_others_are_added(make: MakeLog, tmp_path: Path) -> None:
    """By a thread of its own, from many threads, none twice and none lost."""
    log = make(Clock(EVENING), flush_seconds=0.02)
    log.start()

    def add(worker: int) -> None:
        for number in range(200):
            log.add(shown(EVENING, f"b{worker}", (f"{worker}-{number}",)))

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = rows(tmp_path / "state")["item"].to_list()
    assert sorted(found) == sorted(f"{worker}-{number}" for worker in range(4) for number in range(200))
