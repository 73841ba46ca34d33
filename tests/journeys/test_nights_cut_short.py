"""Nights and rollbacks that end anywhere: run again, they publish the same bytes; what is published stays so."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import night_market
import pytest
from killing import Killed, killed_at
from night_market import name

from hatchway.errors import ArtefactError, SettingsError
from hatchway.index.bundle import Bundle
from hatchway.job import nightly_run
from hatchway.nightly.pointer import NightRecord, Outcome, current, read_record, roll_back, write_record

FIRST, LAST = 3, 5
SETTINGS = night_market.settings()
PARTS = ("bundle/manifest.json", "state/manifest.json", "night.json", "monitors.json", "metrics.prom")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a store of a week."""
    folder = tmp_path_factory.mktemp("cut")
    return night_market.market(folder, LAST + 1).write(folder / "store").path


@pytest.fixture(scope="module")
def whole(store: Path) -> Path:
    """Run three nights that nothing interrupts."""
    nights = store.with_name("whole")
    for day in range(FIRST, LAST + 1):
        nightly_run(store, nights, name(day), SETTINGS)
    return nights


@pytest.fixture
def nights(whole: Path, tmp_path: Path) -> Path:
    """Copy the nights."""
    return Path(shutil.copytree(whole, tmp_path / "nights", symlinks=True))


def record_of(nights: Path, day: int) -> NightRecord:
    """Read how a night ended."""
    record = read_record(nights / name(day))
    assert record is not None
    return record


def raised(record: NightRecord) -> list[str]:
    """Name the alarms."""
    return [alarm.name for alarm in record.alarms if alarm.raised]


def parts(nights: Path, day: int) -> list[bytes]:
    """Read what a night leaves."""
    return [(nights / name(day) / part).read_bytes() for part in PARTS]


