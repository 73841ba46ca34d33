"""The first step of a night: the day's events and the catalogue are read, cleaned, and held against what is usual."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.catalogue import Catalogue
from hatchway.data.days import day_name
from hatchway.data.store import Store
from hatchway.errors import DataError, GateRefusedError, SettingsError
from hatchway.nightly.accepted import AcceptedDays, days_of, median_of
from hatchway.nightly.alarms import Alarm, above, below
from hatchway.nightly.catalogue import CatalogueOfDay, catalogue_of_day
from hatchway.nightly.days import first_second
from hatchway.nightly.intake import DayFacts
from hatchway.nightly.recipe import NightRecipe
from hatchway.nightly.settings import IntakeSettings
from hatchway.nightly.state import NightState
from hatchway.settings import flattened
from hatchway.towers.settings import ModelSettings

CATALOGUE = "catalogue.parquet"
_MANY = 20
"""Positives of an event a day from which its absence is no chance."""


def take_in(
    store: Store, accepted: AcceptedDays, work: Path, day: int, previous: NightState | None, recipe: NightRecipe
) -> dict[str, Any]:
    """Clean the days that the night reads, write the catalogue as of the day, and measure both.

    Args:
        store: the store.
        accepted: where cleaned days lie.
        work: the folder of the night's working files.
        day: the day.
        previous: what the night before left.
        recipe: the settings.

    Returns:
        what was found, with its alarms.

    Raises:
        DataError: the log has no times, or the log or the catalogue changed its shape since the night before.
    """
    settings = recipe.nightly.intake
    if not store.has("time"):
        raise DataError("nights go by time, and the log has no column 'time'; import it with its times")
    shape = shape_of(store)
    if previous is not None and settings.columns == "same":
        check_shape(shape, previous)
    reach = [each for each in days_of(store) if day - recipe.nightly.history_days < each <= day]
    before = {each: accepted.facts(each) for each in reach}
    days = {each: facts for each in reach if (facts := accepted.take(store, each)) is not None}
    late = sum(
        max(0, facts.accepted - was.accepted)
        for each, facts in days.items()
        if each < day and previous is not None and (was := before[each]) is not None and each <= previous.manifest.day
    )
    # What came for a day that the nights before saw nothing of is late too, unless no night was run since.
    late += sum(
        facts.accepted
        for each, facts in days.items()
        if previous is not None and each <= previous.manifest.day and before[each] is None
    )
    items = catalogue_of_day(
        store.catalogue().frame,
        first_second(day + 1),
        None if previous is None else previous.catalogue(),
        recipe.model.item.columns,
        _seen([accepted.path(each) for each in days]),
        recipe.nightly.catalogue.most_lost if recipe.nightly.catalogue.vanished == "gone" else None,
    )
    with replacing_file(work / CATALOGUE) as partial:
        items.catalogue.frame.with_columns(offered=pl.Series(items.offered)).write_parquet(partial, compression="zstd")
    today = days.get(day)
    usual = _usual([days[each] for each in sorted(days) if each < day][-settings.usual_days :])
    read = sum(facts.accepted for each, facts in days.items() if each == day) + late
    ahead = _ahead(store, day, settings.fewest * (usual["accepted"] or 0.0))
    alarms = [
        *_of_events(today, usual, late / read if read else None, settings),
        above(
            "ahead_share",
            ahead / today.rows if today is not None else None,
            settings.most_jumped,
            "events of days to come that are too few to be days, of the events of the day: a clock is ahead",
            "they wait until their day",
        ),
        *_of_catalogue(items, previous, recipe),
    ]
    return {
        "day": None if today is None else today.model_dump(mode="json"),
        "days": {day_name(each): facts.accepted for each, facts in days.items()},
        "usual": usual,
        "late": late,
        "ahead": ahead,
        "shape": shape,
        "catalogue": {
            "items": len(items.catalogue),
            "offered": int(items.offered.sum()),
            "added": items.added,
            "gone": items.gone,
            "lost": items.lost,
            "missing": items.missing,
        },
        "alarms": [alarm.model_dump(mode="json") for alarm in alarms],
    }


def refuse_no_day(facts: Mapping[str, Any], day: str, settings: IntakeSettings) -> None:
    """End the night where the day is none: no events, far too few, or no positive among them.

    Raises:
        GateRefusedError: so it is; nothing is trained, and the old model stays.
    """
    today, usual = facts["day"], facts["usual"]
    rows = 0 if today is None else int(today["accepted"])
    remedy = "the old model stays; when the events are there, run the night again"
    if not rows or not today["positives"]:
        what = "no event" if not rows else "no positive"
        raise GateRefusedError(f"the store has {what} of {day}: {remedy}")
    if usual["accepted"] and rows < settings.fewest * usual["accepted"]:
        raise GateRefusedError(
            f"{day} has {rows:,} events where {usual['accepted']:,.0f} are usual, less than nightly.intake.fewest = "
            f"{settings.fewest:g} of them: {remedy}"
        )
    silent = [
        event
        for event, many in usual["events"].items()
        if many >= _MANY and not today["events"].get(event) and event in usual["positive"]
    ]
    if silent and settings.columns == "same":
        raise DataError(
            f"{day} has no event {silent[0]!r}, of which {usual['events'][silent[0]]:,.0f} a day are usual; what "
            f"it has is {', '.join(today['events'])}. Was it renamed? Mend the log, or set nightly.intake.columns = "
            "'any'"
        )


def crowd_of(facts: Mapping[str, Any], settings: IntakeSettings) -> float | None:
    """Return how many of the day's positives may be trained on; None where they are not too many."""
    usual = facts["usual"]["positives"]
    if usual and facts["day"]["positives"] > settings.most * usual:
        return float(settings.most * usual)
    return None


