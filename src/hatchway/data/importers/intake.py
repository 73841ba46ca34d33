"""From a source's rows to a store: stage, judge, count, drop repeats, type, write; a failed import leaves nothing."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pydantic

from hatchway.artefacts.atomic import replacing_folder
from hatchway.data.days import spans_of_days
from hatchway.data.importers.lines import Rows
from hatchway.data.importers.rules import REASON, REASON_NUMBERS, ROW, integers_only, judged, rejected_rows, settled
from hatchway.data.importers.shown import with_shown
from hatchway.data.manifest import MANIFEST, StoreManifest
from hatchway.data.schema import CATALOGUE_TYPES, EVENT_TYPES, ID_COLUMNS, REASONS
from hatchway.data.store import Store, check_target, fill_store, no_rejected
from hatchway.errors import DataError
from hatchway.progress import note
from hatchway.settings import Settings

_DECIMAL = r"^[0-9]{1,19}$"
_HEXADECIMAL = r"^(0[xX])?[0-9a-fA-F]{16}$"
_SHOWN_EXAMPLES = 2
_SHOWN_EVENTS = 12


class ImportSettings(Settings):
    """What every import can be told.

    Attributes:
        max_rejected: share of the rows that may be rejected; above it there is no store.
    """

    max_rejected: float = pydantic.Field(default=0.01, ge=0, le=1)


@dataclass(frozen=True)
class Source:
    """What an importer reads.

    Attributes:
        events: the log; a field ``time`` is required in every row unless ``undated`` says otherwise.
        catalogue: the items, or None.
        known_events: events known besides the usual ones, name to the name it is stored under.
        undated: whether rows without a time are meant (they come before everything else).
        notes: what the user should know.
        shown: where the rows lie that a server wrote down; they join the log.
    """

    events: Rows
    catalogue: Rows | None = None
    known_events: Mapping[str, str] = field(default_factory=dict)
    undated: bool = False
    notes: tuple[str, ...] = ()
    shown: str | None = None


def take_in(
    origin: str,
    source: Path | str,
    target: Path | str,
    read: Callable[[Path], Source],
    settings: ImportSettings,
) -> Store:
    """Make a store of a source, whole or not at all; a store that lies at ``target`` is replaced.

    Args:
        origin: the importer's name.
        source: where it reads from; must not lie within ``target``.
        target: the store's folder.
        read: given a folder for working copies, returns what the source holds.
        settings: the share that may be rejected.

    Raises:
        DataError: the source cannot be read, holds no rows, or too many of them are rejected.
    """
    target = Path(target)
    check_target(target)
    # Unlike Path.resolve, which fails at a ring of links.
    if Path(os.path.realpath(source)).is_relative_to(os.path.realpath(target)):
        raise DataError(
            f"the source {source} lies within the store {target} that is to be written; name another folder"
        )
    with replacing_folder(target) as folder:
        work = folder / "work"
        work.mkdir()
        found = read(work)
        try:
            log, rejected = _events(found, work, settings)
            items, turned_away = _catalogue(found.catalogue, settings)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{source} cannot be read: {str(error).splitlines()[0]}") from error
        log, items = _typed(log, items, found)
        for line in found.notes:
            note(line)
        notes = found.notes
        if found.shown is not None:
            log, said = with_shown(log, found.shown)
            notes += said
        rejected = pl.concat([rejected, turned_away]).sort("file", "line", "reason", maintain_order=True)
        manifest = fill_store(folder, log, items, rejected, origin=origin, notes=notes)
        if items is not None and manifest.items > len(items):
            _say_unlisted(folder, manifest, len(items))
        shutil.rmtree(work)
    return Store.open(target)


def _say_unlisted(folder: Path, manifest: StoreManifest, listed: int) -> None:
    """Say how many items only the log has, and name one; they have an id and nothing else."""
    example = pl.scan_parquet(folder / "catalogue.parquet", glob=False).slice(listed, 1).collect()["item"].item()
    line = (
        f"{manifest.items - listed:,} of {manifest.items:,} items are in the log and not in the catalogue (item "
        f"{example!r} is one): they are known by their ids alone"
    )
    note(line)
    said = manifest.model_copy(update={"notes": (*manifest.notes, line)})
    (folder / MANIFEST).write_text(said.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _events(found: Source, work: Path, settings: ImportSettings) -> tuple[pl.LazyFrame, pl.DataFrame]:
    """Return the accepted rows of the log (scanned from ``work``), and the rejected ones."""
    staged = replace(found.events, frame=_staged(found.events.frame, work / "staged.parquet"))
    total = staged.frame.select(pl.len()).collect().item()
    if not total:
        raise DataError("the source has no rows; a store needs at least one event")
    required = ("buyer", "item") if found.undated else ("buyer", "item", "time")
    verdicts = _staged(judged(staged, required, found.known_events), work / "judged.parquet")
    away = verdicts.filter(pl.col(REASON).is_not_null()).select(ROW, REASON).collect(engine="streaming")
    rejected = rejected_rows(staged, away)
    _check(rejected, total, settings, "rows", lambda: _unknown_events(staged, away))
    accepted = verdicts.filter(pl.col(REASON).is_null()).drop(REASON)
    repeats = _repeats(accepted)
    if len(repeats):
        rejected = pl.concat([rejected, rejected_rows(staged, repeats)])
        _check(rejected, total, settings, "rows")
        accepted = accepted.join(repeats.lazy(), on=ROW, how="anti", maintain_order="left")
    if len(rejected) == total:
        raise DataError(f"all {total:,} rows were rejected; a store needs at least one event")
    if "order" not in accepted.collect_schema():
        return accepted.rename({ROW: "order"}), rejected
    ordered = accepted.sort("order", ROW).drop(ROW, "order").with_row_index("order")
    return _staged(ordered.with_columns(pl.col("order").cast(pl.Int64)), work / "ordered.parquet"), rejected


def _catalogue(rows: Rows | None, settings: ImportSettings) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """Return the accepted rows of the catalogue, and the rejected ones."""
    if rows is None:
        return None, no_rejected()
    rows = replace(rows, frame=rows.frame.collect(engine="streaming").lazy())
    verdicts = judged(rows, ("item",), {}).collect()
    fine = verdicts.filter(pl.col(REASON).is_null())
    again = fine.filter(pl.col("item").is_first_distinct().not_()).with_columns(_because("repeated item"))
    away = pl.concat([verdicts.filter(pl.col(REASON).is_not_null()), again]).select(ROW, REASON)
    rejected = rejected_rows(rows, away)
    _check(rejected, len(verdicts), settings, "items of the catalogue")
    return fine.unique("item", keep="first", maintain_order=True).drop(ROW, REASON), rejected


def items_of(rows: Rows, source: str, *, integer_ids: bool) -> pl.DataFrame:
    """Return the rows of a table of items, every one of which must be fit for use.

    Args:
        rows: the table.
        source: what it is called in messages.
        integer_ids: whether text that is an integer shall be an integer id.

    Raises:
        DataError: a row is not.
    """
    rows = replace(rows, frame=rows.frame.collect(engine="streaming").lazy())
    verdicts = judged(rows, ("item",), {}).collect()
    rejected = rejected_rows(rows, verdicts.filter(pl.col(REASON).is_not_null()).select(ROW, REASON))
    if len(rejected):
        file, line, reason, text = rejected.row(0)
        raise DataError(
            f"{len(rejected):,} of {len(verdicts):,} items of {source} cannot be used; the first: {file}:{line}, "
            f"{reason} ({REASONS[reason]}): {_short(text)}"
        )
    frame = verdicts.drop(ROW, REASON)
    if "photo" in frame.columns:
        frame = frame.with_columns(_photo(frame.lazy()))
    numbers = rows.from_text and integer_ids and bool(frame.select(integers_only("item")).item())
    return frame.with_columns(pl.col("item").cast(pl.Int64)) if numbers else frame


def _because(reason: str) -> pl.Expr:
    """Return a reason as the rules write it."""
    return pl.lit(REASON_NUMBERS[reason], pl.UInt8).alias(REASON)


def _staged(frame: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    """Stream a frame to disk, so that it is parsed once however often it is read."""
    frame.sink_parquet(path, compression="lz4")
    return pl.scan_parquet(path, glob=False)


def _repeats(accepted: pl.LazyFrame) -> pl.DataFrame:
    """Find rows that say exactly what an earlier row of the same time says: their ``@row``, and the reason.

    Rows without a time are never repeats, and lists are not compared.
    """
    schema = accepted.collect_schema()
    found = [pl.DataFrame(schema={ROW: pl.Int64, REASON: pl.UInt8})]
    if "time" not in schema:
        return found[0]
    said = [name for name in schema.names() if name not in (ROW, "order") and not schema[name].is_nested()]
    mark = pl.sum_horizontal(pl.col(name).hash(seed=at) for at, name in enumerate(said))  # equal rows, equal marks
    for span, _ in spans_of_days(accepted.filter(pl.col("time").is_not_null())):
        marks = span.select(ROW, mark.alias("@mark")).collect(engine="streaming")
        suspects = marks.filter(pl.col("@mark").is_duplicated()).select(ROW)
        if len(suspects):
            rows = span.join(suspects.lazy(), on=ROW, how="semi").collect(engine="streaming").sort(ROW)
            again = rows.filter(pl.struct(said).is_first_distinct().not_())
            found.append(again.select(ROW, _because("repeat")))
    return pl.concat(found)


def _unknown_events(rows: Rows, away: pl.DataFrame) -> str:
    """Name the events that rows were turned away for, the most frequent first, with their counts."""
    of_events = away.lazy().filter(pl.col(REASON) == REASON_NUMBERS["unknown event"])
    numbered = rows.frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64), pl.col("event").cast(pl.String))
    counted = numbered.join(of_events, on=ROW, how="semi").group_by("event").len()
    found = counted.sort("len", "event", descending=[True, False]).collect(engine="streaming").rows()
    shown = ", ".join(f"{event or '(blank)'} ({count:,})" for event, count in found[:_SHOWN_EVENTS])
    return shown + (f" and {len(found) - _SHOWN_EVENTS:,} more" if len(found) > _SHOWN_EVENTS else "")


def _check(
    rejected: pl.DataFrame, total: int, settings: ImportSettings, noun: str, events: Callable[[], str] = str
) -> None:
    """Stop where more rows were rejected than the settings allow; ``events`` names the unknown ones."""
    if len(rejected) <= settings.max_rejected * total:
        return
    shares = f"{len(rejected) / total:.2%}) were rejected, more than the {settings.max_rejected:.2%}"
    lines = [f"{len(rejected):,} of {total:,} {noun} ({shares} that --max-rejected allows; no store was written"]
    groups = rejected.group_by("reason", maintain_order=True)
    for (reason,), rows in sorted(groups, key=lambda group: -len(group[1])):
        lines.append(f"  {reason} ({REASONS[str(reason)]}): {len(rows):,}")
        if reason == "unknown event" and (named := events()):
            lines.append(f"    the log's are {named}; e.g. --event NAME=save, or --event NAME to keep its name")
        examples = rows.head(_SHOWN_EXAMPLES).select("file", "line", "text").iter_rows()
        lines += [f"    {file}:{line}: {_short(text)}" for file, line, text in examples]
    of_log = "columns, events and times mean (--map, --event, --time-format)"
    meaning = of_log if noun == "rows" else "columns mean (--map-catalogue)"
    raise DataError("\n".join([*lines, f"mend the source, say what {meaning}, or allow more (--max-rejected)"]))


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"


def _typed(log: pl.LazyFrame, items: pl.DataFrame | None, found: Source) -> tuple[pl.LazyFrame, pl.DataFrame | None]:
    """Give ids and the user's own columns their types, the same on both sides."""
    catalogue = items.lazy() if items is not None else None
    item_columns = [(log, "item", found.events.from_text)]
    if "query_item" in log.collect_schema():
        item_columns.append((log, "query_item", found.events.from_text))
    if catalogue is not None and found.catalogue is not None:
        item_columns.append((catalogue, "item", found.catalogue.from_text))
    item_type = _id_type(item_columns)
    typed = _with_types(log, EVENT_TYPES, item_type, from_text=found.events.from_text)
    if catalogue is None or found.catalogue is None:
        return typed, None
    return typed, _with_types(catalogue, CATALOGUE_TYPES, item_type, from_text=found.catalogue.from_text).collect()


