"""What is counted of a source's draws, and the figures that come of it."""

from dataclasses import dataclass, field

import numpy as np
import torch
from sources import OWN, QUEUED, SHARED, VECTORS_THERE, Drawing, sources_of
from torch import Tensor

from hatchway.data.engagements import Engagements, Part, training_counts
from hatchway.data.log import Log
from hatchway.randomness import torch_stream
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import epoch_batches

BATCH = 4096
EDGES = np.linspace(-2, 1, 121)
POPULARITY_BINS = 12
SETTINGS = {"batch": BATCH, "shared": SHARED, "own": OWN, "queue": QUEUED, "edges": len(EDGES)}
_AT_ONCE = 512


@dataclass
class Tally:
    """What has been counted of one source under one seed.

    Attributes:
        items: [N] draws of each item.
        pairs: (row, negative) pairs seen.
        below: sum of score(negative) − score(positive).
        harder: pairs whose negative scores above the positive.
        harder_engaged: those of them that are also among ``engaged``.
        engaged: pairs whose item is a training positive of the row's buyer (masked in training).
        hidden: other pairs whose item is a test positive of the row's buyer: false negatives.
        passes: item vectors needed beyond those of the positives.
        gaps: a histogram of score(negative) − score(positive).
    """

    items: Tensor
    pairs: int = 0
    below: float = 0.0
    harder: int = 0
    harder_engaged: int = 0
    engaged: int = 0
    hidden: int = 0
    passes: int = 0
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(len(EDGES) - 1))


def liked(engagements: Engagements, part: Part, items: int) -> Tensor:
    """Return the sorted (buyer, item) pairs of the positives of a part, as numbers buyer · N + item."""
    rows = engagements.positives(part)
    pairs = engagements.buyers[rows].astype(np.int64) * items + engagements.items[rows]
    return torch.from_numpy(np.unique(pairs))


def among(pairs: Tensor, wanted: Tensor) -> Tensor:
    """Say which of ``wanted`` stand in sorted ``pairs``."""
    place = torch.searchsorted(pairs, wanted).clamp(max=len(pairs) - 1)
    return pairs[place] == wanted


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the rows' buyers, as from :func:`liked`: of training, and of the held-out test part."""

    known: Tensor
    hidden: Tensor


def tally(log: Log, model: TwoTower, batches: int, seed: int) -> dict[str, Tally]:
    """Let every source draw for the same batches; as many before them as fill the queue are not counted."""
    engagements, number = log.engagements, len(log.catalogue)
    counts = torch.from_numpy(training_counts(engagements, number))
    vectors = torch.cat([model.item(rows) for rows in torch.arange(number).split(8192)])
    truth = Truth(liked(engagements, Part.TRAIN, number), liked(engagements, Part.TEST, number))
    found = {source: Tally(torch.zeros(number, dtype=torch.int64)) for source in sources_of(log)}
    drawing = Drawing.of(log, counts, vectors)
    stream = epoch_batches(
        engagements,
        engagements.positives(Part.TRAIN),
        batch=BATCH,
        history=model.history_length,
        history_of=model.history_of,
        mask_days=0,
        seed=seed,
        epoch=0,
    )
    filling = -(-QUEUED // BATCH)
    for step, batch in zip(range(-filling, batches), stream, strict=False):
        if step >= 0:
            query = model.query(batch.contexts)
            ranked = drawing.ranked(query)
            buyers = torch.from_numpy(batch.contexts.buyers).long()
            for source, entry in found.items():
                items = drawing.draw(source, batch, ranked, torch_stream(seed, source, step))
                there = items[items >= 0]
                entry.items += torch.bincount(there, minlength=number)
                if source not in VECTORS_THERE:
                    needed = torch.cat([batch.positives, there]).unique()
                    entry.passes += len(needed) - len(batch.positives.unique())
                for rows in torch.arange(len(query)).split(_AT_ONCE):
                    mine = items if items.ndim == 1 else items[rows]
                    count(entry, query[rows], batch.positives[rows], buyers[rows], mine, vectors, truth)
        drawing.after(batch)
    return found


def count(
    entry: Tally, query: Tensor, positives: Tensor, buyers: Tensor, items: Tensor, vectors: Tensor, truth: Truth
) -> None:
    """Add some rows with what they were given to a tally; the row's own positive is no pair.

    Args:
        entry: is added to.
        query: [R, d] vectors.
        positives: [R] items.
        buyers: [R] int64.
        items: [C] items of all rows, or [R, H] of their own, −1 for none.
        vectors: [N, d] of all items.
        truth: what the buyers like.
    """
    of_positive = (query * vectors[positives]).sum(1)
    if items.ndim == 1:
        scores, items = query @ vectors[items].T, items.expand(len(query), -1)
    else:
        scores = (query[:, None] * vectors[items.clamp(min=0)]).sum(2)
    stands = (items >= 0) & (items != positives[:, None])
    gap = (scores - of_positive[:, None])[stands]
    pairs = (buyers[:, None] * len(vectors) + items)[stands]
    masked = among(truth.known, pairs)
    entry.pairs += len(gap)
    entry.below += float(gap.double().sum())
    entry.harder += int((gap > 0).sum())
    entry.harder_engaged += int(((gap > 0) & masked).sum())
    entry.engaged += int(masked.sum())
    entry.hidden += int((among(truth.hidden, pairs) & ~masked).sum())
    entry.gaps += np.histogram(gap.numpy(), EDGES)[0]


def slope(draws: Tensor, counts: Tensor) -> float:
    """Fit ln(draws an item) = slope · ln(count an item) + c over bins of items of like popularity.

    Bins hold equal numbers of items with a count; those in which nothing was drawn are left out.
    """
    order = torch.argsort(counts)
    order = order[counts[order] > 0]
    bins = order.tensor_split(POPULARITY_BINS)
    x = np.array([float(counts[b].double().mean()) for b in bins])
    y = np.array([float(draws[b].double().mean()) for b in bins])
    there = y > 0
    return float(np.polyfit(np.log(x[there]), np.log(y[there]), 1)[0])


def figures(entry: Tally, counts: Tensor, batches: int) -> dict[str, float]:
    """Turn a tally into the figures of the table."""
    order = torch.argsort(counts, descending=True, stable=True)
    share = counts[order].cumsum(0).double() / counts.sum()
    tail = order[share > 2 / 3]
    return {
        "extra_passes_per_batch": entry.passes / batches,
        "score_against_positive": entry.below / entry.pairs,
        "scores_above_positive": entry.harder / entry.pairs,
        "unmasked_above_positive": (entry.harder - entry.harder_engaged) / (entry.pairs - entry.engaged),
        "slope_on_popularity": slope(entry.items, counts),
        "share_on_tail": float(entry.items[tail].sum() / entry.items.sum()),
        "known_positive_share": entry.engaged / entry.pairs,
        "false_negative_share": entry.hidden / entry.pairs,
    }
