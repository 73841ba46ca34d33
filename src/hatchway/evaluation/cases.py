"""The questions an evaluation asks: who asks in which context, which items are right, and which are no candidates."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hatchway.data.contexts import Contexts, ragged_ranges
from hatchway.data.engagements import Engagements, Int32, Int64, Part
from hatchway.data.splits import SplitProtocol
from hatchway.errors import DataError, UsageError

Grain = Literal["buyer", "row"]
"""One case for each buyer (the part as a whole is the answer), or one for each positive row (at its own moment)."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Q cases.

    Attributes:
        buyers: [Q] int32 buyer row numbers.
        query_items: [Q] int32 the listing being looked at, -1 for none.
        history_begin, history_end: [Q] int64, the range of the log's rows that the query may know, oldest first.
        texts: [Q] query texts ("" for none), or None where the log has none.
        relevant_offsets: [Q + 1] int64; case i's relevant items are
            ``relevant_items[relevant_offsets[i]:relevant_offsets[i + 1]]``, at least one, distinct, ascending.
        relevant_items: [R] int32.
        excluded_offsets: [Q + 1] int64; what case i leaves out of its candidates, likewise; never a relevant item.
        excluded_items: [X] int32.
    """

    buyers: Int32
    query_items: Int32
    history_begin: Int64
    history_end: Int64
    texts: npt.NDArray[np.object_] | None
    relevant_offsets: Int64
    relevant_items: Int32
    excluded_offsets: Int64
    excluded_items: Int32

    def __len__(self) -> int:
        return len(self.buyers)

    @property
    def history_length(self) -> Int64:
        """How many earlier engagements each case's query may know, [Q] int64."""
        return self.history_end - self.history_begin

    def contexts(self, engagements: Engagements, begin: int, end: int, history_length: int) -> Contexts:
        """Return the query contexts of the cases ``begin:end``, each with its last ``history_length`` engagements."""
        stop = self.history_end[begin:end]
        start = np.maximum(self.history_begin[begin:end], stop - history_length)
        index, offsets = ragged_ranges(start, stop)
        texts = None if self.texts is None else self.texts[begin:end]
        return Contexts(self.buyers[begin:end], self.query_items[begin:end], engagements.items[index], offsets, texts)

    def drawn(self, most: int, generator: np.random.Generator) -> "Cases":
        """Return ``most`` of the cases, each as likely as any other, in their order; all where there are no more."""
        if len(self) <= most:
            return self
        chosen = np.sort(generator.choice(len(self), most, replace=False))
        relevant_offsets, relevant_items = _of_cases(self.relevant_offsets, self.relevant_items, chosen)
        excluded_offsets, excluded_items = _of_cases(self.excluded_offsets, self.excluded_items, chosen)
        return Cases(
            self.buyers[chosen],
            self.query_items[chosen],
            self.history_begin[chosen],
            self.history_end[chosen],
            None if self.texts is None else self.texts[chosen],
            relevant_offsets,
            relevant_items,
            excluded_offsets,
            excluded_items,
        )


def grain_of(protocol: SplitProtocol) -> Grain:
    """Return what a case is under a split: a positive at its own moment under a global split, otherwise a buyer.

    Raises:
        DataError: the protocol is ``none``, which keeps nothing to ask about.
    """
    if protocol == "none":
        raise DataError("the split 'none' trains on every row and leaves nothing to evaluate; choose another protocol")
    return "row" if protocol == "global-time" else "buyer"


