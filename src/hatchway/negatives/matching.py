"""The join between what is wanted and what stands in the columns, without comparing everything with everything."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import Compiled, suits

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_FACTOR = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the highest bits of its multiples are spread evenly (Knuth 1973, section 6.4)."""

_FLAGS = 2**20
"""The plain path drops most keys by a look-up in so many flags: quick to clear, and no more for a larger catalogue."""


def matching_columns(items: Tensor, keys: Tensor, key_rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Find every column that holds a wanted item: a join of [C] columns with [K] keys, without a [K, C] comparison.

    Args:
        items: [C] int64 item of each column.
        keys: [K] int64 wanted items.
        key_rows: [K] int64 ascending, the row that each key belongs to; None means key k belongs to row k.

    Returns:
        rows: [M] int64, ascending.
        columns: [M] int64, ascending within a key.
    """
    which, columns = compiled_join(items, keys) if suits(items, keys) else plain_join(items, keys)
    return (which if key_rows is None else key_rows[which]), columns


def each_pair_once(rows: Tensor, columns: Tensor) -> Tensor:
    """Return the places of each (row, column) pair's first occurrence, in the order of rows and columns.

    Args:
        rows: [M] int64, 0 or more.
        columns: [M] int64, 0 or more.

    Returns:
        [U] int64.
    """
    if suits(rows, columns):
        return torch.from_numpy(_first_places(rows.contiguous().numpy(), columns.contiguous().numpy()))
    return sorted_once(rows, columns)


def sorted_once(rows: Tensor, columns: Tensor) -> Tensor:
    """Return what :func:`each_pair_once` does, by sorting all pairs."""
    width = int(columns.max()) + 1 if len(columns) else 1
    pairs, order = torch.sort(rows * width + columns, stable=True)
    fresh = torch.ones_like(pairs, dtype=torch.bool)
    fresh[1:] = pairs[1:] != pairs[:-1]
    return order[fresh]


def plain_join(items: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Join by sorting the columns and searching in them.

    Returns:
        which: [M] int64, ascending, the numbers of the keys.
        columns: [M] int64, ascending within a key.
    """
    kept = None
    if len(keys) > len(items):  # few of many keys are columns at all
        flags = torch.zeros(_FLAGS, dtype=torch.bool, device=items.device)
        flags[items & (_FLAGS - 1)] = True
        kept = torch.nonzero(flags[keys & (_FLAGS - 1)])[:, 0]
        keys = keys[kept]
    ordered, order = torch.sort(items, stable=True)
    distinct, copies = torch.unique_consecutive(ordered, return_counts=True)
    if not len(distinct):
        return keys.new_empty(0), keys.new_empty(0)
    at = torch.searchsorted(distinct, keys).clamp_(max=len(distinct) - 1)
    hits = torch.nonzero(distinct[at] == keys)[:, 0]
    at = at[hits]
    found = copies[at]
    which = torch.repeat_interleave(hits, found)
    first = torch.repeat_interleave(copies.cumsum(0)[at] - found.cumsum(0), found)
    columns = order[first + torch.arange(len(which), device=keys.device)]
    return (which if kept is None else kept[which]), columns


def compiled_join(items: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Join through a hash table; the same result as :func:`plain_join`."""
    columns, wanted = items.contiguous().numpy(), keys.contiguous().numpy()
    which, found = _look_up(columns, *_chains(columns), wanted)
    return torch.from_numpy(which), torch.from_numpy(found)


@Compiled
def _chains(items: Int64) -> tuple[Int32, Int32, Int32, Int32]:
    """Chain the distinct items of a bucket, and the columns of an item.

    Returns:
        head: [power of 2] the first column of a bucket's first item, or -1.
        other: [C] the first column of the bucket's next item; only right at an item's first column.
        same: [C] the next column of this item, or -1.
        copies: [C] how many columns of this item there are from here on.
    """
    bits = 4
    while (1 << bits) < 2 * len(items):
        bits += 1
    head = np.full(1 << bits, -1, np.int32)
    other, same, copies = np.empty(len(items), np.int32), np.empty(len(items), np.int32), np.empty(len(items), np.int32)
    for c in range(len(items) - 1, -1, -1):
        bucket = (np.uint64(items[c]) * np.uint64(_FACTOR)) >> np.uint64(64 - bits)
        before, at = -1, head[bucket]
        while at >= 0 and items[at] != items[c]:
            before, at = at, other[at]
        if at < 0:
            other[c], same[c], copies[c] = head[bucket], -1, 1
            head[bucket] = c
        else:
            other[c], same[c], copies[c] = other[at], at, copies[at] + 1
            if before < 0:
                head[bucket] = c
            else:
                other[before] = c
    return head, other, same, copies


@Compiled
def _look_up(items: Int64, head: Int32, other: Int32, same: Int32, copies: Int32, keys: Int64) -> tuple[Int64, Int64]:
    """Walk the chain of each key's bucket; most keys end at an empty one."""
    bits = 4
    while (1 << bits) < len(head):
        bits += 1
    hit_keys, hit_columns = np.empty(len(keys), np.int64), np.empty(len(keys), np.int32)
    hits, total = 0, 0
    for k in range(len(keys)):
        at = head[(np.uint64(keys[k]) * np.uint64(_FACTOR)) >> np.uint64(64 - bits)]
        while at >= 0 and items[at] != keys[k]:
            at = other[at]
        if at >= 0:
            hit_keys[hits], hit_columns[hits] = k, at
            hits += 1
            total += copies[at]
    which, columns = np.empty(total, np.int64), np.empty(total, np.int64)
    out = 0
    for hit in range(hits):
        at = hit_columns[hit]
        while at >= 0:
            which[out], columns[out] = hit_keys[hit], at
            out += 1
            at = same[at]
    return which, columns


@Compiled
def _first_places(rows: Int64, columns: Int64) -> Int64:  # noqa: C901  a compiled loop calls nothing
    """Sort by row with one count of the rows, and each row's few columns by insertion, its many by merging."""
    number = len(rows)
    most = -1
    for k in range(number):
        most = max(most, rows[k])
    ends = np.zeros(most + 2, np.int64)
    for k in range(number):
        ends[rows[k] + 1] += 1
    for row in range(most + 1):
        ends[row + 1] += ends[row]
    order, filled = np.empty(number, np.int64), ends.copy()
    for k in range(number):
        order[filled[rows[k]]] = k
        filled[rows[k]] += 1
    out = 0
    for row in range(most + 1):
        begin, end = ends[row], ends[row + 1]
        if end - begin > 64:
            mine = order[begin:end].copy()
            order[begin:end] = mine[np.argsort(columns[mine], kind="mergesort")]
        else:
            for k in range(begin + 1, end):
                place, at = order[k], k
                while at > begin and columns[order[at - 1]] > columns[place]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = place
        for k in range(begin, end):
            # What is kept moves to the front, never past what is still to be read.
            if k == begin or columns[order[k]] != columns[order[out - 1]]:
                order[out] = order[k]
                out += 1
    return order[:out].copy()
