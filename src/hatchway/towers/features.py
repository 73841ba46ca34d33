"""Item columns as arrays, under a reading that is fitted once and kept with the model."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pydantic
import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.settings import Settings
from hatchway.towers.settings import ItemSettings
from hatchway.towers.text import hashed_grams

UNKNOWN = 0
"""What a category is read as that the training catalogue does not have, or that is missing."""


class NumberScale(Settings):
    """How a column of numbers is brought to mean 0 and standard deviation 1."""

    mean: float
    deviation: float


class FeatureReading(Settings):
    """How item columns are read; fitted on the training catalogue, saved with the model, applied to every later item.

    Attributes:
        categories: for each column of names, its values; value k is read as k + 1, anything else as 0.
        numbers: for each column of numbers, its scale.
        texts: the columns of text.
        vectors: for each column of ready-made vectors, its length.
        buckets: buckets of the hashed n-grams.
    """

    categories: dict[str, tuple[str, ...]] = pydantic.Field(default_factory=dict)
    numbers: dict[str, NumberScale] = pydantic.Field(default_factory=dict)
    texts: tuple[str, ...] = ()
    vectors: dict[str, int] = pydantic.Field(default_factory=dict)
    buckets: int = 2**17


@dataclass(frozen=True)
class ItemFeatures:
    """The columns of M items as tensors.

    Attributes:
        categories: [M, number of category columns] int64; 0 is unknown or missing.
        dense: [M, F] float32: scaled numbers, a mark for each missing one, ready-made vectors.
        grams: [G] int64 buckets, one item after another, all text columns together.
        gram_offsets: [M + 1] int64.
    """

    categories: Tensor
    dense: Tensor
    grams: Tensor
    gram_offsets: Tensor


def fit_reading(frame: pl.DataFrame, settings: ItemSettings, buckets: int) -> FeatureReading:
    """Fit the reading of the declared columns on a catalogue.

    Args:
        frame: the catalogue, one row an item.
        settings: which columns are read, and how.
        buckets: buckets of the hashed n-grams.

    Raises:
        DataError: a declared column is not in the catalogue, or is of another kind than declared.
    """
    absent = [name for name in settings.columns if name not in frame.columns]
    if absent:
        raise DataError(
            f"the model reads item column {absent[0]!r}, which the catalogue does not have; it has "
            f"{', '.join(frame.columns)}. Take the column out of model.item, or import the catalogue with it"
        )
    nested = [name for name in settings.texts if frame[name].dtype.is_nested()]
    if nested:
        raise DataError(
            f"item column {nested[0]!r} is declared a text but holds {frame[nested[0]].dtype}; allowed: text or a "
            "number a row. A list of names may stand under model.item.categories, where its first counts"
        )
    return FeatureReading(
        categories={
            name: tuple(_names(frame[name]).drop_nulls().unique().sort().to_list()) for name in settings.categories
        },
        numbers={name: _scale(name, frame[name]) for name in settings.numbers},
        texts=settings.texts,
        vectors={name: _length(name, frame[name]) for name in settings.vectors},
        buckets=buckets,
    )


def read_features(frame: pl.DataFrame, reading: FeatureReading) -> ItemFeatures:
    """Read the columns of some items, in the training catalogue or not.

    Args:
        frame: one row an item; a column that it lacks counts as missing in every row.
        reading: from :func:`fit_reading`.
    """
    size = len(frame)
    categories = [
        _names(_column(frame, name, pl.String))
        .replace_strict(list(values), list(range(1, len(values) + 1)), default=UNKNOWN, return_dtype=pl.Int64)
        .to_numpy()
        for name, values in reading.categories.items()
    ]
    dense: list[npt.NDArray[np.float32]] = []
    for name, scale in reading.numbers.items():
        numbers = _column(frame, name, pl.Float64).cast(pl.Float64).to_numpy().astype(np.float64)
        missing = ~np.isfinite(numbers)
        with np.errstate(over="ignore"):  # cut below
            scaled = np.where(missing, 0.0, (np.where(missing, 0.0, numbers) - scale.mean) / scale.deviation)
        # A price of a thousand million must not drown the other columns.
        dense += [np.clip(scaled, -5, 5).astype(np.float32)[:, None], missing.astype(np.float32)[:, None]]
    for name, length in reading.vectors.items():
        dense.append(_vectors(name, _column(frame, name, pl.List(pl.Float32)), length))
    texts = (
        pl.select(
            pl.concat_str(
                [pl.lit(_column(frame, name, pl.String).cast(pl.String).fill_null("")) for name in reading.texts],
                separator=" ",
            )
        ).to_series()
        if reading.texts
        else pl.Series([""] * size, dtype=pl.String)
    )
    grams, offsets = hashed_grams(texts, reading.buckets)
    return ItemFeatures(
        torch.from_numpy(np.stack(categories, 1)) if categories else torch.empty(size, 0, dtype=torch.int64),
        torch.from_numpy(np.concatenate(dense, 1)) if dense else torch.empty(size, 0),
        torch.from_numpy(grams.copy()),
        torch.from_numpy(offsets),
    )


def _column(frame: pl.DataFrame, name: str, kind: pl.DataType | type[pl.DataType]) -> pl.Series:
    return frame[name] if name in frame.columns else pl.Series(name, [None] * len(frame), dtype=kind)


def _names(column: pl.Series) -> pl.Series:
    """Read a column as names; of a list of names the first counts."""
    first = column.list.first() if isinstance(column.dtype, pl.List) else column
    return first.cast(pl.String)


def _scale(name: str, column: pl.Series) -> NumberScale:
    if not column.dtype.is_numeric():
        raise DataError(
            f"item column {name!r} is declared a number but holds {column.dtype}; "
            "declare it under model.item.categories"
        )
    finite = column.cast(pl.Float64).drop_nulls()
    finite = finite.filter(finite.is_finite())
    values = finite.to_numpy()
    if not len(values):
        return NumberScale(mean=0.0, deviation=1.0)
    with np.errstate(over="ignore"):
        mean, deviation = float(values.mean()), float(values.std())
    if not np.isfinite([mean, deviation]).all():  # sums or squares beyond what a float holds
        largest = float(np.abs(values).max())
        mean, deviation = (largest * float(part) for part in ((values / largest).mean(), (values / largest).std()))
    return NumberScale(mean=mean, deviation=deviation if deviation > 0 else 1.0)


def _length(name: str, column: pl.Series) -> int:
    if not isinstance(column.dtype, (pl.List, pl.Array)):
        raise DataError(
            f"item column {name!r} is declared a vector but holds {column.dtype}; allowed: a list of numbers a row"
        )
    lengths = column.cast(pl.List(pl.Float32)).list.len().drop_nulls().unique().sort().to_list()
    if len(lengths) != 1:
        raise DataError(
            f"item column {name!r} has vectors of lengths {lengths[:5]}; allowed: one length, null where there is none"
        )
    return int(lengths[0])


def _vectors(name: str, column: pl.Series, length: int) -> npt.NDArray[np.float32]:
    lists = column.cast(pl.List(pl.Float32))
    there = lists.is_not_null().to_numpy()
    flat = lists.drop_nulls().explode(empty_as_null=True).to_numpy() if there.any() else np.empty(0, np.float32)
    if len(flat) != int(there.sum()) * length or not np.isfinite(flat).all():
        raise DataError(f"item column {name!r} needs {length} finite numbers in every row that is not null")
    out = np.zeros((len(lists), length), np.float32)
    out[there] = flat.reshape(-1, length)
    return out
