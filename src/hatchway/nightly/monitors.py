"""What a night measured, for machines: one JSON file, and the same numbers as Prometheus reads them from a file."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchway.artefacts.atomic import write_text
from hatchway.nightly.days import day_number, first_second
from hatchway.nightly.pointer import NightRecord

Labels = tuple[tuple[str, str], ...]

_ABOUT: Mapping[str, str] = {
    "day_timestamp_seconds": "End of the day that the last night was of",
    "published": "1 if the night was published, 0 if it was refused or failed",
    "events": "Accepted events of the day",
    "positives": "Accepted positives of the day",
    "rejected": "Events of the day turned away, by reason",
    "late_events": "Events taken in that are of days before",
    "listings": "Listings: on offer, new since the night before, gone, lost from the catalogue",
    "index_age_days": "Days between the day and the index that was mined with; absent where there was none",
    "sketch_lag_hours": "Hours between what the frequencies had seen and the beginning of the day",
    "sketch_cover": "What the top items of the frequencies cover of the last hour, of what they should",
    "mined_per_positive": "Mined negatives that a positive was left with",
    "mined_refused": "Candidates that the filter refused, by reason",
    "leak_share": "Share of mined negatives that look like the positive all the same, by reason",
    "negatives_per_positive": "Columns that counted as negatives for the average positive",
    "honest_recall": "Yesterday's model on the day it had not seen, by slice",
    "recall": "Tonight's model (new) and yesterday's (old) on what was held out, by slice",
    "recommended_share": "Share of recommended places by popularity, of the old and the new model",
    "index_recall": "Measured recall of the new index",
    "index_vectors": "Listings in the new index",
    "gate_passed": "1 for each thing that the gate looked at and let pass",
    "alarm": "1 where a watched number is beyond its limit",
    "alarm_value": "The watched numbers",
    "alarm_limit": "Their limits",
}


def samples(record: NightRecord) -> Iterator[tuple[str, Labels, float]]:
    """Yield name, labels and value of everything that a night measured; names as in Prometheus, without the prefix."""
    facts = record.steps
    yield "day_timestamp_seconds", (), float(first_second(day_number(record.day) + 1))
    yield "published", (), float(record.outcome == "published")
    intake = facts.get("intake", {})
    today = intake.get("day") or {}
    yield from _each([("events", (), today.get("accepted")), ("positives", (), today.get("positives"))])
    yield from _by("rejected", "reason", today.get("rejected", {}))
    yield from _each([("late_events", (), intake.get("late"))])
    yield from _by("listings", "which", {k: v for k, v in intake.get("catalogue", {}).items() if k != "missing"})
    mine = facts.get("mine", {})
    yield from _each([("index_age_days", (), mine.get("index_age_days"))])
    sketch = facts.get("frequencies", {})
    after = sketch.get("after") or {}
    cover = after["covered"] / after["expected_covered"] if after.get("expected_covered") else None
    yield from _each([("sketch_lag_hours", (), sketch.get("lag_hours")), ("sketch_cover", (), cover)])
    yield from _each([("mined_per_positive", (), mine.get("per_positive"))])
    yield from _by("mined_refused", "reason", mine.get("refused", {}))
    yield from _by("leak_share", "reason", mine.get("leaks", {}))
    yield from _each([("negatives_per_positive", (), facts.get("train", {}).get("negatives"))])
    figures = facts.get("honest", {}).get("figures", {})
    yield from _by("honest_recall", "slice", {name: found and found["value"] for name, found in figures.items()})
    yield from _of_comparison(facts.get("evaluate", {}))
    index = facts.get("index", {}).get("index", {})
    yield from _each([("index_recall", (), index.get("recall")), ("index_vectors", (), index.get("vectors"))])
    for verdict in record.gate:
        yield "gate_passed", (("check", verdict.name),), float(verdict.passed)
    for alarm in record.alarms:
        yield "alarm", (("name", alarm.name),), float(alarm.raised)
    for alarm in record.alarms:
        yield from _each([("alarm_value", (("name", alarm.name),), alarm.value)])
    for alarm in record.alarms:
        yield "alarm_limit", (("name", alarm.name),), alarm.limit


def _of_comparison(judged: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    """Yield what the two models were compared by; on the first night there is only one."""
    models = ("new",) if judged.get("first") else ("old", "new")
    for which in models:
        for piece in judged.get("compared", ()):
            name = piece["name"] if piece["kind"] in ("all", "popularity") else f"{piece['kind']} {piece['name']}"
            yield "recall", (("model", which), ("slice", name)), float(piece[which])
    for which in models:
        for name, share in judged.get("shares", {}).get(which, {}).items():
            yield "recommended_share", (("model", which), ("slice", name)), float(share)


def as_json(record: NightRecord) -> str:
    """Write the monitors of a night as JSON: values by name and labels, and the alarms with their limits."""
    values: dict[str, Any] = {}
    for name, labels, value in samples(record):
        if name.startswith("alarm"):
            continue
        key = "/".join(label for _, label in labels)
        if key:
            values.setdefault(name, {})[key] = value
        else:
            values[name] = value
    document = {
        "format": "hatchway-monitors",
        "version": 1,
        "day": record.day,
        "outcome": record.outcome,
        "reasons": list(record.reasons),
        "values": values,
        "alarms": [alarm.model_dump(mode="json") for alarm in record.alarms],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def as_prometheus(record: NightRecord) -> str:
    """Write the monitors of a night in Prometheus' text format, as its node exporter reads it from a folder."""
    by_name: dict[str, list[str]] = {}
    for name, labels, value in samples(record):
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        by_name.setdefault(name, []).append(
            f"hatchway_night_{name}{{{inside}}} {_number(value)}"
            if inside
            else f"hatchway_night_{name} {_number(value)}"
        )
    lines = []
    for name, found in by_name.items():
        lines += [f"# HELP hatchway_night_{name} {_ABOUT[name]}", f"# TYPE hatchway_night_{name} gauge", *found]
    return "\n".join(lines) + "\n"


def write_monitors(nights: Path, night: Path, record: NightRecord) -> None:
    """Write the monitors of a night, and Prometheus' text once more where its collector finds the latest."""
    write_text(night / "monitors.json", as_json(record))
    text = as_prometheus(record)
    write_text(night / "metrics.prom", text)
    write_text(nights / "metrics.prom", text)


def _each(found: list[tuple[str, Labels, Any]]) -> Iterator[tuple[str, Labels, float]]:
    """Leave out what was not measured."""
    for name, labels, value in found:
        if value is not None and math.isfinite(value):
            yield name, labels, float(value)


def _by(name: str, label: str, found: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    yield from _each([(name, ((label, key),), value) for key, value in found.items()])


def _escaped(text: str) -> str:
    r"""Escape a label's value.

    >>> _escaped('5" sofa')
    '5\\" sofa'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
