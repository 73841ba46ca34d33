"""The service: one shelf that every request takes whole, and the two things that put another in its place.

A post (what is gone, what is new) and a new bundle. Readers take a reference and keep it; nobody waits for anybody.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hatchway.errors import DataError
from hatchway.index.bundle import Bundle
from hatchway.serving.following import Following, newest_day
from hatchway.serving.listings import PageSettings
from hatchway.serving.meter import Meter
from hatchway.serving.post_columns import checked_changes
from hatchway.serving.posts import Item, Record, RefusedPostError, ahead_said, gone_ahead, merged, not_ahead
from hatchway.serving.ranking import SearchLimits
from hatchway.serving.recommender import Row
from hatchway.serving.reconciling import data_end
from hatchway.serving.restocking import cannot_be_placed, forget_from, restocked
from hatchway.serving.settings import ServingSettings
from hatchway.serving.shelf import Shelf
from hatchway.serving.shown import Shown, ShownLog
from hatchway.serving.state import State

_LOGGER = logging.getLogger("hatchway")
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Posted:
    """What a post came to.

    Attributes:
        new: listings that can be found from now on.
        changed: listings that were there and are now otherwise.
        gone: listings that are not for sale any more.
    """

    new: int
    changed: int
    gone: int


class Service:
    """Holds the shelf.

    Args:
        bundle: what is served first.
        pages: how the pages look.
        settings: the service's settings.
        state: the folder of what must outlive a restart: posted listings and shown rows; nothing does where None.
        nights: the folder of nights whose pointer is followed; none where None.
        clock: Unix seconds.

    Raises:
        ArtefactError: a part of the bundle does not fit the others, or the journal is damaged.
        UsageError: another process serves with this state.
    """

    def __init__(
        self,
        bundle: Bundle,
        pages: PageSettings | None = None,
        settings: ServingSettings | None = None,
        state: Path | None = None,
        nights: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.pages = pages or PageSettings()
        self.settings = settings or ServingSettings()
        self.meter = Meter()
        self.nights = nights
        self._clock = clock
        self._limits = SearchLimits(self.settings.exact_up_to, self.settings.deepest)
        self._changing = threading.Lock()
        self._state = State(state) if state is not None else None
        self._records = self._read_records()
        self._shown = ShownLog(state, self.settings, clock) if state is not None and self.settings.log_rows else None
        self.following = Following(nights, self.serve, self.settings.poll_seconds) if nights is not None else None
        self._started = False
        try:
            self._shelf = self._new_shelf(bundle)
        except BaseException:
            self.close()
            raise

    def now(self) -> Shelf:
        """Return the shelf as it is now; a request takes it once."""
        return self._shelf

    def start(self) -> None:
        """Begin to follow the pointer and to write what is shown."""
        if self._started:
            return
        self._started = True
        if self._shown is not None:
            self._shown.start()
        if self.following is not None:
            self.following.start()

    def close(self) -> None:
        """Write what waits to be written, and let go of the state."""
        if self.following is not None:
            self.following.close()
        if self._shown is not None:
            self._shown.close()
        with self._changing:
            if self._state is not None:
                self._state.close()
        self._started = False

    def serve(self, bundle: Bundle) -> None:
        """Put another bundle in the place of the one that is served; requests under way end with the old one.

        Raises:
            ArtefactError: it cannot be served; nothing has changed.
        """
        if bundle.digest == self._shelf.digest:
            return
        shelf = self._new_shelf(bundle)
        self.meter.count("bundle_swaps")
        _LOGGER.info("serving another bundle: %s (%s)", bundle.path, shelf.digest[:12])

    def post(
        self, listings: Sequence[object], at: int | None = None, *, ignore_unknown: bool = False
    ) -> tuple[Posted, Shelf]:
        """Take a post, all of it or nothing: when this returns, it is on the disk and every later request sees it.

        Args:
            listings: as :func:`hatchway.serving.post_columns.checked_changes` takes them.
            at: Unix seconds from which it holds; now where None, or a little ahead of the clock.
            ignore_unknown: leave out columns that nobody knows.

        Raises:
            RefusedPostError: something in it cannot be taken, or its time lies ahead.
            FailureError: it could not be written down.
        """
        with self._changing:
            before, clock = self._shelf, int(self._clock())
            if at is not None and at > clock + self.settings.ahead_seconds:
                raise RefusedPostError([(("time",), ahead_said(at, clock, self.settings.ahead_seconds))])
            # Never later than now: a post shall not hold against those that come after it.
            now = clock if at is None else min(at, clock)
            changes = checked_changes(listings, before.stock.columns, now, ignore_unknown=ignore_unknown)
            ahead = gone_ahead(changes, clock, self.settings.ahead_seconds)
            if ahead:
                raise RefusedPostError(ahead)
            touched = merged(self._records, changes, now)
            refused = cannot_be_placed(before.stock, changes, touched, self.settings.new_limit)
            if refused:
                raise RefusedPostError(refused)
            try:
                stock = restocked(before.stock, list(touched.values()))
            except DataError as error:
                raise RefusedPostError([(("listings",), str(error))]) from None
            if self._state is not None:
                self._state.append(changes, now)
            self._records.update(touched)
            self._shelf = before.holding(stock)
            if self._state is not None:
                self._state.shorten(self._records)
        new = len(stock.posted.items) - len(before.stock.posted.items)
        gone = sum(record.values.get("gone", (None, 0))[0] is not None for record in touched.values())
        posted = Posted(new=new, changed=max(0, len(touched) - new - gone), gone=gone)
        for name in ("new", "changed", "gone"):
            self.meter.count(f"posted_{name}", getattr(posted, name))
        return posted, self._shelf

    def show(
        self, shelf: Shelf, row: Row, place: str, *, asked: int | None, buyer: Item | None, session: str | None
    ) -> str:
        """Note a row that was shown, and return the id of the request.

        Args:
            shelf: what answered.
            row: the row.
            place: ``similar``, ``recommend`` or ``page``.
            asked: the row number of the item whose page it was; None for a row from recent items.
            buyer: who asked; None where nobody said.
            session: in which session; None where nobody said.
        """
        request = secrets.token_hex(8)
        self.meter.count("rows_shown", len(row.rows))
        if self._shown is not None:
            ids = shelf.stock.ids(row.rows)
            query_item = None if asked is None else shelf.stock.ids(np.array([asked]))[0]
            time_now = int(self._clock())
            self._shown.add(Shown(time_now, buyer, session, ids, query_item, shelf.digest, request, place))
        return request

    def metrics(self) -> str:
        """Write how the service does, for Prometheus."""
        shelf, stock = self._shelf, self._shelf.stock
        gauges = {
            "items": ("Items of the bundle.", float(len(stock.facts))),
            "listings_new": ("Posted listings that the bundle does not know.", float(len(stock.posted.items))),
            "listings_gone": ("Items of the index that are not for sale any more.", float(stock.gone_since)),
            "listings_unplaced": ("Posted listings that cannot be found.", float(len(stock.unplaced))),
            "listings_changed": ("Items of the bundle of which something was posted.", float(len(stock.changed))),
        }
        age = self.index_age()
        if age is not None:
            gauges["index_age_days"] = ("Days of data that the bundle is behind the newest night or post.", float(age))
        if self.following is not None:
            wrong = float(self.following.problem is not None)
            gauges["bundle_refused"] = ("Whether the bundle that the pointer names is refused.", wrong)
        if self._shown is not None:
            gauges["shown_rows_written"] = ("Shown items written down since the start.", float(self._shown.written))
            gauges["shown_rows_dropped"] = (
                "Shown items that could not wait to be written.",
                float(self._shown.dropped),
            )
        labels = {"digest": shelf.digest, "day": str(shelf.bundle.manifest.origin.get("day", ""))}
        return self.meter.text(gauges, labels)

    def index_age(self) -> int | None:
        """Return how many days of data the bundle is behind the newest night or post; None where it has no day."""
        end = data_end(self._shelf.bundle.manifest.origin)
        if end is None:
            return None
        newest = newest_day(self.nights) if self.nights is not None else None
        ends = [end, data_end({"day": newest}) if newest is not None else None]
        return max(0, max(other for other in ends if other is not None) - end) // _SECONDS_A_DAY

    def _read_records(self) -> dict[Item, Record]:
        """Read what was posted before; let go of the state where that fails."""
        if self._state is None:
            return {}
        try:
            return not_ahead(self._state.records(), int(self._clock()))
        except BaseException:
            self._state.close()
            raise

    def _new_shelf(self, bundle: Bundle) -> Shelf:
        """Make the shelf of a bundle and put it in place; what takes long is done before posts have to wait."""
        shelf = Shelf.of(bundle, self.pages, self._limits)
        with self._changing:
            forget_from(self._records, shelf.stock, self.settings.forget_days)
            shelf = shelf.holding(restocked(shelf.stock, list(self._records.values())))
            if len(shelf.stock):  # a bundle that cannot answer is found out before anybody asks it
                shelf.recommender.similar(0, 1)
            self._shelf = shelf
        return shelf
