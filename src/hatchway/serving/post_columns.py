"""Reading a post: which columns a listing may have, what each may hold, and what is wrong where it does not."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.data.schema import CATALOGUE_TYPES
from hatchway.serving.posts import Change, Item, Offence, RefusedPostError, Value
from hatchway.towers.features import FeatureReading

TEXT_LIMIT = 2_000
"""The most characters in a text of a listing."""

ID_LIMIT = 256
"""The most characters in an id."""

_EARLIEST, _LATEST = 0, 4_102_444_800  # 1970 to 2099, as the importers have it
_OFFENCES_NAMED = 20


@dataclass(frozen=True)
class Columns:
    """Which columns a post may have, and how each is read.

    Attributes:
        integer_ids: whether item ids are integers.
        integer_sellers: whether seller ids are.
        photo_hashes: whether photos are 64-bit hashes, and not paths.
        reading: how the model reads columns; None where it reads none.
    """

    integer_ids: bool
    integer_sellers: bool
    photo_hashes: bool
    reading: FeatureReading | None

    @classmethod
    def of(cls, catalogue: Catalogue, reading: FeatureReading | None) -> "Columns":
        """Take the types of a catalogue."""
        schema = catalogue.frame.schema
        return cls(
            integer_ids=catalogue.identifiers.are_integers,
            integer_sellers=schema.get("seller") == pl.Int64,
            photo_hashes=schema.get("photo") == pl.UInt64,
            reading=reading,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All columns that a post may have, beside ``item``."""
        return tuple(dict.fromkeys([*(name for name in CATALOGUE_TYPES if name != "item"), *self.read]))

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns that the model reads."""
        reading = self.reading or FeatureReading()
        return (*reading.categories, *reading.numbers, *reading.texts, *reading.vectors)

    def fits(self, item: Item) -> bool:
        """Say whether an id is of the type of the catalogue's."""
        return isinstance(item, int) == self.integer_ids

    def asked(self, value: Item) -> Item | None:
        """Give an id that is asked for the type of the catalogue's; None where it cannot be one of them."""
        if not self.integer_ids:
            return str(value) if is_unicode(str(value)) else None
        try:
            return self.item(value)
        except ValueError:
            return None

    def item(self, value: object) -> Item:
        """Read an id.

        Raises:
            ValueError: it is none of this catalogue.
        """
        return _id(value, integer=self.integer_ids)

    def value(self, name: str, value: object, now: int) -> Value:
        """Read the value of a column; null is known to be absent.

        Raises:
            ValueError: the column cannot hold it; the message says what it can.
        """
        if name == "gone":
            return _gone(value, now)
        return None if value is None else self._readers[name](value)

    @cached_property
    def _readers(self) -> dict[str, Callable[[object], Value]]:
        """What reads each column; a column with a meaning of its own is read as that, whoever else reads it."""
        reading = self.reading or FeatureReading()
        model: dict[str, Callable[[object], Value]] = {
            **dict.fromkeys((*reading.categories, *reading.texts), _text),
            **dict.fromkeys(reading.numbers, _number),
            **{name: partial(_vector, length=length) for name, length in reading.vectors.items()},
        }
        return model | {
            "title": _text,
            "category": _text,
            "price": partial(_number, at_least=0.0),
            "seller": partial(_id, integer=self.integer_sellers),
            "photo": _photo if self.photo_hashes else _text,
            "listed": _time,
        }


def checked_changes(
    listings: Sequence[object], columns: Columns, now: int, *, ignore_unknown: bool = False
) -> list[Change]:
    """Read the listings of a post, all or none.

    Args:
        listings: for each listing an ``item`` and any of the columns, as JSON has them.
        columns: what the catalogue allows.
        now: the time of the post, for ``"gone": true``.
        ignore_unknown: leave out columns that nobody knows, instead of refusing them.

    Raises:
        RefusedPostError: a listing has no id, or a value cannot be read; every offence is named, up to twenty.
    """
    offences: list[Offence] = []
    changes: list[Change] = []
    for place, listing in enumerate(listings):
        change, wrong = _change(listing, columns, now, ignore_unknown=ignore_unknown)
        offences += [(("listings", place, *at), said) for at, said in wrong]
        if change is not None:
            changes.append(change)
        if len(offences) >= _OFFENCES_NAMED:
            break
    if offences:
        raise RefusedPostError(offences[:_OFFENCES_NAMED])
    return changes


