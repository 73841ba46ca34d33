"""What the index is asked: the vector of a listing's page, and the vector of a buyer's recent items.

A model whose query side answers without a known buyer is asked. Where there is none (matrix factorisation knows its
buyers and nothing else), item vectors stand in: the listing's own, and the mean over the recent items.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hatchway.data.contexts import Contexts
from hatchway.index.protocol import Float32, Int64
from hatchway.towers.context import ContextTower


class Queries:
    """Turns items into query vectors.

    Args:
        vectors: [N, d] item vectors.
        tower: the model's query side, in evaluation mode; None where item vectors stand in.
        looked_at_is_engaged: True where, in the log that the tower learned from, the listing being looked at is the
            buyer's last engagement (a log without views); a listing's page then counts as one engagement with it.
    """

    def __init__(self, vectors: Float32, tower: ContextTower | None, *, looked_at_is_engaged: bool) -> None:
        context = tower.settings.context if tower is not None else None
        self._vectors = vectors
        # A tower that reads text alone says nothing about an item.
        self._tower = tower if context is not None and (context.query_item or context.history) else None
        self._listing_is_history = looked_at_is_engaged or (context is not None and not context.query_item)

    @property
    def by_model(self) -> bool:
        """Whether the model's query side answers, and not item vectors."""
        return self._tower is not None

    def similar(self, rows: Int64) -> Float32:
        """Return the [B, d] query vectors of the pages of B items.

        Args:
            rows: [B] item row numbers.
        """
        if self._tower is None:
            return self._vectors[rows]
        histories = [rows[place : place + 1] for place in range(len(rows))] if self._listing_is_history else []
        return self._ask(self._tower, rows, histories or [rows[:0]] * len(rows))

    def recommend(self, histories: Sequence[Int64]) -> Float32:
        """Return the [B, d] query vectors of B buyers nobody knows, from what each engaged with.

        Args:
            histories: for each buyer the item row numbers, oldest first, at least one.
        """
        if self._tower is None:
            return np.stack([self._vectors[rows].mean(axis=0) for rows in histories])
        last = np.array([rows[-1] for rows in histories], np.int64)
        return self._ask(self._tower, last, histories)

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
