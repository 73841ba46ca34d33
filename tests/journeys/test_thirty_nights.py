"""Thirty nights in a row, ten of them with a fault; whatever went wrong, the last model is that of the clean nights."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import night_market
import pytest
from night_market import Days, name

from hatchway.artefacts.alone import alone_in
from hatchway.errors import FailureError, UsageError
from hatchway.job import nightly_run
from hatchway.nightly.pointer import NightRecord, current, records, roll_back

FIRST, LAST = 3, 32
SETTINGS = night_market.settings(keep_nights=40)
PARTS = ("bundle/manifest.json", "state/manifest.json", "state/weights.safetensors", "monitors.json")


class Killed(BaseException):
    """Stands for the end of the process: nothing in the package catches it."""


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    """Simulate the market."""
    return night_market.market(tmp_path_factory.mktemp("market"), LAST)


@pytest.fixture(scope="module")
def store(days: Days, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write its store."""
    return days.write(tmp_path_factory.mktemp("clean") / "store").path


@pytest.fixture(scope="module")
def clean(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run thirty nights in which nothing goes wrong."""
    nights = tmp_path_factory.mktemp("nights") / "clean"
    for day in range(FIRST, LAST + 1):
        nightly_run(store, nights, name(day), SETTINGS)
    return nights


def test_thirty_clean_nights_are_published_without_an_alarm(clean: Path) -> None:
    """Nothing is wrong, so nothing is said to be: thirty nights, the last one served, and no alarm in any."""
    found = list(records(clean))
    assert [record.outcome for record in found] == ["published"] * 30
    assert current(clean) == clean / name(LAST)
    assert {record.day: [alarm.name for alarm in record.alarms if alarm.raised] for record in found} == {
        record.day: [] for record in found
    }


@contextmanager
def fails(monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException, after: int = 0) -> Iterator[None]:
    """Let a function of the package raise, from its call number ``after`` on."""
    module, _, function = where.rpartition(".")
    target = __import__(module, fromlist=[function])
    whole, calls = getattr(target, function), []

    def broken(*arguments: object, **named: object) -> object:
        calls.append(1)
        if len(calls) > after:
            raise error
        return whole(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(target, function, broken)
        yield


@contextmanager
def full_disk(bytes_left: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: what the system then refuses is what a full disk refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True, eq=False)
class Faults:
    """What happens to the nights of one folder; each is followed by the night as it should have been.

    Attributes:
        nights: the folder.
        store: the store of the market.
        days: the same, to write stores with faults from.
        monkeypatch: pytest's.
    """

    nights: Path
    store: Path
    days: Days
    monkeypatch: pytest.MonkeyPatch

    def run(self, day: int, store: Path | None = None) -> NightRecord:
        """Run a night."""
        return nightly_run(store or self.store, self.nights, name(day), SETTINGS)

    def record(self, day: int) -> NightRecord:
        """Read how a night ended."""
        return next(record for record in records(self.nights) if record.day == name(day))

    def stays(self, day: int, expected: type[BaseException], said: str) -> None:
        """Run a night that must fail, and see that the old model is served as before."""
        before = current(self.nights)
        with pytest.raises(expected, match=said):
            self.run(day)
        assert current(self.nights) == before
        assert before is not None
        assert (before / "bundle" / "manifest.json").is_file()

    def breaks(self, where: str, error: BaseException, after: int = 0) -> AbstractContextManager[None]:
        """Let a function of the package raise, from its call number ``after`` on."""
        return fails(self.monkeypatch, where, error, after)

    def killed_in_training(self, day: int) -> None:
        """The process ends after the second checkpoint."""
        with self.breaks("hatchway.training.loop.save_checkpoint", Killed("signal 9"), after=1):
            self.stays(day, Killed, "signal 9")
        work = self.nights / name(day) / "work"
        assert list((work / "run" / "checkpoints").glob("step-*")), "it was killed on the way"

    def killed_before_the_pointer(self, day: int) -> None:
        """The process ends when everything is written and nothing is served."""
        with self.breaks("hatchway.nightly.night.point_at", Killed("signal 9")):
            self.stays(day, Killed, "signal 9")
        assert self.record(day).outcome == "published"

    def killed_while_publishing(self, day: int) -> None:
        """The process ends when bundle and state lie in their places, without a record."""
        with self.breaks("hatchway.nightly.night.write_record", Killed("signal 9")):
            self.stays(day, Killed, "signal 9")
        assert (self.nights / name(day) / "bundle").is_dir()

    def index_fails(self, day: int) -> None:
        """The index cannot be built."""
        with self.breaks("hatchway.nightly.making.write_bundle", MemoryError("no memory for the index")):
            self.stays(day, MemoryError, "no memory")
        assert self.record(day).outcome == "failed"
        assert "no memory for the index" in self.record(day).reasons[0]

    def disk_is_full(self, day: int) -> None:
        """No file may grow beyond a few thousand bytes."""
        with full_disk(6_000):
            self.stays(day, FailureError, "File too large; make room")

    def disk_fills_up_late(self, day: int) -> None:
        """The state of the night finds no room."""
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with self.breaks("hatchway.nightly.publishing.write_state", error):
            self.stays(day, OSError, "No space left")
        assert self.record(day).outcome == "failed"

    def index_is_cut_short(self, day: int) -> None:
        """Half of yesterday's index is gone: it is built again, and mined with as if nothing had been."""
        index = next((self.nights / name(day - 1) / "bundle").glob("index.*"))
        with index.open("rb+") as file:
            file.truncate(index.stat().st_size // 2)
        record = self.run(day)
        assert [alarm.name for alarm in record.alarms if alarm.raised] == ["index_damaged"]
        assert record.steps["mine"]["mended"]

    def events_come_twice(self, day: int) -> None:
        """Every event of the day stands in the log twice."""
        twice = night_market.doubled(self.days, day).write(self.nights.with_name("twice")).path
        record = self.run(day, twice)
        assert [alarm.name for alarm in record.alarms if alarm.raised] == ["repeated_share"]
        today = record.steps["intake"]["day"]
        assert today["rejected"] == {"repeat": today["accepted"]}

    def a_second_night(self, day: int) -> None:
        """Another night is running."""
        with alone_in(self.nights, "filled"):
            self.stays(day, UsageError, "being filled by another process")

    def rolled_back(self, day: int) -> None:
        """The night is published and taken back."""
        self.run(day)
        assert roll_back(self.nights) == name(day - 1)
        assert self.record(day).outcome == "withdrawn"


def test_ten_faults_in_thirty_nights_leave_the_model_bit_for_bit(
    clean: Path, store: Path, days: Days, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, re-index failed, disk full, index cut, events twice, two at once: the last night has the same bytes."""
    happens = Faults(tmp_path / "nights", store, days, monkeypatch)
    faults: dict[int, Callable[[int], None]] = {
        5: happens.killed_in_training,
        8: happens.index_fails,
        11: happens.disk_is_full,
        14: happens.index_is_cut_short,
        17: happens.events_come_twice,
        20: happens.a_second_night,
        23: happens.killed_before_the_pointer,
        25: happens.killed_while_publishing,
        28: happens.disk_fills_up_late,
        30: happens.rolled_back,
    }
    assert len(faults) == 10
    for day in range(FIRST, LAST + 1):
        if day in faults:
            faults[day](day)
        assert happens.run(day).outcome == "published"
    assert current(happens.nights) == happens.nights / name(LAST)
    for part in PARTS:
        ours, theirs = (folder / name(LAST) / part for folder in (happens.nights, clean))
        assert ours.read_bytes() == theirs.read_bytes(), part
