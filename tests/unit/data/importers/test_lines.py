"""Text as rows of fields: quoting, line numbers, and rows that do not fit."""

import csv
import io
from pathlib import Path

import pytest

from hatchway.data.importers.files import as_text, files_of
from hatchway.data.importers.lines import BAD, LINE, header_of, read_csv, separator_of
from hatchway.errors import DataError


def rows_of(tmp_path: Path, content: str) -> list[tuple[int, tuple[str | None, ...] | None]]:
    """Return (line, fields) of each row, fields None where the row is bad."""
    (tmp_path / "a.csv").write_text(content, newline="")
    text = as_text(files_of(tmp_path / "a.csv")[0], tmp_path)
    assert text is not None
    separator = separator_of(text)
    header = header_of(text, separator)
    frame = read_csv(text, separator, header).collect()
    fields = frame.select(header).rows()
    bad = frame[BAD].is_not_null().to_list()
    return [(line, None if is_bad else row) for line, row, is_bad in zip(frame[LINE], fields, bad, strict=True)]


def test_plain_rows_know_their_lines(tmp_path: Path) -> None:
    """Blank lines count as lines and are no rows; CRLF is a line end."""
    assert rows_of(tmp_path, "a,b\r\n1,2\r\n\r\n3,\r\n") == [(2, ("1", "2")), (4, ("3", ""))]


def test_rows_with_more_or_fewer_fields_are_bad(tmp_path: Path) -> None:
    """A field too many is not dropped, a field too few not invented."""
    assert rows_of(tmp_path, "a,b\n1\n2,3\n4,5,6\n") == [(2, None), (3, ("2", "3")), (4, None)]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_each_separator_is_found_and_may_stand_in_quotes(tmp_path: Path, separator: str) -> None:
    """The separator is the one that the header has most of."""
    content = f'a{separator}b\n"x{separator}y"{separator}2\n'
    assert rows_of(tmp_path, content) == [(2, (f"x{separator}y", "2"))]


def test_quotes_are_undone(tmp_path: Path) -> None:
    """Doubled quotes, empty quotes, and a quote within a field that does not begin with one."""
    content = 'a,b\n"say ""hi""",""\n5" nails,"",\n17" screen,x\n'
    assert rows_of(tmp_path, content) == [(2, ('say "hi"', "")), (3, None), (4, ('17" screen', "x"))]


def test_quoted_line_breaks_are_kept_and_lines_still_counted(tmp_path: Path) -> None:
    """A record of three lines has the line of its first; the next record has its own."""
    content = 'a,b\n1,"x\n\n, y"\n2,z\n3,"p\r\nq"\n"r\ns","t\nu"\n4,v\n'
    assert rows_of(tmp_path, content) == [
        (2, ("1", "x\n, y")),
        (5, ("2", "z")),
        (6, ("3", "p\nq")),
        (8, ("r\ns", "t\nu")),
        (11, ("4", "v")),
    ]


def test_a_quote_that_never_closes_costs_its_own_row_only(tmp_path: Path) -> None:
    """The rows after a stray quote are read, with or without further quotes."""
    content = 'a,b\n1,"open\n2,x\n3,"y"\n4,"open too\n5,"a\nb"\n6,z\n'
    assert rows_of(tmp_path, content) == [
        (2, None),
        (3, ("2", "x")),
        (4, ("3", "y")),
        (5, None),
        (6, ("5", "a\nb")),
        (8, ("6", "z")),
    ]


def test_what_python_writes_is_read_back(tmp_path: Path) -> None:
    """The csv module of the standard library is an independent writer of the same form."""
    cells = ["plain", "", 'a "quoted" word', "comma, here", "line\nbreak", '"', '""', '\n"\n', ",", "tab\t"]
    table = [[first, second] for first in cells for second in cells]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["a", "b"])
    writer.writerows(table)
    read = [fields for _, fields in rows_of(tmp_path, buffer.getvalue())]
    assert read == [tuple(row) for row in table]


def test_headers_are_trimmed_and_named_and_not_doubled(tmp_path: Path) -> None:
    """The unnamed first column of a table with row numbers gets a name."""
    assert rows_of(tmp_path, ', "b" ,c\n0,1,2\n') == [(2, ("0", "1", "2"))]
    path = tmp_path / "a.csv"
    path.write_text(",b\n")
    text = as_text(files_of(path)[0], tmp_path)
    assert text is not None
    assert header_of(text, ",") == ["column_1", "b"]
    path.write_text("b,a,b\n")
    with pytest.raises(DataError, match="has the column 'b' twice"):
        header_of(text, ",")
