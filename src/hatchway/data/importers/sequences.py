"""The importer of sequences: ``user item item …`` or ``user item`` on a line, in the order in which things happened."""

from pathlib import Path

import polars as pl

from hatchway.data.importers.files import as_text, files_of, listing
from hatchway.data.importers.intake import ImportSettings, Source, take_in
from hatchway.data.importers.lines import BAD, FILE, LINE, Rows, lines_of
from hatchway.data.store import Store
from hatchway.errors import DataError

_NO_SETTINGS = ImportSettings()


def import_sequences(source: Path | str, target: Path | str, settings: ImportSettings = _NO_SETTINGS) -> Store:
    """Import one file of sequences (as SASRec, BERT4Rec and S3-Rec use them), plain or gzip, or in a zip.

    Either form, mixed if need be: a line is a user and one or more of their items, oldest first; lines of the same
    user follow one another in time. There are no times: the store has ``order`` only.

    Args:
        source: the file; a zip or folder must hold just one.
        target: the store's folder.
        settings: the share of lines that may be rejected (those without an item).

    Raises:
        DataError: the source cannot be read, or too many lines are rejected.
    """

    def read(work: Path) -> Source:
        files = files_of(source)
        if len(files) != 1:
            raise DataError(f"{source} holds {len(files)} files ({listing(files)}); name the one with the sequences")
        text = as_text(files[0], work)
        if text is None:
            raise DataError(f"{files[0].name} is empty; it should have lines such as '1 17 5 42'")
        return Source(Rows(sequence_rows(lines_of(text), missing_items=True), separator=" "), undated=True)

    return take_in("sequences", source, target, read, settings)


def sequence_rows(lines: pl.LazyFrame, *, missing_items: bool) -> pl.LazyFrame:
    """Spread lines of a user and their items over rows: columns ``buyer`` and ``item``, in the order of the text.

    Args:
        lines: as :func:`hatchway.data.importers.lines.lines_of` gives them.
        missing_items: whether a user without items makes a row without an item (to be rejected) or none.
    """
    tokens = pl.col("text").str.strip_chars().str.replace_all(r"\s+", " ").str.split(" ")
    items = tokens.list.slice(1)
    if missing_items:
        items = pl.when(items.list.len() > 0).then(items).otherwise(pl.lit([None], pl.List(pl.String)))
    rows = lines.select(
        FILE, LINE, pl.lit(None, pl.String).alias(BAD), tokens.list.first().alias("buyer"), items.alias("item")
    )
    return rows.filter(pl.col("item").list.len() > 0).explode("item")
