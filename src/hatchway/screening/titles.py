"""Titles that say the same: the same words but for one or two, the same numbers, and enough said to mean something."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from rapidfuzz import fuzz, process

from hatchway.data.contexts import ragged_ranges
from hatchway.data.engagements import Int64
from hatchway.randomness import stream
from hatchway.screening.hamming import UInt64
from hatchway.screening.rarity import Rarity
from hatchway.screening.similar import SimilarItems
from hatchway.screening.wording import Bools, Titles, read_titles

_MEASURED = 3.0
_AGAINST = 4.0
_APART = 0.08
_LONGEST = 30
_PAIRS = 1 << 20


@dataclass(frozen=True, eq=False)
class SimilarTitles:
    """What was found among N titles.

    Attributes:
        similar: which say the same.
        crowded: [N] bool, titles that are like more than so many others: they say too little, and match none.
        read: how many titles have a word at all.
        largest_group: how many items share the words that most items share; 0 without titles.
    """

    similar: SimilarItems
    crowded: Bools
    read: int
    largest_group: int


def similar_titles(titles: pl.Series, threshold: float = 0.9, margin: float = 2.0, most: int = 200) -> SimilarTitles:
    """Find the titles that say the same, without comparing all with all.

    Two titles say the same where, after :func:`~hatchway.screening.wording.read_titles`,

    - their words in the order of the alphabet have a RapidFuzz ratio (2 · common letters in order / all letters) of at
      least the threshold;
    - the numbers of the one are among those of the other, and lengths, weights and volumes agree within 8 %;
    - it is no chance: what the words that they share say together (:mod:`~hatchway.screening.rarity`), less what the
      words say in which they differ (4 bits each at most), plus 3 bits where both state a measure, is at least
      log2(N) + ``margin`` bits.
      Words that say k bits are shared by chance with N / 2^k of N titles.

    Compared are titles that agree in all words but one, or two where they are long. At thresholds about 0.9 that is
    hardly a restriction; titles in which more words differ are not found.

    Args:
        titles: [N] String, null where there is none.
        threshold: above 0 to 1.
        margin: how many bits more than log2(N); with each, half as many pairs are alike by chance.
        most: a title that is like more than so many others matches none.
    """
    read = read_titles(titles)
    distinct, of_items, copies = _distinct(read)
    first, second = _candidates(read, distinct, threshold, most)
    rarity = Rarity(read)
    kept = _agree(rarity, distinct, first, second, threshold, margin)
    first, second = first[kept], second[kept]
    # Of equal titles it is asked as well whether they say enough.
    says = np.zeros(len(distinct), np.bool_)
    several = np.flatnonzero(copies > 1)
    says[several] = _agree(rarity, distinct, several, several, threshold, margin)
    # Equal titles are one distinct title with copies; what is like it, its copies are like.
    weights = np.where(says, copies - 1, 0)
    for mine, theirs in ((first, second), (second, first)):
        weights += np.bincount(mine, copies[theirs], minlength=len(copies)).astype(np.int64)
    crowded = weights > most
    alike = ~crowded[first] & ~crowded[second]
    groups = np.arange(len(distinct))[says & ~crowded & (copies > 1)]
    one = np.concatenate([first[alike], groups])
    other = np.concatenate([second[alike], groups])
    lists, members = _members(of_items, len(distinct))
    left, place = ragged_ranges(lists[one], lists[one + 1])[0], np.repeat(np.arange(len(one)), copies[one])
    right, offsets = ragged_ranges(lists[other[place]], lists[other[place] + 1])
    pairs = np.repeat(members[left], np.diff(offsets)), members[right]
    everywhere = (of_items >= 0) & crowded[np.maximum(of_items, 0)] if len(crowded) else np.zeros(len(read), np.bool_)
    return SimilarTitles(
        SimilarItems.from_pairs(len(read), *pairs), everywhere, int((of_items >= 0).sum()), int(copies.max(initial=0))
    )


def _distinct(read: Titles) -> tuple[Int64, Int64, Int64]:
    """Put titles of equal words and measures together.

    Returns:
        The first title of each group [D], the group of each title [N] (−1 without words), and the groups' sizes [D].
    """
    signature = np.zeros(len(read), np.uint64)
    lengths = np.diff(read.begin)
    full = np.flatnonzero(lengths)
    if len(full):
        signature[full] = np.add.reduceat(_numbers(read)[read.codes], read.begin[full])
    measures = np.nan_to_num(read.measures, nan=-1.0)
    keys = pl.DataFrame({"s": signature, "l": lengths, **{f"m{k}": measures[:, k] for k in range(measures.shape[1])}})
    rows = keys.with_row_index("row").filter(pl.col("l") > 0)
    groups = rows.group_by("s", "l", "m0", "m1", "m2", maintain_order=True).agg(pl.col("row"))
    of_items = np.full(len(read), -1, np.int64)
    copies = groups["row"].list.len().to_numpy().astype(np.int64)
    of_items[groups["row"].explode().to_numpy()] = np.repeat(np.arange(len(copies)), copies)
    return groups["row"].list.first().to_numpy().astype(np.int64), of_items, copies


def _numbers(read: Titles) -> UInt64:
    """Give every word of the vocabulary a random number of 64 bits; nothing depends on which, but for collisions."""
    return stream(0, "title words").integers(2**64, size=len(read.words), dtype=np.uint64)


def _members(of_items: Int64, groups: int) -> tuple[Int64, Int64]:
    """Return where each group's items begin, and the items group after group."""
    order = np.argsort(of_items, kind="stable")
    order = order[of_items[order] >= 0]
    begins = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(of_items[order], minlength=groups), out=begins[1:])
    return begins, order.astype(np.int64)


