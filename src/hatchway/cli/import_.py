"""``hatchway import``: public formats and the user's own tables become one store."""

import difflib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit, table
from hatchway.errors import UsageError

if TYPE_CHECKING:
    from hatchway.data.store import Store


def _format(text: str) -> "Format":
    """Read the name of a format; a slip gets the nearest one, a file in its place the order of the arguments."""
    if text in list(Format):
        return Format(text)
    near = difflib.get_close_matches(text.lower(), list(Format), n=1)
    hint = f"did you mean {str(near[0])!r}?" if near else f"allowed: {', '.join(Format)}"
    if Path(text).exists() and not near:
        hint = f"write the format of {text!r} before it: hatchway import FORMAT {text} STORE; {hint}"
    raise typer.BadParameter(f"{text!r} is no format; {hint}")


class Format(StrEnum):
    """The formats that can be imported."""

    MOVIELENS = "movielens"
    LIGHTGCN = "lightgcn"
    SEQUENCES = "sequences"
    MIND = "mind"
    TABLE = "table"


def run(
    format_: Annotated[Format, typer.Argument(metavar="FORMAT", parser=_format, help="What SOURCE is.")],
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A folder, a zip, a file or (table) a quoted glob: 'logs/*.csv.gz'.")
    ],
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="Folder of the store to write; an old store is replaced.")
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OURS=THEIRS", help="table: what a column means, e.g. --map buyer=user_id."),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="NAME[=OURS]", help="table: take this event too, e.g. --event favourite=save."),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="table: strptime format of the log's times, if they are neither numbers nor ISO dates."),
    ] = None,
    catalogue: Annotated[Path | None, typer.Option(help="table: the table of items.")] = None,
    catalogue_columns: Annotated[
        list[str] | None,
        typer.Option("--map-catalogue", metavar="OURS=THEIRS", help="table: as --map, for the table of items."),
    ] = None,
    shown: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="table: rows that hatchway serve wrote down join the log, e.g. --shown store-nights-serving.",
        ),
    ] = None,
    max_rejected: Annotated[
        float, typer.Option(help="Share of the rows that may be rejected; above it nothing is written (exit 2).")
    ] = 0.01,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import a data set into a store.

    movielens reads the 100k, 1m, 10m and csv editions; lightgcn train.txt and test.txt; sequences one file with "user
    item item ..." or "user item" a line; mind behaviors.tsv and news.tsv; table CSV, TSV or Parquet files of your own.
    Text may be gzipped. Rows that cannot be used go to STORE/rejected.parquet with file, line and reason. The same
    input gives the same bytes. docs/data.md describes formats, columns, events and rules.
    """
    begin(quiet)
    check_place(store.parent, f"STORE {store}")
    from hatchway.data import importers

    own = {
        "--map": columns,
        "--event": events,
        "--time-format": time_format,
        "--catalogue": catalogue,
        "--map-catalogue": catalogue_columns,
        "--shown": shown,
    }
    settings: dict[str, object] = {"max_rejected": max_rejected}
    if format_ is Format.TABLE:
        settings |= {
            "columns": pairs("--map", columns or []),
            "events": pairs("--event", events or [], alone=True),
            "time_format": time_format,
            "catalogue": catalogue,
            "catalogue_columns": pairs("--map-catalogue", catalogue_columns or []),
            "shown": shown,
        }
        written = importers.import_table(source, store, importers.TableSettings.parse(settings))
    else:
        given = [option for option, value in own.items() if value]
        if given:
            raise UsageError(f"{given[0]} goes with the format table only; {format_} knows its columns and events")
        read = {
            Format.MOVIELENS: importers.import_movielens,
            Format.LIGHTGCN: importers.import_lightgcn,
            Format.SEQUENCES: importers.import_sequences,
            Format.MIND: importers.import_mind,
        }[format_]
        written = read(source, store, importers.ImportSettings.parse(settings))
    _report(written, pairs("--map", columns or []), pairs("--map-catalogue", catalogue_columns or []), json)


def pairs(option: str, values: Sequence[str], *, alone: bool = False) -> dict[str, str]:
    """Read ``ours=theirs`` (or, with ``alone``, ``name`` for ``name=name``)."""
    found: dict[str, str] = {}
    for value in values:
        left, equals, right = (part.strip() for part in value.partition("="))
        if not left or (equals and not right) or not (equals or alone):
            raise UsageError(f"{option} {value!r}: expected {'NAME or NAME=OURS' if alone else 'OURS=THEIRS'}")
        if left in found:
            raise UsageError(f"{option} names {left!r} twice: {found[left]!r} and {right or left!r}")
        found[left] = right or left
    return found


def _report(store: "Store", columns: Mapping[str, str], catalogue_columns: Mapping[str, str], json: bool) -> None:
    """Print what was imported, and which column of the source each one is."""
    from hatchway.data.schema import CATALOGUE_TYPES, EVENT_TYPES

    manifest = store.manifest
    days = [part.path.split("/")[1].removeprefix("day=") for part in manifest.parts if part.path.startswith("events/")]
    dated = [day for day in days if day != "undated"]
    counts: dict[str, int] = {}
    if store.has("event"):
        counts = dict(store.events().group_by("event").len().sort("event").collect(engine="streaming").iter_rows())
    payload = {
        "store": str(store.path),
        "digest": store.digest,
        "events": manifest.events,
        "buyers": manifest.buyers,
        "items": manifest.items,
        "by_event": counts,
        "first_day": dated[0] if dated else None,
        "last_day": dated[-1] if dated else None,
        "event_columns": manifest.event_columns,
        "catalogue_columns": manifest.catalogue_columns,
        "mapped": dict(columns),
        "mapped_catalogue": dict(catalogue_columns),
        "without_meaning": [name for name in manifest.event_columns if name not in EVENT_TYPES],
        "without_meaning_catalogue": [name for name in manifest.catalogue_columns if name not in CATALOGUE_TYPES],
        "rejected": manifest.rejected,
        "notes": manifest.notes,
    }
    emit(payload, _text(store.path, payload, manifest.rejected), json)


def _text(path: Path, payload: Mapping[str, object], rejected: Mapping[str, int]) -> str:
    """Lay the payload out for reading."""
    by_event = payload["by_event"]
    lines = [f"{path}: {payload['events']:,} events of {payload['buyers']:,} buyers on {payload['items']:,} items"]
    if payload["first_day"]:
        lines[0] += f", {payload['first_day']} to {payload['last_day']}"
    if isinstance(by_event, Mapping) and by_event:
        lines.append("  events:    " + ", ".join(f"{count:,} {event}" for event, count in by_event.items()))
    lines.append("  columns:   " + _columns(payload["event_columns"], payload["mapped"], payload["without_meaning"]))
    lines.append(
        "  catalogue: "
        + _columns(payload["catalogue_columns"], payload["mapped_catalogue"], payload["without_meaning_catalogue"])
    )
    if not rejected:
        return "\n".join([*lines, "no row was rejected"])
    counts = table([[reason, count] for reason, count in rejected.items()], ["rejected", "rows"])
    return "\n".join([*lines, counts, f"they stand in {path / 'rejected.parquet'}, with file, line and reason"])


def _columns(names: object, mapped: object, own: object) -> str:
    """List the columns of a table, those of another name in the source with it, and those that mean nothing to us.

    >>> _columns(("buyer", "item", "page"), {"buyer": "user_id"}, ["page"])
    'buyer (user_id), item; carried along without a meaning: page'
    """
    assert isinstance(names, tuple) and isinstance(mapped, Mapping) and isinstance(own, list)  # noqa: S101, PT018

    def written(name: str) -> str:
        return f"{name} ({mapped[name]})" if mapped.get(name, name) != name else name

    listed = ", ".join(written(name) for name in names if name not in own)
    return listed + (f"; carried along without a meaning: {', '.join(map(written, own))}" if own else "")
