"""A log in memory, for tests of what reads a store's events and nothing else of it."""

from dataclasses import dataclass

import polars as pl

from hatchway.data.catalogue import Catalogue


@dataclass(frozen=True)
class FrameSource:
    """Answers as a store does (:class:`hatchway.data.positives.EventSource`), from a frame of events.

    Attributes:
        frame: the events.
        items: the ids of the catalogue, in its order; those of the events by first appearance where None.
    """

    frame: pl.DataFrame
    items: pl.Series | None = None

    def events(self) -> pl.LazyFrame:
        """Return the events."""
        return self.frame.lazy()

    def has(self, column: str) -> bool:
        """Say whether the events have a column."""
        return column in self.frame.columns

    def catalogue(self) -> Catalogue:
        """Return the items."""
        items = self.frame["item"].unique(maintain_order=True) if self.items is None else self.items
        return Catalogue(items.alias("item").to_frame())
