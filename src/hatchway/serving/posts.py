"""What was posted of listings, and what it comes to with what was posted before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hatchway.errors import UsageError

Item = int | str
Offence = tuple[tuple[int | str, ...], str]
"""A place in a post, and what is wrong there."""

Value = int | float | str | list[float] | None


class RefusedPostError(UsageError):
    """A post was refused as a whole; nothing of it was taken.

    Attributes:
        offences: for each offence the place in the post, and what is wrong there.
    """

    def __init__(self, offences: Sequence[Offence]) -> None:
        self.offences = tuple(offences)
        places = "; ".join(f"{'.'.join(map(str, place))}: {said}" for place, said in self.offences[:3])
        super().__init__(f"the post was refused as a whole, nothing of it was taken ({places})")


@dataclass(frozen=True)
class Change:
    """What one line of a post says of one listing.

    Attributes:
        item: its id, of the catalogue's type.
        values: column to value; ``gone`` is Unix seconds, or None for what is for sale.
    """

    item: Item
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Record:
    """All that was ever posted of one listing.

    Attributes:
        item: its id.
        values: column to its newest value and the time (Unix seconds) from which that is so.
    """

    item: Item
    values: Mapping[str, tuple[Value, int]] = field(default_factory=dict)

    def after(self, change: Change, time: int) -> "Record":
        """Return the record with one more change; what was said later in time stays."""
        newer = {
            name: (value, time)
            for name, value in change.values.items()
            if name not in self.values or self.values[name][1] <= time
        }
        return Record(self.item, {**self.values, **newer})


def ahead_said(time: int, clock: int, most: int) -> str:
    """Say that a time lies too far ahead of the server's clock.

    Args:
        time: Unix seconds.
        clock: the server's.
        most: how many seconds ahead are taken.
    """
    return (
        f"is {time}, which lies {(time - clock) / 3_600:,.1f} hours ahead of the server's clock ({clock}); at most "
        f"{most / 3_600:g} are taken: write Unix seconds of what has happened, or leave it out for now"
    )


def gone_ahead(changes: Sequence[Change], clock: int, most: int) -> list[Offence]:
    """Name the listings of a post that are said to be gone at a time that lies ahead; they are for sale until then."""
    offences: list[Offence] = []
    for place, change in enumerate(changes):
        gone = change.values.get("gone")
        if isinstance(gone, int) and gone > clock + most:
            offences.append((("listings", place, "gone"), ahead_said(gone, clock, most)))
    return offences


def not_ahead(records: Mapping[Item, Record], clock: int) -> dict[Item, Record]:
    """Return records none of which is of later than now, so that what is posted from now on holds."""
    return {
        item: Record(record.item, {name: (value, min(time, clock)) for name, (value, time) in record.values.items()})
        for item, record in records.items()
    }


def merged(records: Mapping[Item, Record], changes: Iterable[Change], time: int) -> dict[Item, Record]:
    """Return the records that some changes touch, as they are afterwards."""
    touched: dict[Item, Record] = {}
    for change in changes:
        before = touched.get(change.item) or records.get(change.item) or Record(change.item)
        touched[change.item] = before.after(change, time)
    return touched
