"""The page of the nights: how each ended, and what was watched, as one HTML file that needs nothing from elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from hatchway.artefacts.atomic import write_text
from hatchway.data.days import day_name
from hatchway.errors import ArtefactError, DataError
from hatchway.nightly.charts import Series, chart
from hatchway.nightly.comparison import DECIDING, Compared
from hatchway.nightly.days import day_number
from hatchway.nightly.monitors import samples
from hatchway.nightly.pointer import Damaged, NightRecord, current, read_records

SHOWN = 60
"""Nights that the page shows at most, the last ones."""

_SLICES = ("all", "head", "torso", "tail", "new")


@dataclass(frozen=True)
class Chart:
    """One chart with its words."""

    title: str
    about: str
    picture: str


@dataclass(frozen=True)
class Beside:
    """One slice of the last comparison, and where its interval lies on a scale from -1 to 1."""

    compared: Compared
    decides: bool
    left: float | None
    width: float | None
    middle: float


def write_page(nights: Path) -> Path:
    """Write ``nights.html`` into the folder of nights, and return its path."""
    target = nights / "nights.html"
    write_text(target, render_nights(nights))
    return target


def render_nights(nights: Path) -> str:
    """Lay the page out.

    Args:
        nights: the folder of nights.

    Raises:
        DataError: no night has ended there yet.
        ArtefactError: the pointer leads nowhere.
    """
    ended = list(read_records(nights))
    found = [record for record in ended if not isinstance(record, Damaged)][-SHOWN:]
    damaged = [record for record in ended if isinstance(record, Damaged)]
    if not found:
        if damaged:
            raise ArtefactError(f"no night of {nights} can be shown: {damaged[-1].said}")
        raise DataError(f"{nights} has no night that ended; make one with: hatchway nightly STORE --day DAY")
    served = current(nights)
    last = found[-1]
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"percent": percent, "number": number}
    measured = [_values(record) for record in found]
    of_served = next((record for record in found if served is not None and record.day == served.name), None)
    return templates.get_template("nights.html").render(
        name=nights.resolve().name,
        found=found,
        calendar=_calendar(found),
        served=served.name if served is not None else None,
        of_served=of_served,
        figures={} if of_served is None else _values(of_served),
        last=last,
        damaged=damaged,
        metric=_metric(found),
        charts=_charts(found, measured),
        beside=_beside(last),
        facts=last.steps,
        outcomes={outcome: sum(r.outcome == outcome for r in found) for outcome in _OUTCOMES},
        alarms=sum(alarm.raised for record in found for alarm in record.alarms),
        about=_OUTCOMES,
    )


_OUTCOMES: Mapping[str, str] = {
    "published": "a new model is served",
    "refused": "the old model stayed: the gate, or the day itself, said no",
    "failed": "the old model stayed: the work could not be finished",
    "withdrawn": "published, and rolled back later",
}


def percent(share: float | None) -> str:
    r"""Write a share.

    >>> percent(0.3051), percent(0.0), percent(None), percent(0.0004)
    ('30.5\xa0%', '0\xa0%', '–', '0.04\xa0%')
    """
    if share is None:
        return "–"
    if share == 0 or abs(share) >= 0.001:
        return f"{100 * share:.3g}\u00a0%"
    return f"{100 * share:.1g}\u00a0%"


def number(value: float | None) -> str:
    """Write a number of things.

    >>> number(5096.0), number(1.6421), number(None)
    ('5,096', '1.64', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def _values(record: NightRecord) -> dict[str, float]:
    """Return what a night measured, by name and labels."""
    return {"/".join((name, *(text for _, text in labels))): value for name, labels, value in samples(record)}


def _metric(found: Sequence[NightRecord]) -> str:
    """Return what models are compared by."""
    return next((str(r.steps["evaluate"]["metric"]) for r in reversed(found) if "evaluate" in r.steps), "recall")


def _calendar(found: Sequence[NightRecord]) -> list[tuple[str, NightRecord | None]]:
    """Return every day from the first night to the last, with the night that was run."""
    by_day = {record.day: record for record in found}
    days = range(day_number(found[0].day), day_number(found[-1].day) + 1)
    return [(day_name(day), by_day.get(day_name(day))) for day in days]


def _charts(found: Sequence[NightRecord], measured: Sequence[Mapping[str, float]]) -> list[Chart]:
    """Draw what is watched over the nights."""
    days = [record.day for record in found]

    def of(name: str) -> list[float | None]:
        return [values.get(name) for values in measured]

    def lines(prefix: str) -> list[str]:
        keys = {key.removeprefix(f"{prefix}/") for values in measured for key in values if key.startswith(f"{prefix}/")}
        return sorted(keys)

    def limit(alarm: str) -> Series:
        return Series("limit", of(f"alarm_limit/{alarm}"), dashed=True)

    def drawn(title: str, about: str, series: list[Series], write: Callable[[float], str], bars: bool = False) -> Chart:
        return Chart(title, about, chart(series, days, write, bars=bars))

    metric = _metric(found)
    slices = [Series(name, of(f"honest_recall/{name}"), tone) for tone, name in enumerate(_SLICES, 1)]
    both, alike = (
        [Series("new", of(f"recall/new/{name}"), 1), Series("old", of(f"recall/old/{name}"), 2)]
        for name in ("all", "alike near-duplicates")
    )
    leaks = [Series(name, of(f"leak_share/{name}"), tone) for tone, name in enumerate(lines("leak_share"), 1)]
    refused = lines("rejected")
    charts = [
        drawn(
            f"The honest number: {metric} by slice",
            "yesterday's model on each day's positives, before anything learned from them",
            slices,
            percent,
        ),
        drawn(
            f"Tonight against yesterday: {metric}",
            "both models on the last positives of the day, which neither had seen",
            both,
            percent,
        ),
        drawn(
            f"Near-duplicate queries: {metric}",
            "the listing looked at and the right one look the same: what learned to push copies away loses here first",
            alike,
            percent,
        ),
        drawn(
            "Index age",
            "days between the night and the index that it mined with",
            [Series("days", of("index_age_days"), 1), limit("index_age_days")],
            number,
            bars=True,
        ),
        drawn(
            "Sketch lag",
            "hours between what the frequencies had seen and the beginning of the day",
            [Series("hours", of("sketch_lag_hours"), 1), limit("sketch_lag_hours")],
            number,
            bars=True,
        ),
        drawn(
            "Leak share by reason",
            "mined negatives that came through the filter and look like their positive",
            [*leaks, limit("leak_share")],
            percent,
        ),
        drawn(
            "Negatives a positive",
            "columns that counted as negatives for the average positive, after masking",
            [Series("all", of("negatives_per_positive"), 1)],
            number,
        ),
        drawn(
            "Mined negatives a positive",
            "hard negatives that were left after the filter",
            [Series("mined", of("mined_per_positive"), 1)],
            number,
            bars=True,
        ),
        drawn(
            "Positives of the day",
            "messages and saves, or whatever counts, that were accepted",
            [Series("positives", of("positives"), 1)],
            number,
            bars=True,
        ),
        drawn(
            "Turned away",
            "events of the day that were not accepted, by reason",
            [
                Series(name, _or_nothing(of(f"rejected/{name}"), of("events")), tone)
                for tone, name in enumerate(refused, 1)
            ],
            number,
        ),
        drawn(
            "Listings on offer",
            "at the end of the day: all of them are in the index",
            [Series("on offer", of("listings/offered"), 1)],
            number,
        ),
    ]
    return [each for each in charts if each.picture]


def _or_nothing(values: Sequence[float | None], there: Sequence[float | None]) -> list[float | None]:
    """Write 0 for what is not named in a night that was measured."""
    return [0.0 if value is None and day is not None else value for value, day in zip(values, there, strict=True)]


def _beside(record: NightRecord) -> list[Beside]:
    """Put the slices of the last comparison on one scale."""
    judged: Mapping[str, Any] = record.steps.get("evaluate", {})
    if not judged or judged.get("first"):
        return []
    pieces = [Compared.model_validate(piece) for piece in judged["compared"]]
    ends = [abs(end) for piece in pieces for end in (piece.low, piece.high, piece.new - piece.old) if end is not None]
    scale = max(ends, default=0.0) or 1.0
    return [
        Beside(
            piece,
            piece.kind in DECIDING,
            None if piece.low is None else 50 + 50 * piece.low / scale,
            None if piece.low is None or piece.high is None else 50 * (piece.high - piece.low) / scale,
            50 + 50 * (piece.new - piece.old) / scale,
        )
        for piece in pieces
    ]
