"""The walk through a row's window: candidates in the order of their lots, each looked at, until enough may stand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Float32, Int32, Int64
from hatchway.training.mining.lots import UInt64

Int8 = npt.NDArray[np.int8]

_MOST_AT_ONCE = 64

_FEW = 4
"""So many times the cap are put in order at first: most rows need no more, and a whole window takes far longer."""


@dataclass(frozen=True, eq=False)
class Walked:
    """What was looked at, row after row, in the order of the walk.

    Attributes:
        places: [M] int64, ascending: which row each belongs to.
        items: [M] int32 item rows.
        scores: [M] float32.
        ranks: [M] int32.
        reasons: [M] int8, a :class:`~hatchway.negatives.sources.Reason`, 0 where the item stands.
    """

    places: Int64
    items: Int32
    scores: Float32
    ranks: Int32
    reasons: Int8


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of R rows, W ranks each.

    Attributes:
        items: [R, W] integers, item rows, −1 where there is no candidate.
        scores: [R, W] float32.
        first_rank: the rank of column 0.
    """

    items: npt.NDArray[np.integer]
    scores: Float32
    first_rank: int


def walk(windows: Windows, lots: UInt64, refused: Callable[[Int64, Int64, Float32], Int8], cap: int) -> Walked:
    """Walk through each row's window in the order of its lots until ``cap`` candidates stand.

    Nothing beyond the last one that stands is counted, so the share that was refused is that of a sample of the
    window; and few candidates are looked at twice as long as few are refused.

    Args:
        windows: the candidates.
        lots: [R, W]; the smallest come first.
        refused: returns the reason of each candidate, 0 for none, from [P] places of rows (0 to R − 1), [P] int64 item
            rows and [P] float32 scores.
        cap: how many are wanted.
    """
    rows, width = windows.items.shape
    order = first_by_lot(lots, _FEW * cap)
    stand = np.zeros(rows, np.int64)
    open_rows = np.arange(rows)
    seen: list[tuple[Int64, Int64, Int8]] = []
    begin, step = 0, cap
    while len(open_rows) and begin < width:
        if begin == order.shape[1]:  # few rows come this far
            order = first_by_lot(lots[open_rows], width)
        columns = order[:, begin : begin + step]
        items = windows.items[open_rows[:, None], columns]
        there = items >= 0
        which, place = np.nonzero(there)
        chosen = columns[which, place]
        reasons = np.full(items.shape, np.int8(-1))
        reasons[there] = refused(
            open_rows[which], items[there].astype(np.int64), windows.scores[open_rows[which], chosen]
        )
        stands = reasons == 0
        before = stand[open_rows, None] + np.cumsum(stands, axis=1) - stands
        looked_at = there & (before < cap)
        which, place = np.nonzero(looked_at)
        seen.append((open_rows[which], columns[which, place], reasons[looked_at]))
        stand[open_rows] += (stands & looked_at).sum(axis=1)
        still = stand[open_rows] < cap
        open_rows, order = open_rows[still], order[still]
        begin += columns.shape[1]
        step = min(2 * step, _MOST_AT_ONCE)
    return joined(
        [
            Walked(
                places=places,
                items=windows.items[places, columns].astype(np.int32),
                scores=windows.scores[places, columns],
                ranks=(columns + windows.first_rank).astype(np.int32),
                reasons=reasons,
            )
            for places, columns, reasons in seen
        ]
    )


def first_by_lot(lots: UInt64, number: int) -> Int64:
    """Return the columns of the ``number`` smallest lots of each row, smallest first, [R, number] (or all of W).

    >>> first_by_lot(np.array([[30, 10, 20], [1, 2, 3]], np.uint64), 2).tolist()
    [[1, 2], [0, 1]]
    """
    if number >= lots.shape[1]:
        return np.argsort(lots, axis=1)
    nearest = np.argpartition(lots, number - 1, axis=1)[:, :number]
    by_lot = np.argsort(np.take_along_axis(lots, nearest, axis=1), axis=1)
    return np.take_along_axis(nearest, by_lot, axis=1)


def joined(parts: Sequence[Walked]) -> Walked:
    """Put walks together: row after row, and within a row in the order of the parts."""
    places = np.concatenate([np.empty(0, np.int64), *(part.places for part in parts)])
    order = np.argsort(places, kind="stable")
    return Walked(
        places=places[order],
        items=np.concatenate([np.empty(0, np.int32), *(part.items for part in parts)])[order],
        scores=np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)])[order],
        ranks=np.concatenate([np.empty(0, np.int32), *(part.ranks for part in parts)])[order],
        reasons=np.concatenate([np.empty(0, np.int8), *(part.reasons for part in parts)])[order],
    )