def _candidates(read: Titles, distinct: Int64, threshold: float, most: int) -> tuple[Int64, Int64]:
    """Return pairs of distinct titles that agree in all words but one or two, each once.

    Every title is filed under the sum of its words' random numbers, and under the sums without each word (and without
    each two, where so many letters may differ): those that agree in the rest meet there.
    """
    numbers = _numbers(read)
    lengths = np.diff(read.begin)[distinct]
    allowed = (1 - threshold) * 1.6 * lengths
    files: list[UInt64] = []
    owners: list[Int64] = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        words = numbers[read.codes[read.begin[distinct[rows]][:, None] + np.arange(length)]]
        whole = words.sum(1, dtype=np.uint64)
        sums = [whole[:, None]]
        if length > 1:
            sums.append(whole[:, None] - words)
        two = rows[:0] if not 2 < length <= _LONGEST else np.flatnonzero(allowed[rows] >= 2)
        for part in sums:
            files.append(part.reshape(-1))
            owners.append(np.repeat(rows, part.shape[1]))
        if len(two):
            left, right = np.triu_indices(int(length), 1)
            pairs = whole[two, None] - words[two][:, left] - words[two][:, right]
            files.append(pairs.reshape(-1))
            owners.append(np.repeat(rows[two], pairs.shape[1]))
    if not files:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _met(np.concatenate(files), np.concatenate(owners), 4 * most)


def _met(files: UInt64, owners: Int64, most: int) -> tuple[Int64, Int64]:
    """Return every pair of owners that have a file in common, each once; files of more than ``most`` are left out."""
    order = np.lexsort((owners, files))
    files, owners = files[order], owners[order]
    fresh = np.ones(len(files), np.bool_)
    fresh[1:] = (files[1:] != files[:-1]) | (owners[1:] != owners[:-1])
    files, owners = files[fresh], owners[fresh]
    starts = np.flatnonzero(np.concatenate([[True], files[1:] != files[:-1]]))
    sizes = np.diff(np.concatenate([starts, [len(files)]]))
    shared = np.flatnonzero((sizes > 1) & (sizes <= most))
    # Every owner beside each of those that stand after it in the file.
    places = ragged_ranges(starts[shared], starts[shared] + sizes[shared])[0]
    ends = np.repeat(starts[shared] + sizes[shared], sizes[shared])
    after, offsets = ragged_ranges(places + 1, ends)
    first, second = np.repeat(owners[places], np.diff(offsets)), owners[after]
    width = int(owners.max(initial=0)) + 1
    codes = np.unique(first * width + second)
    return codes // width, codes % width


def _agree(rarity: Rarity, distinct: Int64, first: Int64, second: Int64, threshold: float, margin: float) -> Bools:
    """Say of each pair of distinct titles whether they say the same."""
    read = rarity.read
    kept = np.zeros(len(first), np.bool_)
    enough = float(np.log2(max(len(read), 1))) + margin
    for start in range(0, len(first), _PAIRS):
        mine, theirs = (distinct[rows[start : start + _PAIRS]] for rows in (first, second))
        asked = np.arange(len(mine))
        with np.errstate(invalid="ignore"):
            apart = np.abs(np.log(read.measures[mine] / read.measures[theirs]))
        asked = asked[~(apart > _APART).any(1)]
        one, other = ([read.text(row) for row in rows[asked].tolist()] for rows in (mine, theirs))
        ratio = process.cpdist(one, other, scorer=fuzz.ratio, dtype=np.float32)
        asked = asked[ratio >= 100 * threshold - 1e-3]
        common = _Common.of(read, mine[asked], theirs[asked])
        measured = _MEASURED * np.isfinite(apart[asked]).any(1)
        differ = np.zeros(len(asked))
        for group, code, shared in common.sides:
            differ += np.bincount(group[~shared], rarity.bits[code[~shared]].clip(max=_AGAINST), minlength=len(asked))
        (group, code, shared), _ = common.sides
        says = rarity.together(group[shared], code[shared], len(asked)) - differ + measured >= enough
        kept[start + asked[says & common.numbers_agree(read)]] = True
    return kept


@dataclass(frozen=True, eq=False)
class _Common:
    """The words of P pairs of titles, side by side: for each word its pair, itself, and whether both titles have it."""

    pairs: int
    sides: tuple[tuple[Int64, Int64, Bools], tuple[Int64, Int64, Bools]]

    @classmethod
    def of(cls, read: Titles, mine: Int64, theirs: Int64) -> Self:
        """Lay the words of the titles side by side."""
        words = []
        for rows in (mine, theirs):
            places, offsets = ragged_ranges(read.begin[rows], read.begin[rows + 1])
            words.append((np.repeat(np.arange(len(rows)), np.diff(offsets)), read.codes[places]))
        (group, code), (other_group, other_code) = words
        numbers = group * len(read.words) + code, other_group * len(read.words) + other_code
        shared = np.isin(numbers[0], numbers[1], assume_unique=True)
        both = np.isin(numbers[1], numbers[0], assume_unique=True)
        return cls(len(mine), ((group, code, shared), (other_group, other_code, both)))

    def numbers_agree(self, read: Titles) -> Bools:
        """Say of each pair whether the numbers of the one are among those of the other."""
        missing = [
            np.bincount(group[~shared & read.numeric[code]], minlength=self.pairs) for group, code, shared in self.sides
        ]
        return np.asarray((missing[0] == 0) | (missing[1] == 0))
