"""The files of a source: what a path, a folder, a zip or a glob holds, and each as plain UTF-8 on disk.

A file that is plain UTF-8 already is read where it lies. Gzip, zip members, byte order marks, UTF-16 and stray Latin-1
bytes are undone into a copy, block by block, before anything is parsed.
"""

import codecs
import glob
import gzip
import itertools
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from hatchway.artefacts.manifest import what_lies_at
from hatchway.errors import DataError
from hatchway.progress import note

_BLOCK = 1 << 22
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


@dataclass(frozen=True)
class SourceFile:
    """One file of a source.

    Attributes:
        name: how messages and ``rejected.parquet`` call it: its path within the source.
        path: where it lies (for a member of a zip: the zip).
        member: its name in the zip, or None.
    """

    name: str
    path: Path
    member: str | None = None

    @property
    def plain_name(self) -> str:
        """The last part of the name, in lower case and without ``.gz``: ``ratings.csv``."""
        return PurePosixPath(self.name).name.lower().removesuffix(".gz")


def files_of(source: Path | str) -> list[SourceFile]:
    """List the files of ``source`` (a file, a folder, a zip, or a glob), sorted by name.

    Hidden ones are left out, and so are those of stores, runs and bundles that lie within the folder: they are what was
    made of the source, say by importing before.

    Raises:
        DataError: nothing is there, or the zip is damaged or has two members of one name.
    """
    path = Path(source)
    if path.is_dir():
        found = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file.relative_to(path))]
        files = [SourceFile(file.relative_to(path).as_posix(), file) for file in _without_ours(found, path)]
    elif path.is_file():
        files = _members(path) if _starts_with(path, _ZIP) else [SourceFile(path.name, path)]
    elif glob.has_magic(str(source)):
        found = [Path(match) for match in sorted(glob.glob(str(source), recursive=True)) if Path(match).is_file()]  # noqa: PTH207 - the pattern may be absolute
        fixed = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
        found = _without_ours(found, Path(*fixed))
        files = [SourceFile(name, file) for name, file in zip(_short_names(found), found, strict=True)]
        if not files:
            raise DataError(f"no file matches {source}")
    else:
        raise DataError(f"{source} does not exist; give a file, a folder, a zip or a quoted glob")
    if not files:
        raise DataError(f"{source} holds no files")
    return files


def find(files: Sequence[SourceFile], *names: str) -> SourceFile | None:
    """Return the first file called one of ``names`` (whatever its case, folder and ``.gz``), or None.

    Where several folders hold one, the least nested wins.
    """
    fitting = [file for name in names for file in files if file.plain_name == name.lower()]
    return min(fitting, key=lambda file: file.name.count("/"), default=None)


def listing(files: Sequence[SourceFile]) -> str:
    """Name the first few files, for messages."""
    names = [file.name for file in files]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


@dataclass(frozen=True)
class TextFile:
    """A file as UTF-8 without a byte order mark.

    Attributes:
        name: as :attr:`SourceFile.name`.
        path: where the text lies: the file itself, or a copy.
        quotes: how many double quotes it has.
    """

    name: str
    path: Path
    quotes: int


def as_text(file: SourceFile, work: Path) -> TextFile | None:
    """Make ``file`` readable as UTF-8 text; copies go into ``work``. None for an empty file.

    Bytes that are not UTF-8 are read as Latin-1, and a note says how many there were.

    Raises:
        DataError: the file is no text, or is cut short or damaged.
    """
    with _reading(file) as (stream, undone):
        head = stream.read(_BLOCK)
        encoding = _encoding(head, file)
        if not undone and encoding == "utf-8" and _clean(head, stream):
            return _as_it_lies(file)
    with _reading(file) as (stream, _):
        return _copy(file, stream, encoding, work)


def as_file(file: SourceFile, work: Path) -> Path:
    """Return a path with the bytes of ``file``: itself, or a copy of the zip member in ``work``."""
    if file.member is None:
        return file.path
    copy = work / f"member-{len(list(work.iterdir()))}"
    with _reading(file) as (stream, _), copy.open("wb") as out:
        while block := stream.read(_BLOCK):
            out.write(block)
    return copy


