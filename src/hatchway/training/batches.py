"""Batches of positives: a fresh shuffle every epoch, nothing but array look-ups in a step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts, HistoryOf, contexts_of, gathered_ranges
from hatchway.data.engagements import Engagements, Int64, known_ranges
from hatchway.randomness import stream


@dataclass(frozen=True)
class Batch:
    """B positives with their contexts.

    Attributes:
        rows: [B] int64 engagement rows, for naming the rows in messages.
        contexts: the B query contexts.
        positives: [B] int64 item rows.
        weight: [B] float32, or None where all weigh 1.
        known_items: [K] int64, items that the rows' buyers are known to have engaged with, one row after another.
        known_offsets: [B + 1] int64.
    """

    rows: Int64
    contexts: Contexts
    positives: Tensor
    weight: Tensor | None
    known_items: Tensor
    known_offsets: Tensor


def steps_an_epoch(positives: int, batch: int) -> int:
    """Return how many batches an epoch has; the last may be smaller."""
    return -(-positives // batch)


def epoch_batches(
    engagements: Engagements,
    positives: Int64,
    *,
    batch: int,
    history: int,
    history_of: HistoryOf = "before",
    mask_days: float,
    seed: int,
    epoch: int,
    first_step: int = 0,
) -> Iterator[Batch]:
    """Yield one epoch's batches.

    Positives are shuffled, not buyers or sessions: what the other rows of a batch hold must not depend on this row, or
    the expected counts would be wrong.

    Args:
        engagements: the log.
        positives: [T] int64 engagement rows to train on.
        batch: B.
        history: how many engagements a context holds at most.
        history_of: which, see :func:`~hatchway.data.contexts.contexts_of`.
        mask_days: a buyer's engagements of so many days before the row are known; 0 for none.
        seed: the run's seed.
        epoch: the epoch's number; the shuffle is a function of it and the seed.
        first_step: batches to leave out at the beginning, when a run is resumed within the epoch.
    """
    order = stream(seed, "shuffle", epoch).permutation(positives)
    weighted = bool((engagements.weights[positives] != 1).any())
    for start in range(first_step * batch, len(order), batch):
        rows = order[start : start + batch]
        if mask_days:
            begin, end = known_ranges(engagements, rows, mask_days)
        else:
            begin = end = np.zeros(len(rows), np.int64)
        known, offsets = gathered_ranges(engagements.items, begin, end)
        yield Batch(
            rows=rows,
            contexts=contexts_of(engagements, rows, history, history_of),
            positives=torch.from_numpy(engagements.items[rows].astype(np.int64)),
            weight=torch.from_numpy(engagements.weights[rows]) if weighted else None,
            known_items=torch.from_numpy(known.astype(np.int64)),
            known_offsets=torch.from_numpy(offsets),
        )