def _id_type(columns: list[tuple[pl.LazyFrame, str, bool]]) -> pl.DataType:
    """Return Int64 if all the columns are integers, or text in which every id is one; else String."""
    for frame, name, from_text in columns:
        if frame.collect_schema()[name] == pl.Int64:
            continue
        if not from_text or not frame.select(integers_only(name)).collect(engine="streaming").item():
            return pl.String()
    return pl.Int64()


def _with_types(
    frame: pl.LazyFrame, meaning: Mapping[str, pl.DataType | None], item_type: pl.DataType, *, from_text: bool
) -> pl.LazyFrame:
    schema = frame.collect_schema()
    columns = {}
    for name in schema.names():
        if name in ("item", "query_item"):
            columns[name] = pl.col(name).cast(item_type)
        elif name in ID_COLUMNS:
            columns[name] = pl.col(name).cast(_id_type([(frame, name, from_text)]))
        elif name == "photo":
            columns[name] = _photo(frame)
    own = [name for name in schema.names() if name not in meaning and schema[name] == pl.String and from_text]
    if own:
        kind = settled(frame, own)
        columns |= {name: kind(name) for name in own}
    return frame.with_columns(expression.alias(name) for name, expression in columns.items())


def _photo(frame: pl.LazyFrame) -> pl.Expr:
    """Read a photo column as 64-bit hashes where it can be nothing else: integers, or 16 hexadecimal digits."""
    photo = pl.col("photo")
    dtype = frame.collect_schema()["photo"]
    if dtype.is_integer():
        return photo.cast(pl.Int64).reinterpret(signed=False) if dtype.is_signed_integer() else photo.cast(pl.UInt64)
    if dtype != pl.String:
        raise DataError(f"column 'photo' is {dtype}; it must hold paths or 64-bit hashes")
    decimal, hexadecimal = (
        photo.is_not_null().any() & photo.str.contains(form).all() for form in (_DECIMAL, _HEXADECIMAL)
    )
    is_so = frame.select(decimal.alias("decimal"), hexadecimal.alias("hexadecimal")).collect(engine="streaming")
    if is_so["decimal"].item() and not is_so["hexadecimal"].item():
        return photo.cast(pl.UInt64)
    if not is_so["hexadecimal"].item():
        return photo
    halves = [photo.str.tail(16).str.slice(at, 8).str.to_integer(base=16, dtype=pl.UInt64) for at in (0, 8)]
    return halves[0] * 2**32 + halves[1]
