"""The log as it stood at the end of a day, whatever the store has learned since."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.errors import DataError


@dataclass(frozen=True)
class DayView:
    """An :class:`~hatchway.data.positives.EventSource` over accepted days, split in time.

    Attributes:
        paths: the files of the accepted days, oldest first.
        items: the catalogue as of the day.
        split_at: Unix seconds; rows before it are for training, the others for the test.
    """

    paths: Sequence[Path]
    items: Catalogue
    split_at: int

    def __post_init__(self) -> None:
        if not self.paths:
            raise DataError("there is no day with events to look at; import a log that has some")

    def events(self) -> pl.LazyFrame:
        """Scan the accepted rows, with a column ``split``."""
        frames = [pl.scan_parquet(path, hive_partitioning=False, glob=False) for path in self.paths]
        part = pl.when(pl.col("time") < self.split_at).then(pl.lit("train")).otherwise(pl.lit("test"))
        return pl.concat(frames, how="diagonal").with_columns(split=part)

    def has(self, column: str) -> bool:
        """Say whether the rows have a column."""
        return column in self.events().collect_schema()

    def catalogue(self) -> Catalogue:
        """Return the items as of the day."""
        return self.items
