"""Where nights may lie: in a folder of their own, beside the store, that can be written to."""

import os
from pathlib import Path

from hatchway.errors import UsageError


def nights_beside(store: Path) -> Path:
    """Return the folder of nights of a store for which none was named, ``STORE-nights``.

    Raises:
        UsageError: the store has no name that another could be made from.

    >>> str(nights_beside(Path("data/store")))
    'data/store-nights'
    """
    named = store if store.name not in ("", "..") else Path(os.path.realpath(store))
    if not named.name:
        raise UsageError(f"{store} has no name to call its nights by; name their folder: --out NIGHTS")
    return named.with_name(f"{named.name}-nights")


def check_place(nights: Path, store: Path) -> None:
    """Make the folder of nights where there is none, or say why it cannot be one; nothing else is changed.

    Raises:
        UsageError: it is a file, the store, in the store or around it, or may not be written to.
    """
    there, its_store = (Path(os.path.realpath(path)) for path in (nights, store))
    remedy = "name a folder of their own: --out NIGHTS"
    if there == its_store or its_store in there.parents:
        where = "is" if there == its_store else "lies in"
        raise UsageError(
            f"{nights} {where} the store {store}, and the next import would remove the nights with it; {remedy}"
        )
    if there in its_store.parents:
        raise UsageError(f"{nights} is where the store {store} lies; nights keep their folder to themselves; {remedy}")
    try:
        nights.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{nights} is a file, or lies in one, and nights need a folder; {remedy}") from None
    except OSError as error:
        raise UsageError(f"{nights} cannot be made ({error.strerror}); {remedy} where you may write") from None
    if not os.access(nights, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(f"{nights} may not be written to; change its rights, or {remedy}")
