"""The pointer, the way back, what is kept, and what machines and people read of the nights."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hatchway.errors import ArtefactError, DataError, UsageError
from hatchway.nightly.alarms import above
from hatchway.nightly.charts import Series, chart, nice_ticks
from hatchway.nightly.monitors import as_json, as_prometheus
from hatchway.nightly.page import render_nights
from hatchway.nightly.pointer import NightRecord, Outcome, current, point_at, read_record, roll_back, write_record
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
    page = render_nights(tmp_path)
    assert "2026-03-02: no night was run" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "late share" in page
    assert "1 published, 1 refused, 0 failed; 1 alarm in all." in page


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
