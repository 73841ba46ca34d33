"""Writes that are there whole or not at all: beside, fsync, rename.

What the system refuses to write (a full disk, a file too large for it) is a :class:`~hatchway.errors.FailureError` that
names the target, whichever library met the refusal. A killed writer leaves only a ``.NAME.partial`` beside the target,
which the next writer of the same name removes. Where the target is a symbolic link, what it points to is replaced, on
its own disk; the link stays.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from hatchway.errors import FailureError, HatchwayError

_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What only a write can be refused with."""


def _sync(path: Path) -> None:
    """Flush one file or folder entry to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _behind_links(target: Path) -> Path:
    """Follow the target itself, if it is a link (also one that points to nothing yet), or a folder without its name."""
    return Path(os.path.realpath(target)) if target.is_symlink() or target.name in ("", "..") else target


def _partial(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refusal(error: BaseException | None) -> str | None:
    """Return why the system refused a write, where that is what an error comes from.

    Polars, safetensors and FAISS have no error of their own for it, but quote the system in their text; NumPy only says
    how much of the data was taken.
    """
    while error is not None:
        if not isinstance(error, HatchwayError):
            text = str(error)
            for code in _REFUSALS:
                said = os.strerror(code)
                if getattr(error, "errno", None) == code or f"(os error {code})" in text or f"({said})" in text:
                    return said
            if isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", text):
                return os.strerror(errno.ENOSPC)
        error = error.__cause__
    return None


@contextmanager
def _whole(target: Path, undo: Callable[[], None]) -> Iterator[None]:
    """Undo what a block wrote where it fails; name ``target`` where it failed because the system refused a write."""
    try:
        yield
    except BaseException as error:
        undo()
        refusal = _refusal(error)
        if refusal is None:
            raise
        raise FailureError(f"{target} cannot be written: {refusal}; make room, or choose another place") from error


@contextmanager
def replacing_file(target: Path) -> Iterator[Path]:
    """Yield a path to write to; when the block ends well it becomes ``target``, otherwise nothing has changed.

    Raises:
        FailureError: the system refused a write.
    """
    target = _behind_links(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(target)
    _remove(partial)
    with _whole(target, lambda: _remove(partial)):
        yield partial
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; when the block ends well it becomes ``target``, otherwise nothing has changed.

    An existing ``target`` is moved aside for the moment between two renames and removed afterwards. A kill in that
    moment leaves it whole under ``.NAME.old``; :func:`settle`, which every reader of such folders calls, puts it back.

    Raises:
        FailureError: the system refused a write.
    """
    target = _behind_links(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    settle(target)
    partial = _partial(target)
    _remove(partial)

    def undo() -> None:
        _remove(partial)
        settle(target)

    with _whole(target, undo):
        partial.mkdir()
        yield partial
        with ThreadPoolExecutor(16) as pool:  # a store of a thousand days: 0.3 s, where one after another takes 5
            list(pool.map(_sync, sorted(partial.rglob("*"))))
        _sync(partial)
        old = target.with_name(f".{target.name}.old")
        if target.exists():
            target.replace(old)
        partial.replace(target)
        _sync(target.parent)
        _remove(old)


def settle(target: Path) -> None:
    """Finish what a killed :func:`replacing_folder` left: put the old folder back, or remove it if the new is there."""
    target = _behind_links(target)
    old = target.with_name(f".{target.name}.old")
    if not old.exists():
        return
    if target.exists():
        _remove(old)
    else:
        old.replace(target)


def write_text(target: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``target``, whole or not at all."""
    with replacing_file(target) as partial:
        partial.write_text(text, encoding="utf-8")
