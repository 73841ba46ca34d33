"""Which night is served: a link that is replaced in one piece, and the record that every night leaves.

::

    NIGHTS/
      current -> 2026-03-02      the night that is served
      metrics.prom               of the last night that ended
      days/                      the accepted events of each day
      2026-03-02/
        night.json               how it ended, and everything it measured
        monitors.json            the watched numbers with their limits
        metrics.prom             the same for Prometheus
        bundle/                  what is served
        state/                   what the next night goes on from
        work/                    while the night runs, and after one that was refused or failed
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pydantic

from hatchway.artefacts.atomic import write_text
from hatchway.errors import ArtefactError, UsageError
from hatchway.nightly.alarms import Alarm

CURRENT = "current"
RECORD = "night.json"

Outcome = Literal["published", "refused", "failed", "withdrawn"]


class Verdict(pydantic.BaseModel):
    """One thing the gate looked at."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: str
    passed: bool
    said: str


class NightRecord(pydantic.BaseModel):
    """What ``night.json`` says; nothing in it depends on the clock.

    Attributes:
        day: the day, as in ``2026-03-02``.
        outcome: how the night ended; a night that was rolled back is ``withdrawn``.
        reasons: why it did not publish, in lines to be said.
        previous: the night that it went on from.
        bundle: digest of the bundle that it made.
        steps: what each step found.
        alarms: the watched numbers.
        gate: what the gate looked at.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    format: Literal["hatchway-night"] = "hatchway-night"
    version: Literal[1] = 1
    day: str
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    previous: str | None = None
    bundle: str | None = None
    steps: dict[str, dict[str, Any]] = pydantic.Field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    gate: tuple[Verdict, ...] = ()


def current(nights: Path) -> Path | None:
    """Return the folder of the night that is served, None where none was published.

    Raises:
        ArtefactError: the pointer leads nowhere.
    """
    link = nights / CURRENT
    if not link.is_symlink():
        return None
    night = nights / link.readlink()
    if not (night / RECORD).is_file():
        raise ArtefactError(
            f"{link} leads to {night}, which is no night any more; name one that is there: "
            f"hatchway rollback {nights} --to DAY"
        )
    return night


def point_at(nights: Path, day: str) -> None:
    """Serve another night, from one moment to the next."""
    link, partial = nights / CURRENT, nights / f".{CURRENT}.partial"
    partial.unlink(missing_ok=True)
    partial.symlink_to(day)
    partial.replace(link)
    handle = os.open(nights, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_record(night: Path) -> NightRecord | None:
    """Read the record of a night; None where it has none, as while it runs.

    Raises:
        ArtefactError: it is damaged.
    """
    path = night / RECORD
    if not path.is_file():
        return None
    try:
        return NightRecord.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        raise ArtefactError(
            f"{path} is damaged or of another version of Hatchway ({error.errors()[0]['msg']}); remove {night} and run "
            "the night again"
        ) from None


def write_record(night: Path, record: NightRecord) -> None:
    """Write the record of a night."""
    write_text(night / RECORD, record.model_dump_json(indent=1) + "\n")


def records(nights: Path) -> Iterator[NightRecord]:
    """Read the records of all nights that ended, oldest first."""
    for night in night_folders(nights):
        record = read_record(night)
        if record is not None:
            yield record


def night_folders(nights: Path) -> list[Path]:
    """List the folders of nights, oldest first."""
    return sorted(path for path in nights.glob("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]") if path.is_dir())


def roll_back(nights: Path, to: str | None = None) -> str:
    """Serve an earlier night again, and withdraw those after it: the next night goes on from there.

    Args:
        nights: the folder of nights.
        to: the day of the night; None for the last published one before the current.

    Returns:
        the day that is served now.

    Raises:
        UsageError: there is no such published night, or nothing is served.
    """
    now = current(nights)
    if now is None:
        raise UsageError(f"{nights} has no published night; make one with: hatchway nightly STORE --day DAY")
    known = {record.day: record for record in records(nights) if record.outcome in ("published", "withdrawn")}
    able = [day for day in known if (nights / day / "bundle").is_dir() and (nights / day / "state").is_dir()]
    target = to or max((day for day in able if day < now.name and known[day].outcome == "published"), default=None)
    if target is None or target not in able:
        listed = ", ".join(able) or "none"
        wanted = f"no published night {target}" if target else f"no published night before {now.name}"
        raise UsageError(f"{nights} has {wanted}; nights that can be served: {listed}")
    for day, record in known.items():
        if day > target and record.outcome == "published":
            write_record(nights / day, record.model_copy(update={"outcome": "withdrawn"}))
    if known[target].outcome == "withdrawn":
        write_record(nights / target, known[target].model_copy(update={"outcome": "published"}))
    point_at(nights, target)
    return target
