"""The item tower: a vector of the item's own, what its columns say, or both."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from hatchway.errors import DataError
from hatchway.randomness import torch_stream
from hatchway.towers.features import UNKNOWN, FeatureReading, ItemFeatures
from hatchway.towers.settings import ModelSettings
from hatchway.towers.tables import bag, scale_rows, table

_LENGTH_UNIT = 0.1
"""Of the logarithm of a length, so that lengths move a tenth as fast as what the vectors consist of: one number then
changes all scores of an item."""


class ItemTower(nn.Module):
    """``item = length * normalise(own vector + f(columns))``, with length 1 unless it is learned.

    Args:
        count: N, the items that can have a vector of their own.
        settings: the model's settings.
        reading: how the columns are read.
        features: the columns of the N items.
    """

    def __init__(self, count: int, settings: ModelSettings, reading: FeatureReading, features: ItemFeatures) -> None:
        super().__init__()
        self.count, self.settings, self.reading = count, settings, reading
        own, width = settings.item, settings.dimension
        self.own = table(count, width, settings.initial_scale) if own.id else None
        self.length = table(count, 1, 0.0) if own.length == "learned" else None
        self.columns = ColumnEncoder(settings, reading) if own.columns else None
        self.categories: Tensor
        self.dense: Tensor
        self.grams: Tensor
        self.gram_offsets: Tensor
        # Items that training cannot reach have no vector of their own worth using.
        self.unreached: Tensor
        self.register_buffer("unreached", torch.zeros(count, dtype=torch.bool))
        # The columns of known items travel with the model, not with its weights: they are read from the catalogue.
        self.register_buffer("categories", features.categories, persistent=False)
        self.register_buffer("dense", features.dense, persistent=False)
        self.register_buffer("grams", features.grams, persistent=False)
        self.register_buffer("gram_offsets", features.gram_offsets, persistent=False)

    def forward(self, rows: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return the [M, d] vectors of known items.

        Args:
            rows: [M] int64 item rows.
            hidden: [M, 1 + K] bool, from :meth:`draw_hidden`: whether the item's own vector, and its value in each of
                the K columns of categories, is left out; None leaves out none.
        """
        parts: list[Tensor] = []
        if self.own is not None:
            vectors = self.own(rows)
            out = self.unreached[rows] if hidden is None else self.unreached[rows] | hidden[:, 0]
            parts.append(vectors.masked_fill(out[:, None], 0.0))
        if self.columns is not None:
            features = self._features_of(rows)
            if hidden is not None:
                features = replace(features, categories=features.categories.masked_fill(hidden[:, 1:], UNKNOWN))
            parts.append(self.columns(features))
        vectors = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        if not self.settings.normalise:
            return vectors
        return scale_rows(vectors) if self.length is None else scale_rows(vectors) * self._lengths(rows)

    def draw_hidden(self, places: int, seed: int, step: int) -> Tensor | None:
        """Draw what one step of training leaves out, so that the model learns to do without.

        Where own vectors are left out the columns alone learn to place an item; where a category is, what stands for an
        unknown one learns to say as much as is known then.

        Args:
            places: M, how many items the step looks up.
            seed: the run's seed.
            step: steps done before this one.

        Returns:
            [M, 1 + K] bool, or None where nothing is ever left out: the tower reads ids alone, or both shares are 0.
        """
        item, kinds = self.settings.item, len(self.reading.categories)
        own = item.id_dropout if self.own is not None and self.columns is not None else 0.0
        values = item.value_dropout if kinds else 0.0
        if not own and not values:
            return None
        return torch.cat(
            [
                torch.rand(places, 1, generator=torch_stream(seed, "id dropout", step)) < own,
                torch.rand(places, kinds, generator=torch_stream(seed, "value dropout", step)) < values,
            ],
            1,
        )

    def new(self, features: ItemFeatures) -> Tensor:
        """Return the [M, d] vectors of items that the model has never seen, from their columns alone.

        Raises:
            DataError: the model reads no item columns.
        """
        if self.columns is None:
            raise DataError(
                "this model knows items by their ids only and cannot place a new one; train with item columns "
                "(model.item.categories, numbers, texts or vectors)"
            )
        vectors: Tensor = self.columns(features)
        return scale_rows(vectors) if self.settings.normalise else vectors

    def _lengths(self, rows: Tensor) -> Tensor:
        """Return [M, 1]; 1 is the length of an item that training cannot reach, as it is that of a new one."""
        assert self.length is not None  # noqa: S101  for the type checker
        logarithms: Tensor = self.length(rows)
        return logarithms.masked_fill(self.unreached[rows][:, None], 0.0).mul(_LENGTH_UNIT).exp()

    def _features_of(self, rows: Tensor) -> ItemFeatures:
        begin, end = self.gram_offsets[rows], self.gram_offsets[rows + 1]
        lengths = end - begin
        offsets = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
        torch.cumsum(lengths, 0, out=offsets[1:])
        index = torch.arange(int(offsets[-1]), device=rows.device) + torch.repeat_interleave(
            begin - offsets[:-1], lengths
        )
        return ItemFeatures(self.categories[rows], self.dense[rows], self.grams[index], offsets)


class ColumnEncoder(nn.Module):
    """Categories, numbers, text and ready-made vectors to one vector, through one hidden layer."""

    def __init__(self, settings: ModelSettings, reading: FeatureReading) -> None:
        super().__init__()
        width = settings.dimension
        self.by_category = nn.ModuleList(
            table(len(values) + 1, width, settings.initial_scale) for values in reading.categories.values()
        )
        self.by_gram = table(reading.buckets, width, settings.initial_scale) if reading.texts else None
        dense = 2 * len(reading.numbers) + sum(reading.vectors.values())
        total = width * (len(self.by_category) + (self.by_gram is not None)) + dense
        self.layers = nn.Sequential(
            nn.Linear(total, settings.item.hidden), nn.ReLU(), nn.Linear(settings.item.hidden, width)
        )

    def forward(self, features: ItemFeatures) -> Tensor:
        """Return [M, d] vectors."""
        parts = [embed(features.categories[:, k]) for k, embed in enumerate(self.by_category)]
        if self.by_gram is not None:
            parts.append(bag(self.by_gram, features.grams, features.gram_offsets, mean=True))
        vectors: Tensor = self.layers(torch.cat([*parts, features.dense], 1))
        return vectors
