"""One night, read from top to bottom: from the day's events to the bundle that is served."""

import contextlib
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hatchway.artefacts.alone import alone_in
from hatchway.data.days import day_name
from hatchway.data.positives import choose_events
from hatchway.data.store import Store
from hatchway.errors import ArtefactError, GateRefusedError, HatchwayError, UsageError
from hatchway.index.build import IndexFacts
from hatchway.index.bundle import Bundle
from hatchway.nightly.accepted import DAYS, AcceptedDays, days_of, remove_days_before
from hatchway.nightly.alarms import Alarm, above
from hatchway.nightly.comparison import Compared
from hatchway.nightly.days import day_number
from hatchway.nightly.gate import judge
from hatchway.nightly.hard import mine_night, mined_table
from hatchway.nightly.making import (
    BUNDLE,
    RUN,
    SKETCH,
    check_sketch,
    evaluate_night,
    frequencies,
    honest,
    index_night,
    train_night,
)
from hatchway.nightly.material import Material
from hatchway.nightly.monitors import write_monitors
from hatchway.nightly.places import check_place
from hatchway.nightly.pointer import (
    NightRecord,
    Outcome,
    Verdict,
    current,
    finish_roll_back,
    point_at,
    pointed_at,
    read_record,
    write_record,
)
from hatchway.nightly.publishing import publish
from hatchway.nightly.recipe import NightRecipe
from hatchway.nightly.retention import clean
from hatchway.nightly.state import NightState
from hatchway.nightly.steps import Steps
from hatchway.nightly.taking_in import check_model, crowd_of, read_catalogue, refuse_no_day, take_in
from hatchway.progress import note

_NOT_CLEANED = "not_cleaned"


def run_night(store: Store | Path | str, nights: Path | str, day: str, recipe: NightRecipe) -> NightRecord:
    """Run the night of one day, or finish one that was interrupted.

    Every step is done once: a night that is run again takes up where it was, and publishes what it would have
    published. A night that was published is left as it is.

    Args:
        store: an opened store, or its path.
        nights: the folder of nights.
        day: the day, as in ``2026-03-02``.
        recipe: all settings.

    Raises:
        UsageError: another night is running, or a later one is served; or the folder cannot be one of nights, or the
            recipe asks for another model than the one that the night would go on with.
        DataError: the day's events or the catalogue have changed their shape.
        FailureError: the work could not be finished.
        GateRefusedError: the night was refused; nothing was published.
    """
    store = store if isinstance(store, Store) else Store.open(store)
    nights, number = Path(nights), day_number(day)
    check_sketch(recipe.negatives)
    check_place(nights, store.path)
    with alone_in(nights, "filled"):
        finish_roll_back(nights)
        night, served = nights / day, current(nights)
        if served is not None and served.name > day:
            raise UsageError(
                f"{served.name} is served already, and nights follow each other; to run {day} again, go back to one "
                f"before it: hatchway rollback {nights} --to DAY"
            )
        there = _served_record(served) if served is not None and served.name == day else read_record(night)
        if there is not None and there.outcome == "published":
            point_at(nights, day)  # it may have been killed just before
            note(f"the night of {day} was published before; it is left as it is")
            return _tidied(nights, night, recipe, there)
        night.mkdir(exist_ok=True)
        before = None if served is None else served.name
        steps = Steps(night / "work", {})
        try:
            previous = None if served is None else _state_before(number, served)
            steps = Steps(night / "work", _origin(store, number, previous, recipe))
            record = _run(store, nights, night, steps, previous, recipe)
        except Exception as error:
            outcome: Outcome = "refused" if isinstance(error, GateRefusedError) else "failed"
            said = str(error) if isinstance(error, HatchwayError) else f"{type(error).__name__}: {error}"
            # A full disk takes no record either; what happened is said all the same.
            with contextlib.suppress(HatchwayError, OSError):
                if pointed_at(nights) != day:  # else it is served, and its record says so
                    _leave(nights, night, _record(day, outcome, before, steps, (said,)))
            raise
        return _tidied(nights, night, recipe, record)


