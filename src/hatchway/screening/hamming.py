"""Which of many 64-bit hashes differ in few bits: found part by part, never all against all.

A hash is cut into parts. Two hashes that differ in at most ``radius`` bits differ in few bits in at least one part, so
the candidates of a hash stand in the buckets that its parts, with those few bits changed, lead to (multi-index hashing,
Norouzi et al. 2012). Equal hashes are looked up once, and a hash with very many neighbours is given up early.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.compiled import Compiled, at_once, available, parts_of
from hatchway.data.engagements import Int64
from hatchway.errors import DataError, SettingsError

UInt64 = npt.NDArray[np.uint64]
Int32 = npt.NDArray[np.int32]

BITS = 64
LARGEST_RADIUS = 16
_QUERIES = 8192
_SLICE = 64
_CACHED = 17
_WIDEST = 24  # bits of a part: its table of buckets has 2^24 entries at most


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Which hashes of one array are near which of another, or of the same.

    Attributes:
        first: [M] int64 places in the queries, ascending.
        second: [M] int64 places in the hashes, ascending within a query.
        crowded: [Q] bool, queries near more than so many hashes: given up, and in no pair.
    """

    first: Int64
    second: Int64
    crowded: npt.NDArray[np.bool_]


def near_pairs(queries: UInt64, hashes: UInt64, radius: int, most: int) -> NearPairs:
    """Find for each query the hashes that differ from it in at most ``radius`` of the 64 bits.

    Args:
        queries: [Q] uint64.
        hashes: [N] uint64.
        radius: 0 to 16.
        most: a query near more than so many hashes (equal ones counted each) is crowded.

    Raises:
        DataError: an array is not of uint64.
        SettingsError: the radius is not 0 to 16, or ``most`` is below 1.
    """
    for array in (queries, hashes):
        if array.dtype != np.uint64 or array.ndim != 1:
            raise DataError(f"hashes of type {array.dtype} and shape {array.shape}; allowed: uint64, [N]")
    if not 0 <= radius <= LARGEST_RADIUS or most < 1:
        raise SettingsError(f"radius = {radius}, most = {most}; allowed: 0 to {LARGEST_RADIUS}, and 1 or more")
    asked, to_asked = np.unique(queries, return_inverse=True)
    known, members, copies = _grouped(hashes)
    found, counts, crowded = _near_distinct(asked, known, copies, radius, most)
    # From distinct hashes back to places: a query stands for all that are equal to it, a hash for its members.
    crowded_queries = crowded[to_asked]
    which = np.flatnonzero(~crowded_queries)
    starts = np.concatenate([[0], np.cumsum(counts)])
    of = to_asked[which]
    queries_of, places = _expanded(which, starts[of], starts[of + 1])
    groups, begins = found[places], np.concatenate([[0], np.cumsum(copies)])
    first, places = _expanded(queries_of, begins[groups], begins[groups + 1])
    second = members[places]
    order = np.lexsort((second, first))
    return NearPairs(first[order], second[order], crowded_queries)


def _grouped(hashes: UInt64) -> tuple[UInt64, Int64, Int64]:
    """Return the distinct hashes, the places of each one's copies, group after group, and how many there are."""
    members = np.argsort(hashes, kind="stable")
    ordered = hashes[members]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    begins = np.flatnonzero(fresh)
    copies = np.diff(np.concatenate([begins, [len(ordered)]]))
    return ordered[begins], members.astype(np.int64), copies.astype(np.int64)


