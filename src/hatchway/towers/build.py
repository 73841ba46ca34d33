"""Builds a model for a catalogue, the same one from the same seed."""

import numpy as np
import numpy.typing as npt
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.randomness import torch_stream
from hatchway.towers.context import ContextTower
from hatchway.towers.features import FeatureReading, fit_reading, read_features
from hatchway.towers.item import ItemTower
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import BuyerTower, TwoTower


def build_model(
    catalogue: Catalogue,
    buyers: int,
    settings: ModelSettings,
    seed: int,
    reading: FeatureReading | None = None,
    living: npt.NDArray[np.bool_] | None = None,
) -> TwoTower:
    """Build an untrained model.

    Args:
        catalogue: the N items that can have vectors of their own, with the declared columns.
        buyers: number of known buyers.
        settings: what the model is made of.
        seed: the initial weights are a function of it and of the settings.
        reading: how item columns are read; None fits it on the catalogue.
        living: [N] bool, the items that training can reach; the own vectors of the others, which nothing will ever
            move, are left out. None for all.

    Raises:
        DataError: a declared item column is absent or of another kind.
    """
    if reading is None:
        reading = fit_reading(catalogue.frame, settings.item, settings.text_buckets)
    features = read_features(catalogue.frame, reading)
    # Layers draw their initial weights from the global stream, so it is set for the moment and put back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_stream(seed, "weights").initial_seed())
        items = ItemTower(len(catalogue), settings, reading, features)
        if living is not None:
            items.unreached = torch.from_numpy(~living)
        queries = (
            BuyerTower(buyers, settings)
            if settings.kind == "factorisation"
            else ContextTower(len(catalogue), buyers, settings, items.own)
        )
        return TwoTower(queries, items)
