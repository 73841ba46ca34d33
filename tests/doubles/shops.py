"""Shops for the service's tests: bundles of untrained models that place items by their columns."""

from pathlib import Path

import numpy as np
import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.item_encoder import encoder_weights
from hatchway.index.model_bundle import ServedSettings, item_vectors, living_rows
from hatchway.screening.similar import SimilarItems
from hatchway.towers.build import build_model
from hatchway.towers.features import fit_reading
from hatchway.towers.settings import ItemSettings, ModelSettings

KINDS = ("sofa", "desk", "lamp", "rug", "bed")


def shop_frame(count: int, first: int = 0) -> pl.DataFrame:
    """Make up listings: five kinds, seven sellers, prices from 0 to 99; ids are texts."""
    numbers = np.arange(first, first + count)
    return pl.DataFrame(
        {
            "item": [f"i{number}" for number in numbers],
            "title": [f"{KINDS[number % 5]} number {number}" for number in numbers],
            "category": [KINDS[number % 5] for number in numbers],
            "price": [float(37 * number % 100) for number in numbers],
            "seller": [f"s{number % 7}" for number in numbers],
        }
    )


def make_shop(
    folder: Path,
    frame: pl.DataFrame,
    *,
    seed: int = 0,
    day: str | None = None,
    similar: SimilarItems | None = None,
    dimension: int = 8,
) -> Bundle:
    """Write the bundle of an untrained model that reads title, category and price; item vectors ask.

    Args:
        folder: where.
        frame: the catalogue.
        seed: another one gives another model.
        day: the day of its data.
        similar: which items are alike.
        dimension: d.
    """
    columns = ItemSettings(id=False, texts=("title",), categories=("category",), numbers=("price",), hidden=16)
    settings = ModelSettings(kind="factorisation", dimension=dimension, text_buckets=256, item=columns)
    catalogue = Catalogue(frame)
    reading = fit_reading(frame, columns, settings.text_buckets)
    model = build_model(catalogue, 3, settings, seed, reading, None)
    vectors = item_vectors(model, len(frame))
    served = ServedSettings(model=settings, looked_at_is_engaged=True, reading=reading)
    contents = BundleContents(
        catalogue,
        vectors,
        vectors[:3],
        settings=served.model_dump(mode="json"),
        origin={"seed": seed} if day is None else {"seed": seed, "day": day},
        rows=living_rows(catalogue),
        encoder=encoder_weights(model),
        similar=similar,
    )
    write_bundle(folder, contents, IndexSettings(sampled_queries=2))
    return Bundle.open(folder)
