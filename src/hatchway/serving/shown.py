"""What was shown, as tomorrow's impressions: rows of the store's own event format, in one folder a day.

::

    STATE/served/day=2026-03-02/part-00000007.parquet             a few seconds of rows
    STATE/served/day=2026-03-02/part-00000000-00000006.parquet    earlier ones, put together
    STATE/anonymous/day=2026-03-02/...                            rows that were asked for without a buyer

Each file is written whole and flushed to the disk before it has its name. A day that is over becomes one file.
``hatchway import table 'STATE/served/day=2026-03-02/*.parquet'`` reads a day.
"""

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.days import SECONDS_A_DAY, day_name
from hatchway.data.positives import IMPRESSION
from hatchway.errors import HatchwayError
from hatchway.serving.posts import Item
from hatchway.serving.settings import ServingSettings

_LOGGER = logging.getLogger("hatchway")
_PART = re.compile(r"part-(\d{8})(?:-(\d{8}))?\.parquet")
_MOST_PARTS = 60


@dataclass(frozen=True)
class Shown:
    """One row that somebody was shown.

    Attributes:
        time: Unix seconds.
        buyer: who asked; None where nobody said.
        session: in which session; None where nobody said.
        items: what was shown, from position 1 on.
        query_item: the listing whose page it was; None for a row from recent items.
        bundle: the digest of the bundle that answered.
        request: the id that the answer carried.
        place: ``similar``, ``recommend`` or ``page``.
    """

    time: int
    buyer: Item | None
    session: str | None
    items: Sequence[Item]
    query_item: Item | None
    bundle: str
    request: str
    place: str


