"""The sources of negatives, the package's own, so made that all draw for the same batches with fixed vectors."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.mined import Mined
from hatchway.negatives.popularity import Popularity
from hatchway.negatives.queue import Queue
from hatchway.negatives.sources import OwnSource
from hatchway.negatives.uniform import Uniform
from hatchway.training.batches import Batch

SHARED, OWN, QUEUED = 1000, 2, 4096
"""Shared draws a batch, items a row from a row's own list, and positives that the queue keeps."""

IMPRESSIONS, QUEUE = "shown, not liked", "memory queue"
WINDOWS = {"mined, ranks 1–100": (0, 100), "mined, ranks 101–500": (100, 500)}
SOURCES = ("uniform", "in-batch", QUEUE, "popularity^0.75", IMPRESSIONS, *WINDOWS)
VECTORS_THERE = ("in-batch", QUEUE)
"""What needs no item vector: the batch has it already, or it was kept."""

_AT_ONCE = 512


def sources_of(log: Log) -> tuple[str, ...]:
    """Return the sources that can draw from this log: impressions only where it has some."""
    return tuple(source for source in SOURCES if source != IMPRESSIONS or log.impressions is not None)


@dataclass(frozen=True, eq=False)
class Drawing:
    """Everything that the sources draw from.

    Attributes:
        log: read with its impressions.
        counts: [N] training positives of each item.
        vectors: [N, d] the items' vectors.
        queue: the positives of the batches before, put in by :meth:`after`.
    """

    log: Log
    counts: Tensor
    vectors: Tensor
    queue: Queue

    @classmethod
    def of(cls, log: Log, counts: Tensor, vectors: Tensor) -> "Drawing":
        """Begin with an empty queue."""
        return cls(log, counts, vectors, Queue(ExactCounts(counts), QUEUED, vectors.shape[1]))

    def draw(self, source: str, batch: Batch, ranked: Tensor, generator: torch.Generator) -> Tensor:
        """Return the items that a source gives a batch.

        Args:
            source: one of :data:`SOURCES`.
            batch: B positives.
            ranked: [B, 500] from :meth:`ranked`.
            generator: where chance comes from.

        Returns:
            [C] int64 items for all rows, or [B, H] of each row's own, −1 where a row has fewer.
        """
        positives = batch.positives
        if source == "uniform":
            return Uniform(len(self.counts), SHARED).draw(positives, generator)
        if source == "in-batch":
            return InBatch(ExactCounts(self.counts)).draw(positives, generator)
        if source == QUEUE:
            return self.queue.draw(positives, generator)
        if source == "popularity^0.75":
            return Popularity(self.counts, SHARED).draw(positives, generator)
        own: OwnSource
        if source == IMPRESSIONS:
            assert self.log.impressions is not None  # noqa: S101  sources_of() looked
            own = Impressions(self.log.impressions, OWN)
        else:
            own = Mined(window(ranked, batch.rows, len(self.log.engagements), *WINDOWS[source]), OWN)
        return own.draw(positives, torch.from_numpy(batch.rows), generator)

    def ranked(self, query: Tensor) -> Tensor:
        """Return the raw ranking by the served score, as deep as the windows go, [B, 500] int64."""
        deepest = max(high for _, high in WINDOWS.values())
        return torch.cat([(block @ self.vectors.T).topk(deepest, dim=1).indices for block in query.split(_AT_ONCE)])

    def after(self, batch: Batch) -> None:
        """Put a batch's positives into the queue, as training does after the batch's loss."""
        self.queue.enqueue(batch.positives, self.vectors[batch.positives])


def window(ranked: Tensor, rows: np.ndarray, engagements: int, low: int, high: int) -> RowTable:
    """Return ranks low + 1 to high as a table over all engagement rows, empty but for ``rows``.

    Args:
        ranked: [B, at least high] items, best first.
        rows: [B] engagement rows, all different.
        engagements: how many rows the table has.
        low: ranks left out at the top.
        high: the last rank.
    """
    begin, end = np.zeros(engagements, np.int64), np.zeros(engagements, np.int64)
    begin[rows] = np.arange(len(rows)) * (high - low)
    end[rows] = begin[rows] + (high - low)
    return RowTable(begin, end, ranked[:, low:high].flatten().numpy())
