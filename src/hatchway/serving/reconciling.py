"""Who is right where a post and a bundle's catalogue say different things of one item.

The later one is, and one rule is stricter: what a post called gone stays gone, until a later post, or a catalogue in
which it was listed anew, says otherwise. A catalogue that is behind must not bring back what was sold.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hatchway.serving.posts import Record, Value


def data_end(origin: Mapping[str, str | int | bool]) -> int | None:
    """Return the second after the last day that a bundle knows of, None where it does not say.

    >>> data_end({"day": "2026-03-01"}), data_end({"step": 4})
    (1772409600, None)
    """
    try:
        day = datetime.strptime(str(origin.get("day")), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int((day + timedelta(days=1)).timestamp())


def newer_values(record: Record, since: int | None) -> dict[str, Value]:
    """Return what a record says of an item that a bundle has: what was posted after the bundle's data, or all of it.

    Args:
        record: what was posted.
        since: the end of the bundle's data; None where it is not known.
    """
    return {name: value for name, (value, time) in record.values.items() if since is None or time >= since}


def gone_now(record: Record, known: Mapping[str, Any], since: int | None, *, left_out: bool) -> tuple[bool, Value]:
    """Say whether an item of a bundle is gone, and since when.

    Args:
        record: what was posted of it.
        known: what the bundle's catalogue says of it.
        since: the end of the bundle's data; None where it is not known.
        left_out: whether the bundle's index leaves the item out.

    Returns:
        whether it may not stand in a row, and the value of its column ``gone``.
    """
    if "gone" not in record.values:
        return left_out, known.get("gone")
    said, time = record.values["gone"]
    if said is not None:
        listed = known.get("listed")
        back = listed is not None and listed > time and known.get("gone") is None
        return (False, None) if back else (True, said)
    late = since is None or time >= since
    return (False, None) if late else (left_out, known.get("gone"))


def may_be_forgotten(record: Record, known: Mapping[str, Any] | None, since: int | None, days: int) -> bool:
    """Say whether nothing depends on a record any more: it is old, and the catalogue would say the same without it.

    Args:
        record: what was posted.
        known: what the bundle's catalogue says of the item; None where it has no such item.
        since: the end of the bundle's data; None where it is not known, and then nothing is forgotten.
        days: how long a record is kept in any case, so that a rollback finds it.
    """
    if since is None or any(time >= since - days * 86_400 for _, time in record.values.values()):
        return False
    said_gone = record.values.get("gone", (None, 0))[0] is not None
    is_gone = known is None or known.get("gone") is not None
    return is_gone if said_gone else known is not None
