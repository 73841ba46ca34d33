"""The importer of MIND, Microsoft's news recommendation data: ``behaviors.tsv`` with its impressions, ``news.tsv``."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import polars as pl

from hatchway.data.importers.files import SourceFile, as_text, files_of, listing
from hatchway.data.importers.intake import ImportSettings, Source, take_in
from hatchway.data.importers.lines import BAD, FILE, LINE, Rows, lines_of, split_rows
from hatchway.data.store import Store
from hatchway.errors import DataError

_NO_SETTINGS = ImportSettings()
_BEHAVIOURS = ("session", "buyer", "time", "history", "slots")
_NEWS = ("item", "category", "subcategory", "title", "abstract", "url", "title_entities", "abstract_entities")
_TIME_FORMAT = "%m/%d/%Y %I:%M:%S %p"
_SLOT = r"^(\S+)-([01])$"
_SPLITS = {"train": "train", "dev": "test", "valid": "test"}


def import_mind(source: Path | str, target: Path | str, settings: ImportSettings = _NO_SETTINGS) -> Store:
    """Import ``behaviors.tsv`` and ``news.tsv`` (plain or gzip) from a folder or zip, or folders ``train`` and ``dev``.

    Every slot of an impression becomes an event ``impression`` with the impression's id as ``session`` and its place in
    the list, from 0, as ``position``; a slot that was clicked becomes an event ``click`` besides, with the same session
    and position. What was shown and not clicked is an impression without a click of the same session and position.

    The click history in a user's earliest line becomes events ``view`` without a time, which stand before all others:
    when they happened the data does not say. (The later lines of a user repeat the same history.) Times have no zone
    in the data and are taken as UTC.

    Where there is a folder for training and one for evaluation (``train`` and ``dev`` in their names), the store has
    ``split``: train for the first, test for the second. Session ids begin anew in each, so they get the split's name in
    front. A folder of unlabelled test impressions is left out.

    Args:
        source: the folder or zip.
        target: the store's folder.
        settings: the share of rows that may be rejected.

    Raises:
        DataError: a file is missing or cannot be read, or too many rows are rejected.
    """

    def read(work: Path) -> Source:
        files = files_of(source)
        behaviours = _behaviours(files, source)
        lines = [_lines(file, split, work) for file, split in behaviours]
        news = [file for file in files if file.plain_name == "news.tsv"]
        return Source(
            Rows(
                pl.concat([_histories(pl.concat(lines)), *map(_slots, lines)]),
                separator="\t",
                shown=("session", "buyer", "time", "item"),
                time_format=_TIME_FORMAT,
            ),
            Rows(_news(news, work), separator="\t") if news else None,
            undated=True,
            notes=() if news else ("there is no news.tsv: the catalogue has ids only",),
        )

    return take_in("mind", source, target, read, settings)


def _behaviours(files: Sequence[SourceFile], source: Path | str) -> list[tuple[SourceFile, str | None]]:
    """Find the files of behaviour and the split that each is, training first; None where there is only one file."""
    found = [file for file in files if file.plain_name == "behaviors.tsv"]
    if not found:
        raise DataError(f"{source} is no MIND data set: it has no behaviors.tsv; it holds {listing(files)}")
    if len(found) == 1:
        return [(found[0], None)]
    named = [(file, _split_of(file)) for file in found]
    splits = [split for _, split in named if split is not None]
    if sorted(splits) != ["test", "train"]:
        raise DataError(
            f"{source} has several behaviors.tsv ({listing(found)}); give one, or a folder train and one dev"
        )
    return sorted(((file, split) for file, split in named if split is not None), key=lambda pair: pair[1] != "train")


def _split_of(file: SourceFile) -> str | None:
    folders = str(PurePosixPath(file.name).parent).lower()
    return next((split for word, split in _SPLITS.items() if word in folders), None)


def _lines(file: SourceFile, split: str | None, work: Path) -> pl.LazyFrame:
    """Read the lines of one file of behaviour; those without a user or a time are bad."""
    text = as_text(file, work)
    if text is None:
        raise DataError(f"{file.name} is empty; fetch the data set again")
    lines = lines_of(text)
    rows = split_rows(lines, _BEHAVIOURS, "\t")
    blank = pl.any_horizontal(pl.col(name).str.strip_chars() == "" for name in ("buyer", "time"))
    shown = pl.concat_str(pl.col(_BEHAVIOURS), separator="\t")
    rows = rows.with_columns(pl.when(blank).then(shown).otherwise(BAD).alias(BAD))
    if split is None:
        return rows
    return rows.with_columns(
        pl.concat_str(pl.lit(f"{split}-"), "session").alias("session"), pl.lit(split).alias("split")
    )


def _histories(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Give the history of each user's earliest line as views without a time, users in order of appearance."""
    time = pl.col("time").str.strptime(pl.Datetime("us"), _TIME_FORMAT, strict=False)
    good = lines.filter(pl.col(BAD).is_null()).with_row_index("at").with_columns(time.alias("when"))
    earliest = good.sort("when", "at", nulls_last=True).unique("buyer", keep="first", maintain_order=True)
    history = pl.col("history").str.strip_chars().str.split(" ")
    rows = earliest.sort("at").with_columns(history.alias("item")).filter(pl.col("history").str.contains(r"\S"))
    return _as_events(rows.explode("item"), event=pl.lit("view"), dated=False)


def _slots(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Give the slots of each line as impressions, each followed by its click if it has one."""
    slots = pl.when(pl.col(BAD).is_null()).then(pl.col("slots")).fill_null("").str.strip_chars().str.split(" ")
    rows = (
        lines.with_columns(slots.alias("slot"), pl.int_ranges(slots.list.len()).alias("position"))
        .explode("slot", "position")
        .with_columns(
            pl.col("slot").str.extract(_SLOT, 1).alias("item"),
            (pl.col("slot").str.extract(_SLOT, 2) == "1").alias("hit"),
        )
    )
    odd = pl.when(pl.col("item").is_null()).then(pl.concat_str("session", "buyer", "time", "slot", separator="\t"))
    events = pl.when(pl.col("hit")).then(pl.lit(["impression", "click"])).otherwise(pl.lit(["impression"]))
    rows = rows.with_columns(pl.coalesce(BAD, odd).alias(BAD), events.alias("event")).explode("event")
    return _as_events(rows, event=pl.col("event"), dated=True)


def _as_events(rows: pl.LazyFrame, event: pl.Expr, *, dated: bool) -> pl.LazyFrame:
    """Put rows into the columns that both kinds share; a history has no time, session and position."""
    own = {"time": pl.String(), "session": pl.String(), "position": pl.Int64()}
    split = ["split"] if "split" in rows.collect_schema() else []
    return rows.select(
        FILE,
        LINE,
        BAD,
        "buyer",
        "item",
        event.alias("event"),
        *(pl.col(name).cast(dtype) if dated else pl.lit(None, dtype).alias(name) for name, dtype in own.items()),
        *split,
    )


def _news(files: Sequence[SourceFile], work: Path) -> pl.LazyFrame:
    """Read the news; articles that an earlier file has are left out of the later ones."""
    parts: list[pl.LazyFrame] = []
    for file in files:
        text = as_text(file, work)
        if text is None:
            raise DataError(f"{file.name} is empty; fetch the data set again")
        rows = split_rows(lines_of(text), _NEWS, "\t")
        known = [part.select("item").filter(pl.col("item").is_not_null()) for part in parts]
        parts.append(rows.join(pl.concat(known), on="item", how="anti", maintain_order="left") if known else rows)
    return pl.concat(parts)
