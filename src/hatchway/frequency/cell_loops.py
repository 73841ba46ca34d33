"""The cells of ``gaps``, updated and read by compiled loops: the same numbers, bit for bit.

``stamps`` (int64) and ``sums`` (float64) are two views of one flat array of cells. Cells are seldom in any cache. So a
hash's places are computed in a loop of their own, and before they are worked on, its cells are looked at in a loop that
does nothing else: the shorter the loop, the more waits for memory overlap.

Without salts nothing is hashed: an item's row is its place. Both loops return whether every place exists, and stop
before the first cell is changed if not. All places are unsigned: a sum of a signed and an unsigned number would be a
float.
"""

from typing import Any

import numpy as np

from hatchway.compiled import Compiled
from hatchway.frequency.gaps import MOST_VOTES, VOTES
from hatchway.frequency.hashing import FIRST_FACTOR, SECOND_FACTOR

Array = np.ndarray[Any, Any]

_FIRST, _SECOND = np.uint64(FIRST_FACTOR), np.uint64(SECOND_FACTOR)
_1, _2, _27, _30, _31, _32 = (np.uint64(number) for number in (1, 2, 27, 30, 31, 32))


def _record(  # noqa: C901, PLR0912  a compiled function calls no other
    stamps: Array, sums: Array, salts: Array, items: Array, clock: int, most: int, once: bool, floor: float, out: Array
) -> bool:
    """Let a batch in; ``once`` gives a cell one vote a batch.

    Where ``out`` is as long as ``items``, it is filled with their chances after the update, from ``floor`` to 1.
    """
    hashes = np.uint64(max(len(salts), 1))
    buckets = np.uint64(len(stamps)) // (hashes * _2)
    places = np.empty(len(items), np.uint64)
    now, looked_at = clock << VOTES, np.int64(0)
    for h in range(hashes):
        if len(salts):
            for i in range(len(items)):
                z = np.uint64(items[i]) + np.uint64(salts[h])
                z = (z ^ (z >> _30)) * _FIRST
                z = (z ^ (z >> _27)) * _SECOND
                z = z ^ (z >> _31)
                places[i] = ((((z >> _32) * buckets) >> _32) * hashes + h) * _2
        else:
            for i in range(len(items)):
                places[i] = np.uint64(items[i]) * _2
                if np.uint64(items[i]) >= buckets:
                    return False
        for i in range(len(items)):
            looked_at |= stamps[places[i]]
        for i in range(len(items)):
            place = places[i]
            stamp = stamps[place]
            if stamp >= now:  # touched in this batch: a further copy is a further vote for the same gap
                if not once:
                    stamps[place] = stamp + 1
                continue
            votes, known = stamp & MOST_VOTES, sums[place + _1]
            if votes > most:
                known = known * (float(most) / votes)
                votes = most
            sums[place + _1] = known + (clock - (stamp >> VOTES))
            stamps[place] = now + (votes + 1)
        for i in range(len(out)):
            chance = max((stamps[places[i]] & MOST_VOTES) / sums[places[i] + _1], floor)
            if chance < out[i] or h == 0:
                out[i] = min(chance, 1.0)
    return bool(looked_at >= 0)  # always; or the compiler would leave that loop out


def _read(
    stamps: Array, sums: Array, salts: Array, items: Array, clock: int, open_gaps: bool, floor: float, out: Array
) -> bool:
    """Fill ``out`` with the chances of ``items``, from ``floor`` to 1."""
    hashes = np.uint64(max(len(salts), 1))
    buckets = np.uint64(len(stamps)) // (hashes * _2)
    places = np.empty(len(items), np.uint64)
    for h in range(hashes):
        if len(salts):
            for i in range(len(items)):
                z = np.uint64(items[i]) + np.uint64(salts[h])
                z = (z ^ (z >> _30)) * _FIRST
                z = (z ^ (z >> _27)) * _SECOND
                z = z ^ (z >> _31)
                places[i] = ((((z >> _32) * buckets) >> _32) * hashes + h) * _2
        else:
            for i in range(len(items)):
                places[i] = np.uint64(items[i]) * _2
                if np.uint64(items[i]) >= buckets:
                    return False
        for i in range(len(items)):
            stamp, known = stamps[places[i]], sums[places[i] + _1]
            if open_gaps:
                known += clock - (stamp >> VOTES)
            chance = max((stamp & MOST_VOTES) / known, floor) if stamp > MOST_VOTES else floor
            if chance < out[i] or h == 0:
                out[i] = min(chance, 1.0)
    return True


record_loop = Compiled(_record)
read_loop = Compiled(_read)
