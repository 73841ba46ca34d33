"""Which night is served: a link that is replaced in one piece, and the record that every night leaves.

::

    NIGHTS/
      current -> 2026-03-02      the night that is served
      .rollback                  while somebody goes back: the night that will be served
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
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pydantic

from hatchway.artefacts.atomic import write_text
from hatchway.errors import ArtefactError, UsageError
from hatchway.nightly.alarms import Alarm
from hatchway.progress import note

CURRENT = "current"
RECORD = "night.json"
GOING_BACK = ".rollback"

Outcome = Literal["published", "refused", "failed", "withdrawn"]


class Verdict(pydantic.BaseModel):
    """One thing the gate looked at.

    Attributes:
        name: what it was.
        passed: whether it lets the night be published.
        said: what was measured, in words.
        decided: whether the cases were enough to say so; a comparison that they do not decide refuses nothing.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: str
    passed: bool
    said: str
    decided: bool = True

    @property
    def word(self) -> str:
        """How it ended, in a word or two."""
        if not self.passed:
            return "refused"
        return "passed" if self.decided else "not refused (undecided)"


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


@dataclass(frozen=True)
class Damaged:
    """A record that cannot be read.

    Attributes:
        day: of its night, by the folder's name.
        said: what is wrong with it, with the remedy.
    """

    day: str
    said: str


def pointed_at(nights: Path) -> str | None:
    """Return the day that the pointer names, whether or not its night is still there; None where there is no pointer.

    Raises:
        ArtefactError: what lies in the pointer's place is no link.
    """
    link = nights / CURRENT
    if link.is_symlink():
        return link.readlink().name
    if link.exists():
        what = "a folder" if link.is_dir() else "a file"
        raise ArtefactError(
            f"{link} is {what} where a link to the night that is served belongs, as after copying without links; move "
            f"it out of {nights}, and name the night that is to be served: hatchway rollback {nights} --to DAY"
        )
    return None


def current(nights: Path) -> Path | None:
    """Return the folder of the night that is served, None where none was published.

    Raises:
        ArtefactError: the pointer leads nowhere, or is none.
    """
    if pointed_at(nights) is None:
        return None
    link = nights / CURRENT
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
        ArtefactError: it is damaged, or cannot be read.
    """
    path = night / RECORD
    remedy = f"remove {night} and run the night again"
    try:
        return NightRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtefactError(f"{path} cannot be read ({error.strerror}); allow reading it, or {remedy}") from None
    except pydantic.ValidationError as error:
        raise ArtefactError(
            f"{path} is damaged or of another version of Hatchway ({error.errors()[0]['msg']}); {remedy}"
        ) from None


def write_record(night: Path, record: NightRecord) -> None:
    """Write the record of a night."""
    write_text(night / RECORD, record.model_dump_json(indent=1) + "\n")


def read_records(nights: Path) -> Iterator[NightRecord | Damaged]:
    """Read how all nights ended, oldest first, with what is wrong with the records that cannot be read."""
    for night in night_folders(nights):
        try:
            record = read_record(night)
        except ArtefactError as error:
            yield Damaged(night.name, str(error))
        else:
            if record is not None:
                yield record


def records(nights: Path) -> Iterator[NightRecord]:
    """Read the records of all nights that ended, oldest first; a damaged one is named in a line and passed over."""
    for found in read_records(nights):
        if isinstance(found, Damaged):
            note(f"passed over: {found.said}")
        else:
            yield found


def night_folders(nights: Path) -> list[Path]:
    """List the folders of nights, oldest first."""
    return sorted(path for path in nights.glob("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]") if path.is_dir())


def roll_back(nights: Path, to: str | None = None) -> str:
    """Serve an earlier night again, and withdraw those after it: the next night goes on from there.

    Where it was cut short, this and :func:`finish_roll_back` do what is missing; called without a day after it was cut
    short, it does that alone, and goes no further back.

    Args:
        nights: the folder of nights.
        to: the day of the night; None for the last published one before the current.

    Returns:
        the day that is served now.

    Raises:
        UsageError: there is no such published night, or nothing is served.
        ArtefactError: what lies in the pointer's place is no link.
    """
    begun = finish_roll_back(nights)
    if begun is not None and to in (None, begun):
        return begun
    now = pointed_at(nights)
    able = _able(nights)
    if now is None and not (to and able):
        if not able:
            raise UsageError(f"{nights} has no published night; make one with: hatchway nightly STORE --day DAY")
        raise UsageError(f"{nights} serves no night; name one with --to; nights that can be served: {', '.join(able)}")
    published = [day for day, record in able.items() if record.outcome == "published"]
    target = to or max((day for day in published if now is None or day < now), default=None)
    if target is None or target not in able:
        wanted = f"no published night {target}" if target else f"no published night before {now}"
        raise UsageError(f"{nights} has {wanted}; nights that can be served: {_listed(nights, able)}")
    write_text(nights / GOING_BACK, target + "\n")
    _go_back(nights, target)
    return target


def finish_roll_back(nights: Path) -> str | None:
    """Do what is missing of a rollback that was cut short.

    Returns:
        the day that is served since; None where none was cut short.
    """
    path = nights / GOING_BACK
    try:
        target = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    if target not in _able(nights):
        note(f"going back to {target} was cut short, and that night is there no more: it is left")
        path.unlink()
        return None
    note(f"going back to {target} was cut short; it is finished now")
    _go_back(nights, target)
    return target


def _go_back(nights: Path, target: str) -> None:
    """Point first, so that what is served is never a withdrawn night; then the records; each step may be done again."""
    point_at(nights, target)
    for record in list(read_records(nights)):
        if isinstance(record, Damaged) or record.day < target or record.outcome not in ("published", "withdrawn"):
            continue
        outcome: Outcome = "published" if record.day == target else "withdrawn"
        if record.outcome != outcome:
            write_record(nights / record.day, record.model_copy(update={"outcome": outcome}))
    (nights / GOING_BACK).unlink()


def _able(nights: Path) -> dict[str, NightRecord]:
    """Return the records of the nights that can be served, by day."""
    return {
        record.day: record
        for record in records(nights)
        if record.outcome in ("published", "withdrawn")
        and (nights / record.day / "bundle").is_dir()
        and (nights / record.day / "state").is_dir()
    }


def _listed(nights: Path, able: Collection[str]) -> str:
    """Write which nights can be served; or what to do where the pointer leads nowhere and no night is left."""
    return ", ".join(able) or f"none; remove {nights / CURRENT}, and the next night begins from nothing"
