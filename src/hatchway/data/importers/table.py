"""The importer of the user's own tables: CSV, TSV or Parquet, one file, many, or a glob."""

import difflib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pydantic

from hatchway.data.importers.files import SourceFile, as_file, as_text, files_of, listing
from hatchway.data.importers.intake import ImportSettings, Source, items_of, take_in
from hatchway.data.importers.lines import BAD, FILE, LINE, Rows, check_names, header_of, read_csv, separator_of
from hatchway.data.schema import CATALOGUE_TYPES, EVENT_TYPES
from hatchway.data.store import Store
from hatchway.errors import DataError

_TEXT_ENDINGS = (".csv", ".tsv", ".txt")
_PARQUET_ENDINGS = (".parquet", ".pq")
_RESERVED = ("day",)
_NUMBER = re.compile(r"-?\d+(\.\d*)?")


class TableSettings(ImportSettings):
    """What the import of a table can be told.

    Attributes:
        columns: canonical name (or any new one) to the column's name in the log.
        events: further events, name to the name it is stored under: ``{"favourite": "save", "swipe": "swipe"}``.
        time_format: strptime format of the log's text times; None reads numbers and ISO 8601 dates, as a table of items
            always has them.
        catalogue: the table of items, or None.
        catalogue_columns: as ``columns``, for the table of items.
        shown: where the rows lie that a server wrote down (its state folder, a file, or a glob); they join the log.
    """

    columns: dict[str, str] = pydantic.Field(default_factory=dict)
    events: dict[str, str] = pydantic.Field(default_factory=dict)
    time_format: str | None = None
    catalogue: Path | None = None
    catalogue_columns: dict[str, str] = pydantic.Field(default_factory=dict)
    shown: str | None = None


_NO_SETTINGS = TableSettings()


def import_table(source: Path | str, target: Path | str, settings: TableSettings = _NO_SETTINGS) -> Store:
    """Import a log, and a table of items if there is one, from CSV, TSV or Parquet files.

    Columns that are called like one of the store's (:data:`hatchway.data.schema.EVENT_TYPES`,
    :data:`~hatchway.data.schema.CATALOGUE_TYPES`) are that one; ``columns`` maps others, or renames; the rest is
    carried along as the user's own. Text files must have a header; they may be gzipped or in a zip, have quoted fields,
    and any of comma, tab, semicolon and bar between them. Types of text columns are found from all values; Parquet's
    are kept.

    Args:
        source: a file, a folder, a zip or a glob; several files must have the same columns.
        target: the store's folder.
        settings: which columns mean what, further events, the share of rows that may be rejected.

    Raises:
        DataError: a column is missing or of the wrong kind, a file cannot be read, or too many rows are rejected.
    """

    def read(work: Path) -> Source:
        log = _table(source, settings.columns, EVENT_TYPES, ("buyer", "item"), option="--map", work=work)
        if settings.events and "event" not in log.frame.collect_schema():
            raise DataError(
                f"--event {next(iter(settings.events))}: {source} has no column 'event' for it to be in; say which "
                "one it is, as in --map event=action, or leave --event out"
            )
        catalogue = None
        if settings.catalogue is not None:
            columns = settings.catalogue_columns
            catalogue = _table(
                settings.catalogue, columns, CATALOGUE_TYPES, ("item",), option="--map-catalogue", work=work
            )
        has_time = "time" in log.frame.collect_schema()
        note = "the log has no column 'time': order stands for it, and repeats are kept"
        log = replace(log, time_format=settings.time_format)
        return Source(
            log,
            catalogue,
            known_events=settings.events,
            undated=not has_time,
            notes=() if has_time else (note,),
            shown=settings.shown,
        )

    return take_in("table", source, target, read, settings)


def read_items(source: Path | str, columns: Mapping[str, str], *, integer_ids: bool) -> pl.DataFrame:
    """Read a table of items that is to go with a store that is there already.

    Files, columns and times are read as :func:`import_table` reads a catalogue. The user's own columns of a text file
    stay text, for whoever knows the types of the store's; ids repeated in the file stay, too.

    Args:
        source: a file, a folder, a zip or a glob; several files must have the same columns.
        columns: canonical name to the column's name in the table.
        integer_ids: whether the store's item ids are integers; in a text file, text that is one is read as one.

    Raises:
        DataError: there is no column ``item``, a file cannot be read, or a row cannot be used.
    """
    with tempfile.TemporaryDirectory() as work:
        rows = _table(source, columns, CATALOGUE_TYPES, ("item",), option="--map-new", work=Path(work))
        try:
            return items_of(rows, str(source), integer_ids=integer_ids)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{source} cannot be read: {str(error).splitlines()[0]}") from error


