"""What the index is asked: the vector of a listing's page, and the vector of a buyer's recent items.

A model whose query side answers without a known buyer is asked. Where there is none (matrix factorisation knows its
buyers and nothing else), item vectors stand in: the listing's own, and the mean over the recent items. They stand in,
too, for items that no context of training held: what the query side has of those is still the random start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from hatchway.data.contexts import Contexts
from hatchway.index.protocol import Float32, Int64
from hatchway.towers.context import ContextTower

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Known:
    """Which items the query side learned something of, for each of the two places where an item can stand.

    Attributes:
        looked_at: [N] bool, items that were the listing being looked at in a context of training.
        in_history: [N] bool, items that stood in the history of a context of training.
    """

    looked_at: Mask
    in_history: Mask


class Queries:
    """Turns items into query vectors.

    Args:
        vectors: [N, d] item vectors.
        tower: the model's query side, in evaluation mode; None where item vectors stand in.
        looked_at_is_engaged: True where, in the log that the tower learned from, the listing being looked at is the
            buyer's last engagement (a log without views); a listing's page then counts as one engagement with it.
        known: the items that the tower can be told of; all where None.
    """

    def __init__(
        self, vectors: Float32, tower: ContextTower | None, *, looked_at_is_engaged: bool, known: Known | None = None
    ) -> None:
        context = tower.settings.context if tower is not None else None
        self._vectors = vectors
        # A tower that reads text alone says nothing about an item.
        self._tower = tower if context is not None and (context.query_item or context.history) else None
        self._listing_is_history = looked_at_is_engaged
        everything = np.ones(len(vectors), np.bool_)
        known = known or Known(everything, everything)
        self._looked_at = known.looked_at & bool(context and context.query_item)
        self._in_history = known.in_history & bool(context and context.history)

    @property
    def by_model(self) -> bool:
        """Whether the model's query side answers, and not item vectors."""
        return self._tower is not None

    def knows(self, rows: Int64) -> Mask:
        """Say of which items the model's query side can be told at all, [len(rows)] bool."""
        return (self._looked_at[rows] | self._in_history[rows]) & self.by_model

    def similar(self, rows: Int64) -> Float32:
        """Return the [B, d] query vectors of the pages of B items.

        Where no context of training held the item, its own vector is returned. An item that stood in histories only is
        told to the tower as a history.

        Args:
            rows: [B] item row numbers.
        """
        looked_at, in_history = self._looked_at[rows], self._in_history[rows]
        query_items = np.where(looked_at, rows, -1)
        told = in_history if self._listing_is_history else in_history & ~looked_at
        histories = [rows[place : place + engaged] for place, engaged in enumerate(told.astype(np.int64))]
        return self._answer(query_items, histories, rows)

    def recommend(self, histories: Sequence[Int64]) -> Float32:
        """Return the [B, d] query vectors of B buyers nobody knows, from what each engaged with.

        Items that no context of training held are left out; where no other is left, the mean of their vectors is
        returned. The listing being looked at is the last item, or the last of which the tower knows what that means.

        Args:
            histories: for each buyer the item row numbers, oldest first, at least one.
        """
        looked_at = [rows[self._looked_at[rows]] for rows in histories]
        query_items = np.array([rows[-1] if len(rows) else -1 for rows in looked_at], np.int64)
        told = [rows[self._in_history[rows]] for rows in histories]
        return self._answer(query_items, told, histories)

    def _answer(self, query_items: Int64, histories: Sequence[Int64], items: Int64 | Sequence[Int64]) -> Float32:
        """Ask the tower where it can be told anything, and take the mean of the items' vectors where not."""
        by_tower = (query_items >= 0) | np.array([len(rows) > 0 for rows in histories], np.bool_)
        vectors = np.empty((len(items), self._vectors.shape[1]), np.float32)
        if self._tower is not None and by_tower.any():
            told = [rows for rows, asked in zip(histories, by_tower, strict=True) if asked]
            vectors[by_tower] = self._ask(self._tower, query_items[by_tower], told)
        for place in np.flatnonzero(~by_tower).tolist():
            vectors[place] = self._vectors[np.atleast_1d(items[place])].mean(axis=0)
        return vectors

    @torch.inference_mode()
    def _ask(self, tower: ContextTower, query_items: Int64, histories: Sequence[Int64]) -> Float32:
        """Ask the tower about buyers without a number."""
        offsets = np.zeros(len(histories) + 1, np.int64)
        np.cumsum([len(rows) for rows in histories], out=offsets[1:])
        contexts = Contexts(
            buyers=np.full(len(histories), -1, np.int32),
            query_items=query_items.astype(np.int32),
            history=np.concatenate([*histories, np.empty(0, np.int64)]).astype(np.int32),
            history_offsets=offsets,
        )
        vectors: Float32 = tower(contexts).float().cpu().numpy()
        return vectors
