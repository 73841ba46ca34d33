"""The pointer, the way back, what is kept, and what machines and people read of the nights."""

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from killing import Killed, killed_at

from hatchway.errors import ArtefactError, DataError, FailureError, UsageError
from hatchway.nightly.alarms import above
from hatchway.nightly.charts import Series, chart, nice_ticks
from hatchway.nightly.monitors import as_json, as_prometheus
from hatchway.nightly.page import render_nights
from hatchway.nightly.pointer import (
    NightRecord,
    Outcome,
    Verdict,
    current,
    finish_roll_back,
    point_at,
    pointed_at,
    read_record,
    records,
    roll_back,
    write_record,
)
from hatchway.nightly.retention import clean
from hatchway.nightly.settings import NightlySettings


def night(nights: Path, day: str, outcome: Outcome = "published", **facts: object) -> NightRecord:
    """Leave a night as one that ended."""
    record = NightRecord.model_validate({"day": day, "outcome": outcome} | facts)
    for part in ("bundle", "state") if outcome == "published" else ("work",):
        (nights / day / part).mkdir(parents=True)
    write_record(nights / day, record)
    if outcome == "published":
        point_at(nights, day)
    return record


def outcomes(nights: Path) -> dict[str, str]:
    """Say how each night ended."""
    found = {path.name: read_record(path) for path in sorted(nights.glob("2*"))}
    return {day: record.outcome for day, record in found.items() if record is not None}


def test_the_pointer_moves_and_leads_to_a_night(tmp_path: Path) -> None:
    """A link that leads nowhere is an error with the way out."""
    assert current(tmp_path) is None
    night(tmp_path, "2026-03-01")
    night(tmp_path, "2026-03-02")
    assert current(tmp_path) == tmp_path / "2026-03-02"
    (tmp_path / "2026-03-02" / "night.json").unlink()
    with pytest.raises(ArtefactError, match="hatchway rollback"):
        current(tmp_path)


def test_a_pointer_that_leads_nowhere_is_mended_by_the_way_back(tmp_path: Path) -> None:
    """The night that is served was deleted: by name, or to the one before; where none is left, the remedy is said."""
    for day in ("01", "02", "03"):
        night(tmp_path, f"2026-03-{day}")
    shutil.rmtree(tmp_path / "2026-03-03")
    assert pointed_at(tmp_path) == "2026-03-03"
    assert roll_back(tmp_path, "2026-03-01") == "2026-03-01"
    assert current(tmp_path) == tmp_path / "2026-03-01"
    point_at(tmp_path, "2026-03-03")
    assert roll_back(tmp_path, "2026-03-02") == "2026-03-02"
    point_at(tmp_path, "2026-03-03")
    assert roll_back(tmp_path) == "2026-03-02"
    shutil.rmtree(tmp_path / "2026-03-02")
    shutil.rmtree(tmp_path / "2026-03-01")
    with pytest.raises(UsageError, match=r"none; remove .*current, and the next night begins from nothing"):
        roll_back(tmp_path)


@pytest.mark.parametrize("what", ["a folder", "a file"])
def test_a_pointer_that_is_no_link_is_an_error(tmp_path: Path, what: str) -> None:
    """As a copy without links leaves it: it does not count as no night; once it is gone, the night is named."""
    night(tmp_path, "2026-03-01")
    night(tmp_path, "2026-03-02")
    link = tmp_path / "current"
    link.unlink()
    _ = link.mkdir() if what == "a folder" else link.touch()  # type: ignore[func-returns-value]
    for look in (current, roll_back, lambda nights: clean(nights, NightlySettings())):
        with pytest.raises(ArtefactError, match=f"is {what} where a link .* move it out of .* --to DAY"):
            look(tmp_path)
    _ = link.rmdir() if what == "a folder" else link.unlink()  # type: ignore[func-returns-value]
    with pytest.raises(UsageError, match=r"serves no night; name one with --to; .* 2026-03-01, 2026-03-02"):
        roll_back(tmp_path)
    assert roll_back(tmp_path, "2026-03-02") == "2026-03-02"


@pytest.mark.parametrize("to", [None, "2026-03-04"], ids=["back", "forth"])
def test_a_way_back_that_ends_anywhere_is_finished_by_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str | None
) -> None:
    """At every change of the disk, back from the 3rd and forth to the withdrawn 4th: asked again, it ends the same."""
    expected: dict[str, str] = {}
    place, ended = 0, False
    while not ended:
        nights = tmp_path / f"at-{place}"
        for day in ("01", "02", "03", "04"):
            night(nights, f"2026-03-{day}")
        roll_back(nights, "2026-03-03")
        with killed_at(monkeypatch, place) as changes:
            try:
                roll_back(nights, to)
                ended = True
            except Killed:
                pass
        served = current(nights)
        assert served is not None
        going_back = (nights / ".rollback").exists()
        assert going_back or outcomes(nights)[served.name] == "published", changes
        if not ended:
            # Before its first lasting change it was never asked; from then on it is finished, and goes no further.
            roll_back(nights, to)
        found = outcomes(nights) | {"served": str((nights / "current").readlink())}
        expected = expected or found
        assert found == expected, changes
        assert not (nights / ".rollback").exists()
        place += 1
    assert expected["served"] == (to or "2026-03-02")
    assert expected[expected["served"]] == "published"
    later = [day for day in expected if "served" > day > expected["served"]]
    assert "published" not in [expected[day] for day in later]
    assert place > 9


