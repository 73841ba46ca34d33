"""Sorting tens of millions of rows by (buyer, time, order), and comparing such pairs as single numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64

Keys = npt.NDArray[np.int64]
Groups = npt.NDArray[np.integer[Any]]


def buyer_major(buyers: Groups, keys: Keys, orders: Keys) -> Int64:
    """Return the permutation that sorts rows by (buyer, key, order), [E] int64.

    Rows that come sorted by (key, order), as a store keeps them, cost one counting sort by buyer.
    """
    numbers = buyers.astype(np.uint32)
    halves = ((numbers & 0xFFFF).astype(np.uint16), (numbers >> 16).astype(np.uint16))
    later = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (orders[1:] >= orders[:-1]))
    # NumPy sorts 16-bit keys by radix: five times as fast as the general sort of three columns.
    return np.lexsort(halves if later.all() else (orders, keys, *halves)).astype(np.int64)


def comparable(groups: Groups, keys: Keys, other_groups: Groups, other_keys: Keys) -> tuple[Int64, Int64]:
    """Fold (group, key) pairs of two tables into single numbers that compare as the pairs do.

    Args:
        groups: [A] the first table's groups, not negative.
        keys: [A] the first table's keys.
        other_groups: [B] the second table's groups.
        other_keys: [B] the second table's keys.

    Returns:
        [A] and [B] int64.
    """
    mine, theirs = groups.astype(np.int64), other_groups.astype(np.int64)
    if not len(keys) or not len(other_keys):
        return mine, theirs
    low = min(int(keys.min()), int(other_keys.min()))
    span = max(int(keys.max()), int(other_keys.max())) - low + 1
    if span * (max(int(mine.max()), int(theirs.max())) + 1) >= 2**63:  # keys far apart: their ranks will do
        ranks = np.unique(np.concatenate([keys, other_keys]), return_inverse=True)[1].astype(np.int64)
        keys, other_keys, low, span = ranks[: len(keys)], ranks[len(keys) :], 0, len(ranks)
    return mine * span + (keys - low), theirs * span + (other_keys - low)
