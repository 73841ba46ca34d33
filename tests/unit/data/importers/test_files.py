"""What a source holds, and every encoding and packing undone before anything is parsed."""

import gzip
import io
import os
import zipfile
from pathlib import Path

import pytest

from hatchway.data.importers.files import as_text, files_of, find
from hatchway.errors import DataError

TEXT = "item,title\n1,Café\n2,Łódź\n"


def text_of(path: Path, content: bytes, work: Path) -> str | None:
    """Write ``content`` to ``path`` and return what the importers would parse."""
    path.write_bytes(content)
    work.mkdir(exist_ok=True)
    read = as_text(files_of(path)[0], work)
    return None if read is None else read.path.read_text(encoding="utf-8")


def zipped(**members: bytes) -> bytes:
    """Return a zip with the given members; ``__`` in a name stands for ``/``, ``_dot_`` for ``.``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_dot_", ".").replace("__", "/"), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT.encode("utf-8-sig").replace(b"\n", b"\r\n")),
        zipped(a_dot_csv=TEXT.encode()),
        zipped(a_dot_csv_dot_gz=gzip.compress(TEXT.encode())),
        TEXT.replace("\n", "\r").encode(),
    ],
    ids=["plain", "mark", "utf-16", "gzip", "gzip with mark and CRLF", "zip", "gzip in zip", "CR"],
)
def test_every_packing_gives_the_same_text(tmp_path: Path, content: bytes) -> None:
    """The packing is told by the bytes, whatever the name."""
    assert text_of(tmp_path / "a.csv", content, tmp_path / "work") == TEXT


def test_a_plain_file_is_read_where_it_lies(tmp_path: Path) -> None:
    """Big files that need nothing done are not copied."""
    (tmp_path / "work").mkdir()
    (tmp_path / "a.csv").write_text(TEXT)
    read = as_text(files_of(tmp_path / "a.csv")[0], tmp_path / "work")
    assert read is not None
    assert read.path == tmp_path / "a.csv"
    assert list((tmp_path / "work").iterdir()) == []


def test_latin_1_is_read_byte_by_byte_and_utf_8_beside_it_stays(tmp_path: Path) -> None:
    """One broken line does not turn the accents of the others into two characters each."""
    content = b"1,Mis\xe9rables\n" + "2,Café\n".encode() + b"3,na\xefve\n"
    assert text_of(tmp_path / "a.csv", content, tmp_path / "work") == "1,Misérables\n2,Café\n3,naïve\n"


def test_a_character_cut_by_a_block_is_whole(tmp_path: Path) -> None:
    """Blocks end where they end; characters do not."""
    content = ("x" * ((1 << 22) - 1) + "é\r\n").encode()
    assert text_of(tmp_path / "a.csv", gzip.compress(content), tmp_path / "work") == "x" * ((1 << 22) - 1) + "é\n"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_told(tmp_path: Path, content: bytes) -> None:
    """Blank lines and a byte order mark are nothing to read."""
    assert text_of(tmp_path / "a.csv", content, tmp_path / "work") is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (gzip.compress(os.urandom(1000))[:-500], "a.csv is cut short or damaged"),
        (gzip.compress(TEXT.encode())[:-4] + b"size", "a.csv is cut short or damaged"),
        (zipped(a=os.urandom(1000))[:-30], "damaged or cut short"),
        (b"PAR1\0\0\0", "a.csv is no text file"),
        (TEXT.encode("utf-16")[:-1], "a.csv begins as utf-16 but is not"),
    ],
    ids=["cut gzip", "wrong length in gzip", "cut zip", "binary", "cut utf-16"],
)
def test_damage_is_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    """Each kind of damage is a message about the file, not about a decoder."""
    with pytest.raises(DataError, match=complaint):
        text_of(tmp_path / "a.csv", content, tmp_path / "work")


def test_a_folder_gives_its_files_sorted_without_hidden_ones(tmp_path: Path) -> None:
    """What operating systems leave about is not data."""
    for name in ("b.csv", "a/c.csv", ".DS_Store", "__MACOSX/._b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [file.name for file in files_of(tmp_path)] == ["a/c.csv", "b.csv"]


def test_a_glob_gives_its_matches_under_short_names(tmp_path: Path) -> None:
    """Names in messages are as long as needed to tell the files apart."""
    for name in ("x/one.csv", "y/one.csv", "y/two.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [file.name for file in files_of(str(tmp_path / "y" / "*.csv"))] == ["one.csv"]
    assert [file.name for file in files_of(str(tmp_path / "*" / "*.csv"))] == ["x/one.csv", "y/one.csv"]


@pytest.mark.parametrize(
    ("source", "complaint"), [("nowhere", "does not exist"), ("*.csv", "no file matches"), ("empty", "holds no files")]
)
def test_a_source_without_files_is_told(tmp_path: Path, source: str, complaint: str) -> None:
    """A wrong path, a glob that matches nothing, and an empty folder."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=complaint):
        files_of(str(tmp_path / source))


def test_find_takes_any_case_and_gzip_and_prefers_the_outermost(tmp_path: Path) -> None:
    """``Ratings.CSV.gz`` is ``ratings.csv``."""
    for name in ("deep/er/ratings.csv", "deep/Ratings.CSV.gz", "movies.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x")
    found = find(files_of(tmp_path), "ratings.csv")
    assert found is not None
    assert found.name == "deep/Ratings.CSV.gz"
    assert find(files_of(tmp_path), "tags.csv") is None


@pytest.mark.parametrize("source", ["{}", "{}/**/*.*"])
def test_what_was_made_of_a_folder_is_no_part_of_it(tmp_path: Path, source: str) -> None:
    """A store (a run, a bundle) within the source does not turn into rows when one imports again; a line says so."""
    (tmp_path / "logs" / "may").mkdir(parents=True)
    (tmp_path / "logs" / "may" / "a.csv").write_text(TEXT)
    for folder, record in (("store", '{"format": "hatchway-store"}'), ("run", ""), ("other", '{"format": "else"}')):
        (tmp_path / "logs" / folder / "events").mkdir(parents=True)
        (tmp_path / "logs" / folder / ("manifest.json" if record else "run.json")).write_text(record)
        (tmp_path / "logs" / folder / "events" / "b.csv").write_text(TEXT)
    names = [file.name for file in files_of(source.format(tmp_path / "logs"))]
    assert [Path(name).name for name in names if name.endswith("csv")] == ["a.csv", "b.csv"]
    assert not any("run.json" in name or "store" in name for name in names)
    inside = files_of(tmp_path / "logs" / "store")  # named itself, it is what is asked for
    assert [file.name for file in inside] == ["events/b.csv", "manifest.json"]


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    """A zip may have them; whichever was read, the other's rows would be missing."""
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("log.csv", TEXT)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("log.csv", "item,title\n3,Bed\n")
    with pytest.raises(DataError, match=r"log\.zip has two members called log\.csv; unpack"):
        files_of(tmp_path / "log.zip")
