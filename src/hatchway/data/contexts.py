"""What a query tower is told: who asks, what they look at, what they did before, and what they typed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hatchway import compiled
from hatchway.data.engagements import Engagements, Int32, Int64


@dataclass(frozen=True)
class Contexts:
    """B query contexts.

    Attributes:
        buyers: [B] int32 buyer row numbers, -1 for an unknown buyer.
        query_items: [B] int32 item row numbers, -1 for none.
        history: [H] int32 item row numbers, all rows' histories one after another, oldest first in each.
        history_offsets: [B + 1] int64; row i's history is ``history[history_offsets[i]:history_offsets[i + 1]]``.
        texts: [B] query texts ("" for none), or None.
    """

    buyers: Int32
    query_items: Int32
    history: Int32
    history_offsets: Int64
    texts: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.buyers)


def ragged_ranges(begin: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Expand the ranges ``begin[i]:end[i]`` into one index array.

    Returns:
        index: [sum of lengths] int64, the ranges one after another.
        offsets: [len(begin) + 1] int64, where each range starts in ``index``.

    >>> [part.tolist() for part in ragged_ranges(np.array([5, 0, 2]), np.array([7, 0, 3]))]
    [[5, 6, 2], [0, 2, 2, 3]]
    """
    lengths = np.maximum(end - begin, 0)
    offsets = np.zeros(len(begin) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    index = np.arange(offsets[-1], dtype=np.int64) + np.repeat(begin - offsets[:-1], lengths)
    return index, offsets


def gathered_ranges(values: Int32, begin: Int64, end: Int64) -> tuple[Int32, Int64]:
    """Return ``values[begin[i]:end[i]]`` one after another, and where each begins.

    Args:
        values: [E] int32.
        begin: [R] int64, from 0.
        end: [R] int64, at most E; a range that ends before it begins is empty.

    Returns:
        found: [sum of lengths] int32.
        offsets: [R + 1] int64.
    """
    if compiled.available():
        return _copied(values, begin, end)
    index, offsets = ragged_ranges(begin, end)
    return values[index], offsets


_AHEAD = 64
"""Ranges between asking for one and copying it."""


@compiled.Compiled
def _copied(values: Int32, begin: Int64, end: Int64) -> tuple[Int32, Int64]:
    offsets = np.zeros(len(begin) + 1, np.int64)
    for i in range(len(begin)):
        offsets[i + 1] = offsets[i] + max(end[i] - begin[i], 0)
    found, number = np.empty(offsets[-1], np.int32), len(begin)
    for i in range(min(_AHEAD, number)):
        compiled.ahead(values, begin[i])
        compiled.ahead(values, end[i])
    for i in range(number):
        # Ranges lie anywhere: a short one's ends are asked for some turns before it is copied.
        coming = min(i + _AHEAD, number - 1)
        compiled.ahead(values, begin[coming])
        compiled.ahead(values, end[coming])
        for k in range(offsets[i + 1] - offsets[i]):
            found[offsets[i] + k] = values[begin[i] + k]
    return found, offsets


HistoryOf = Literal["before", "others"]
"""What stands in the history of a training row: what its buyer did before it, or everything else that its buyer did."""


def contexts_of(
    engagements: Engagements, rows: Int64, history_length: int, history_of: HistoryOf = "before"
) -> Contexts:
    """Return the contexts of the given engagement rows, each with a history of at most ``history_length`` items.

    Args:
        engagements: the log.
        rows: [B] int64 engagement rows.
        history_length: L, the number of most recent engagements to keep; 0 keeps none.
        history_of: ``before``: the engagements strictly before the row. ``others``: all training engagements of the
            row's buyer with other items, for logs that say what a buyer engaged with but not when (Koren 2008's
            implicit feedback, the row itself left out). For rows of the training part only.
    """
    buyers, begin, end = _context_ranges(engagements, rows, history_length, history_of)
    history, offsets = gathered_ranges(engagements.items, begin, end)
    if history_of == "others":
        kept = history != np.repeat(engagements.items[rows], np.diff(offsets))
        offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
        history = history[kept]
    texts = None if engagements.query_texts is None else engagements.query_texts[rows]
    return Contexts(buyers, engagements.query_items[rows], history, offsets, texts)


def _context_ranges(
    engagements: Engagements, rows: Int64, history_length: int, history_of: HistoryOf
) -> tuple[Int32, Int64, Int64]:
    """Return the rows' buyers, and where the history of each begins and ends among all engagements."""
    if history_of == "before" and compiled.available():
        arrays = engagements.buyers, engagements.offsets, engagements.context_end
        return _ranges_before(rows, *arrays, history_length)
    buyers = engagements.buyers[rows]
    end = engagements.context_end[rows] if history_of == "before" else engagements.training_end[buyers]
    return buyers, np.maximum(engagements.offsets[buyers], end - history_length), end


@compiled.Compiled
def _ranges_before(
    rows: Int64, buyers: Int32, offsets: Int64, context_end: Int64, history_length: int
) -> tuple[Int32, Int64, Int64]:
    of_rows, begin, end = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        of_rows[i], end[i] = buyers[rows[i]], context_end[rows[i]]
    for i in range(len(rows)):
        begin[i] = max(offsets[of_rows[i]], end[i] - history_length)
    return of_rows, begin, end
