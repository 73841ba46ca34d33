"""Contexts of engagement rows, by hand."""

import numpy as np
import pytest

from hatchway.data.contexts import contexts_of, ragged_ranges
from hatchway.data.engagements import Engagements


def _log(*, texts: bool = False) -> Engagements:
    """Return buyer 0 with items 10..13 at 1, 2, 2, 5 and buyer 1 with items 20, 21 at 1, 1."""
    return Engagements(
        offsets=np.array([0, 4, 6]),
        buyers=np.array([0, 0, 0, 0, 1, 1], np.int32),
        items=np.array([10, 11, 12, 13, 20, 21], np.int32),
        parts=np.zeros(6, np.int8),
        weights=np.ones(6, np.float32),
        query_items=np.array([-1, 10, 10, 12, -1, -1], np.int32),
        times=np.array([1, 2, 2, 5, 1, 1]),
        context_end=np.array([0, 1, 1, 3, 4, 4]),
        query_texts=np.array(["", "a", "b", "", "c", ""], object) if texts else None,
    )


@pytest.mark.parametrize(
    ("length", "history", "offsets"),
    [
        (10, [10, 11, 12, 10], [0, 3, 4, 4]),
        (2, [11, 12, 10], [0, 2, 3, 3]),
        (1, [12, 10], [0, 1, 2, 2]),
        (0, [], [0, 0, 0, 0]),
    ],
)
def test_history_is_the_last_items_strictly_before_the_row(length: int, history: list[int], offsets: list[int]) -> None:
    """Row 3 (at 5) sees three items, row 2 only the one before its own second, row 5 not its neighbour."""
    contexts = contexts_of(_log(), np.array([3, 2, 5]), length)
    assert contexts.history.tolist() == history
    assert contexts.history_offsets.tolist() == offsets


def test_the_other_fields_follow_the_rows_asked_for() -> None:
    """In the order asked, rows may repeat."""
    contexts = contexts_of(_log(texts=True), np.array([5, 1, 1]), 5)
    assert len(contexts) == 3
    assert contexts.buyers.tolist() == [1, 0, 0]
    assert contexts.query_items.tolist() == [-1, 10, 10]
    assert contexts.texts is not None
    assert contexts.texts.tolist() == ["", "a", "a"]
    assert contexts_of(_log(), np.array([5]), 5).texts is None


def test_no_rows_give_no_contexts() -> None:
    """An empty batch is a batch."""
    contexts = contexts_of(_log(), np.zeros(0, np.int64), 5)
    assert len(contexts) == 0
    assert contexts.history.tolist() == []
    assert contexts.history_offsets.tolist() == [0]


def test_ranges_expand_one_after_another_and_a_backward_range_is_empty() -> None:
    """An end before its begin counts as an empty range."""
    index, offsets = ragged_ranges(np.array([3, 9, 0, 7]), np.array([5, 9, 2, 6]))
    assert index.tolist() == [3, 4, 0, 1]
    assert offsets.tolist() == [0, 2, 2, 4, 4]