def test_a_way_back_to_a_night_that_is_gone_is_left(tmp_path: Path) -> None:
    """It was cut short, and then its night was deleted: what is served stays, and the note of it goes."""
    night(tmp_path, "2026-03-01")
    (tmp_path / ".rollback").write_text("2026-02-01\n", encoding="utf-8")
    assert finish_roll_back(tmp_path) is None
    assert current(tmp_path) == tmp_path / "2026-03-01"
    assert not (tmp_path / ".rollback").exists()


def test_a_damaged_record_is_named_and_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The way back, the page and the cleaning go on without it; its night is neither served nor removed."""
    for day in range(1, 7):
        night(tmp_path, f"2026-03-0{day}")
    (tmp_path / "2026-03-01" / "night.json").write_text("{", encoding="utf-8")
    (tmp_path / "2026-03-05" / "night.json").unlink()
    (tmp_path / "2026-03-05" / "night.json").mkdir()
    with caplog.at_level("INFO", logger="hatchway"):
        assert [record.day[-1] for record in records(tmp_path)] == ["2", "3", "4", "6"]
    assert "2026-03-01/night.json is damaged" in caplog.text
    assert "2026-03-05/night.json cannot be read" in caplog.text
    page = render_nights(tmp_path)
    assert "2026-03-05 is not shown: " in page
    assert "2026-03-05: its record is damaged" in page
    with pytest.raises(FailureError, match=r"2026-03-01/night\.json is damaged"):
        clean(tmp_path, NightlySettings(keep_nights=2))
    assert [(tmp_path / f"2026-03-0{day}" / "bundle").is_dir() for day in range(1, 7)] == [
        True,
        False,
        False,
        *[True] * 3,
    ]
    assert roll_back(tmp_path) == "2026-03-04"
    assert roll_back(tmp_path, "2026-03-06") == "2026-03-06"
    with pytest.raises(UsageError, match="no published night 2026-03-05"):
        roll_back(tmp_path, "2026-03-05")
    for day in (2, 3, 4, 6):
        shutil.rmtree(tmp_path / f"2026-03-0{day}")
    with pytest.raises(ArtefactError, match=r"no night of .* can be shown"):
        render_nights(tmp_path)


def test_the_way_back_passes_over_what_was_not_published(tmp_path: Path) -> None:
    """From the 4th to the 2nd, since the 3rd was refused; and to the 4th again, by name."""
    for day, outcome in (("01", "published"), ("02", "published"), ("03", "refused"), ("04", "published")):
        night(tmp_path, f"2026-03-{day}", outcome)  # type: ignore[arg-type]
    assert roll_back(tmp_path) == "2026-03-02"
    assert outcomes(tmp_path)["2026-03-04"] == "withdrawn"
    assert roll_back(tmp_path, "2026-03-04") == "2026-03-04"
    assert outcomes(tmp_path)["2026-03-04"] == "published"
    assert roll_back(tmp_path, "2026-03-01") == "2026-03-01"
    assert list(outcomes(tmp_path).values()) == ["published", "withdrawn", "refused", "withdrawn"]
    with pytest.raises(UsageError, match="no published night before 2026-03-01"):
        roll_back(tmp_path)
    with pytest.raises(UsageError, match="can be served: 2026-03-01, 2026-03-02, 2026-03-04"):
        roll_back(tmp_path, "2026-03-03")


def test_old_nights_lose_their_models_and_keep_their_records(tmp_path: Path) -> None:
    """Two published nights and one failed one are kept, and what is served, wherever the pointer stands."""
    for day in range(1, 7):
        night(tmp_path, f"2026-03-0{day}", "refused" if day in (2, 4) else "published")
    settings = NightlySettings(keep_nights=2, keep_failed=1)
    assert clean(tmp_path, settings) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert not (tmp_path / "2026-03-03" / "bundle").exists()
    assert (tmp_path / "2026-03-05" / "state").is_dir()
    assert (tmp_path / "2026-03-04" / "work").is_dir()
    assert len(outcomes(tmp_path)) == 6
    assert clean(tmp_path, settings) == []


def test_what_cannot_be_removed_is_said_after_the_rest_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One folder refuses: the others are removed all the same, and the next cleaning finishes it."""
    for day in range(1, 6):
        night(tmp_path, f"2026-03-0{day}")
    settings, whole = NightlySettings(keep_nights=2), shutil.rmtree

    def refusing(path: Path) -> None:
        if path.parent.name == "2026-03-01":
            raise PermissionError(13, "Permission denied", str(path))
        whole(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refusing)
        with pytest.raises(FailureError, match=r"2026-03-01/\.bundle\.removed cannot be removed \(Permission denied\)"):
            clean(tmp_path, settings)
    assert not (tmp_path / "2026-03-02" / "bundle").exists()
    assert not (tmp_path / "2026-03-03" / "bundle").exists()
    assert clean(tmp_path, settings) == ["2026-03-01"]
    assert [path.name for path in (tmp_path / "2026-03-01").iterdir()] == ["night.json"]


