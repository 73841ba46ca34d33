"""A log's rows as the queries of an earlier model, which may not know every item and buyer in them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts, HistoryOf, contexts_of
from hatchway.data.engagements import Engagements, Float32, Int64
from hatchway.index.queries import Known
from hatchway.training.mining.lots import UInt64, mixed

_ROWS_AT_ONCE = 65_536
_STAND_IN = 20
"""Engagements whose mean stands for a buyer where the model has no query side that could be told of them."""


@dataclass(frozen=True)
class Reads:
    """What a query tower reads.

    Attributes:
        buyer, query_item, text: whether it reads them.
        history: how many of the last engagements.
        history_of: which.
    """

    buyer: bool = False
    query_item: bool = False
    text: bool = False
    history: int = 0
    history_of: HistoryOf = "before"


@dataclass(frozen=True, eq=False)
class ModelQueries:
    """Turns engagement rows into query vectors; see :class:`~hatchway.training.mining.mine.RowQueries`.

    What the model was not told of in its training is left out: its vectors of that are the random start. Where nothing
    is left that it could be told, the vector of the listing that is looked at stands in, or else the mean of those of
    the last engagements, as they do when a bundle is asked; where the model has none of these, there is no query.

    Attributes:
        engagements: the log.
        tower: the model's query side, in evaluation mode; None where item vectors stand in.
        reads: what it reads.
        item_vectors: [M, d] float32, the model's.
        items: [N] int64, which of its items each item of the log is, −1 for none.
        buyers: [buyers] int64, likewise; None where it knows none.
        known: the items that the tower can be told of; None: all.
    """

    engagements: Engagements
    tower: Callable[[Contexts], Tensor] | None
    reads: Reads
    item_vectors: Float32
    items: Int64
    buyers: Int64 | None = None
    known: Known | None = None
    _texts: dict[str, int] = field(default_factory=dict)

    def groups(self, rows: Int64) -> Int64:
        """Return [R] int64 numbers, equal for rows that ask the same, −1 where there is nothing to ask with."""
        blocks = [self._keys(rows[begin : begin + _ROWS_AT_ONCE]) for begin in range(0, len(rows), _ROWS_AT_ONCE)]
        first, second = (np.concatenate([np.empty(0, np.uint64), *(block[at] for block in blocks)]) for at in (0, 1))
        nothing = np.concatenate([np.empty(0, np.bool_), *(block[2] for block in blocks)])
        order = np.lexsort((second, first))
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
        # A group is called after its first row, so that groups stand in the order of the rows.
        starts = np.flatnonzero(new)
        names = np.minimum.reduceat(order, starts) if len(order) else order
        found = np.empty(len(rows), np.int64)
        found[order] = np.repeat(names, np.diff(np.append(starts, len(order))))
        found[nothing] = -1
        return found

    @torch.inference_mode()
    def vectors(self, rows: Int64) -> Float32:
        """Return the [R, d] query vectors of rows."""
        told, given = self._told(rows)
        answered = self._is_told(told)
        found = np.zeros((len(rows), self.item_vectors.shape[1]), np.float32)
        if self.tower is not None and answered.any():
            found[answered] = self.tower(_rows_of(told, answered)).float().cpu().numpy()
        for place in np.flatnonzero(~answered).tolist():
            instead = self._instead(given, place)
            if len(instead):
                found[place] = self.item_vectors[instead].mean(axis=0)
        return found

    def _told(self, rows: Int64) -> tuple[Contexts, Contexts]:
        """Return the contexts that the tower is told, and what the model has vectors of, in its own row numbers."""
        length = self.reads.history if self.tower is not None and self.reads.history else _STAND_IN
        here = contexts_of(self.engagements, rows, length, self.reads.history_of)
        items = np.append(self.items, -1)  # -1, for none, stays none
        given = _with_items(here, items[here.query_items], items[here.history])
        looked_at = np.where(self.reads.query_item & self._knows("looked_at", given.query_items), given.query_items, -1)
        in_history = self.reads.history > 0 and self.tower is not None
        history = np.where(in_history & self._knows("in_history", given.history), given.history, -1)
        told = _with_items(given, looked_at, history)
        buyers = np.full(len(rows), -1, np.int32)
        if self.reads.buyer and self.buyers is not None:
            buyers = self.buyers[here.buyers].astype(np.int32)
        texts = here.texts if self.reads.text else None
        return Contexts(buyers, told.query_items, told.history, told.history_offsets, texts), given

    def _knows(self, place: str, items: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        if self.known is None:
            return items >= 0
        found: npt.NDArray[np.bool_] = (items >= 0) & getattr(self.known, place)[np.maximum(items, 0)]
        return found

    def _is_told(self, told: Contexts) -> npt.NDArray[np.bool_]:
        """Say of each context whether it tells the tower anything, [R] bool."""
        if self.tower is None:
            return np.zeros(len(told), np.bool_)
        said = (told.buyers >= 0) | (told.query_items >= 0) | (np.diff(told.history_offsets) > 0)
        if told.texts is not None:
            said |= told.texts != ""
        return said

    @staticmethod
    def _instead(given: Contexts, place: int) -> npt.NDArray[np.integer]:
        """Return the items whose mean stands in for a query."""
        if given.query_items[place] >= 0:
            return given.query_items[place : place + 1]
        return given.history[given.history_offsets[place] : given.history_offsets[place + 1]]

    def _keys(self, rows: Int64) -> tuple[UInt64, UInt64, npt.NDArray[np.bool_]]:
        """Return two 64-bit sums of what is asked with, and whether that is nothing, [R] each."""
        told, given = self._told(rows)
        answered = self._is_told(told)
        looked_at = given.query_items >= 0
        has_history = np.diff(given.history_offsets) > 0
        # Whatever is not looked at by the tower or what stands in for it must not tell two queries apart.
        by_history = np.where(answered, np.diff(told.history_offsets) > 0, ~looked_at & has_history)
        parts = np.stack(
            [
                np.where(answered, 0, np.where(looked_at, 1, 2)),
                np.where(answered, told.buyers, -1),
                np.where(answered, told.query_items, given.query_items),
                np.where(answered, self._text_numbers(told), 0),
            ]
        ).astype(np.int64)
        sums = []
        for salt in (1, 2):
            total = np.zeros(len(rows), np.uint64)
            for number, part in enumerate(parts):
                total += mixed(part.view(np.uint64) ^ _salted(salt, number))
            for contexts, mine in ((told, answered & by_history), (given, ~answered & by_history)):
                total += np.where(mine, _history_sums(contexts, _salted(salt, len(parts))), np.uint64(0))
            sums.append(total)
        return sums[0], sums[1], ~answered & ~looked_at & ~has_history

    def _text_numbers(self, told: Contexts) -> Int64:
        """Number the texts, equal ones alike."""
        if told.texts is None:
            return np.zeros(len(told), np.int64)
        return np.array([self._texts.setdefault(text, len(self._texts)) for text in told.texts.tolist()], np.int64)


def _salted(salt: int, number: int) -> np.uint64:
    return mixed(np.array([salt * 1000 + number], np.uint64))[0]  # type: ignore[no-any-return]


def _history_sums(contexts: Contexts, salt: np.uint64) -> UInt64:
    """Sum the mixed (place, item) pairs of each history, [R] uint64: equal for equal histories."""
    lengths = np.diff(contexts.history_offsets)
    place = np.arange(len(contexts.history)) - np.repeat(contexts.history_offsets[:-1], lengths)
    pairs = mixed((place.astype(np.uint64) << np.uint64(32) | contexts.history.astype(np.uint64)) ^ salt)
    running = np.zeros(len(pairs) + 1, np.uint64)
    np.cumsum(pairs, out=running[1:])
    return np.diff(running[contexts.history_offsets])


def _with_items(contexts: Contexts, query_items: npt.NDArray[np.integer], history: npt.NDArray[np.integer]) -> Contexts:
    """Return the contexts with other items; those of the history that are −1 are left out."""
    kept = history >= 0
    offsets = np.concatenate([[0], np.cumsum(kept)])[contexts.history_offsets].astype(np.int64)
    return Contexts(
        contexts.buyers, query_items.astype(np.int32), history[kept].astype(np.int32), offsets, contexts.texts
    )


def _rows_of(contexts: Contexts, chosen: npt.NDArray[np.bool_]) -> Contexts:
    """Return some of the contexts."""
    lengths = np.diff(contexts.history_offsets)
    offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
    return Contexts(
        contexts.buyers[chosen],
        contexts.query_items[chosen],
        contexts.history[np.repeat(chosen, lengths)],
        offsets,
        None if contexts.texts is None else contexts.texts[chosen],
    )
