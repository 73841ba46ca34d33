"""``hatchway simulate``: a store like any other, the truth beside it, the same bytes every time."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchway.data.log import build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import Store, write_store
from hatchway.errors import ArtefactError, DataError
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth
from hatchway.simulation.writing import simulate

SMALL = ("--listings", 150, "--buyers", 120, "--days", 4, "--seed", 7)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_command_writes_a_store_and_the_truth(hatchway: Callable[..., Any], tmp_path: Path) -> None:
    """Twice the same bytes, photos among them; the store opens, verifies, and makes a log."""
    target = tmp_path / "store"
    ended = hatchway("simulate", target, *SMALL, "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    first, truth = contents(target), contents(tmp_path / "store-truth")
    again = hatchway("simulate", target, *SMALL, "--quiet")
    assert again.code == 0
    assert "truth, for tests and experiments only" in again.out
    assert (contents(target), contents(tmp_path / "store-truth")) == (first, truth)

    store = Store.open(target)
    store.verify()
    assert ended.json["digest"] == store.digest
    assert ended.json["events"] == dict(store.events().group_by("event").len().collect().iter_rows())
    assert (store.manifest.origin, store.manifest.items) == ("simulate", 150)
    photos = store.catalogue().frame["photo"].to_list()
    assert len(photos) == 150
    assert all((target / photo).is_file() for photo in photos)
    log = build_log(store, PositivesSettings(), SplitSettings(protocol="none"), seed=1)
    positives = store.events().filter(pl.col("event").is_in(["save", "message"])).collect()
    assert (log.engagements.weights > 0).sum() == len(positives)
    assert Truth.open(tmp_path / "store-truth").seed == 7


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    """One thread and two write the same bytes: events, catalogue, photos and truth."""
    written = []
    for threads in ("1", "2"):
        target = tmp_path / threads / "store"
        target.parent.mkdir()
        limits = {"POLARS_MAX_THREADS": threads, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-m", "hatchway.cli.main", "simulate", str(target), *map(str, SMALL), "--quiet"]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | limits)
        written.append(contents(target.parent))
    assert len(written[0]) > 150
    assert written[0] == written[1]


def test_the_store_holds_nothing_of_the_truth(tmp_path: Path) -> None:
    """No column says what object, model or appeal a listing has; the folder of the truth is another one."""
    store = simulate(tmp_path / "store", MarketSettings(listings=150, buyers=120, days=3), 1, photos=False)
    known = {"item", "title", "category", "style", "condition", "price", "seller", "listed", "gone"}
    assert set(store.manifest.catalogue_columns) == known
    expected = ["buyer", "item", "event", "time", "order", "session", "position", "query", "query_item"]
    assert list(store.manifest.event_columns) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "store-truth"]


def test_what_is_no_store_is_left_alone(hatchway: Callable[..., Any], tmp_path: Path) -> None:
    """A folder with something else in it is refused with exit 2, before anything is simulated."""
    (tmp_path / "diary.txt").write_text("dear diary")
    ended = hatchway("simulate", tmp_path, *SMALL)
    assert ended.code == 2
    assert "is not a store" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--listings", 5),
        ("--days", 0),
        ("--buyers", 0),
        ("--listings", 10**20),
        ("--buyers", 10**20),
        ("--days", 10**20),
    ],
)
def test_impossible_markets(hatchway: Callable[..., Any], tmp_path: Path, option: str, value: int) -> None:
    """A size that makes no market is refused with exit 2, naming the setting."""
    ended = hatchway("simulate", tmp_path / "store", option, value)
    assert ended.code == 2
    assert f"{option[2:]} = {value}" in ended.err


@pytest.mark.parametrize("stranger", ["folder", "file"])
def test_what_is_no_truth_is_left_alone(hatchway: Callable[..., Any], tmp_path: Path, stranger: str) -> None:
    """A folder of somebody's that is called as the truth would be is refused with exit 2, before any work."""
    mine = tmp_path / "store-truth"
    if stranger == "folder":
        mine.mkdir()
        (mine / "thesis.txt").write_text("three years")
    else:
        mine.write_text("three years")
    before = contents(tmp_path)
    ended = hatchway("simulate", tmp_path / "store", *SMALL)
    assert ended.code == 2
    assert "store-truth, which exists and is no market's truth, and is left as it is" in ended.err
    assert "days:" not in ended.err
    assert contents(tmp_path) == before


def test_a_kill_between_store_and_truth_is_seen_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new truth beside the old store is refused when it is opened; simulating again makes a pair of them."""
    settings = MarketSettings(listings=150, buyers=120, days=3)
    store = simulate(tmp_path / "store", settings, 1, photos=False)
    assert Truth.open(tmp_path / "store-truth").seed == 1
    rename = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if Path(target) == tmp_path / ".store.old":
            raise SystemExit(137)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(SystemExit):
        simulate(store.path, settings, 2, photos=False)
    monkeypatch.undo()
    assert Store.open(store.path).digest == store.digest
    with pytest.raises(ArtefactError, match=r"is the truth of another store than .*; simulate the market again"):
        Truth.open(tmp_path / "store-truth")
    simulate(store.path, settings, 2, photos=False)
    assert Truth.open(tmp_path / "store-truth").seed == 2


def test_a_truth_goes_with_its_store_and_stands_alone(tmp_path: Path) -> None:
    """Moved away together or alone the truth is believed; beside a store that was imported over it is not."""
    settings = MarketSettings(listings=150, buyers=120, days=3)
    store = simulate(tmp_path / "store", settings, 1, photos=False)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").rename(tmp_path / "elsewhere" / "market")
    (tmp_path / "store-truth").rename(tmp_path / "elsewhere" / "market-truth")
    assert Truth.open(tmp_path / "elsewhere" / "market-truth").seed == 1
    (tmp_path / "elsewhere" / "market-truth").rename(tmp_path / "truth")
    assert Truth.open(tmp_path / "truth").seed == 1
    (tmp_path / "truth").rename(tmp_path / "elsewhere" / "market-truth")
    write_store(tmp_path / "elsewhere" / "market", pl.DataFrame({"buyer": [1], "item": [1]}))
    with pytest.raises(ArtefactError, match=store.digest[:12]):
        Truth.open(tmp_path / "elsewhere" / "market-truth")


def test_a_failure_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the work breaks off, what lay there before lies there still."""
    settings = MarketSettings(listings=150, buyers=120, days=3)
    store = simulate(tmp_path / "store", settings, 1, photos=False)
    before = contents(store.path)

    def broken(*_: object) -> None:
        raise DataError("the disk is full")

    monkeypatch.setattr("hatchway.simulation.writing.take_photos", broken)
    with pytest.raises(DataError, match="the disk is full"):
        simulate(tmp_path / "store", settings, 2)
    assert contents(store.path) == before