def read_catalogue(work: Path) -> tuple[Catalogue, Any]:
    """Read back the catalogue as of the day, and which of its items are for sale, [N] bool."""
    frame = pl.read_parquet(work / CATALOGUE, glob=False)
    return Catalogue(frame.drop("offered")), frame["offered"].to_numpy()


def shape_of(store: Store) -> dict[str, dict[str, str]]:
    """Return the columns of the log and of the catalogue with their types, by name."""
    events = {name: str(kind) for name, kind in store.events().collect_schema().items()}
    return {"events": events, "catalogue": {k: str(v) for k, v in store.catalogue().frame.schema.items()}}


def check_shape(shape: Mapping[str, Mapping[str, str]], previous: NightState) -> None:
    """Refuse a log or a catalogue that lost a column, or changed a type, since the night before.

    Raises:
        DataError: so it is; every change is named.
    """
    manifest = previous.manifest
    for what, now, before in (
        ("log", shape["events"], manifest.event_columns),
        ("catalogue", shape["catalogue"], manifest.catalogue_columns),
    ):
        changed = [
            f"{name} was {kind} and is {now[name]}" if name in now else f"{name} is gone"
            for name, kind in before.items()
            if now.get(name) != kind
        ]
        if changed:
            raise DataError(
                f"the {what} has changed its columns since the night of {day_name(manifest.day)}: {'; '.join(changed)}"
                "; import it as before, or, if it is meant, set nightly.intake.columns = 'any'"
            )


def check_model(asked: ModelSettings, previous: NightState) -> None:
    """Refuse a recipe that asks for another model than the one that the night would go on with.

    What a model is made of is fixed when it begins: another recipe would change nothing of it, in silence.

    Raises:
        SettingsError: so it is; every setting is named.
    """
    manifest = previous.manifest
    kept = manifest.asked or manifest.model
    was, now = (flattened(settings.model_dump(mode="json")) for settings in (kept, asked))
    if manifest.asked is None and not was["context.text"]:
        now |= {"context.text": False}  # it may have been switched off because the log has no query texts
    changed = [f"model.{name} was {was[name]!r} and is now {now[name]!r}" for name in was if was[name] != now[name]]
    if changed:
        raise SettingsError(
            f"the recipe asks for another model than the night of {day_name(manifest.day)} has: {'; '.join(changed)}. "
            "A night goes on with the model as it is; give it the recipe that its nights began with, or begin anew "
            "with this one in another folder: hatchway nightly STORE --day DAY --out NIGHTS"
        )


