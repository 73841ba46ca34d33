"""The compiled loops of ``matching``: a hash table of the columns' items, and rows of columns without a sort.

The table is small and stays in the first two levels of cache; nothing here has anything of the size of the catalogue.
Two things would cost more than all the rest, and are avoided. A branch that goes one way for some items and the other
for the next cannot be guessed by a processor: so keys are first sieved through a bit each, without branching, and only
those that pass are looked up. And a sort compares: so what must be in order is counted and put in its place.
"""

import numpy as np
import numpy.typing as npt

from hatchway.compiled import Compiled

Bits = npt.NDArray[np.uint64]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_FACTOR = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the highest bits of its multiples are spread evenly (Knuth 1973, section 6.4)."""

_1, _6, _63 = (np.uint64(number) for number in (1, 6, 63))


@Compiled
def groups(items: Int64) -> tuple[Bits, Int32, Int64, Int32, Int32]:
    """Group columns by their item.

    Returns:
        sieve: bits, set for every item.
        slots: [power of 2] the number of an item's group, at the first free slot from the item's hash on, or −1.
        distinct: [G] the item of each group, in the order of their first columns.
        starts: [G + 1] where each group's columns begin in ``order``.
        order: [C] the columns, group by group, ascending within a group.
    """
    number = len(items)
    bits = 6
    while (1 << bits) < 4 * number:
        bits += 1
    shift, shift_of_bit = np.uint64(64 - bits), np.uint64(64 - bits - 2)
    slots, mask = np.full(1 << bits, -1, np.int32), (1 << bits) - 1
    sieve = np.zeros(1 << (bits + 2 - 6), np.uint64)
    distinct, group = np.empty(number, np.int64), np.empty(number, np.int32)
    starts = np.zeros(number + 1, np.int32)
    found = 0
    for c in range(number):
        mixed = np.uint64(items[c]) * np.uint64(_FACTOR)
        slot = np.int64(mixed >> shift)
        while slots[slot] >= 0 and distinct[slots[slot]] != items[c]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = found
            distinct[found] = items[c]
            sieve[(mixed >> shift_of_bit) >> _6] |= _1 << ((mixed >> shift_of_bit) & _63)
            found += 1
        group[c] = slots[slot]
        starts[group[c] + 1] += 1
    for g in range(found):
        starts[g + 1] += starts[g]
    order, filled = np.empty(number, np.int32), starts[:found].copy()
    for c in range(number):
        order[filled[group[c]]] = c
        filled[group[c]] += 1
    return sieve, slots, distinct[:found].copy(), starts[: found + 1].copy(), order


@Compiled
def sieved(sieve: Bits, keys: Int64) -> Int64:
    """Return the numbers of the keys whose bit is set, ascending: all that are an item, and a few that are not."""
    bits = 6
    while (1 << bits) < len(sieve) << 6:
        bits += 1
    shift = np.uint64(64 - bits)
    passed, number = np.empty(len(keys), np.int64), np.int64(0)
    for k in range(len(keys)):
        bit = (np.uint64(keys[k]) * np.uint64(_FACTOR)) >> shift
        passed[number] = k
        number += np.int64((sieve[bit >> _6] >> (bit & _63)) & _1)
    return passed[:number]


@Compiled
def look_up(
    passed: Int64, slots: Int32, distinct: Int64, starts: Int32, order: Int32, keys: Int64
) -> tuple[Int64, Int64]:
    """Return the number of a key and a column for every column that holds it: keys ascending, columns within a key."""
    bits = 6
    while (1 << bits) < len(slots):
        bits += 1
    shift, mask = np.uint64(64 - bits), len(slots) - 1
    number = len(passed)
    hit_keys, found, hits, total = np.empty(number, np.int64), np.empty(number, np.int32), 0, 0
    for k in passed:
        slot = np.int64((np.uint64(keys[k]) * np.uint64(_FACTOR)) >> shift)
        while slots[slot] >= 0 and distinct[slots[slot]] != keys[k]:
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            hit_keys[hits], found[hits] = k, slots[slot]
            total += starts[found[hits] + 1] - starts[found[hits]]
            hits += 1
    which, columns, out = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for hit in range(hits):
        for at in range(starts[found[hit]], starts[found[hit] + 1]):
            which[out], columns[out] = hit_keys[hit], order[at]
            out += 1
    return which, columns


@Compiled
def pairs(  # noqa: C901, PLR0912  a compiled loop calls nothing
    passed: Int64, slots: Int32, distinct: Int64, starts: Int32, order: Int32, keys: Int64, offsets: Int64, at_once: int
) -> tuple[Int64, Int64]:
    """Return each row and column that holds one of its keys once: rows ascending, columns within a row.

    So many pairs are put in order together, or a row's. It is an argument, for what stands outside the loop becomes
    part of the machine code that is kept.
    """
    bits = 6
    while (1 << bits) < len(slots):
        bits += 1
    shift, mask, number = np.uint64(64 - bits), len(slots) - 1, len(passed)
    found, hit_rows, hits = np.empty(number, np.int32), np.empty(number, np.int32), 0
    last = np.full(len(distinct) + 1, -1, np.int32)  # the last row in which a group was found
    places = np.zeros(len(offsets), np.int64)  # where each row's columns begin
    row = 0
    for k in passed:
        while k >= offsets[row + 1]:
            row += 1
        slot = np.int64((np.uint64(keys[k]) * np.uint64(_FACTOR)) >> shift)
        while slots[slot] >= 0 and distinct[slots[slot]] != keys[k]:
            slot = (slot + 1) & mask
        group = slots[slot]
        if group >= 0 and last[group] != row:
            last[group] = row
            found[hits], hit_rows[hits] = group, row
            places[row + 1] += starts[group + 1] - starts[group]
            hits += 1
    for row in range(len(offsets) - 1):
        places[row + 1] += places[row]
    group_of = np.empty(len(order), np.int32)
    for g in range(len(distinct)):
        for at in range(starts[g], starts[g + 1]):
            group_of[order[at]] = g
    rows, columns = np.empty(places[-1], np.int64), np.empty(places[-1], np.int64)
    # Some rows at a time, whose pairs stay in the second level of cache: their columns from the first to the last, each
    # put down in its rows, so that every row has them in order.
    of_group = np.empty(hits, np.int32)
    begin, hit = 0, 0
    while hit < hits:
        first, base = hit, places[hit_rows[hit]]
        bounds = np.zeros(len(distinct) + 1, np.int32)
        while hit < hits and places[hit_rows[hit] + 1] - base <= max(at_once, places[hit_rows[first] + 1] - base):
            bounds[found[hit] + 1] += 1
            hit += 1
        for g in range(len(distinct)):
            bounds[g + 1] += bounds[g]
        filled = bounds.copy()
        for at in range(first, hit):
            of_group[filled[found[at]]] = hit_rows[at]
            filled[found[at]] += 1
        for row in range(hit_rows[first], hit_rows[hit - 1] + 1):
            begin = places[row]
            for at in range(begin, places[row + 1]):
                rows[at] = row
        filled_row = places[hit_rows[first] : hit_rows[hit - 1] + 1].copy()
        for column in range(len(order)):
            for at in range(bounds[group_of[column]], bounds[group_of[column] + 1]):
                row = of_group[at] - hit_rows[first]
                columns[filled_row[row]] = column
                filled_row[row] += 1
    return rows, columns


@Compiled
def first_places(rows: Int64, columns: Int64) -> Int64:  # noqa: C901, PLR0912  a compiled loop calls nothing
    """Return the place of each (row, column) pair's first occurrence, in the order of rows and columns.

    Rows are counted. A row's columns are mostly a few lists one after another, each in order: insertion joins two of
    them in little more than a pass. Where it would take many, they become bits of a map, in which each stands in order.
    """
    number = len(rows)
    most, widest = -1, -1
    for k in range(number):
        most, widest = max(most, rows[k]), max(widest, columns[k])
    ends = np.zeros(most + 2, np.int64)
    for k in range(number):
        ends[rows[k] + 1] += 1
    for row in range(most + 1):
        ends[row + 1] += ends[row]
    order, filled = np.empty(number, np.int64), ends.copy()
    for k in range(number):
        order[filled[rows[k]]] = k
        filled[rows[k]] += 1
    bits, place_of = np.zeros((widest + 1) // 64 + 1, np.uint64), np.empty(widest + 1, np.int64)
    out = 0
    for row in range(most + 1):
        begin, end = ends[row], ends[row + 1]
        moves = 8 * (end - begin)
        for k in range(begin + 1, end):
            place, at = order[k], k
            while at > begin and columns[order[at - 1]] > columns[place]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = place
            moves -= k - at
            if moves < 0:
                break
        if moves < 0:
            for k in range(end - 1, begin - 1, -1):
                # Backwards, so that the earliest place is left standing; insertion may have changed their order.
                column = columns[order[k]]
                seen = (bits[column >> 6] >> np.uint64(column & 63)) & _1
                place_of[column] = min(order[k], place_of[column]) if seen else order[k]
                bits[column >> 6] |= _1 << np.uint64(column & 63)
            for word in range(len(bits)):
                left = bits[word]
                bits[word] = 0
                column = word << 6
                while left:
                    if left & _1:
                        order[out] = place_of[column]
                        out += 1
                    left >>= _1
                    column += 1
            continue
        for k in range(begin, end):
            # What is kept moves to the front, never past what is still to be read.
            if k == begin or columns[order[k]] != columns[order[out - 1]]:
                order[out] = order[k]
                out += 1
    return order[:out].copy()


@Compiled
def merged(
    rows: Int64,
    columns: Int64,
    reasons: Int8,
    more_rows: Int64,
    more_columns: Int64,
    more_reasons: Int8,
    items: Int64,
    positives: Int64,
) -> tuple[bool, Int64, Int64, Int8]:
    """Merge two lists of coordinates, of which each has every pair once and in order.

    Of a pair in both the first list's reason stays, and pairs of the second that hold a copy of the row's positive are
    left out.

    Returns:
        Whether the second list is in order and of this batch (what follows means nothing if not), and the merged
        coordinates.
    """
    total = len(rows) + len(more_rows)
    to_rows, to_columns, to_reasons = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int8)
    first, out, before_row, before_column = 0, 0, -1, -1
    for at in range(len(more_rows)):
        row, column = more_rows[at], more_columns[at]
        outside = row < 0 or row >= len(positives) or column < 0 or column >= len(items)
        if outside or row < before_row or (row == before_row and column <= before_column):
            return False, to_rows, to_columns, to_reasons
        before_row, before_column = row, column
        while first < len(rows) and (rows[first] < row or (rows[first] == row and columns[first] < column)):
            to_rows[out], to_columns[out], to_reasons[out] = rows[first], columns[first], reasons[first]
            first, out = first + 1, out + 1
        known = first < len(rows) and rows[first] == row and columns[first] == column
        to_rows[out], to_columns[out], to_reasons[out] = row, column, more_reasons[at]
        out += int(not known and items[column] != positives[row])
    for at in range(first, len(rows)):
        to_rows[out], to_columns[out], to_reasons[out] = rows[at], columns[at], reasons[at]
        out += 1
    return True, to_rows[:out], to_columns[:out], to_reasons[:out]