def _run(
    store: Store, nights: Path, night: Path, steps: Steps, previous: NightState | None, recipe: NightRecipe
) -> NightRecord:
    """Do the steps, in the order of the day."""
    if previous is not None:
        check_model(recipe.model, previous)
    day, settings, work = day_number(night.name), recipe.nightly, steps.folder
    served = None if previous is None else day_name(previous.manifest.day)
    work.mkdir(exist_ok=True)

    accepted = AcceptedDays(nights / DAYS, tuple(choose_events(store, recipe.positives).weights), settings.intake)
    rules = recipe.of("positives", "model") | {"nightly": settings.model_dump(mode="json", exclude={"gate", "index"})}
    asked = {"metric": settings.gate.metric, "k": settings.gate.k, "most_cases": settings.most_cases}
    asked |= recipe.of("evaluation")
    note(f"{night.name}: taking in the day's events")
    taken = steps.take(
        "intake", rules, lambda: take_in(store, accepted, work, day, previous, recipe), ("catalogue.parquet",)
    )
    refuse_no_day(taken, night.name, settings.intake)
    catalogue, offered = read_catalogue(work)
    paths = [accepted.path(each) for each in days_of(store) if day - settings.history_days < each <= day]
    material = Material(recipe, day, paths, catalogue, offered, previous, store.path)

    if previous is not None:
        note(f"{night.name}: scoring yesterday's model on the day it has not seen")
    steps.take("honest", asked, lambda: honest(material, night / "evaluation.json"))
    note(f"{night.name}: bringing the frequencies up to date")
    steps.take("frequencies", recipe.of("negatives", "training"), lambda: frequencies(material, work), (SKETCH,))
    if previous is not None:
        note(f"{night.name}: mining with yesterday's index")
    bundle = None if served is None else nights / served / BUNDLE
    crowd = crowd_of(taken, settings.intake)
    hard = recipe.of("negatives", "screening", "mining") | {"most_leaked": settings.most_leaked, "crowd": crowd}
    mined = steps.take("mine", hard, lambda: mine_night(material, bundle, work, crowd))
    note(f"{night.name}: training")
    training = steps.take(
        "train",
        recipe.of("negatives", "training"),
        lambda: train_night(material, work, crowd, mined_table(mined, work)),
        (RUN,),
    )
    note(f"{night.name}: embedding the catalogue and building its index")
    made = steps.take(
        "index", settings.index.model_dump(mode="json"), lambda: index_night(material, work, training), (BUNDLE,)
    )
    beside = "comparing tonight's model with yesterday's" if previous is not None else "evaluating the first model"
    note(f"{night.name}: {beside}")
    asked |= settings.gate.model_dump(mode="json", include={"resamples", "level", "shifted_queries"})
    judged = steps.take("evaluate", asked, lambda: evaluate_night(material, work))

    first = bool(judged["first"])
    verdicts = judge(
        IndexFacts.model_validate(made["index"]),
        int(offered.sum()),
        () if first else [Compared.model_validate(piece) for piece in judged["compared"]],
        None if first else (judged["shares"]["old"], judged["shares"]["new"]),
        settings.gate,
    )
    steps.facts["gate"] = {"verdicts": [verdict.model_dump(mode="json") for verdict in verdicts]}
    refusals = [f"{verdict.name}: {verdict.said}" for verdict in verdicts if not verdict.passed]
    if refusals:
        raise GateRefusedError(f"the night of {night.name} was refused and {served} stays: " + "; ".join(refusals))
    publish(material, night, work, taken["shape"])
    record = _record(night.name, "published", served, steps, bundle=str(made["digest"]))
    _leave(nights, night, record)
    point_at(nights, night.name)
    return record


def _origin(store: Store, day: int, previous: NightState | None, recipe: NightRecipe) -> dict[str, Any]:
    """Return what a night starts from: the store up to the day, the night before, the seed, and who computes."""
    last = f"events/day={day_name(day)}"
    parts = [
        [part.path, part.sha256]
        for part in store.manifest.parts
        if not part.path.startswith("events/day=") or part.path[: len(last)] <= last
    ]
    versions = {name: version(name) for name in ("hatchway", "torch", "numpy", "polars", "faiss-cpu")}
    before = None if previous is None else previous.digest
    return {"day": day, "parts": parts, "previous": before, "seed": recipe.seed, "versions": versions}


