"""The days as nights read them: each cleaned once, and again only where the store's rows of it have changed."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pydantic

from hatchway.artefacts.atomic import replacing_file, write_text
from hatchway.artefacts.manifest import sha256_of
from hatchway.data.days import day_name
from hatchway.data.store import Store
from hatchway.errors import ArtefactError, DataError
from hatchway.nightly.days import day_number
from hatchway.nightly.intake import DayFacts, clean_day
from hatchway.nightly.settings import IntakeSettings

DAYS = "days"
"""Where the cleaned days lie in the folder of nights."""

_RULES = 1
"""The version of the rules; days that were cleaned by other ones are cleaned again."""


class _Cleaned(pydantic.BaseModel):
    """What stands beside a cleaned day: what it was cleaned from, and what was found."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    key: str
    sha256: str
    facts: DayFacts


@dataclass(frozen=True)
class AcceptedDays:
    """A folder of cleaned days, ``2026-03-02.parquet`` and what is known of each beside it.

    Attributes:
        folder: where they lie.
        positive: the events that are positives.
        settings: the limits.
    """

    folder: Path
    positive: tuple[str, ...]
    settings: IntakeSettings

    def take(self, store: Store, day: int) -> DayFacts | None:
        """Clean a day of the store, unless it was before; None where the store has no event of that day.

        Raises:
            ArtefactError: the store's rows of the day cannot be read, or are not what was written.
        """
        name = day_name(day)
        part = next((part for part in store.manifest.parts if part.path == f"events/day={name}/part-0.parquet"), None)
        if part is None:
            return None
        about = json.dumps([_RULES, part.sha256, self.positive, self.settings.model_dump(mode="json")])
        key = hashlib.sha256(about.encode()).hexdigest()
        there = self._there(day)
        if there is not None and there.key == key and self._is_whole(day, there):
            return there.facts
        source = store.path / part.path
        try:
            found = sha256_of(source)
            frame = pl.read_parquet(source, glob=False, hive_partitioning=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ArtefactError(f"{source} cannot be read ({error}); import the log again") from None
        if found != part.sha256:
            raise ArtefactError(f"{source} is not the file that was written; import the log again")
        absent = [name for name in store.manifest.event_columns if name not in frame.columns]
        if absent:
            raise DataError(f"{source} has no column {absent[0]!r}, which the store says it has; import the log again")
        kept, facts, rejected = clean_day(frame, self.positive, self.settings)
        with replacing_file(self.folder / f"{name}.rejected.parquet") as partial:
            rejected.write_parquet(partial, compression="zstd")
        with replacing_file(self.path(day)) as partial:
            kept.write_parquet(partial, compression="zstd", statistics=True)
        cleaned = _Cleaned(key=key, sha256=sha256_of(self.path(day)), facts=facts)
        write_text(self._about(day), cleaned.model_dump_json(indent=1) + "\n")
        return facts

    def facts(self, day: int) -> DayFacts | None:
        """Return what is known of a day that was taken before; None where it was not."""
        there = self._there(day)
        return None if there is None else there.facts

    def path(self, day: int) -> Path:
        """Return where the accepted rows of a day lie."""
        return self.folder / f"{day_name(day)}.parquet"

    def _about(self, day: int) -> Path:
        return self.folder / f"{day_name(day)}.json"

    def _there(self, day: int) -> _Cleaned | None:
        try:
            return _Cleaned.model_validate_json(self._about(day).read_bytes())
        except (OSError, pydantic.ValidationError):
            return None

    def _is_whole(self, day: int, there: _Cleaned) -> bool:
        path = self.path(day)
        return path.is_file() and sha256_of(path) == there.sha256


def remove_days_before(folder: Path, day: int) -> None:
    """Remove the cleaned days that no night will read any more."""
    oldest = day_name(max(day, day_number("1000-01-01")))  # names of years before, or below 0, do not sort as days do
    for path in sorted(folder.glob("[0-9]*")):
        if path.name[: len(oldest)] < oldest:
            path.unlink(missing_ok=True)


def days_of(store: Store) -> list[int]:
    """Return the days that the store has events of, ascending; rows without a time are of no day."""
    names = [part.path.split("/")[1].removeprefix("day=") for part in store.manifest.parts if "day=" in part.path]
    return sorted(int(pl.Series([name]).str.to_date().dt.epoch("d")[0]) for name in names if name != "undated")


def median_of(numbers: Sequence[int]) -> float | None:
    """Return the median; None of nothing."""
    found = pl.Series(list(numbers), dtype=pl.Float64).median()
    return float(found) if isinstance(found, (int, float)) else None