def test_publishing_that_ends_anywhere_is_finished_by_running_the_night_again(
    nights: Path, whole: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A withdrawn night is run anew, over the bundle that it left: ended at every change of the disk, twice."""
    roll_back(nights)
    with monkeypatch.context() as patch:
        patch.setattr("hatchway.nightly.night.publish", end)
        with pytest.raises(Killed):
            nightly_run(store, nights, name(LAST), SETTINGS)
    assert (nights / name(LAST) / "bundle").is_dir()
    expected, place, ended = parts(whole, LAST), 0, False
    while not ended:
        copy = Path(shutil.copytree(nights, tmp_path / f"at-{place}", symlinks=True))
        for _ in range(2):
            with killed_at(monkeypatch, place) as changes:
                try:
                    nightly_run(store, copy, name(LAST), SETTINGS)
                except Killed:
                    continue
            ended = True
        served = current(copy)
        assert served is not None
        assert record_of(copy, int(served.name[-2:])).outcome == "published", changes
        assert nightly_run(store, copy, name(LAST), SETTINGS).outcome == "published"
        assert parts(copy, LAST) == expected, changes
        assert current(copy) == copy / name(LAST)
        assert not (copy / name(LAST) / "work").exists()
        shutil.rmtree(copy)
        place += 1
    assert place > 15, "state, bundle, monitors, record and pointer take so many changes at least"


def end(*arguments: object) -> None:
    """End the process."""
    raise Killed


def test_a_night_that_is_published_stays_so_when_cleaning_up_fails(
    nights: Path, whole: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged older record, and a folder that cannot be removed: an alarm each, and the same bundle."""
    roll_back(nights)
    (nights / name(FIRST) / "night.json").write_text("{", encoding="utf-8")
    record = nightly_run(store, nights, name(LAST), SETTINGS)
    assert (record.outcome, raised(record)) == ("published", ["not_cleaned"])
    assert name(FIRST) in next(alarm.about for alarm in record.alarms if alarm.raised)
    assert record_of(nights, LAST) == record
    assert current(nights) == nights / name(LAST)
    assert parts(nights, LAST)[:2] == parts(whole, LAST)[:2]
    assert 'hatchway_night_alarm{name="not_cleaned"} 1' in (nights / "metrics.prom").read_text("utf-8")
    shutil.copy(whole / name(FIRST) / "night.json", nights / name(FIRST))

    def refused(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied", str(nights / name(FIRST) / "work"))

    with monkeypatch.context() as patch:
        patch.setattr("hatchway.nightly.night.clean", refused)
        assert raised(nightly_run(store, nights, name(LAST), SETTINGS)) == ["not_cleaned"]
    assert raised(nightly_run(store, nights, name(LAST), SETTINGS)) == [], "it was cleaned up this time"
    assert parts(nights, LAST) == parts(whole, LAST)


@pytest.mark.parametrize("outcome", ["failed", "refused", "withdrawn"])
def test_the_night_that_is_served_was_published_and_never_learns_from_itself(
    nights: Path, whole: Path, store: Path, outcome: Outcome
) -> None:
    """Whatever its record came to say: run again, the record is set right and nothing is trained."""
    said = record_of(nights, LAST)
    write_record(nights / name(LAST), said.model_copy(update={"outcome": outcome, "bundle": None, "reasons": ("why",)}))
    assert nightly_run(store, nights, name(LAST), SETTINGS) == said
    assert parts(nights, LAST) == parts(whole, LAST)
    following = nightly_run(store, nights, name(LAST + 1), SETTINGS)
    assert following.previous == name(LAST)


def test_a_served_night_that_is_damaged_is_not_run_over_itself(nights: Path, store: Path) -> None:
    """The record cannot be read, or the bundle cannot: the way back is named, leads back, and the day is run again."""
    path = nights / name(LAST) / "night.json"
    before = path.read_bytes()
    for spoil in (lambda: path.write_text("{"), lambda: failed_without_vectors(nights / name(LAST))):
        spoil()
        with pytest.raises(ArtefactError, match="it is served; to run it again, go back first: hatchway rollback"):
            nightly_run(store, nights, name(LAST), SETTINGS)
        path.write_bytes(before)
    assert roll_back(nights) == name(LAST - 1)
    assert nightly_run(store, nights, name(LAST), SETTINGS).outcome == "published"


def failed_without_vectors(night: Path) -> None:
    """Let a night's record say that it failed, and cut its vectors."""
    record = read_record(night)
    assert record is not None
    write_record(night, record.model_copy(update={"outcome": "failed"}))
    (night / "bundle" / "item_vectors.safetensors").write_bytes(b"cut")


def test_a_state_of_the_same_day_is_not_gone_on_from(nights: Path, store: Path) -> None:
    """A night's folder under another day's name, as somebody may copy it."""
    shutil.copytree(nights / name(LAST) / "state", nights / name(LAST - 1) / "state", dirs_exist_ok=True)
    roll_back(nights)
    with pytest.raises(ArtefactError, match=f"is of {name(LAST)}, and a night goes on from one before"):
        nightly_run(store, nights, name(LAST), SETTINGS)


@pytest.mark.parametrize(("changes", "served"), [(3, LAST), (6, FIRST)], ids=["only meant", "pointed"])
def test_a_rollback_that_was_cut_short_is_finished_by_the_next_night(
    nights: Path, whole: Path, store: Path, monkeypatch: pytest.MonkeyPatch, changes: int, served: int
) -> None:
    """Nothing is withdrawn yet: the night goes on from what was to be served, and is not taken as published before."""
    with killed_at(monkeypatch, changes), pytest.raises(Killed):
        roll_back(nights, name(FIRST))
    assert current(nights) == nights / name(served)
    assert record_of(nights, LAST - 1).outcome == "published"
    record = nightly_run(store, nights, name(LAST - 1), SETTINGS)
    assert (record.previous, record_of(nights, LAST).outcome) == (name(FIRST), "withdrawn")
    assert parts(nights, LAST - 1) == parts(whole, LAST - 1)


def test_another_model_in_the_recipe_is_refused_by_name(nights: Path, store: Path) -> None:
    """Exit 2, the settings that differ, and the remedy; the old model stays, and the old recipe goes on."""
    other = SETTINGS.model_copy(update={"model": SETTINGS.model.model_copy(update={"dimension": 8})})
    with pytest.raises(SettingsError, match=r"model.dimension was 16 and is now 8\. .* --out NIGHTS"):
        nightly_run(store, nights, name(LAST + 1), other)
    assert current(nights) == nights / name(LAST)
    assert record_of(nights, LAST + 1).outcome == "failed"
    assert nightly_run(store, nights, name(LAST + 1), SETTINGS).outcome == "published"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda bundle: (bundle / "manifest.json").unlink(),
        lambda bundle: (bundle / "manifest.json").write_text("{}"),
        lambda bundle: told(bundle, "day", "2026-03-01"),
        lambda bundle: told(bundle, "weights", "0" * 64),
    ],
    ids=["lost", "emptied", "other day", "other weights"],
)
def test_a_manifest_that_was_lost_or_changed_is_written_again(
    nights: Path, whole: Path, store: Path, spoil: Callable[[Path], object]
) -> None:
    """The alarm says so; the manifest has its bytes again, and what is mined is what would have been."""
    bundle = nights / name(LAST) / "bundle"
    before = (bundle / "manifest.json").read_bytes()
    spoil(bundle)
    record = nightly_run(store, nights, name(LAST + 1), SETTINGS)
    assert raised(record) == ["index_damaged"]
    assert (record.steps["mine"]["mined"], record.steps["mine"]["mended"]) == (True, True)
    assert (bundle / "manifest.json").read_bytes() == before


def told(bundle: Path, fact: str, value: str) -> None:
    """Change what a manifest says of its origin."""
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["origin"][fact] = value
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize("lost", ["manifest.json and item_vectors.safetensors", "bundle"])
def test_a_bundle_that_cannot_be_mended_is_not_mined_with(nights: Path, store: Path, lost: str) -> None:
    """Two files lost, or all: the alarm, the reason, and a night without hard negatives that is published."""
    bundle = nights / name(LAST) / "bundle"
    if lost == "bundle":
        shutil.rmtree(bundle)
    else:
        for file in lost.split(" and "):
            (bundle / file).unlink()
    record = nightly_run(store, nights, name(LAST + 1), SETTINGS)
    mine = record.steps["mine"]
    assert (record.outcome, raised(record)) == ("published", ["index_damaged"])
    assert (mine["mined"], mine["skipped"]) == (False, "damaged")
    assert "hatchway rollback" in mine["message"]
    assert Bundle.open(nights / "current" / "bundle").digest == record.bundle
