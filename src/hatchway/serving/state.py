"""The folder of what outlives a restart: the journal of posted listings, and shown rows. One process at a time."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from hatchway.artefacts.alone import alone_in
from hatchway.errors import FailureError, UsageError
from hatchway.serving.journal import Journal
from hatchway.serving.posts import Change, Item, Record

JOURNAL = "listings.journal"


class State:
    """The folder, held by this process until it is closed.

    Args:
        folder: where it is; made if it is not there.

    Raises:
        UsageError: another process holds it, or a file is in its place.
        FailureError: it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal: Journal | None = None
        self._held = ExitStack()
        try:
            self._held.enter_context(alone_in(folder, "served from"))
        except (FileExistsError, NotADirectoryError):
            raise UsageError(
                f"{folder} cannot be made: there is a file where a folder is needed; name another with --state"
            ) from None
        except OSError as error:
            raise FailureError(
                f"{folder} cannot be made ({error.strerror}); name a folder that can be written with --state"
            ) from None

    def records(self) -> dict[Item, Record]:
        """Return what was posted before; nothing where nothing was.

        Raises:
            ArtefactError: the journal is damaged.
        """
        return self._open() if (self.folder / JOURNAL).exists() else {}

    def append(self, changes: Iterable[Change], time: int) -> None:
        """Write one post down, durably.

        Raises:
            FailureError: it could not be written, and is not in the journal.
        """
        if self._journal is None:
            self._open()
        assert self._journal is not None  # noqa: S101 - opened above
        self._journal.append(changes, time)

    def shorten(self, records: Mapping[Item, Record]) -> None:
        """Rewrite the journal where it has become much longer than what it comes to."""
        if self._journal is not None:
            self._journal.shorten(records)

    def close(self) -> None:
        """Close the journal, and let others have the folder."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._held.close()

    def _open(self) -> dict[Item, Record]:
        self._journal, records = Journal.open(self.folder / JOURNAL)
        return records