def _ahead(store: Store, day: int, fewest: float) -> int:
    """Count the events of later days that are too few to be days; the day after may have just begun, so not its."""
    days = {f"events/day={day_name(each)}/part-0.parquet" for each in days_of(store) if each > day + 1}
    return sum(part.rows for part in store.manifest.parts if part.path in days and part.rows < fewest)


def _seen(paths: Sequence[Path]) -> pl.Series | None:
    """Return the ids of all items that some days speak of; None where there is no day."""
    if not paths:
        return None
    frame = pl.concat([pl.scan_parquet(path, hive_partitioning=False, glob=False) for path in paths], how="diagonal")
    names = [name for name in ("item", "query_item") if name in frame.collect_schema()]
    found = [frame.select(pl.col(name).alias("item").drop_nulls().unique()) for name in names]
    return pl.concat(found).unique().collect(engine="streaming")["item"].sort()


def _usual(days: Sequence[DayFacts]) -> dict[str, Any]:
    """Return what is usual: medians over some days."""
    events = sorted({event for facts in days for event in facts.events})
    by_event = {event: median_of([facts.events.get(event, 0) for facts in days]) for event in events}
    return {
        "days": len(days),
        "accepted": median_of([facts.accepted for facts in days]),
        "positives": median_of([facts.positives for facts in days]),
        "events": by_event,
        "positive": sorted({event for facts in days for event in facts.positive}),
    }


def _of_events(
    today: DayFacts | None, usual: Mapping[str, Any], late: float | None, settings: IntakeSettings
) -> list[Alarm]:
    """Watch the volume and the rejects of the day."""
    rows = 0 if today is None else today.rows
    share = {} if today is None else {reason: n / rows for reason, n in today.rejected.items() if rows}
    accepted = 0 if today is None else today.accepted
    volume = accepted / usual["accepted"] if usual["accepted"] else None
    positives = (0 if today is None else today.positives) / usual["positives"] if usual["positives"] else None
    poisoned = None if today is None else float(len(today.poisoned))
    return [
        below("day_events_ratio", volume, settings.fewest, "events of the day, of what is usual", "nothing is trained"),
        above(
            "day_positives_ratio",
            positives,
            settings.most,
            "positives of the day, of what is usual",
            "the day's positives were cut back to the limit, whole buyers at a time",
        ),
        above(
            "late_share",
            late,
            settings.most_late,
            "share of the events taken in that are of days before",
            "they are trained on as far as nightly.replay_days reaches",
        ),
        above(
            "repeated_share",
            share.get("repeat", 0.0),
            settings.most_repeated,
            "share of the day's rows that are there twice",
            "the copies were turned away",
        ),
        above(
            "jumped_share",
            share.get("clock", 0.0),
            settings.most_jumped,
            "share of the day's rows hours away from the rest of their session",
            "they were turned away",
        ),
        above(
            "poisoned_items",
            poisoned,
            0.0,
            "items with far too large a share of an hour's positives",
            "their positives of that hour were turned away",
        ),
    ]


def _of_catalogue(items: CatalogueOfDay, previous: NightState | None, recipe: NightRecipe) -> list[Alarm]:
    """Watch the catalogue's rows and values."""
    limits = recipe.nightly.catalogue
    before = {} if previous is None else previous.manifest.missing
    rise = max((share - before.get(name, share) for name, share in items.missing.items()), default=0.0)
    return [
        above(
            "lost_listings_share",
            items.lost_share,
            limits.most_lost,
            "share of the listings on offer whose row vanished from the catalogue",
            "yesterday's rows stand in",
        ),
        above(
            "missing_values_rise",
            rise if previous is not None else None,
            limits.most_missing,
            "largest rise of the share of values that are empty or not finite, in a column that the model reads",
            "they count as missing",
        ),
    ]