def _expanded(keys: Int64, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Repeat each key beside the numbers of its own range ``begin:end``."""
    lengths = end - begin
    total = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    index = np.arange(total) + np.repeat(begin - starts, lengths)
    return np.repeat(keys, lengths), index


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of the hashes: its bits, the changes that are tried, and the hashes in the order of its value."""

    shift: int
    bits: int
    changes: Int64
    starts: Int64
    order: Int32
    hashes: UInt64

    def keys(self, hashes: UInt64) -> Int64:
        """Return this part of each hash."""
        return ((hashes >> np.uint64(self.shift)) & np.uint64((1 << self.bits) - 1)).astype(np.int64)

    @property
    def most_changes(self) -> int:
        """How many bits of this part may differ."""
        return int(np.bitwise_count(self.changes[-1:].astype(np.uint64))[0])


def _near_distinct(
    queries: UInt64, hashes: UInt64, copies: Int64, radius: int, most: int
) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
    """Find the near ones among distinct hashes: groups found, query after query, how many each, and who is crowded."""
    counts = np.zeros(len(queries), np.int64)
    crowded = np.zeros(len(queries), np.bool_)
    if not len(hashes) or not len(queries):
        return np.empty(0, np.int64), counts, crowded
    allowed = allowed_changes(len(hashes), radius)
    table = _parts(hashes, allowed)
    weight = np.zeros(len(queries), np.int64)
    look = _compiled_block if available() else _plain_block
    who: list[Int64] = []
    what: list[Int64] = []
    for number, part in enumerate(table):
        # Queries that lead to one bucket come together, so that it is fetched once.
        keys = part.keys(queries)
        order = np.argsort(keys, kind="stable")
        blocks = [order[start : start + _QUERIES] for start in range(0, len(order), _QUERIES)]
        pieces: list[tuple[Int64, Int64]] = [(np.empty(0, np.int64),) * 2] * len(blocks)

        def work(_: int, begin: int, end: int) -> None:
            for block in range(begin, end):
                rows = blocks[block]  # noqa: B023
                mine = weight[rows]
                places, groups = look(queries[rows], number, table, copies, radius, most, mine)  # noqa: B023
                weight[rows] = mine
                kept = mine[places] <= most
                pieces[block] = rows[places[kept]], groups[kept]  # noqa: B023

        at_once(work, parts_of(len(blocks), 1))
        who += [places for places, _ in pieces]
        what += [groups for _, groups in pieces]
    crowded = weight > most
    of, groups = np.concatenate(who), np.concatenate(what)
    kept = np.flatnonzero(~crowded[of])
    kept = kept[np.argsort(of[kept], kind="stable")]
    return groups[kept], np.bincount(of[kept], minlength=len(queries)).astype(np.int64), crowded


def allowed_changes(number: int, radius: int) -> tuple[tuple[int, int], ...]:
    """Choose how hashes are cut, and how many bits may differ in each part, so that the least is looked at.

    With m parts and changes a_1 … a_m that sum to radius − m + 1, two hashes within the radius differ in at most a_p
    bits in some part p: otherwise they differed in at least Σ(a_p + 1) = radius + 1 bits.

    Args:
        number: N, how many hashes there are.
        radius: r.

    Returns:
        For each part its bits and its changes, −1 where it need not be looked at.
    """
    best: tuple[float, tuple[tuple[int, int], ...]] | None = None
    for parts in range(-(-BITS // _WIDEST), 9):
        spare = radius - parts + 1
        bits = [BITS // parts + (part < BITS % parts) for part in range(parts)]
        changes = [-1 + (spare + parts) // parts + (part < (spare + parts) % parts) for part in range(parts)]
        cost = 0.0
        for width, change in zip(bits, changes, strict=True):
            probes = sum(_choose(width, few) for few in range(change + 1))
            # A bucket is a place in a table; tables that no cache holds cost several times as much to look at.
            cost += probes * ((4.0 if width <= _CACHED else 25.0) + number / 2.0**width)
        if best is None or cost < best[0]:
            best = cost, tuple(zip(bits, changes, strict=True))
    assert best is not None  # noqa: S101  there is always a number of parts
    return best[1]


def _choose(n: int, k: int) -> int:
    result = 1
    for step in range(k):
        result = result * (n - step) // (step + 1)
    return result


def _parts(hashes: UInt64, allowed: tuple[tuple[int, int], ...]) -> list[_Part]:
    """Sort the hashes by each part that is looked at."""
    table, shift = [], 0
    for bits, changes in allowed:
        if changes >= 0:
            keys = ((hashes >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).astype(np.int64)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            starts = np.zeros((1 << bits) + 1, np.int64)
            np.cumsum(np.bincount(keys, minlength=1 << bits), out=starts[1:])
            masks = [
                sum(1 << bit for bit in flipped)
                for few in range(changes + 1)
                for flipped in itertools.combinations(range(bits), few)
            ]
            table.append(_Part(shift, bits, np.array(masks, np.int64), starts, order, hashes[order]))
        shift += bits
    return table


def _compiled_block(
    queries: UInt64, number: int, table: list[_Part], copies: Int64, radius: int, most: int, weight: Int64
) -> tuple[Int64, Int64]:
    """Look up a block of queries in one part in machine code; adds to ``weight``."""
    part = table[number]
    earlier = np.array([(p.shift, p.bits, p.most_changes) for p in table[:number]], np.int64).reshape(-1, 3)
    places, groups = _scan(queries, part.shift, part.bits, part.changes, part.starts, part.order, part.hashes, earlier,
                           copies, radius, most, weight)  # fmt: skip
    return places, groups


@Compiled
def _scan(  # noqa: C901  a compiled loop calls nothing
    queries: UInt64,
    shift: int,
    bits: int,
    changes: Int64,
    starts: Int64,
    order: Int32,
    hashes: UInt64,
    earlier: Int64,
    copies: Int64,
    radius: int,
    most: int,
    weight: Int64,
) -> tuple[Int64, Int64]:
    """Compare every query with the buckets of one part; what an earlier part has found already is left out."""
    one, two, four = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    ones = np.uint64(0x0101010101010101)
    low = np.uint64((1 << bits) - 1)
    places, groups = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    for q in range(len(queries)):
        key = np.int64((queries[q] >> np.uint64(shift)) & low)
        for c in range(len(changes)):
            if weight[q] > most:
                break
            bucket = key ^ changes[c]
            for k in range(starts[bucket], starts[bucket + 1]):
                apart = hashes[k] ^ queries[q]
                # The bits are counted in groups of two, four and eight.
                x = apart - ((apart >> np.uint64(1)) & one)
                x = (x & two) + ((x >> np.uint64(2)) & two)
                x = (x + (x >> np.uint64(4))) & four
                if np.int64((x * ones) >> np.uint64(56)) > radius:
                    continue
                fresh = True
                for e in range(len(earlier)):
                    x = (apart >> np.uint64(earlier[e, 0])) & np.uint64((1 << earlier[e, 1]) - 1)
                    x = x - ((x >> np.uint64(1)) & one)
                    x = (x & two) + ((x >> np.uint64(2)) & two)
                    x = (x + (x >> np.uint64(4))) & four
                    if np.int64((x * ones) >> np.uint64(56)) <= earlier[e, 2]:
                        fresh = False
                        break
                if not fresh:
                    continue
                weight[q] += copies[order[k]]
                if weight[q] > most:
                    break
                if found == len(places):
                    places = np.concatenate((places, places))
                    groups = np.concatenate((groups, groups))
                places[found], groups[found] = q, order[k]
                found += 1
    return places[:found].copy(), groups[:found].copy()


def _plain_block(
    queries: UInt64, number: int, table: list[_Part], copies: Int64, radius: int, most: int, weight: Int64
) -> tuple[Int64, Int64]:
    """Look up a block of queries in one part with array operations: a change at a time, buckets a slice at a time."""
    part = table[number]
    keys = part.keys(queries)
    who = [np.empty(0, np.int64)]
    what = [np.empty(0, np.int64)]
    for change in part.changes:
        begin, end = part.starts[keys ^ change], part.starts[(keys ^ change) + 1]
        while (active := np.flatnonzero((weight <= most) & (begin < end))).size:
            stop = np.minimum(begin[active] + _SLICE, end[active])
            of, places = _expanded(active, begin[active], stop)
            apart = part.hashes[places] ^ queries[of]
            near = np.bitwise_count(apart) <= radius
            of, places, apart = of[near], places[near], apart[near]
            fresh = np.ones(len(of), np.bool_)
            for before in table[:number]:
                fresh &= np.bitwise_count(before.keys(apart).astype(np.uint64)) > before.most_changes
            of, groups = of[fresh], part.order[places[fresh]].astype(np.int64)
            np.add.at(weight, of, copies[groups])
            who.append(of)
            what.append(groups)
            begin[active] = stop
    return np.concatenate(who), np.concatenate(what)