def _record(
    day: str,
    outcome: Outcome,
    previous: str | None,
    steps: Steps,
    reasons: Sequence[str] = (),
    bundle: str | None = None,
) -> NightRecord:
    """Put together what is known of a night that ended."""
    facts = {name: dict(found) for name, found in steps.facts.items()}
    alarms = [Alarm.model_validate(alarm) for found in facts.values() for alarm in found.pop("alarms", ())]
    gate = [Verdict.model_validate(verdict) for verdict in facts.pop("gate", {}).get("verdicts", ())]
    return NightRecord(
        day=day,
        outcome=outcome,
        reasons=tuple(reasons),
        previous=previous,
        bundle=bundle,
        steps=facts,
        alarms=tuple(alarms),
        gate=tuple(gate),
    )


def _leave(nights: Path, night: Path, record: NightRecord) -> None:
    """Write down how a night ended: the monitors first, the record last."""
    for alarm in record.alarms:
        if alarm.raised:
            said = f"{alarm.name} = {alarm.value:.4g}, {alarm.side} {alarm.limit:g} ({alarm.about})"
            note(f"alarm: {said}" + (f": {alarm.done}" if alarm.done else ""))
    write_monitors(nights, night, record)
    write_record(night, record)


def _state_before(day: int, served: Path) -> NightState:
    """Open the state of the night that is served.

    Raises:
        ArtefactError: it is damaged, or not of a day before, as in a folder that was copied.
    """
    state = NightState.open(served / "state")
    if state.manifest.day >= day:
        raise ArtefactError(
            f"{state.path} is of {day_name(state.manifest.day)}, and a night goes on from one before it; serve one: "
            f"hatchway rollback {served.parent} --to DAY"
        )
    return state


def _served_record(night: Path) -> NightRecord:
    """Return the record of the night that is served, which was published, whatever befell its record since.

    The day is not run again while it is served: it would learn from itself.

    Raises:
        ArtefactError: the record, the bundle or the state is damaged.
    """
    back = f"it is served; to run it again, go back first: hatchway rollback {night.parent}"
    try:
        record = _there(night)
        if record.outcome == "published":
            return record
        bundle, state = Bundle.open(night / BUNDLE), NightState.open(night / "state")
    except ArtefactError as error:
        raise ArtefactError(f"{str(error).partition('; ')[0]}; {back}") from None
    if bundle.manifest.origin.get("weights") not in {part.sha256 for part in state.manifest.parts}:
        raise ArtefactError(f"the bundle and the state of {night} are of two models; {back}")
    note(f"the record of {night.name} said {record.outcome}, and the night is served: it says published again")
    mended = record.model_copy(update={"outcome": "published", "reasons": (), "bundle": bundle.digest})
    write_record(night, mended)
    return mended


def _there(night: Path) -> NightRecord:
    """Return the record of a night that must have one."""
    record = read_record(night)
    if record is None:
        raise ArtefactError(f"{night} has no record")
    return record


def _tidied(nights: Path, night: Path, recipe: NightRecipe, record: NightRecord) -> NightRecord:
    """Remove what a published night needs no more; where that fails, the night stays published and an alarm says so."""
    alarms = tuple(alarm for alarm in record.alarms if alarm.name != _NOT_CLEANED)
    try:
        _tidy(nights, night, recipe)
    except (HatchwayError, OSError) as error:
        about = f"whether something could not be removed, or read, when old nights were cleaned up: {error}"
        done = "the night is served all the same; the next one tries again"
        alarms = (*alarms, above(_NOT_CLEANED, 1.0, 0.0, about, done))
    if alarms == record.alarms:
        return record
    record = record.model_copy(update={"alarms": alarms})
    with contextlib.suppress(HatchwayError, OSError):
        _leave(nights, night, record)
    return record


def _tidy(nights: Path, night: Path, recipe: NightRecipe) -> None:
    """Remove the working files of a night that is published, and what is no longer kept of older ones."""
    if (night / "work").exists():
        shutil.rmtree(night / "work")
    clean(nights, recipe.nightly)
    # Nights that were rolled back may reach further; what is removed too early is only cleaned again.
    oldest = day_number(night.name) - recipe.nightly.history_days - recipe.nightly.keep_nights
    remove_days_before(nights / DAYS, oldest)
