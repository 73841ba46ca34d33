"""The join between what is wanted and what stands in the columns, without comparing everything with everything."""

import torch
from torch import Tensor

from hatchway.compiled import suits
from hatchway.negatives.match_loops import first_places, groups, look_up, merged, pairs, sieved

_FLAGS = 2**20
"""The plain path drops most keys by a look-up in so many flags: quick to clear, and no more for a larger catalogue."""

_AT_ONCE = 2**16
"""Pairs that are put in order together: half a megabyte."""


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


def matching_pairs(items: Tensor, keys: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Find every column that holds an item which its row wants, each once, however often the row names it.

    Args:
        items: [C] int64 item of each column.
        keys: [K] int64 wanted items, one row's after another's.
        offsets: [B + 1] int64, where each row's wanted items begin.

    Returns:
        rows: [M] int64, ascending.
        columns: [M] int64, ascending within a row.
    """
    return (compiled_pairs if suits(items, keys, offsets) else plain_pairs)(items, keys, offsets)


def each_pair_once(rows: Tensor, columns: Tensor) -> Tensor:
    """Return the places of each (row, column) pair's first occurrence, in the order of rows and columns.

    Args:
        rows: [M] int64, 0 or more.
        columns: [M] int64, 0 or more.

    Returns:
        [U] int64.
    """
    if suits(rows, columns):
        return torch.from_numpy(first_places(rows.contiguous().numpy(), columns.contiguous().numpy()))
    return sorted_once(rows, columns)


def merged_coordinates(
    rows: Tensor,
    columns: Tensor,
    reasons: Tensor,
    more_rows: Tensor,
    more_columns: Tensor,
    more_reasons: Tensor,
    items: Tensor,
    positives: Tensor,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Merge two lists of coordinates in one pass, which is possible where both have every pair once and in order.

    Args:
        rows: [M] int64 of the first list, which is in order.
        columns: [M] int64.
        reasons: [M] int8, which stay where both lists have a pair.
        more_rows: [L] int64 of the second list.
        more_columns: [L] int64.
        more_reasons: [L] int8.
        items: [C] int64 item of each column.
        positives: [B] int64; pairs of the second list that hold a copy of their row's positive are left out.

    Returns:
        rows, columns and reasons; or None where the second list is not in order or has coordinates that are not of
        the batch, or no compiled loop can be used.
    """
    parts = rows, columns, reasons, more_rows, more_columns, more_reasons, items, positives
    if not suits(*parts):
        return None
    in_order, *found = merged(*(part.contiguous().numpy() for part in parts))
    if not in_order:
        return None
    at_rows, at_columns, why = (torch.from_numpy(part) for part in found)
    return at_rows, at_columns, why


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
    sieve, slots, distinct, starts, order = groups(items.contiguous().numpy())
    wanted = keys.contiguous().numpy()
    which, columns = look_up(sieved(sieve, wanted), slots, distinct, starts, order, wanted)
    return torch.from_numpy(which), torch.from_numpy(columns)


def plain_pairs(items: Tensor, keys: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Find the pairs of :func:`matching_pairs` by joining, and sorting what was found."""
    which, places = plain_join(items, keys)
    rows = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=keys.device), offsets.diff())[which]
    kept = sorted_once(rows, places)
    return rows[kept], places[kept]


def compiled_pairs(items: Tensor, keys: Tensor, offsets: Tensor, at_once: int = _AT_ONCE) -> tuple[Tensor, Tensor]:
    """Find them through a hash table, and count instead of sorting; ``at_once`` pairs are put in order together."""
    sieve, slots, distinct, starts, order = groups(items.contiguous().numpy())
    wanted = keys.contiguous().numpy()
    table = slots, distinct, starts, order
    rows, places = pairs(sieved(sieve, wanted), *table, wanted, offsets.contiguous().numpy(), at_once)
    return torch.from_numpy(rows), torch.from_numpy(places)