def _change(
    listing: object, columns: Columns, now: int, *, ignore_unknown: bool
) -> tuple[Change | None, list[Offence]]:
    """Read one listing of a post, and say what is wrong with it."""
    if not isinstance(listing, Mapping):
        return None, [((), "should be an object with an item and some of its columns")]
    offences: list[Offence] = []
    values: dict[str, Value] = {}
    item: Item | None = None
    for name, value in listing.items():
        try:
            if name == "item":
                item = columns.item(value)
            elif name in columns.names:
                values[name] = columns.value(name, value, now)
            elif not ignore_unknown:
                raise ValueError(f"is no column; columns are {', '.join(columns.names)}")  # noqa: TRY301 - one place
        except ValueError as error:
            offences.append(((_shown(name),), str(error)))
    if "item" not in listing:
        offences.append((("item",), "is missing; every listing needs its id"))
    return (None if item is None else Change(item, values)), offences


def _shown(name: object) -> str:
    """Write a column's name as it can be sent back."""
    return ascii(name)[1:-1][:80]


def _id(value: object, *, integer: bool) -> Item:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("should be an id: an integer or a text")  # noqa: TRY004 - one kind of error for the caller
    if not integer:
        text = _written(str(value) if isinstance(value, str) or abs(value) < 2**63 else "")
        if not 1 <= len(text) <= ID_LIMIT:
            raise ValueError(f"should be a text of 1 to {ID_LIMIT} characters, or a 64-bit integer")
        return text
    try:
        number = int(value) if not isinstance(value, str) or len(value) <= 20 else 2**63
    except ValueError:
        number = 2**63
    if not -(2**63) <= number < 2**63 or (isinstance(value, str) and str(number) != value):
        raise ValueError("should be a 64-bit integer, as the catalogue's ids are")
    return number


def is_unicode(text: str) -> bool:
    """Say whether a text can be written down: JSON may hold half a character (a lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _written(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("holds half a character (a lone surrogate), which is no Unicode")
    return text


def _text(value: object) -> str:
    if isinstance(value, list) and value:  # of a list of names the first counts
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("should be a text")  # noqa: TRY004
    text = _written(value if isinstance(value, str) else str(_number(value)))
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"has {len(text):,} characters; at most {TEXT_LIMIT:,} are taken")
    return text


def _number(value: object, at_least: float | None = None) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("should be a number")  # noqa: TRY004
    if not -1e300 < value < 1e300:  # a NaN is in no range
        raise ValueError("should be a finite number")
    if at_least is not None and value < at_least:
        raise ValueError(f"should be at least {at_least:g}")
    return value


def _time(value: object) -> int:
    number = _number(value)
    if not _EARLIEST <= number <= _LATEST:
        raise ValueError("should be Unix seconds between 1970 and 2099")
    return math.floor(number)


def _gone(value: object, now: int) -> int | None:
    if value is True:
        return now
    return None if value is None or value is False else _time(value)


def _photo(value: object) -> int:
    if isinstance(value, str):
        try:
            value = int(value, 16) if len(value) in (16, 18) else int(value)
        except ValueError:
            value = -1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise ValueError("should be a 64-bit hash: an integer from 0, or 16 hexadecimal digits")
    return value


def _vector(value: object, length: int) -> list[float]:
    if not isinstance(value, list) or len(value) != length:
        raise ValueError(f"should be a list of {length} numbers")
    numbers = [float(_number(number)) for number in value]
    if any(abs(number) > 1e30 for number in numbers):
        raise ValueError("should be numbers that fit 32-bit floats")
    return numbers
