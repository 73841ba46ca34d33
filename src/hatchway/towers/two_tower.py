"""A pair of towers: what the loop trains, evaluation ranks with, and serving answers from."""

from typing import Protocol

import torch
from torch import Tensor, nn

from hatchway.data.contexts import Contexts, HistoryOf
from hatchway.errors import UnknownIdError
from hatchway.towers.context import ContextTower
from hatchway.towers.features import ItemFeatures
from hatchway.towers.item import ItemTower
from hatchway.towers.settings import ModelSettings
from hatchway.towers.tables import scale_rows, table


class QueryTower(Protocol):
    """Turns B contexts into [B, d] vectors."""

    def __call__(self, contexts: Contexts) -> Tensor:
        """Return [B, d] float32."""
        ...


class BuyerTower(nn.Module):
    """Matrix factorisation's query side: one vector a buyer and nothing else.

    Args:
        buyers: number of known buyers.
        settings: the model's settings.
    """

    def __init__(self, buyers: int, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.own = table(buyers, settings.dimension, settings.initial_scale)

    def forward(self, contexts: Contexts) -> Tensor:
        """Return the [B, d] vectors of the buyers.

        Raises:
            UnknownIdError: a buyer is unknown.
        """
        buyers = torch.from_numpy(contexts.buyers).long().to(self.own.weight.device)
        if len(buyers) and int(buyers.min()) < 0:
            raise UnknownIdError(
                "a buyer is unknown, and matrix factorisation has vectors for known buyers only; ask for items similar "
                "to an item instead, or train a model of kind 'context'"
            )
        vectors: Tensor = self.own(buyers)
        return scale_rows(vectors) if self.settings.normalise else vectors


class TwoTower(nn.Module):
    """A query tower and an item tower; the score is the raw dot product of their vectors.

    Attributes:
        dimension: d.
        anonymous: whether a context without a known buyer can be answered.
        history_length: how many of the last engagements the query tower reads.
        history_of: what stands in the history of a training row.
    """

    def __init__(self, query_tower: BuyerTower | ContextTower, item_tower: ItemTower) -> None:
        super().__init__()
        self.query_tower, self.item_tower = query_tower, item_tower
        settings = query_tower.settings
        self.dimension = settings.dimension
        self.anonymous = isinstance(query_tower, ContextTower)
        self.history_length = settings.context.history if self.anonymous else 0
        self.history_of: HistoryOf = settings.context.history_of

    def query(self, contexts: Contexts) -> Tensor:
        """Return the [B, d] float32 vectors of B contexts."""
        vectors: Tensor = self.query_tower(contexts)
        return vectors

    def item(self, rows: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return the [M, d] float32 vectors of known items.

        Args:
            rows: [M] int64 item rows.
            hidden: [M, 1 + K] bool, what training leaves out; see :meth:`hatchway.towers.item.ItemTower.draw_hidden`.
        """
        vectors: Tensor = self.item_tower(rows, hidden)
        return vectors

    def new_items(self, features: ItemFeatures) -> Tensor:
        """Return the [M, d] vectors of items that were not there at training, from their columns.

        Raises:
            DataError: the model reads no item columns.
        """
        return self.item_tower.new(features)
