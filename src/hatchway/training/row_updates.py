"""The update of the table rows that a step looked up: sum the gradients by row, scale each row, move it.

The plain path writes out a gradient for every row looked up and sums those by sorting; the compiled one groups the
look-ups through a hash table and then reads, sums and moves each row once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import Compiled, CompiledInAnyOrder, ahead_of_change, at_once, parts_of, suits
from hatchway.towers.lookups import LookedUp

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


_AHEAD = 16
"""Rows between asking for a row and moving it: as many are on their way from memory at a time."""
_LINE = 16
"""Numbers of a row that memory brings together."""


@dataclass(frozen=True)
class RowRule:
    """How a row moves; see :class:`hatchway.training.optimiser.RowWiseAdagrad`."""

    rate: float
    decay: float
    shrink: float
    epsilon: float


def update_rows(
    table: Tensor, square: Tensor, updates: Tensor | None, looked_up: Sequence[LookedUp], rule: RowRule
) -> None:
    """Move the rows that were looked up, in place.

    Args:
        table: [N, d].
        square: [N], every row's accumulator.
        updates: [N], how often every row was moved; needed where ``rule.decay`` is below 1.
        looked_up: the look-ups whose gradients arrived; at least one.
        rule: how a row moves.
    """
    number = sum(len(one.rows) for one in looked_up)
    usual = table.dtype == torch.float32 and table.is_contiguous() and table.shape[1] and number < 2**31
    if usual and suits(table, *(one.gradient for one in looked_up)):
        _compiled(table, square, updates, looked_up, rule)
    else:
        _plain(table, square, updates, looked_up, rule)


def summed_rows(looked_up: Sequence[LookedUp]) -> tuple[Tensor, Tensor]:
    """Sum gradients by row.

    Returns:
        rows: [U] int64, unique and ascending.
        values: [U, d].
    """
    pairs = [one.pairs() for one in looked_up]
    values = torch.cat([part for _, part in pairs])
    rows, inverse = torch.unique(torch.cat([part for part, _ in pairs]), return_inverse=True)
    return rows, values.new_zeros(len(rows), values.shape[1]).index_add_(0, inverse, values)


def _plain(table: Tensor, square: Tensor, updates: Tensor | None, looked_up: Sequence[LookedUp], rule: RowRule) -> None:
    rows, gradient = summed_rows(looked_up)
    gradient = gradient.to(table.dtype)
    kept, fresh = square[rows] * rule.decay, gradient.square().mean(1)
    if updates is None:
        kept += fresh
        scale = kept
    else:
        times = updates[rows] + 1
        updates[rows] = times
        kept += (1 - rule.decay) * fresh
        scale = kept / (1 - rule.decay**times)
    square[rows] = kept
    change = gradient * (-rule.rate / (scale.sqrt() + rule.epsilon))[:, None]
    if rule.shrink:
        change -= rule.rate * rule.shrink * table[rows]
    table.index_add_(0, rows, change)


def _compiled(
    table: Tensor, square: Tensor, updates: Tensor | None, looked_up: Sequence[LookedUp], rule: RowRule
) -> None:
    rows, places, factors, gradients, before = [], [], [], [], 0
    for one in looked_up:
        rows.append(one.rows)
        places.append(before + (torch.arange(len(one.rows)) if one.places is None else one.places))
        factors.append(torch.ones(len(one.rows)) if one.factors is None else one.factors.float())
        gradients.append(one.gradient.float())
        before += len(one.gradient)
    at, back, factor, gradient = (
        (parts[0] if len(parts) == 1 else torch.cat(parts)).contiguous().numpy()
        for parts in (rows, places, factors, gradients)
    )
    distinct, starts, order = _grouped(at)
    vectors, squares = table.detach().numpy(), square.numpy()
    flat = vectors.reshape(-1)
    times = np.empty(0, np.float32) if updates is None else updates.numpy()
    numbers = np.float32(rule.rate), np.float32(rule.decay), np.float32(rule.shrink), np.float32(rule.epsilon)

    def work(_: int, begin: int, end: int) -> None:
        _move(vectors, flat, squares, times, distinct, starts, order, back, factor, gradient, *numbers, begin, end)

    at_once(work, parts_of(len(distinct), 1024))


@Compiled
def _grouped(rows: Int64) -> tuple[Int64, Int32, Int32]:
    """Group look-ups by row.

    Returns:
        distinct: [U] the rows, in the order of their first look-up.
        starts: [U + 1] where each row's look-ups begin in ``order``.
        order: [K] the look-ups, grouped by row, in their own order within a row.
    """
    number = len(rows)
    bits = 4
    while (1 << bits) < 2 * number:
        bits += 1
    slots = np.full(1 << bits, -1, np.int32)
    distinct, group = np.empty(number, np.int64), np.empty(number, np.int32)
    starts = np.zeros(number + 1, np.int32)
    found = 0
    for k in range(number):
        slot = np.int64((np.uint64(rows[k]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))
        while slots[slot] >= 0 and distinct[slots[slot]] != rows[k]:
            slot = (slot + 1) & ((1 << bits) - 1)
        if slots[slot] < 0:
            slots[slot] = found
            distinct[found] = rows[k]
            found += 1
        group[k] = slots[slot]
        starts[group[k] + 1] += 1
    for u in range(found):
        starts[u + 1] += starts[u]
    order, filled = np.empty(number, np.int32), starts[:found].copy()
    for k in range(number):
        order[filled[group[k]]] = k
        filled[group[k]] += 1
    return distinct[:found].copy(), starts[: found + 1].copy(), order


@CompiledInAnyOrder
def _move(
    table: Float32,
    flat: Float32,
    square: Float32,
    updates: Float32,
    distinct: Int64,
    starts: Int32,
    order: Int32,
    places: Int64,
    factors: Float32,
    gradients: Float32,
    rate: np.float32,
    decay: np.float32,
    shrink: np.float32,
    epsilon: np.float32,
    begin: int,
    end: int,
) -> None:
    """Move the rows of some groups with the arithmetic of the plain path; ``flat`` is ``table`` in one dimension."""
    width = table.shape[1]
    one, less = np.float32(1.0), rate * shrink
    gradient = np.empty(width, np.float32)
    for u in range(begin, end):
        # A row is seldom in any cache.
        coming = distinct[min(u + _AHEAD, end - 1)]
        ahead_of_change(square, coming)
        for x in range(0, width, _LINE):
            ahead_of_change(flat, coming * width + x)
        source, factor = places[order[starts[u]]], factors[order[starts[u]]]
        for x in range(width):
            gradient[x] = gradients[source, x] * factor
        for at in range(starts[u] + 1, starts[u + 1]):
            source, factor = places[order[at]], factors[order[at]]
            for x in range(width):
                gradient[x] += gradients[source, x] * factor
        total = np.float32(0.0)
        for x in range(width):
            total += gradient[x] * gradient[x]
        fresh = total / np.float32(width)
        row = distinct[u]
        kept = square[row] * decay
        if len(updates):
            updates[row] += one
            kept += (one - decay) * fresh
            scale = kept / (one - decay ** updates[row])
        else:
            kept += fresh
            scale = kept
        square[row] = kept
        step = -rate / (np.sqrt(scale) + epsilon)
        for x in range(width):
            table[row, x] += gradient[x] * step - less * table[row, x]
