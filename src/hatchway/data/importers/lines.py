"""Text as rows of fields, split by Polars: every row knows its file and line, and whether it had the right fields."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hatchway.data.importers.files import TextFile
from hatchway.errors import DataError

FILE, LINE, BAD = "@file", "@line", "@bad"
"""Where a row came from, and the whole text of a row whose fields do not fit (else null); beside the row's fields."""


@dataclass(frozen=True)
class Rows:
    """Rows as a source has them, nothing judged yet.

    Attributes:
        frame: columns ``@file``, ``@line``, ``@bad`` and the fields: all String from a text source, else as they are.
        from_text: whether the source is text, so that types are to be found out.
        separator: what to write between the fields when a rejected row is shown.
        shown: the fields to show of a rejected row; all if empty.
        time_format: strptime format of the times, None for numbers and ISO dates.
    """

    frame: pl.LazyFrame
    from_text: bool = True
    separator: str = ","
    shown: tuple[str, ...] = ()
    time_format: str | None = None


def lines_of(file: TextFile) -> pl.LazyFrame:
    """Scan the lines of a file that are not blank: columns ``@file``, ``@line`` (Int64, from 1) and ``text``."""
    lines = pl.scan_lines(file.path, name="text", row_index_name=LINE, row_index_offset=1, glob=False)
    lines = lines.select(pl.lit(file.name).alias(FILE), pl.col(LINE).cast(pl.Int64), "text")
    return lines.filter(pl.col("text").str.contains(r"\S"))


def split_rows(lines: pl.LazyFrame, columns: Sequence[str], separator: str) -> pl.LazyFrame:
    """Split lines at ``separator``, no quoting; a line with more or fewer fields than ``columns`` is bad."""
    return _fields(lines, pl.col("text").str.split(separator), columns)


def read_csv(file: TextFile, separator: str, header: Sequence[str]) -> pl.LazyFrame:
    """Read a CSV file with a header line and quoted fields (RFC 4180); quoted line breaks and separators are kept.

    A row whose quotes do not close is bad by itself and does not swallow the rows after it.
    """
    lines = lines_of(file)
    if not file.quotes:
        return split_rows(lines.slice(1), header, separator)
    records = _joined(lines, separator)
    return _fields(records.slice(1), _unquoted(separator), header)


def header_of(file: TextFile, separator: str) -> list[str]:
    """Return the names in the first line of a CSV file.

    Raises:
        DataError: a name is there twice, or reserved.
    """
    names = next(csv.reader([_first_line(file)], delimiter=separator), [])
    names = [name.strip() or f"column_{number}" for number, name in enumerate(names, start=1)]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise DataError(f"{file.name} has the column {twice[0]!r} twice; rename one of them")
    check_names(file.name, names)
    return names


def check_names(file: str, names: Sequence[str]) -> None:
    """Refuse column names that begin as the importers' own do.

    Raises:
        DataError: one does.
    """
    ours = [name for name in names if name.startswith("@")]
    if ours:
        raise DataError(f"{file} has a column {ours[0]!r}; names that begin with @ are reserved: rename it in the file")


def separator_of(file: TextFile) -> str:
    """Tell a CSV file's separator from its first line: the one of tab, comma, semicolon and bar that it has most of."""
    line = _first_line(file)
    return max("\t,;|", key=lambda separator: len(next(csv.reader([line], delimiter=separator), [])))


def _first_line(file: TextFile) -> str:
    """Return the first line that is not blank."""
    with file.path.open(encoding="utf-8") as lines:
        return next(line.rstrip("\n") for line in lines if line.strip())


def _fields(lines: pl.LazyFrame, fields: pl.Expr, columns: Sequence[str]) -> pl.LazyFrame:
    """Spread a list of fields over columns."""
    fits = pl.col("@fields").list.len() == len(columns)
    return lines.with_columns(fields.alias("@fields")).select(
        FILE,
        LINE,
        pl.when(fits.not_() | pl.col("@fields").is_null()).then("text").alias(BAD),
        *(pl.col("@fields").list.get(at, null_on_oob=True).alias(name) for at, name in enumerate(columns)),
    )


def _field_pattern(separator: str) -> str:
    """Return the pattern of one field: quoted, or anything that does not begin with a quote."""
    escaped = "\\" + separator if separator in "|." else separator
    return f'(?:"(?:[^"]|"")*"|[^{escaped}"][^{escaped}]*|)'


def _well_formed(text: pl.Expr, separator: str) -> pl.Expr:
    """Say where ``text`` is a whole record."""
    field = _field_pattern(separator)
    between = "\\" + separator if separator in "|." else separator
    return text.str.contains(f"(?s)^{field}(?:{between}{field})*$")


def _unquoted(separator: str) -> pl.Expr:
    """Split ``text`` at separators outside quotes and undo the quoting; null where it is no whole record."""
    between = "\\" + separator if separator in "|." else separator
    raw = (pl.col("text") + separator).str.extract_all(f"(?s){_field_pattern(separator)}{between}")
    field = pl.element().str.slice(0, pl.element().str.len_chars() - 1)
    quoted = field.str.starts_with('"')
    inner = field.str.slice(1, field.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    plain = raw.list.eval(pl.when(quoted).then(inner).otherwise(field))
    return (
        pl.when(pl.col("text").str.contains('"', literal=True).not_())
        .then(pl.col("text").str.split(separator))
        .when(_well_formed(pl.col("text"), separator))
        .then(plain)
    )


def _joined(lines: pl.LazyFrame, separator: str) -> pl.LazyFrame:
    """Join the lines of records that have line breaks inside quotes; ``@line`` is that of the first.

    A line with an odd number of quotes opens or closes such a record. One that is no whole record by itself opens one
    if it is whole together with the lines up to the next odd one; otherwise it stays alone (and is bad). Where several
    odd lines in a row could open one, every second does.
    """
    odd = pl.col("text").str.count_matches('"', literal=True) % 2 == 1
    marked = lines.with_columns(odd.alias("@odd"), odd.cast(pl.Int64).cum_sum().alias("@block"))
    blocks = (
        marked.filter(pl.col("@block") > 0)
        .group_by("@block", maintain_order=True)
        .agg(pl.col("text").first().alias("first"), pl.col("text").str.join("\n").alias("block"))
        .with_columns(whole=pl.col("block") + "\n" + pl.col("first").shift(-1))
        .with_columns(
            opens=(
                _well_formed(pl.col("whole"), separator) & _well_formed(pl.col("first"), separator).not_()
            ).fill_null(value=False)
        )
        .with_columns(run=(pl.col("opens") != pl.col("opens").shift(1, fill_value=False)).cum_sum())
        .with_columns(opens=pl.col("opens") & (pl.int_range(pl.len()).over("run") % 2 == 0))
        .with_columns(closes=pl.col("opens").shift(1, fill_value=False))
        .select("@block", "opens", "closes", "whole")
    )
    joined = marked.join(blocks, on="@block", how="left", maintain_order="left").with_columns(
        pl.col("opens", "closes").fill_null(value=False)
    )
    swallowed = (pl.col("opens") & pl.col("@odd").not_()) | (pl.col("closes") & pl.col("@odd"))
    text = pl.when(pl.col("opens") & pl.col("@odd")).then("whole").otherwise("text")
    return joined.filter(swallowed.not_()).select(FILE, LINE, text.alias("text"))
