"""The cells of ``gaps``, updated and read by compiled loops: the same numbers, bit for bit.

``stamps`` is the flat array of cells (int64), of which ``sums`` (float64) is another view. Cells are seldom in any
cache. So a hash's places are computed in a loop of their own, and each cell is asked for some turns before it is worked
on: no turn waits for memory, which brings many cells at once. Nor does a turn ask whether a cell was touched before in
the batch, or is full: a processor cannot guess the answer, and would lose more by a wrong guess than by the few
operations.

Reading is no second walk through the cells: a batch touches more pages than a processor keeps the addresses of, and
would look each of them up again. The turn that changes a cell reads it, and only cells that further copies came to (by
a table of flags, which may flag a few others too) are read again.

Without salts nothing is hashed: an item's row is its place. Both loops return whether every place exists, and stop
before the first cell is changed if not. All places are unsigned: a sum of a signed and an unsigned number would be a
float.
"""

from typing import Any

import numpy as np

from hatchway.compiled import Compiled, ahead, ahead_of_change, far_ahead, widest
from hatchway.frequency.gaps import MOST_VOTES, VOTES
from hatchway.frequency.hashing import FIRST_FACTOR, SECOND_FACTOR

Array = np.ndarray[Any, Any]

_FIRST, _SECOND = np.uint64(FIRST_FACTOR), np.uint64(SECOND_FACTOR)
_1, _2, _27, _30, _31, _32 = (np.uint64(number) for number in (1, 2, 27, 30, 31, 32))
_LOW = np.uint64(2**32 - 1)

_FAR_AHEAD, _AHEAD = 96, 16
"""Turns between asking for a cell, first the second-level cache and then the first, and working on it."""

_FLAGS = np.uint64(8_192)
"""Flags of cells that further copies came to: as many as stay in the first-level cache."""


def _record(  # noqa: C901, PLR0912  one walk through the cells, which compiled code may not leave for another
    stamps: Array, salts: Array, items: Array, clock: int, most: int, once: bool, floor: float, out: Array
) -> bool:
    """Let a batch in; ``once`` gives a cell one vote a batch.

    Where ``out`` is as long as ``items``, it is filled with their chances after the update, from ``floor`` to 1.
    """
    widest()
    sums = stamps.view(np.float64)
    hashes = np.uint64(max(len(salts), 1))
    buckets = np.uint64(len(stamps)) // (hashes * _2)
    range_, stride = buckets & _LOW, (hashes * _2) & _LOW  # a product of two numbers of 32 bits is the quickest
    number, reads = len(items), len(out) > 0
    places, listed = np.empty(number, np.uint64), np.empty(number, np.int32)
    of_further_hashes = np.empty(number if reads and hashes > 1 else 0)
    flags = np.zeros(np.int64(_FLAGS), np.uint8)
    now = clock << VOTES
    base, weight, every = float(max(most, 1)), 1.0 if most else 1e300, np.int64(not once)
    for h in range(hashes):
        if len(salts):
            salt, first = np.uint64(salts[h]), np.uint64(h) * _2
            for i in range(len(items)):
                z = np.uint64(items[i]) + salt
                z = (z ^ (z >> _30)) * _FIRST
                z = (z ^ (z >> _27)) * _SECOND
                z = z ^ (z >> _31)
                places[i] = (((z >> _32) * range_) >> _32) * stride + first
        else:
            for i in range(len(items)):
                places[i] = np.uint64(items[i]) * _2
                if np.uint64(items[i]) >= buckets:
                    return False
        for i in range(min(_FAR_AHEAD, number)):
            far_ahead(stamps, places[i])
        made = of_further_hashes if h else out
        copies = 0
        for i in range(number):
            far_ahead(stamps, places[min(i + _FAR_AHEAD, number - 1)])
            ahead_of_change(stamps, places[min(i + _AHEAD, number - 1)])
            place = places[i]
            stamp, known = stamps[place], sums[place + _1]
            votes = stamp & MOST_VOTES
            fresh = np.int64(stamp < now)  # otherwise a further copy, which is a further vote for the same gap
            beyond = max(votes - most, 0) * fresh
            # Exactly most / votes, or 1. Where most is 0 the old sum goes: its 1e-300th part leaves no bit of a gap.
            share = base / (base + beyond * weight)
            new_sum, new_votes = known * share + (clock - (stamp >> VOTES)), (votes - beyond) + (fresh | every)
            sums[place + _1], stamps[place] = new_sum, now + new_votes
            if reads:
                made[i] = min(max(new_votes / new_sum, floor), 1.0)
            listed[copies] = i
            copies += int(1 - fresh)
        if not reads:
            continue
        if copies:
            for k in range(copies):
                flags[(places[listed[k]] // _2) % _FLAGS] = 1
            again = 0
            for i in range(number):
                listed[again] = i
                again += int(flags[(places[i] // _2) % _FLAGS])
            for k in range(again):
                place = places[listed[k]]
                made[listed[k]] = min(max((stamps[place] & MOST_VOTES) / sums[place + _1], floor), 1.0)
        if h:
            for i in range(number):
                out[i] = min(out[i], made[i])
    return True


def _read(stamps: Array, salts: Array, items: Array, clock: int, open_gaps: bool, floor: float, out: Array) -> bool:
    """Fill ``out`` with the chances of ``items``, from ``floor`` to 1."""
    widest()
    sums = stamps.view(np.float64)
    hashes = np.uint64(max(len(salts), 1))
    buckets = np.uint64(len(stamps)) // (hashes * _2)
    range_, stride = buckets & _LOW, (hashes * _2) & _LOW  # a product of two numbers of 32 bits is the quickest
    places, number = np.empty(len(items), np.uint64), len(items)
    for h in range(hashes):
        if len(salts):
            salt, first = np.uint64(salts[h]), np.uint64(h) * _2
            for i in range(len(items)):
                z = np.uint64(items[i]) + salt
                z = (z ^ (z >> _30)) * _FIRST
                z = (z ^ (z >> _27)) * _SECOND
                z = z ^ (z >> _31)
                places[i] = (((z >> _32) * range_) >> _32) * stride + first
        else:
            for i in range(len(items)):
                places[i] = np.uint64(items[i]) * _2
                if np.uint64(items[i]) >= buckets:
                    return False
        for i in range(min(_FAR_AHEAD, number)):
            far_ahead(stamps, places[i])
        for i in range(number):
            far_ahead(stamps, places[min(i + _FAR_AHEAD, number - 1)])
            ahead(stamps, places[min(i + _AHEAD, number - 1)])
            stamp, known = stamps[places[i]], sums[places[i] + _1]
            if open_gaps:
                known += clock - (stamp >> VOTES)
            chance = max((stamp & MOST_VOTES) / known, floor) if stamp > MOST_VOTES else floor
            if chance < out[i] or h == 0:
                out[i] = min(chance, 1.0)
    return True


record_loop = Compiled(_record)
read_loop = Compiled(_read)
