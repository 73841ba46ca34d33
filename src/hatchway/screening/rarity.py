"""How much words say together: is it chance that two titles share them?

A word that one title in a thousand has says ten bits. Words that always come together (*very good condition*, a maker
and the names of its designs) say hardly more than the rarest of them, so each word counts for what it still says when
the rarer ones of its title are known, one at a time.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hatchway.data.contexts import ragged_ranges
from hatchway.data.engagements import Int64
from hatchway.screening.wording import Titles

Float64 = npt.NDArray[np.float64]

_SHORT = 2  # letters of a word that says nothing: in, by, de
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Rarity:
    """The words of N titles, and how often they stand alone and in pairs.

    Attributes:
        read: the titles.
    """

    read: Titles

    @cached_property
    def counts(self) -> Int64:
        """[V] int64, how many titles have each word."""
        return np.bincount(self.read.codes, minlength=len(self.read.words)).astype(np.int64)

    @cached_property
    def bits(self) -> Float64:
        """[V] float64, what each word says by itself; 0 for words of one or two Latin letters."""
        mute = np.array([len(w) <= _SHORT and w.isascii() and w.isalpha() for w in self.read.words], np.bool_)
        return np.where(mute, 0.0, np.log2(max(len(self.read), 1) / np.maximum(self.counts, 1)))

    @cached_property
    def _places(self) -> Int64:
        """[V] int64, the words' places from the rarest on."""
        order = np.lexsort((np.arange(len(self.counts)), self.counts))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places

    @cached_property
    def _together(self) -> tuple[Int64, Int64]:
        """The pairs of words that some title has, as ascending numbers, and how many titles have each."""
        read, width = self.read, len(self.counts)
        codes, numbers = np.empty(0, np.int64), np.empty(0, np.int64)
        for start in range(0, len(read), _CHUNK):
            stop = min(start + _CHUNK, len(read))
            begin, end = read.begin[start], read.begin[stop]
            title = np.repeat(np.arange(stop - start), np.diff(read.begin[start : stop + 1]))
            rarer, other = self._pairs_within(title, read.codes[begin:end])
            found, times = np.unique(rarer * width + other, return_counts=True)
            merged = np.concatenate([codes, found])
            codes, place = np.unique(merged, return_inverse=True)
            numbers = np.bincount(place, np.concatenate([numbers, times]), len(codes)).astype(np.int64)
        return codes, numbers

    def _pairs_within(self, groups: Int64, codes: Int64) -> tuple[Int64, Int64]:
        """Return every two words of a group, the rarer one first."""
        order = np.lexsort((self._places[codes], groups))
        groups, codes = groups[order], codes[order]
        ends = np.searchsorted(groups, groups, side="right")
        after, offsets = ragged_ranges(np.arange(len(codes)) + 1, ends)
        return np.repeat(codes, np.diff(offsets)), codes[after]

    def together(self, groups: Int64, codes: Int64, size: int) -> Float64:
        """Return how many bits the words of each group say together.

        Args:
            groups: [W] int64 ascending, the group of each word, 0 to ``size`` − 1.
            codes: [W] int64 words; those of a group stand together in two titles at least.
            size: how many groups.

        Returns:
            [size] float64: the sum over a group's words of the least of what the word says by itself and what it says
            where one rarer word of the group is known, −log2 P(word | rarer word). The chance is that among the other
            titles, since the two that are compared prove nothing about each other: (c − 2 + p) / (n − 1) where c of the
            n titles with the rarer word have the word too, whose own chance is p.
        """
        said = np.zeros(size)
        # Groups are taken a run at a time, so that their pairs fit into memory.
        cuts = np.searchsorted(groups, np.arange(0, size + _CHUNK, _CHUNK)).tolist()
        for begin, end in itertools.pairwise(cuts):
            said += self._said(groups[begin:end], codes[begin:end], size)
        return said

    def _said(self, groups: Int64, codes: Int64, size: int) -> Float64:
        order = np.lexsort((self._places[codes], groups))
        groups, codes = groups[order], codes[order]
        ends = np.searchsorted(groups, groups, side="right")
        after, offsets = ragged_ranges(np.arange(len(codes)) + 1, ends)
        rarer = np.repeat(codes, np.diff(offsets))
        known, numbers = self._together
        at = np.searchsorted(known, rarer * len(self.counts) + codes[after])
        alone = np.exp2(-self.bits[codes[after]])
        times = numbers[np.minimum(at, len(numbers) - 1)] if len(after) else np.empty(0)
        left = np.log2((self.counts[rarer] - 1) / (times - 2 + alone))
        bits = self.bits[codes].copy()
        np.minimum.at(bits, after, left)
        return np.asarray(np.bincount(groups, bits, minlength=size), np.float64)
