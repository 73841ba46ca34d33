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


def merged(records: Mapping[Item, Record], changes: Iterable[Change], time: int) -> dict[Item, Record]:
    """Return the records that some changes touch, as they are afterwards."""
    touched: dict[Item, Record] = {}
    for change in changes:
        before = touched.get(change.item) or records.get(change.item) or Record(change.item)
        touched[change.item] = before.after(change, time)
    return touched
