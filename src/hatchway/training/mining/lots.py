"""Lots: a random number for each pair of row and item, the same wherever and with whatever else it is asked for."""

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64

UInt64 = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(numbers: UInt64) -> UInt64:
    """Mix 64-bit numbers so that equal ones stay equal and near ones look unrelated (the finisher of splitmix64)."""
    z = numbers + _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def draw_lots(key: int, rows: Int64, items: npt.NDArray[np.integer]) -> UInt64:
    """Return the lot of each pair of a row and an item.

    Whoever takes the smallest lots of a set draws from it without replacement, every choice equally likely; and takes
    the same whether the pairs were asked for together or apart, and whatever other pairs there were.

    Args:
        key: a 64-bit number from the stream of the draw.
        rows: [R] int64.
        items: [R, W] item rows.

    Returns:
        [R, W] uint64.
    """
    of_rows = mixed(rows.astype(np.uint64) ^ np.uint64(key))
    return mixed(mixed(items.astype(np.int64).view(np.uint64)) ^ of_rows[:, None])
