"""The journal of posted listings: one line a post, on the disk before the post is answered, read again at the start.

::

    hatchway-listings 1
    5d0c8f21 {"time": 1772409600, "listings": [{"item": 7, "gone": 1772409600}]}

A long journal is rewritten as lines of ``"records"``: each listing's values with their times. Each line begins with the
CRC-32 of what follows. A crash can leave the last line cut short; it belongs to a post that was never answered, and is
removed. Damage anywhere else is not passed over in silence.
"""

import json
import logging
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from hatchway.artefacts.atomic import replacing_file
from hatchway.errors import ArtefactError, FailureError
from hatchway.serving.posts import Change, Item, Record

_HEAD = b"hatchway-listings 1\n"
_LOGGER = logging.getLogger("hatchway")
_REWRITE_FROM = 1_000
_RECORDS_A_LINE = 1_000


class Journal:
    """Appends posts to a file, durably; made by :meth:`open`.

    Not for several threads at once, nor for several processes: whoever holds it keeps others out.

    Args:
        path: the file.
        stream: the file, open for appending.
        lines: how many posts it holds.
    """

    def __init__(self, path: Path, stream: IO[bytes], lines: int) -> None:
        self.path = path
        self._stream = stream
        self._lines = lines
        self._broken = False

    @classmethod
    def open(cls, path: Path) -> tuple[Self, dict[Item, Record]]:
        """Open the journal, begin one where there is none, and return what its posts come to.

        Raises:
            ArtefactError: the file is no journal, or is damaged before its last line.
            FailureError: it cannot be written.
        """
        if not path.exists():
            with replacing_file(path) as partial:
                partial.write_bytes(_HEAD)
        whole = path.read_bytes()
        if not whole.startswith(_HEAD):
            raise ArtefactError(f"{path} is no journal of listings; move it away to begin a new one")
        records, lines, end = _read(path, whole)
        try:
            stream = path.open("r+b")
        except OSError as error:
            raise FailureError(f"{path} cannot be written: {error.strerror}; choose another --state") from None
        if end < len(whole):
            _LOGGER.warning("%s: the last line was cut short by a crash; that post was never answered", path)
            stream.truncate(end)
            os.fsync(stream.fileno())
        stream.seek(end)
        return cls(path, stream, lines), records

    def append(self, changes: Iterable[Change], time: int) -> None:
        """Write one post; when this returns, it is on the disk.

        Args:
            changes: what it says.
            time: Unix seconds from which that holds.

        Raises:
            FailureError: it could not be written, and is not in the journal.
        """
        if self._broken:
            raise FailureError(f"{self.path} could not be written before and is of unknown length; start again")
        begin = self._stream.tell()
        listings = [{"item": change.item, **change.values} for change in changes]
        try:
            self._stream.write(_line({"time": time, "listings": listings}))
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            self._undo(begin)
            raise FailureError(
                f"{self.path} cannot be written: {error.strerror}; nothing of the post was taken; make room"
            ) from None
        self._lines += 1

    def shorten(self, records: Mapping[Item, Record]) -> None:
        """Rewrite the journal as what it comes to, where it has become much longer than that.

        Args:
            records: all that was posted, merged.
        """
        needed = len(records) // _RECORDS_A_LINE + 1
        if self._lines < max(_REWRITE_FROM, 4 * needed):
            return
        lines = list(_lines_of(records))
        with replacing_file(self.path) as partial:
            partial.write_bytes(_HEAD + b"".join(lines))
        self._stream.close()
        self._stream = self.path.open("r+b")
        self._stream.seek(0, os.SEEK_END)
        self._lines = len(lines)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _undo(self, begin: int) -> None:
        """Take back what a failed write left."""
        with suppress(OSError):  # what is still in the buffer cannot be written either
            self._stream.close()
        try:
            self._stream = self.path.open("r+b")
            self._stream.truncate(begin)
            self._stream.seek(begin)
        except OSError:
            self._broken = True


def _line(said: Mapping[str, Any]) -> bytes:
    """Write what was said as a line."""
    text = json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _read(path: Path, whole: bytes) -> tuple[dict[Item, Record], int, int]:
    """Return what the posts come to, how many lines say so, and where the last whole one ends."""
    records: dict[Item, Record] = {}
    begin, lines = len(_HEAD), 0
    while begin < len(whole):
        end = whole.find(b"\n", begin)
        said = _said(whole[begin:end]) if end >= 0 else None
        if said is None:
            if end < 0 or end == len(whole) - 1:
                break
            raise ArtefactError(
                f"{path} is damaged in line {lines + 2}; take the line out if you know what it said, and post it "
                "again, or move the file away and post what is gone and what is new"
            )
        for listing in said.get("listings", ()):
            item = listing.pop("item")
            records[item] = records.get(item, Record(item)).after(Change(item, listing), said["time"])
        for item, values in said.get("records", ()):
            records[item] = Record(item, {name: (value, time) for name, (value, time) in values.items()})
        begin, lines = end + 1, lines + 1
    return records, lines, begin


def _said(line: bytes) -> dict[str, Any] | None:
    """Read a line; None where it is not what was written."""
    mark, _, text = line.partition(b" ")
    if mark != b"%08x" % zlib.crc32(text):
        return None
    said: dict[str, Any] = json.loads(text)
    return said


def _lines_of(records: Mapping[Item, Record]) -> Iterator[bytes]:
    """Write what the posts come to as a few lines."""
    whole = [[record.item, record.values] for record in records.values()]
    for begin in range(0, len(whole), _RECORDS_A_LINE):
        yield _line({"records": whole[begin : begin + _RECORDS_A_LINE]})
