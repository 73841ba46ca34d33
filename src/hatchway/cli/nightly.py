"""``hatchway nightly``: one night, or many in a row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, table
from hatchway.errors import GateRefusedError, UsageError

if TYPE_CHECKING:
    from hatchway.nightly.pointer import NightRecord


def run(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store, with the events of the day.")],
    day: Annotated[str | None, typer.Option(metavar="DAY", help="The day, as in 2026-03-02 (UTC).")] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="Replay many days: the first.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="The last of them.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="NIGHTS", help="Folder of the nights. [default: STORE-nights]")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings, a TOML file; the defaults without.")
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting over the recipe's. Repeatable."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the night of a day: from its events to a published bundle.

    The day's events are cleaned and held against what is usual; yesterday's model is scored on them before it learns;
    the frequencies are brought up to date; hard negatives are mined with yesterday's index; the model goes on training;
    the catalogue is embedded and indexed; and where the new model is no worse than the old one, it is published: the
    link NIGHTS/current moves, and a server that follows it answers from the new bundle.

    A night that was killed is finished by running it again, and publishes the same bytes. A night that is refused (exit
    4) or fails (exit 3) publishes nothing: the old model stays. With --from and --to, days that are refused are
    passed over. docs/nightly.md has the steps, the alarms, and what to do when something goes wrong.
    """
    begin(quiet)
    from hatchway.config import load_recipe
    from hatchway.job import nightly_run
    from hatchway.nightly.days import days_between
    from hatchway.nightly.places import nights_beside
    from hatchway.progress import note
    from hatchway.training.memory import keep_freed_memory

    if (day is None) == (first is None) or (first is None) != (last is None):
        raise UsageError("name one day with --day, or the first and the last of many with --from and --to")
    keep_freed_memory()
    settings = load_recipe(recipe, assign or ())
    nights = out if out is not None else nights_beside(store)
    if day is not None:
        record = nightly_run(store, nights, day, settings)
        emit(_payload(nights, record), _text(nights, record), json)
        return
    ended = []
    for each in days_between(str(first), str(last)):
        try:
            ended.append(nightly_run(store, nights, each, settings))
        except GateRefusedError as error:
            note(f"refused: {error}")
            from hatchway.nightly.pointer import read_record

            refused = read_record(nights / each)
            ended += [] if refused is None else [refused]
    rows = [[record.day, record.outcome, *_figures(record)] for record in ended]
    text = table(rows, ["night", "outcome", "metric", "old", "new", "on the whole day before", "alarms"])
    emit({"nights": str(nights), "ended": [_payload(nights, record) for record in ended]}, text, json)


def _payload(nights: Path, record: "NightRecord") -> dict[str, object]:
    """Return what is printed as JSON."""
    return {
        "night": str(nights / record.day),
        "day": record.day,
        "outcome": record.outcome,
        "reasons": list(record.reasons),
        "previous": record.previous,
        "bundle": record.bundle,
        "alarms": [alarm.model_dump() for alarm in record.alarms if alarm.raised],
        "gate": [verdict.model_dump() for verdict in record.gate],
        "steps": record.steps,
    }


def _figures(record: "NightRecord") -> list[object]:
    """Return the metric, the old and the new figure on what was held out, the honest number, and raised alarms."""
    judged, honest = record.steps.get("evaluate", {}), record.steps.get("honest", {}).get("figures", {})
    whole = next(iter(judged.get("compared", ())), None)
    before = honest.get("all")
    raised = ", ".join(alarm.name for alarm in record.alarms if alarm.raised)
    return [
        judged.get("metric"),
        None if whole is None or judged.get("first") else whole["old"],
        None if whole is None else whole["new"],
        None if before is None else before["value"],
        raised or None,
    ]


def _text(nights: Path, record: "NightRecord") -> str:
    """Lay a night out for reading."""
    raised = [
        [alarm.name, f"{alarm.value:.4g}", f"{alarm.side} {alarm.limit:g}", alarm.done or alarm.about]
        for alarm in record.alarms
        if alarm.raised
    ]
    looked = [[verdict.name, verdict.word, verdict.said] for verdict in record.gate]
    parts = [f"{nights / record.day}: {record.outcome}, bundle {str(record.bundle)[:12]}"]
    parts += [table(looked, ["gate", "", ""])] if looked else []
    parts += [table(raised, ["alarm", "value", "limit", "what was done"])] if raised else ["no alarm"]
    return "\n\n".join([*parts, f"next: hatchway serve {nights}"])
