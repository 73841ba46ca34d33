"""Following the pointer of a nights folder: a new night is opened beside the old one, and served once it is whole."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from hatchway.artefacts.manifest import MANIFEST
from hatchway.errors import ArtefactError, DataError, HatchwayError
from hatchway.index.bundle import Bundle
from hatchway.nightly.pointer import CURRENT, current, night_folders

_LOGGER = logging.getLogger("hatchway")
_TRY_AGAIN_SECONDS = 60.0

Mark = tuple[Path, int, int]


class Following:
    """Looks at the pointer of a nights folder, and hands on the bundle that it comes to point at.

    A bundle that cannot be served is refused with one line in the log, and tried again after a minute; what is served
    stays.

    Args:
        nights: the folder of nights.
        serve: takes a bundle, all of which is still to be read, and serves it from then on; raises where it cannot.
        poll_seconds: how often to look.
    """

    def __init__(self, nights: Path, serve: Callable[[Bundle], None], poll_seconds: float) -> None:
        self.nights = nights
        self._serve = serve
        self._poll_seconds = poll_seconds
        self._seen: Mark | None = _mark(bundle_of(nights))
        self._failed_at = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem: str | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, name="following", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more; a bundle that is being opened is finished first."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=60)
            self._thread = None

    def look(self) -> bool:
        """Look once; say whether another bundle is served now."""
        try:
            target = bundle_of(self.nights)
            mark = _mark(target)
            again = self.problem is not None and time.monotonic() - self._failed_at > _TRY_AGAIN_SECONDS
            if mark == self._seen and not again:
                return False
            self._seen = mark
            self._serve(Bundle.open(target))
        except (HatchwayError, OSError) as error:
            return self._refused(str(error))
        except Exception as error:  # whatever is wrong with what is new, what is old goes on
            _LOGGER.debug("a bundle that could not be served", exc_info=error)
            return self._refused(f"{type(error).__name__}: {error}")
        self.problem = None
        return True

    def _refused(self, said: str) -> bool:
        """Say once why a bundle is not served."""
        if said != self.problem:
            _LOGGER.error("the bundle that %s points at is refused, what is served stays: %s", self.nights, said)
        self.problem, self._failed_at = said, time.monotonic()
        return False

    def _run(self) -> None:
        while not self._ended.wait(self._poll_seconds):
            self.look()


def follows_nights(path: Path) -> bool:
    """Say whether there is a folder of nights at ``path``."""
    return path.is_dir() and ((path / CURRENT).is_symlink() or bool(night_folders(path)))


def bundle_of(nights: Path) -> Path:
    """Return the bundle of the night that is served, by a path that stays the same when the pointer moves.

    Raises:
        DataError: no night was published.
        ArtefactError: the pointer leads nowhere, or the night has lost its bundle.
    """
    night = current(nights)
    if night is None:
        raise DataError(f"{nights} has no published night yet; make one with: hatchway nightly STORE --day DAY")
    bundle = night.resolve() / "bundle"
    if not bundle.is_dir():
        raise ArtefactError(
            f"the night of {night.name}, which {nights / CURRENT} leads to, has no bundle any more; serve an "
            f"earlier one (hatchway rollback {nights}) or run the night of the next day"
        )
    return bundle


def newest_day(nights: Path) -> str | None:
    """Return the day of the newest night, published or not, as in ``2026-03-02``."""
    folders = night_folders(nights)
    return folders[-1].name if folders else None


def _mark(bundle: Path) -> Mark:
    """Return what changes when another bundle lies there."""
    try:
        stat = (bundle / MANIFEST).stat()
    except OSError:
        return bundle, 0, 0
    return bundle, stat.st_mtime_ns, stat.st_ino
