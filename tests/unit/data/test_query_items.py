"""What was being looked at, and the sorting that finds it, by hand."""

import numpy as np
import pytest

from hatchway.data.ordering import buyer_major, comparable
from hatchway.data.query_items import Sightings, last_viewed, previous_engaged, previous_other


def _int(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _item(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_previous_other_skips_repeats_and_stays_in_its_group() -> None:
    """A run of the same item has one predecessor, and a group's first run has none."""
    groups = _int(3, 3, 3, 3, 8, 8, 9)
    items = _item(5, 7, 7, 5, 5, 6, 6)
    assert previous_other(groups, items).tolist() == [-1, 5, 5, 7, -1, 5, -1]


def test_previous_engaged_is_the_last_before_the_context_ends_with_another_item() -> None:
    """Row 3 repeats item 7 and looks past it; row 4's context ends before its own second."""
    offsets, buyers = _int(0, 5, 6), _item(0, 0, 0, 0, 0, 1)
    items, context_end = _item(5, 6, 7, 7, 8, 8), _int(0, 1, 2, 3, 3, 5)
    assert previous_engaged(offsets, buyers, items, context_end).tolist() == [-1, 5, 6, 6, 7, -1]


def test_a_buyer_who_only_repeats_looked_at_nothing_else() -> None:
    """There is no earlier other item to ask from."""
    assert previous_engaged(_int(0, 3), _item(0, 0, 0), _item(4, 4, 4), _int(0, 1, 2)).tolist() == [-1, -1, -1]


_VIEWS = Sightings(groups=_int(0, 0, 0, 2, 2), keys=_int(10, 20, 20, 5, 6), items=_item(1, 2, 3, 4, 4))


@pytest.mark.parametrize(
    ("group", "key", "item", "expected"),
    [
        (0, 9, 9, -1),  # before the first view
        (0, 10, 9, 1),  # at the view's own second
        (0, 10, 1, -1),  # the only view so far is of the item itself
        (0, 20, 9, 3),  # of two in one second, the later in the log
        (0, 20, 3, 2),  # another item than the one engaged with
        (0, 99, 2, 3),
        (1, 99, 9, -1),  # a group without views, between two with
        (2, 99, 4, -1),  # nothing but views of the item itself
        (2, 99, 9, 4),
        (2, 4, 9, -1),  # another group's views do not count, however near
        (3, 0, 9, -1),  # past the last group
    ],
)
def test_last_viewed(group: int, key: int, item: int, expected: int) -> None:
    """The last view at or before, in the group, of another item."""
    assert last_viewed(_VIEWS, _int(group), _int(key), _item(item)).tolist() == [expected]


def test_without_views_nobody_looked_at_anything() -> None:
    """And no questions give no answers."""
    nothing = Sightings(_int(), _int(), _item())
    assert last_viewed(nothing, _int(0, 1), _int(5, 5), _item(1, 1)).tolist() == [-1, -1]
    assert last_viewed(_VIEWS, _int(), _int(), _item()).tolist() == []


def test_buyer_major_sorts_by_buyer_then_key_then_order() -> None:
    """Rows that come in the log's order and rows that do not; buyers beyond 16 bits."""
    buyers, keys, orders = _item(70_000, 2, 70_000, 65_538, 2), _int(1, 1, 2, 2, 3), _int(0, 1, 2, 3, 4)
    assert buyer_major(buyers, keys, orders).tolist() == [1, 4, 3, 0, 2]
    assert buyer_major(buyers, keys[::-1].copy(), orders).tolist() == [4, 1, 3, 2, 0]
    same = _item(0, 0, 0)
    assert buyer_major(same, _int(7, 7, 7), _int(2, 0, 1)).tolist() == [1, 2, 0]
    assert buyer_major(_item(), _int(), _int()).tolist() == []


@pytest.mark.parametrize("far", [1, 2**40, 2**62])
def test_pairs_compare_as_they_would_one_by_one(far: int) -> None:
    """However far apart the keys are: 2**62 times three groups does not fit 64 bits, so ranks stand in."""
    mine, theirs = comparable(_int(0, 1, 2, 2), _int(far, -far, 0, far), _int(2, 0, 1), _int(-far, far, 0))
    pairs = [(0, far), (1, -far), (2, 0), (2, far)]
    others = [(2, -far), (0, far), (1, 0)]
    for number, pair in zip(mine.tolist(), pairs, strict=True):
        for other_number, other in zip(theirs.tolist(), others, strict=True):
            assert (number < other_number, number == other_number) == (pair < other, pair == other)
