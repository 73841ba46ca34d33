"""``hatchway nightly`` and ``rollback`` from the outside: published, killed with signal 9, refused, taken back."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import night_market
import pytest
import tomli_w
from night_market import name

from hatchway.artefacts.alone import alone_in
from hatchway.index.bundle import Bundle
from hatchway.job import nightly_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a store of eight days and a recipe."""
    folder = tmp_path_factory.mktemp("nightly")
    days = night_market.market(folder, 8)
    days.write(folder / "store")
    night_market.empty(days, 7).write(folder / "holed")
    (folder / "recipe.toml").write_text(tomli_w.dumps(night_market.RECIPE), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(place: Path) -> Path:
    """Run five nights that nothing interrupts."""
    for day in range(3, 8):
        nightly_run(place / "store", place / "whole", name(day), night_market.settings())
    return place / "whole"


def arguments(place: Path, nights: Path, *more: str) -> list[str]:
    """Spell the command as a process of its own."""
    command = [sys.executable, "-m", "hatchway.cli.main", "nightly", str(place / "store"), "--out", str(nights)]
    return [*command, "--recipe", str(place / "recipe.toml"), "--quiet", *more]


def test_killed_with_signal_9_wherever_it_was_it_publishes_the_same_bytes(place: Path, whole: Path) -> None:
    """Each night is killed at another moment and run again; bundle and state are those of nights that ran through."""
    nights = place / "killed"
    moments = {3: "work/catalogue.parquet", 4: "work/run/checkpoints", 5: "work/bundle", 6: "state"}
    for day, moment in moments.items():
        begun = subprocess.Popen(arguments(place, nights, "--day", name(day)), stderr=subprocess.DEVNULL)
        wait_for(nights / name(day) / moment, begun)
        os.kill(begun.pid, signal.SIGKILL)
        assert begun.wait() in (-signal.SIGKILL, 0), "it may have ended just before"
        nightly_run(place / "store", nights, name(day), night_market.settings())
    for day in moments:
        for part in ("bundle/manifest.json", "state/manifest.json", "monitors.json", "metrics.prom"):
            ours, theirs = (folder / name(day) / part for folder in (nights, whole))
            assert ours.read_bytes() == theirs.read_bytes(), (day, part)
    assert (nights / "current").readlink() == Path(name(6))


def wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until something is there, or the process has ended."""
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_night_says_what_it_did(place: Path, whole: Path, hatchway: Callable[..., Any]) -> None:
    """The JSON has every step; a night that was published is left as it is, and its bundle can be opened."""
    again = hatchway(
        "nightly", place / "store", "--out", whole, "--recipe", place / "recipe.toml", "--day", name(7), "--json"
    )
    assert again.code == 0
    assert "was published before" in again.err
    said = again.json
    assert (said["outcome"], said["previous"], said["alarms"]) == ("published", name(6), [])
    steps = ["intake", "honest", "frequencies", "mine", "train", "index", "evaluate"]
    assert list(said["steps"]) == steps
    bundle = Bundle.open(whole / "current" / "bundle")
    assert bundle.digest == said["bundle"]
    assert bundle.manifest.origin["day"] == name(7)
    assert bundle.manifest.index.vectors == said["steps"]["intake"]["catalogue"]["offered"]
    monitors = json.loads((whole / name(7) / "monitors.json").read_bytes())
    assert monitors["values"]["index_age_days"] == 1
    assert monitors["values"]["leak_share"] == {"seller": 0.0}
    assert 'hatchway_night_alarm{name="leak_share"} 0' in (whole / "metrics.prom").read_text("utf-8").splitlines()


def test_many_days_pass_over_those_that_are_refused(place: Path, hatchway: Callable[..., Any]) -> None:
    """A day without events is refused with exit 4; in a replay the days after it go on."""
    command = ("nightly", place / "holed", "--recipe", place / "recipe.toml", "--out", place / "replayed")
    replay = hatchway(*command, "--from", name(5), "--to", name(8), "--json")
    assert replay.code == 0
    assert [night["outcome"] for night in replay.json["ended"]] == ["published", "published", "refused", "published"]
    assert replay.json["ended"][3]["previous"] == name(6)
    back = hatchway("rollback", place / "replayed", "--to", name(6))
    assert back.code == 0
    refused = hatchway(*command, "--day", name(7))
    assert refused.code == 4
    assert f"no event of {name(7)}" in refused.err
    assert refused.out == ""


def test_rollback_moves_the_link_and_the_next_night_goes_on_from_there(
    place: Path, whole: Path, hatchway: Callable[..., Any]
) -> None:
    """Back one night, and forth again by running the day: the same bytes as before."""
    before = (whole / name(7) / "bundle" / "manifest.json").read_bytes()
    back = hatchway("rollback", whole, "--json")
    assert (back.code, back.json["served"], back.json["before"]) == (0, name(6), name(7))
    assert (whole / "current").readlink() == Path(name(6))
    report = hatchway("report", whole)
    assert report.code == 0
    page = (whole / "nights.html").read_text("utf-8")
    assert f"The model of the night of {name(6)} is served." in page
    assert "1 rolled back" in page
    early = hatchway("nightly", place / "store", "--out", whole, "--day", name(4))
    assert early.code == 2
    assert f"{name(6)} is served already" in early.err
    forth = hatchway("nightly", place / "store", "--out", whole, "--recipe", place / "recipe.toml", "--day", name(7))
    assert forth.code == 0, forth.err
    assert (whole / name(7) / "bundle" / "manifest.json").read_bytes() == before
    wrong = hatchway("rollback", whole, "--to", "2026-01-01")
    assert wrong.code == 2
    assert "nights that can be served" in wrong.err


def test_the_first_night_speaks_of_no_night_before(place: Path, hatchway: Callable[..., Any]) -> None:
    """Nothing is scored, mined or compared that is not there; what is off is said once, whoever asks."""
    command = ("nightly", place / "store", "--recipe", place / "recipe.toml", "--out", place / "spoken")
    options = ("--set", "screening.seller=false", "--set", "screening.title=false")
    first = hatchway(*command, *options, "--day", name(3))
    assert first.code == 0
    assert "yesterday" not in first.err
    second = hatchway(*command, *options, "--day", name(4))
    for said in ("scoring yesterday's model", "mining with yesterday's index", "tonight's model with yesterday's"):
        assert said in second.err
    lines = [line for line in second.err.splitlines() if line.startswith("screening: ")]
    assert lines
    assert len(set(lines)) == len(lines)
    assert "not refused (undecided)" in second.out


def test_nights_in_no_place_for_them_are_refused(
    place: Path, tmp_path: Path, hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 in words, and nothing is made: in the store, around it, in a file; a store without a name has nights."""
    (tmp_path / "file").touch()
    store = place / "store"
    before = sorted(store.iterdir())
    for out, said in ((store, "is the store"), (store / "n", "lies in the store"), (place, "is where the store")):
        refused = hatchway("nightly", store, "--day", name(3), "--out", out)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
    for command in (("nightly", store, "--day", name(3), "--out"), ("rollback",)):
        refused = hatchway(*command, tmp_path / "file")
        assert refused.code == 2
        assert "is a file" in refused.err
    gone = hatchway("rollback", tmp_path / "nosuch")
    assert gone.code == 2
    assert "nosuch is not there" in gone.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert sorted(store.iterdir()) == before
    monkeypatch.chdir(tmp_path)
    for given in (".", ""):
        refused = hatchway("nightly", given, "--day", name(3))
        assert refused.code == 2
        assert "is not a store" in refused.err
    monkeypatch.chdir(store)
    early = hatchway("nightly", ".", "--day", "2026-01-01", "--recipe", place / "recipe.toml")
    assert early.code == 4
    assert (place / "store-nights" / "2026-01-01").is_dir()


def test_a_deleted_night_is_gone_back_from_by_the_command_that_the_message_names(
    place: Path, whole: Path, tmp_path: Path, hatchway: Callable[..., Any]
) -> None:
    """The night that is served is deleted: nightly says what to do, and that does it."""
    nights = Path(shutil.copytree(whole, tmp_path / "nights", symlinks=True))
    shutil.rmtree(nights / name(7))
    refused = hatchway("nightly", place / "store", "--out", nights, "--day", name(8))
    assert refused.code == 3
    assert f"hatchway rollback {nights} --to DAY" in refused.err
    back = hatchway("rollback", nights, "--to", name(6), "--json")
    assert (back.code, back.json["served"], back.json["before"]) == (0, name(6), name(7))


def test_two_nights_at_once(place: Path, whole: Path, hatchway: Callable[..., Any]) -> None:
    """The second is refused with exit 2 and changes nothing."""
    with alone_in(whole, "filled"):
        second = hatchway("nightly", place / "store", "--out", whole, "--day", name(8))
        back = hatchway("rollback", whole)
    assert (second.code, back.code) == (2, 2)
    assert "being filled by another process" in second.err
    assert not (whole / name(8)).exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "--day, or the first and the last"),
        (("--day", "2026-03-03", "--from", "2026-03-03"), "--day, or the first and the last"),
        (("--from", "2026-03-03"), "--day, or the first and the last"),
        (("--day", "yesterday"), "'yesterday' is no day"),
        (("--from", "2026-03-05", "--to", "2026-03-03"), "is before the first"),
        (("--day", "2026-03-05", "--set", "nightly.held_ou=0.1"), "did you mean 'held_out'?"),
        (("--day", "2026-03-05", "--set", "negatives.frequency=count-min"), "negatives.count_min.buckets"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    place: Path, hatchway: Callable[..., Any], given: tuple[str, ...], said: str
) -> None:
    """Exit 2, one line, the remedy."""
    ended = hatchway("nightly", place / "store", "--out", place / "nothing", *given)
    assert ended.code == 2
    assert said in ended.err
    assert not (place / "nothing" / "current").exists()


def test_a_night_asks_as_many_cases_as_it_may(place: Path, whole: Path, tmp_path: Path) -> None:
    """So many of the day's positives for the honest number, and of what was held out for the comparison."""
    for day in (3, 4):
        record = nightly_run(place / "store", tmp_path / "few", name(day), night_market.settings(most_cases=10))
    honest, judged = record.steps["honest"], record.steps["evaluate"]
    assert (honest["cases"], judged["cases"]) == (10, 10)
    usual = json.loads((whole / name(4) / "night.json").read_bytes())["steps"]
    assert judged["held_out"] == usual["evaluate"]["cases"] > 10
    notes = json.loads((tmp_path / "few" / name(4) / "evaluation.json").read_bytes())["notes"]
    assert any(f"10 of {usual['honest']['cases']:,} cases" in note for note in notes)
