"""The context tower: the listing that is being looked at, what came before it, and what was typed."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from hatchway.data.contexts import Contexts
from hatchway.towers.settings import ModelSettings
from hatchway.towers.tables import bag, scale_rows, table
from hatchway.towers.text import TextReader

_LEAST_FIRST = 8.0
"""Places further back begin at this much below the logarithm of the most recent one's weight."""


class ContextTower(nn.Module):
    """``query = normalise(query item + pooled histories + buyer + f(all of them, text))``.

    A pooled history is its mean with one learned weight for each place counted from the most recent, a softmax over the
    places that are there, so that yesterday's save can say more than last year's. Several of them tell what is wanted
    now from what is wanted always. In a history that is a set (``history_of =
    "others"``) places mean nothing: its n vectors are summed and divided by the root of n (Koren 2008, eq. 15), so that
    it says the more beside the buyer's own vector the more is known.

    Args:
        items: N, the items that can stand in a context.
        buyers: number of known buyers.
        settings: the model's settings.
        item_vectors: the item tower's table, for ``vectors = "item"``; tables like it where None.
    """

    def __init__(
        self, items: int, buyers: int, settings: ModelSettings, item_vectors: nn.Embedding | None = None
    ) -> None:
        super().__init__()
        self.settings, self.items = settings, items
        own, width = settings.context, settings.dimension
        shared = item_vectors if own.vectors == "item" else None

        def of_items(*, read: bool) -> nn.Embedding | None:
            if not read:
                return None
            return table(items, width, settings.initial_scale) if shared is None else shared

        self.by_query_item = of_items(read=own.query_item)
        self.by_history = of_items(read=bool(own.history))
        by_place = bool(own.history) and own.history_of == "before"
        self.place_weights = nn.Parameter(_first_weights(own.pools, max(own.history, 1)), requires_grad=by_place)
        self.by_gram = table(settings.text_buckets, width, settings.initial_scale) if own.text else None
        self._reader = TextReader(settings.text_buckets)
        self.by_buyer = table(buyers, width, settings.initial_scale) if own.buyer else None
        parts = sum(part is not None for part in (self.by_query_item, self.by_history, self.by_gram, self.by_buyer))
        parts += own.pools - 1
        self.layers = (
            nn.Sequential(nn.Linear(width * parts, own.hidden), nn.ReLU(), nn.Linear(own.hidden, width))
            if own.hidden
            else None
        )

    def forward(self, contexts: Contexts) -> Tensor:
        """Return the [B, d] vectors of the contexts."""
        device = self.place_weights.device
        parts: list[Tensor] = []
        if self.by_query_item is not None:
            parts.append(_known(self.by_query_item, torch.from_numpy(contexts.query_items).to(device)))
        if self.by_history is not None:
            parts.extend(self._pooled(self.by_history, contexts, device))
        if self.by_buyer is not None:
            parts.append(_known(self.by_buyer, torch.from_numpy(contexts.buyers).to(device)))
        total: Tensor | int = sum(parts)
        if self.by_gram is not None:
            parts.append(self._read(self.by_gram, contexts, device))
        vectors = torch.stack(parts).sum(0) if self.layers is None else self.layers(torch.cat(parts, 1)) + total
        return scale_rows(vectors) if self.settings.normalise else vectors

    def _pooled(self, embedding: nn.Embedding, contexts: Contexts, device: torch.device) -> list[Tensor]:
        length = self.settings.context.history
        begin = np.maximum(contexts.history_offsets[:-1], contexts.history_offsets[1:] - length)
        lengths = contexts.history_offsets[1:] - begin
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Position within the flat history counted from each row's most recent engagement: 0 is the last one.
        place = np.repeat(offsets[1:], lengths) - 1 - np.arange(offsets[-1])
        flat = contexts.history[np.repeat(contexts.history_offsets[1:], lengths) - 1 - place]
        items, starts = torch.from_numpy(flat.astype(np.int64)).to(device), torch.from_numpy(offsets).to(device)
        if self.settings.context.history_of == "others":
            scale = torch.from_numpy(np.maximum(lengths, 1).astype(np.float32) ** -0.5).to(device)
            return [bag(embedding, items, starts) * scale[:, None]]
        rows = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)).to(device)
        at = torch.from_numpy(place).to(device)
        pools = []
        for weights in self.place_weights:
            weight = (weights - weights.detach().max()).exp()[at]
            total = weight.new_zeros(len(lengths)).index_add(0, rows, weight)
            pools.append(bag(embedding, items, starts, weights=weight / total[rows]))
        return pools

    def _read(self, embedding: nn.Embedding, contexts: Contexts, device: torch.device) -> Tensor:
        if contexts.texts is None:
            return embedding.weight.new_zeros(len(contexts), self.settings.dimension)
        grams, offsets = self._reader.read(contexts.texts)
        return bag(embedding, torch.from_numpy(grams).to(device), torch.from_numpy(offsets).to(device), mean=True)


def _first_weights(pools: int, places: int) -> Tensor:
    """Return the logarithms of the place weights at the start, [pools, places].

    Row 0 weighs all places alike; row p falls by a factor e every 4^(p - 1) places, down to a weight that a few steps
    of training can still raise.
    """
    spans = torch.tensor([math.inf, *(4.0**p for p in range(pools - 1))])
    return -(torch.arange(places, dtype=torch.float32) / spans[:, None]).clamp(max=_LEAST_FIRST)


def _known(embedding: nn.Embedding, rows: Tensor) -> Tensor:
    """Look up vectors; -1, for none or unknown, is the zero vector."""
    vectors: Tensor = embedding(rows.clamp(min=0).long())
    return vectors.masked_fill((rows < 0)[:, None], 0.0)