def cases_for(
    engagements: Engagements,
    part: Part,
    *,
    grain: Grain,
    exclude_seen: bool,
    exclude_query_item: bool = True,
) -> Cases:
    """Return the cases that the positives of ``part`` make.

    ``grain="buyer"`` (splits ``given`` and ``leave-one-out``): one case for each buyer with a positive in the part. All
    of the buyer's distinct positives there are relevant; the query knows every row of the earlier parts (a test case
    sees training and validation). The query item is the positive's own where the buyer has a single one, otherwise the
    buyer's last engagement before the part; the same holds for the query text, with "" for otherwise.

    ``grain="row"`` (split ``global-time``): one case for each positive row of the part, with the context that row has.

    Args:
        engagements: the log.
        part: validation or test.
        grain: see above.
        exclude_seen: what the query knows is no candidate.
        exclude_query_item: the listing being looked at is no candidate.

    Raises:
        UsageError: the part is training, which has no earlier part to ask from.
        DataError: the part holds no positive.
    """
    if part is Part.TRAIN:
        raise UsageError("cases are made from validation or test; there is nothing before training to ask from")
    rows = engagements.positives(part)
    if not len(rows):
        raise DataError(f"the {part.name.lower()} part of the split holds no positive; choose a split that makes one")
    if grain == "row":
        firsts = np.arange(len(rows) + 1, dtype=np.int64)
        begin, end = engagements.offsets[engagements.buyers[rows]], engagements.context_end[rows]
    else:
        new = np.flatnonzero(np.diff(engagements.buyers[rows], prepend=-1))
        firsts = np.append(new, len(rows)).astype(np.int64)
        who = engagements.buyers[rows[new]]
        begin, end = engagements.offsets[who], engagements.part_end(Part(part - 1))[who]
    heads = rows[firsts[:-1]]
    alone = np.diff(firsts) == 1
    query_items = np.where(alone, engagements.query_items[heads], -1)
    last = np.where(end > begin, engagements.items[np.maximum(end - 1, 0)], -1)
    query_items = np.where(query_items < 0, last, query_items).astype(np.int32) if grain == "buyer" else query_items
    texts = None
    if engagements.query_texts is not None:
        texts = np.where(alone, engagements.query_texts[heads], "")
    relevant = _distinct(_pairs(np.repeat(np.arange(len(heads)), np.diff(firsts)), engagements.items[rows]))
    excluded = []
    if exclude_seen:
        index, offsets = ragged_ranges(begin, end)
        excluded.append(_pairs(np.repeat(np.arange(len(heads)), np.diff(offsets)), engagements.items[index]))
    if exclude_query_item:
        known = np.flatnonzero(query_items >= 0)
        excluded.append(_pairs(known, query_items[known]))
    no_candidates = _without(_distinct(np.concatenate([np.zeros(0, np.int64), *excluded])), relevant)
    return Cases(
        engagements.buyers[heads],
        query_items.astype(np.int32),
        begin,
        end,
        texts,
        *_ragged(relevant, len(heads)),
        *_ragged(no_candidates, len(heads)),
    )


def _of_cases(offsets: Int64, items: Int32, chosen: Int64) -> tuple[Int64, Int32]:
    """Return the offsets and items of some cases."""
    index, kept = ragged_ranges(offsets[chosen], offsets[chosen + 1])
    return kept, items[index]


def _pairs(cases: Int64, items: Int32) -> Int64:
    """Write (case, item) pairs as numbers that sort by case and then item: the case in the high 32 bits."""
    pairs: Int64 = (cases.astype(np.int64) << 32) | items
    return pairs


def _distinct(pairs: Int64) -> Int64:
    """Sort and drop repeats (several times faster than ``np.unique``, which may hash)."""
    ordered = np.sort(pairs)
    kept: Int64 = ordered[np.diff(ordered, prepend=-1) != 0]
    return kept


def _without(pairs: Int64, others: Int64) -> Int64:
    """Drop from sorted ``pairs`` what stands in sorted ``others``, which is not empty."""
    place = np.minimum(np.searchsorted(others, pairs), len(others) - 1)
    kept: Int64 = pairs[others[place] != pairs]
    return kept


def _ragged(pairs: Int64, count: int) -> tuple[Int64, Int32]:
    """Turn sorted (case, item) pairs into offsets [count + 1] and items."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(pairs >> 32, minlength=count), out=offsets[1:])
    return offsets, (pairs & 0xFFFFFFFF).astype(np.int32)