class ShownLog:
    """Collects shown rows and writes them in batches, from a thread of its own; :meth:`add` never waits.

    Args:
        folder: where ``served`` and ``anonymous`` are.
        settings: how often, and how many may wait.
        clock: Unix seconds; a day that is over is put into one file.
    """

    def __init__(self, folder: Path, settings: ServingSettings, clock: Callable[[], float]) -> None:
        self.folder = folder
        self._settings = settings
        self._clock = clock
        self._waiting: deque[Shown] = deque()
        self._waiting_rows = 0
        self._counting = threading.Lock()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False
        self._next: dict[Path, int] = {}
        self.written = self.dropped = 0

    def start(self) -> None:
        """Tidy up what a crash left, and begin to write."""
        self._tidy()
        self._thread = threading.Thread(target=self._run, name="shown rows", daemon=True)
        self._thread.start()

    def add(self, shown: Shown) -> None:
        """Take a row; drop and count it where too many wait to be written."""
        if not shown.items:
            return
        with self._counting:
            if self._waiting_rows + len(shown.items) > self._settings.waiting_limit:
                self.dropped += len(shown.items)
                return
            self._waiting_rows += len(shown.items)
            self._waiting.append(shown)
        if self._waiting_rows >= self._settings.flush_rows:
            self._wake.set()

    def flush(self) -> None:
        """Write what waits; what cannot be written goes on waiting, and one line says so."""
        with self._writing:
            with self._counting:
                taken, self._waiting = list(self._waiting), deque()
            for folder, rows in _by_folder(self.folder, taken):
                try:
                    self._write(folder, rows)
                except (HatchwayError, OSError, pl.exceptions.PolarsError) as error:
                    with self._counting:
                        self._waiting.extendleft(reversed(rows))
                    if not self._complained:
                        _LOGGER.error("shown rows cannot be written and wait: %s", error)  # noqa: TRY400 - one line
                    self._complained = True
                    continue
                count = sum(len(shown.items) for shown in rows)
                with self._counting:
                    self._waiting_rows -= count
                    self.written += count
                self._complained = False

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
            self._thread = None
        self.flush()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(self._settings.flush_seconds)
            self._wake.clear()
            try:
                self.flush()
                self._put_together()
            except Exception:  # the thread goes on, or nothing would ever be written again
                _LOGGER.exception("shown rows could not be put together")

    def _write(self, folder: Path, rows: Sequence[Shown]) -> None:
        """Write rows as the next part of a day."""
        number = self._next.get(folder)
        if number is None:
            number = 1 + max((last for _, _, last in _parts(folder)), default=-1)
        with replacing_file(folder / f"part-{number:08d}.parquet") as partial:
            as_events(rows, integer_buyers=self._settings.buyer_ids == "integer").write_parquet(partial)
        self._next[folder] = number + 1

    def _put_together(self) -> None:
        """Make one file of a day that is over, and of many small files of a day that is not."""
        today = day_name(int(self._clock()) // SECONDS_A_DAY)
        for folder in list(self._next):
            parts = _parts(folder)
            over = folder.name != f"day={today}"
            chosen = parts if over else [part for part in parts if part[1] == part[2]]
            if len(chosen) > (1 if over else _MOST_PARTS):
                put_together(folder, chosen)
            if over:
                del self._next[folder]

    def _tidy(self) -> None:
        """Finish what a crash interrupted, and make one file of each day that is over."""
        for folder in sorted(self.folder.glob("*/day=*")):
            parts = _parts(folder)
            wide = [(first, last) for _, first, last in parts if first != last]
            for path, first, last in parts:
                if any(begin <= first and last <= end and (begin, end) != (first, last) for begin, end in wide):
                    path.unlink()  # it is within one that was put together
            self._next[folder] = 1 + max((last for _, _, last in parts), default=-1)
        self._put_together()


def put_together(folder: Path, parts: Sequence[tuple[Path, int, int]]) -> None:
    """Make one file of several parts. A crash in between leaves parts within it, which the next start removes."""
    first, last = min(part[1] for part in parts), max(part[2] for part in parts)
    with replacing_file(folder / f"part-{first:08d}-{last:08d}.parquet") as partial:
        pl.scan_parquet([path for path, _, _ in parts], glob=False, hive_partitioning=False).sink_parquet(partial)
    for path, begin, end in parts:
        if (begin, end) != (first, last):
            path.unlink()


def as_events(rows: Sequence[Shown], *, integer_buyers: bool) -> pl.DataFrame:
    """Return shown rows as events of the store, one for each item: columns of the store, then those of the service."""
    counts = [len(shown.items) for shown in rows]

    def each(values: Sequence[object]) -> list[object]:
        return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]

    items = [item for shown in rows for item in shown.items]
    item_type = pl.Int64() if isinstance(items[0], int) else pl.String()
    buyer_type = pl.Int64() if integer_buyers else pl.String()
    columns = [
        pl.Series("buyer", each([shown.buyer for shown in rows]), dtype=buyer_type),
        pl.Series("item", items, dtype=item_type),
        pl.Series("event", [IMPRESSION] * len(items), dtype=pl.String()),
        pl.Series("time", each([shown.time for shown in rows]), dtype=pl.Int64()),
        pl.Series("session", each([shown.session for shown in rows]), dtype=pl.String()),
        pl.Series("position", [place for count in counts for place in range(1, count + 1)], dtype=pl.Int64()),
        pl.Series("query_item", each([shown.query_item for shown in rows]), dtype=item_type),
        pl.Series("bundle", each([shown.bundle for shown in rows]), dtype=pl.String()),
        pl.Series("request", each([shown.request for shown in rows]), dtype=pl.String()),
        pl.Series("place", each([shown.place for shown in rows]), dtype=pl.String()),
    ]
    frame = pl.DataFrame(columns)
    return frame if any(shown.buyer is not None for shown in rows) else frame.drop("buyer")


def _by_folder(folder: Path, rows: Sequence[Shown]) -> Iterator[tuple[Path, list[Shown]]]:
    """Sort shown rows into the folders of their days, those without a buyer apart."""
    found: dict[Path, list[Shown]] = {}
    for shown in rows:
        kind = "anonymous" if shown.buyer is None else "served"
        found.setdefault(folder / kind / f"day={day_name(shown.time // SECONDS_A_DAY)}", []).append(shown)
    yield from found.items()


def _parts(folder: Path) -> list[tuple[Path, int, int]]:
    """Return the parts of a day in their order, each with the numbers of its first and last."""
    found = []
    for path in folder.glob("part-*.parquet"):
        matched = _PART.fullmatch(path.name)
        if matched:
            first = int(matched[1])
            found.append((path, first, int(matched[2] or first)))
    return sorted(found, key=lambda part: part[1:])