def _without_ours(files: Sequence[Path], root: Path) -> list[Path]:
    """Leave out the files of stores, runs and bundles that lie below ``root``; a line says how many."""
    folders = {folder for file in files for folder in file.parents if folder != root and folder.is_relative_to(root)}
    ours = {folder for folder in folders if what_lies_at(folder) in ("a store", "a run", "a bundle")}
    kept = [file for file in files if ours.isdisjoint(file.parents)]
    if len(kept) < len(files):
        note(
            f"{len(files) - len(kept):,} files of {', '.join(sorted(map(str, ours)))} are left out: Hatchway made them"
        )
    return kept


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _members(path: Path) -> list[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is damaged or cut short ({error}); fetch it again") from None
    twice = [name for name, after in itertools.pairwise(names) if name == after]
    if twice:
        raise DataError(f"{path} has two members called {twice[0]}; unpack the one that is meant, and give that")
    return [SourceFile(name, path, name) for name in names if not _hidden(Path(name))]


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Name files by their last part, or by as much of the path as tells them apart."""
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


@contextmanager
def _reading(file: SourceFile) -> Iterator[tuple[IO[bytes], bool]]:
    """Open a file for reading through zip and gzip; the flag says whether any of them was undone."""
    try:
        with file.path.open("rb") as on_disk:
            if file.member is None:
                yield _gunzipped(on_disk, undone=False)
                return
            with zipfile.ZipFile(on_disk) as archive, archive.open(file.member) as member:
                yield _gunzipped(member, undone=True)
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{file.name} is cut short or damaged ({error}); fetch or write it again") from None
    except (RuntimeError, NotImplementedError) as error:  # zipfile's way to say: encrypted, or an unknown compression
        raise DataError(f"{file.name} cannot be unpacked ({error}); unpack it yourself and give the folder") from None


def _gunzipped(stream: IO[bytes], *, undone: bool) -> tuple[IO[bytes], bool]:
    magic = stream.read(2)
    stream.seek(0)
    if magic == _GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)), True
    return stream, undone


def _encoding(head: bytes, file: SourceFile) -> str:
    """Tell the encoding by the byte order mark; refuse what is no text."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head:
        raise DataError(f"{file.name} is no text file (it has zero bytes); give CSV, TSV or Parquet, plain or gzip")
    return "utf-8"


def _clean(head: bytes, stream: IO[bytes]) -> bool:
    """Say whether the rest of a stream is UTF-8 with line feeds."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    feeds = returns = 0
    block = head
    try:
        while block:
            decoder.decode(block)
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            block = stream.read(_BLOCK)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return bool(feeds) or not returns


def _as_it_lies(file: SourceFile) -> TextFile | None:
    quotes = 0
    blank = True
    with file.path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            quotes += block.count(b'"')
            blank = blank and not block.strip()
    return None if blank else TextFile(file.name, file.path, quotes)


class _Latin1:
    """A decoder's way out of bytes that are not UTF-8: read each as Latin-1, and count."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        self.bytes += error.end - error.start
        return error.object[error.start : error.end].decode("latin-1"), error.end


def _copy(file: SourceFile, stream: IO[bytes], encoding: str, work: Path) -> TextFile | None:
    """Write a stream as plain UTF-8."""
    fallback = _Latin1()
    codecs.register_error("hatchway-latin-1", fallback)
    decoder = codecs.getincrementaldecoder(encoding)("strict" if encoding == "utf-16" else "hatchway-latin-1")
    path = work / f"text-{len(list(work.iterdir()))}"
    quotes = 0
    blank = True
    after_return = False
    try:
        with path.open("w", encoding="utf-8", newline="") as out:
            while True:
                block = stream.read(_BLOCK)
                text = decoder.decode(block, final=not block)
                if after_return and text.startswith("\n"):
                    text = text[1:]
                after_return = text.endswith("\r") if text else after_return
                text = text.replace("\r\n", "\n").replace("\r", "\n")
                quotes += text.count('"')
                blank = blank and not text.strip()
                out.write(text)
                if not block:
                    break
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name} begins as {encoding} but is not ({error.reason}); save it as UTF-8") from None
    if fallback.bytes:
        note(f"{file.name}: {fallback.bytes:,} bytes are not UTF-8 and were read as Latin-1")
    return None if blank else TextFile(file.name, path, quotes)
