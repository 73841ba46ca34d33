"""Items that were not there at training: checked, given the catalogue's types, and embedded from their columns."""

import numpy as np
import polars as pl
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.identifiers import Identifiers
from hatchway.errors import DataError
from hatchway.index.protocol import Float32
from hatchway.progress import note
from hatchway.towers.features import FeatureReading, ItemFeatures, read_features
from hatchway.towers.two_tower import TwoTower

_ITEMS_AT_ONCE = 65_536
_NAMED = 3


def checked_new_items(frame: pl.DataFrame, catalogue: Catalogue, reading: FeatureReading) -> pl.DataFrame:
    """Give a table of new items the columns and types of a catalogue.

    Columns that the catalogue does not have are left out. A column that the model reads and the table lacks counts as
    missing in every item, and one note says so.

    Args:
        frame: one row an item; a column ``item`` of ids of the catalogue's type, and any of the catalogue's columns.
        catalogue: the known items.
        reading: how the model reads item columns.

    Raises:
        DataError: there is no column ``item``; an id is null, there twice, of another type, or in the catalogue
            already; or a column does not fit the catalogue's.
    """
    if "item" not in frame.columns:
        raise DataError(f"the new items have no column 'item'; their columns are {', '.join(frame.columns)}")
    identifiers = Identifiers(frame["item"], "item", "the new items")
    mine, theirs = (("integers" if ids.are_integers else "strings") for ids in (identifiers, catalogue.identifiers))
    if mine != theirs and len(frame):
        raise DataError(
            f"the ids of the new items are {mine} ({identifiers.ids[0]!r}, …), those of the catalogue are {theirs} "
            f"({', '.join(map(repr, catalogue.ids.head(1)))}, …); give the new items ids of the same type"
        )
    there = frame["item"].filter(pl.Series(catalogue.rows(identifiers.ids) >= 0))
    if len(there):
        named = ", ".join(map(repr, there.head(_NAMED))) + (", …" if len(there) > _NAMED else "")
        raise DataError(
            f"{len(there):,} of {len(frame):,} new items are in the catalogue already: {named}; what was there at "
            "training keeps the vector that was trained, so leave them out"
        )
    absent = [name for name in _read_by(reading) if name not in frame.columns]
    if absent:
        note(f"the new items have no column {', '.join(absent)}, which the model reads: it counts as missing")
    kept = {name: kind for name, kind in catalogue.frame.schema.items() if name in frame.columns}
    return pl.DataFrame([_as_in_catalogue(frame[name], kind) for name, kind in kept.items()])


def new_item_vectors(model: TwoTower, frame: pl.DataFrame) -> Float32:
    """Return the [M, d] vectors of new items, from their columns alone.

    Args:
        model: the trained model.
        frame: [M] rows, from :func:`checked_new_items`.

    Raises:
        DataError: the model knows items by their ids only.
    """
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    blocks = [np.empty((0, model.dimension), np.float32)]
    try:
        with torch.inference_mode():
            for begin in range(0, max(len(frame), 1), _ITEMS_AT_ONCE):
                features = read_features(frame.slice(begin, _ITEMS_AT_ONCE), model.item_tower.reading)
                there = (features.categories, features.dense, features.grams, features.gram_offsets)
                vectors = model.new_items(ItemFeatures(*(part.to(device) for part in there)))
                blocks.append(vectors.float().cpu().numpy())
    finally:
        model.train(was_training)
    return np.concatenate(blocks)


def with_new_items(catalogue: Catalogue, frame: pl.DataFrame) -> Catalogue:
    """Return the catalogue with new items after the known ones, whose row numbers stay; nulls where columns are absent.

    Args:
        catalogue: the known items.
        frame: from :func:`checked_new_items`.
    """
    return Catalogue(pl.concat([catalogue.frame, frame], how="diagonal"))


def _read_by(reading: FeatureReading) -> tuple[str, ...]:
    """Name the columns that a model reads."""
    return (*reading.categories, *reading.numbers, *reading.texts, *reading.vectors)


def _as_in_catalogue(column: pl.Series, kind: pl.DataType) -> pl.Series:
    """Give a column the type that it has in the catalogue; text is read as what it spells."""
    given = column
    if column.dtype == pl.String and kind != pl.String:
        given = column.str.strip_chars().replace("", None)
    try:
        return given.cast(kind)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"column {column.name!r} of the new items is {column.dtype} and does not fit the catalogue's, which is "
            f"{kind} ({str(error).splitlines()[0]}); write it as in the catalogue"
        ) from None
