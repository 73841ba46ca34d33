"""The part of the item tower that places an item by its columns, as a bundle carries it: for listings posted later."""

from collections.abc import Mapping

import numpy as np
import polars as pl
import torch
from torch import Tensor

from hatchway.errors import ArtefactError, DataError
from hatchway.index.protocol import Float32
from hatchway.towers.features import FeatureReading, read_features
from hatchway.towers.item import ColumnEncoder
from hatchway.towers.settings import ModelSettings
from hatchway.towers.tables import scale_rows
from hatchway.towers.two_tower import TwoTower

_ITEMS_AT_ONCE = 65_536


class ItemEncoder:
    """Turns item columns into item vectors, as :func:`~hatchway.index.new_items.new_item_vectors` does with a model.

    Args:
        weights: the tensors of the column encoder, by name.
        reading: how the columns are read.
        settings: the model's settings.

    Raises:
        ArtefactError: weights, reading and settings do not fit each other.
    """

    def __init__(self, weights: Mapping[str, Tensor], reading: FeatureReading, settings: ModelSettings) -> None:
        self.reading = reading
        self._normalise = settings.normalise
        with torch.device("meta"):  # no memory, no random numbers: every tensor is replaced
            self._columns = ColumnEncoder(settings, reading)
        try:
            self._columns.load_state_dict(dict(weights), assign=True)
        except RuntimeError as error:
            wrong = str(error).splitlines()[-1].strip()
            raise ArtefactError(
                f"the weights that read item columns do not fit the settings ({wrong}); make the bundle again: "
                "hatchway index RUN"
            ) from None
        self._columns.eval()

    @torch.inference_mode()
    def vectors(self, frame: pl.DataFrame) -> Float32:
        """Return the [M, d] float32 vectors of M items, from their columns alone.

        Args:
            frame: [M] rows; a column that the model reads and the frame lacks counts as missing.

        Raises:
            DataError: a column is of another kind than the model was trained on, or a vector comes out not finite.
        """
        blocks = []
        for begin in range(0, max(len(frame), 1), _ITEMS_AT_ONCE):
            features = read_features(frame.slice(begin, _ITEMS_AT_ONCE), self.reading)
            vectors = self._columns(features)
            blocks.append((scale_rows(vectors) if self._normalise else vectors).float().numpy())
        found: Float32 = np.concatenate(blocks)
        if not np.isfinite(found).all():
            row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise DataError(
                f"item {frame['item'][row]!r} has columns that no finite vector comes from; mend its numbers"
            )
        return found


def encoder_weights(model: TwoTower) -> dict[str, Tensor]:
    """Return the tensors that place an item by its columns; none where the model reads no columns."""
    columns = model.item_tower.columns
    return {} if columns is None else columns.state_dict()
