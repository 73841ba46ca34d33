"""What is kept of old nights: models and bundles of the last ones, and the record of every one."""

import shutil
from pathlib import Path

from hatchway.errors import ArtefactError, FailureError
from hatchway.nightly.pointer import current, night_folders, read_record
from hatchway.nightly.settings import NightlySettings

_HEAVY = ("bundle", "state", "work")


def clean(nights: Path, settings: NightlySettings) -> list[str]:
    """Remove the models of nights that are no longer kept; the current night and the one before it always are.

    Records and monitors stay: they are small, and the page of the nights shows them. A night whose record is damaged
    keeps everything: nobody knows what it was.

    Returns:
        the days of which something was removed.

    Raises:
        FailureError: a record is damaged, or something could not be removed; all else is done before it is said.
    """
    served = current(nights)
    published, failed, kept, wrong = [], [], set[str](), []
    for night in night_folders(nights):
        try:
            record = read_record(night)
        except ArtefactError as error:
            kept.add(night.name)
            wrong.append(str(error))
            continue
        if record is not None and record.outcome == "published" and (served is None or night.name <= served.name):
            published.append(night)
        elif served is None or night.name != served.name:
            failed.append(night)
    kept |= {night.name for night in published[-settings.keep_nights :]}
    kept |= {night.name for night in failed[-settings.keep_failed :] if settings.keep_failed}
    if served is not None:
        kept |= {served.name}
    removed = []
    for night in night_folders(nights):
        try:
            if _lighten(night, keep=night.name in kept):
                removed.append(night.name)
        except OSError as error:
            wrong.append(f"{error.filename or night} cannot be removed ({error.strerror or error})")
    if wrong:
        raise FailureError("; ".join(wrong))
    return removed


def _lighten(night: Path, *, keep: bool) -> bool:
    """Remove what is heavy of a night that is not kept, and what an earlier attempt left; say whether it was heavy."""
    for left in night.glob(".*.removed"):
        shutil.rmtree(left)
    heavy = [] if keep else [night / name for name in _HEAVY if (night / name).exists()]
    for path in heavy:
        aside = path.rename(night / f".{path.name}.removed")  # never half a bundle under its own name
        shutil.rmtree(aside)
    return bool(heavy)
