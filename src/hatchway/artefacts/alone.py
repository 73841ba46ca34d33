"""One writer at a time: two runs that fill the same folder would leave a mixture of both that nothing could tell."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchway.errors import UsageError


@contextmanager
def alone_in(folder: Path, doing: str) -> Iterator[None]:
    """Hold ``folder`` for this process while the block runs; a kill lets go of it, and no file is left.

    Where the file system knows no locks, nothing is held.

    Args:
        folder: a folder, made if it is not there.
        doing: what another process would be doing there, for the message: ``"trained"``.

    Raises:
        UsageError: another process, or another part of this one, holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{folder} is being {doing} by another process; wait until it has ended, or choose another folder"
            ) from None
        except OSError:  # some network file systems
            pass
        yield
    finally:
        os.close(handle)
