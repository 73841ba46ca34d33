"""What is kept of old nights: models and bundles of the last ones, and the record of every one."""

import shutil
from pathlib import Path

from hatchway.nightly.pointer import current, night_folders, read_record
from hatchway.nightly.settings import NightlySettings

_HEAVY = ("bundle", "state", "work")


def clean(nights: Path, settings: NightlySettings) -> list[str]:
    """Remove the models of nights that are no longer kept; the current night and the one before it always are.

    Records and monitors stay: they are small, and the page of the nights shows them.

    Returns:
        the days of which something was removed.
    """
    served = current(nights)
    published, failed = [], []
    for night in night_folders(nights):
        record = read_record(night)
        if record is not None and record.outcome == "published" and (served is None or night.name <= served.name):
            published.append(night)
        elif served is None or night.name != served.name:
            failed.append(night)
    kept = {night.name for night in published[-settings.keep_nights :]}
    kept |= {night.name for night in failed[-settings.keep_failed :] if settings.keep_failed}
    if served is not None:
        kept |= {served.name}
    removed = []
    for night in night_folders(nights):
        for left in night.glob(".*.removed"):
            shutil.rmtree(left)
        heavy = [night / name for name in _HEAVY if (night / name).exists()]
        if night.name not in kept and heavy:
            removed.append(night.name)
            for path in heavy:
                aside = path.rename(night / f".{path.name}.removed")  # never half a bundle under its own name
                shutil.rmtree(aside)
    return removed