def _table(
    source: Path | str,
    columns: Mapping[str, str],
    meaning: Mapping[str, pl.DataType | None],
    required: Sequence[str],
    *,
    option: str,
    work: Path,
) -> Rows:
    """Read the files of a table as one, its columns under their canonical names."""
    files = [file for file in files_of(source) if _ending(file) is not None]
    if not files:
        raise DataError(f"{source} holds no .csv, .tsv, .txt or .parquet file, but {listing(files_of(source))}")
    endings = {_ending(file) in _PARQUET_ENDINGS for file in files}
    if len(endings) > 1:
        raise DataError(
            f"{source} mixes Parquet and text files ({listing(files)}); import one kind, or name it by a glob"
        )
    if endings == {True}:
        rows = Rows(_concat([(file.name, _parquet(file, work)) for file in files]), from_text=False)
    else:
        rows = _texts(files, source, work)
    return replace(rows, frame=_renamed(rows.frame, columns, meaning, required, option=option, source=str(source)))


def _ending(file: SourceFile) -> str | None:
    return next((end for end in (*_TEXT_ENDINGS, *_PARQUET_ENDINGS) if file.plain_name.endswith(end)), None)


def _parquet(file: SourceFile, work: Path) -> pl.LazyFrame:
    try:
        path = as_file(file, work)
        check_names(file.name, pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema().names())
        frame = pl.scan_parquet(path, glob=False, hive_partitioning=False, row_index_name=LINE)
        frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{file.name} is no Parquet file, or damaged ({str(error).splitlines()[0]})") from None
    place = (pl.lit(file.name).alias(FILE), (pl.col(LINE).cast(pl.Int64) + 1).alias(LINE))
    return frame.select(*place, pl.lit(None, pl.String).alias(BAD), pl.exclude(LINE))


def _texts(files: Sequence[SourceFile], source: Path | str, work: Path) -> Rows:
    """Read text files; empty ones among others are passed over."""
    texts = [text for file in files if (text := as_text(file, work)) is not None]
    if not texts:
        raise DataError(f"{source} is empty; it should have a line with the columns' names, and rows")
    separator = separator_of(texts[0])
    frames = [(text.name, read_csv(text, separator, header_of(text, separator))) for text in texts]
    return Rows(_concat(frames), separator=separator)


def _concat(frames: Sequence[tuple[str, pl.LazyFrame]]) -> pl.LazyFrame:
    """Put tables one after another; they must have the same columns, in whatever order."""
    (first_name, first), *others = frames
    schema = first.collect_schema()
    parts = [first]
    for name, frame in others:
        theirs = frame.collect_schema()
        different = sorted(set(schema) ^ set(theirs)) or [c for c in schema if schema[c] != theirs[c]]
        if different:
            raise DataError(
                f"{first_name} and {name} differ in the column {different[0]!r}; the files of one table must have the "
                "same columns and types"
            )
        parts.append(frame.select(schema.names()))
    return pl.concat(parts)


def _renamed(
    frame: pl.LazyFrame,
    columns: Mapping[str, str],
    meaning: Mapping[str, pl.DataType | None],
    required: Sequence[str],
    *,
    option: str,
    source: str,
) -> pl.LazyFrame:
    """Give the columns their canonical names."""
    there = [name for name in frame.collect_schema().names() if not name.startswith("@")]
    shown = ", ".join(there)
    for ours, theirs in columns.items():
        if theirs not in there:
            near = difflib.get_close_matches(theirs, there, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise DataError(
                f"{option} {ours}={theirs}: {source} has no column {theirs!r}; {hint}its columns are {shown}"
            )
    rest = [name for name in there if name not in columns.values()]
    for name in rest:
        if name in columns:
            raise DataError(
                f"{option} {name}={columns[name]}: {source} has a column {name!r} of its own besides; give that one a "
                f"new name as well, e.g. {option} own_{name}={name}"
            )
    names = [*columns, *rest]
    _refuse_anonymous(names, required, source)
    for name in required:
        if name not in names:
            example = f"{option} {name}={next((c for c in rest if c not in meaning), f'their_{name}')}"
            if any(_NUMBER.fullmatch(column) for column in there):
                raise DataError(f"the first line of {source} should name the columns, but looks like data: {shown}")
            raise DataError(
                f"{source} has no column {name!r}; say which one it is, as in {example}; its columns are {shown}"
            )
    for name in names:
        if name in _RESERVED or name.startswith("@"):
            raise DataError(f"the column name {name!r} is reserved; give it another, e.g. {option} own_day={name}")
    place = [pl.col(name) for name in (FILE, LINE, BAD)]
    source_order = sorted(names, key=lambda name: there.index(columns.get(name, name)))
    return frame.select(*place, *(pl.col(columns.get(name, name)).alias(name) for name in source_order))


def _refuse_anonymous(names: Sequence[str], required: Sequence[str], source: str) -> None:
    """Say of rows that were served to nobody in particular that they cannot be a log."""
    if "buyer" in required and "buyer" not in names and {"item", "bundle", "request", "place"} <= {*names}:
        raise DataError(
            f"{source} holds rows that were served to nobody in particular: they have no buyer, and an impression "
            "needs one; import the day's log with --shown FOLDER, which leaves them out"
        )