def test_monitors_say_the_same_to_programs_and_to_prometheus(tmp_path: Path) -> None:
    """Numbers by name and labels; alarms with their limits; quotes in labels escaped."""
    facts = {"honest": {"figures": {"all": {"value": 0.25}, "new": None}}, "mine": {"leaks": {'a "b"': 0.5}}}
    alarm = above("leak_share", 0.5, 0.01, "share", "not used")
    record = night(tmp_path, "2026-03-02", steps=facts, alarms=(alarm,))
    text = as_prometheus(record)
    assert 'hatchway_night_honest_recall{slice="all"} 0.25' in text
    assert 'hatchway_night_leak_share{reason="a \\"b\\""} 0.5' in text
    assert 'hatchway_night_alarm{name="leak_share"} 1' in text
    assert "hatchway_night_day_timestamp_seconds 1772496000" in text, "the end of 2 March 2026"
    assert text.count("# TYPE hatchway_night_alarm gauge") == 1
    assert '"honest_recall": {\n   "all": 0.25\n  }' in as_json(record)


def test_the_page_shows_every_day_and_escapes_what_it_is_told(tmp_path: Path) -> None:
    """A day without a night has its place; a message is text, whatever stands in it."""
    with pytest.raises(DataError, match="hatchway nightly"):
        render_nights(tmp_path)
    night(tmp_path, "2026-03-01", alarms=(above("late_share", 0.4, 0.02, "late", "trained on"),))
    night(tmp_path, "2026-03-03", "refused", reasons=("<script>alert(1)</script>",))
    looked = [Verdict(name="a", passed=True, said="so"), Verdict(name="b", passed=True, said="few", decided=False)]
    night(tmp_path, "2026-03-04", gate=tuple(looked))
    page = render_nights(tmp_path)
    assert "not refused (undecided): few" in page
    assert "1 of 2 checks passed, 1 undecided" in page
    assert "2026-03-02: no night was run" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "late share" in page
    assert "2 published, 1 refused, 0 failed; 1 alarm in all." in page


def test_near_duplicate_queries_have_a_chart_of_their_own(tmp_path: Path) -> None:
    """Only where there were any: recall as a whole may look fine while theirs falls."""
    piece = {"cases": 60, "low": None, "high": None}
    whole = piece | {"kind": "all", "name": "all", "old": 0.5, "new": 0.5}
    for day in ("2026-03-01", "2026-03-02"):
        compared = (
            [whole]
            if day == "2026-03-01"
            else [whole, piece | {"kind": "alike", "name": "near-duplicates", "old": 0.5, "new": 0.125}]
        )
        night(tmp_path, day, steps={"evaluate": {"metric": "recall@20", "first": False, "compared": compared}})
        drawn = "Near-duplicate queries: recall@20" in render_nights(tmp_path)
        assert drawn == (day == "2026-03-02")
    assert "2026-03-02 · new 12.5\xa0%" in render_nights(tmp_path)


def test_charts_are_well_formed_and_leave_gaps() -> None:
    """Three of four nights measured: three dots, two pieces of line; nothing measured, no picture."""
    days = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
    text = chart([Series("a < b", [0.1, None, 0.4, 0.2])], days, lambda value: f"{value:g}")
    drawn = ET.fromstring(text)  # noqa: S314  the package's own
    assert len(drawn.findall(".//circle")) == 3
    line = next(path for path in drawn.findall(".//path") if path.get("class") == "line")
    assert str(line.get("d")).count("M") == 2
    assert next(title.text for title in drawn.findall(".//title")) == "2026-03-01 · a < b 0.1"
    assert chart([Series("nothing", [None] * 4), Series("limit", [1.0] * 4, dashed=True)], days, str) == ""


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [(1.0, [0, 0.25, 0.5, 0.75, 1.0]), (7_602.0, [0, 2_000, 4_000, 6_000, 8_000]), (3.0, [0, 1, 2, 3]), (0.0, [0, 1])],
)
def test_ticks_are_round(highest: float, ticks: list[float]) -> None:
    """From 0 to a round number that is not passed."""
    assert nice_ticks(highest) == ticks
