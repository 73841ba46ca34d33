"""The AUCs of training and validation at one random negative a positive, which say how many negatives to draw."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hatchway.data.engagements import Int64, Part
from hatchway.data.log import Log
from hatchway.how_many.curves import AucPoint, auc
from hatchway.negatives.sources import Source
from hatchway.randomness import stream, torch_stream
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import Batch, epoch_batches
from hatchway.training.step import Negatives

_BLOCK = 4096
_TRIES = 8


@dataclass(frozen=True)
class AucPairs:
    """Positives with one random negative each, the same at every measurement of a run.

    Attributes:
        batches: the positives, a block each.
        negatives: for each block [B] int64 item rows, −1 where no negative was found that may stand.
    """

    batches: tuple[Batch, ...]
    negatives: tuple[Tensor, ...]

    def __len__(self) -> int:
        return sum(int((items >= 0).sum()) for items in self.negatives)


@dataclass(frozen=True)
class AucMeter:
    """Measures a model's AUCs; see :func:`auc_meter`."""

    training: AucPairs
    validation: AucPairs

    def measure(self, model: TwoTower) -> AucPoint:
        """Return the AUCs of a model that is in evaluation mode."""
        return AucPoint(*(_auc_of(model, pairs) for pairs in (self.training, self.validation)))


def auc_meter(model: TwoTower, log: Log, negatives: Negatives, *, pairs: int, seed: int) -> AucMeter | None:
    """Choose the pairs that a run's AUCs are measured on.

    The negative of a pair is drawn as those of training are: one column at random of those that a training row would
    see, shared or its own, but none that was mined for being hard. It is not the positive, not what the buyer is
    known to have engaged with, and nothing that the run's screen finds beside the positive.

    Args:
        model: whose contexts are asked for; nothing of its weights is used.
        log: the engagements.
        negatives: the run's sources.
        pairs: how many of each part at most; 0 measures nothing.
        seed: the run's seed.

    Returns:
        None where there is no validation part, or no pair of either part.
    """
    training, validation = (log.engagements.positives(part) for part in (Part.TRAIN, Part.VALIDATION))
    if not (pairs and len(training) and len(validation)):
        return None
    made = []
    for part, rows in ((Part.TRAIN, training), (Part.VALIDATION, validation)):
        chosen = stream(seed, "auc rows", int(part)).permutation(rows)[:pairs]
        generator = torch_stream(seed, "auc negatives", int(part))
        # The positives that the in-batch columns carry are training ones for both: that is whom a run's rows meet.
        others = torch.from_numpy(
            log.engagements.items[stream(seed, "auc others", int(part)).permutation(training)[:_BLOCK]].astype(np.int64)
        )
        shared = [source.draw(others, generator) for source in negatives.shared if source.source is not Source.QUEUE]
        pool = torch.cat([others.new_empty(0), *shared])
        batches = tuple(_blocks(model, log, chosen, negatives.screen.settings.engaged_days, seed))
        found = tuple(_negatives_of(batch, negatives, pool, len(log.catalogue), generator) for batch in batches)
        made.append(AucPairs(batches, found))
    return AucMeter(*made) if all(map(len, made)) else None


def _blocks(model: TwoTower, log: Log, rows: Int64, mask_days: float, seed: int) -> list[Batch]:
    """Return the batches of engagement rows of any part."""
    return list(
        epoch_batches(
            log.engagements,
            rows,
            batch=_BLOCK,
            history=model.history_length,
            history_of=model.history_of,
            mask_days=mask_days,
            seed=seed,
            epoch=0,
        )
    )


def _negatives_of(
    batch: Batch, negatives: Negatives, pool: Tensor, catalogue: int, generator: torch.Generator
) -> Tensor:
    """Draw a negative for each positive, again where it may not stand, a few times; then −1."""
    size = len(batch.positives)
    rows = torch.from_numpy(batch.rows)
    own = [
        source.draw(batch.positives, rows, generator) for source in negatives.own if source.source is not Source.MINED
    ]
    columns = torch.cat([batch.positives.new_empty(size, 0), *own], 1)
    places = len(pool) + columns.shape[1]
    found = torch.full((size,), -1, dtype=torch.int64)
    if not places:
        return found
    row_of_known = torch.repeat_interleave(torch.arange(size), batch.known_offsets.diff())
    known = row_of_known * catalogue + batch.known_items
    each = torch.arange(size)
    for _ in range(_TRIES):
        place = torch.randint(places, (size,), generator=generator)
        drawn = torch.full((size,), -1, dtype=torch.int64)
        from_pool = place < len(pool)
        drawn[from_pool] = pool[place[from_pool]]
        drawn[~from_pool] = columns[each[~from_pool], place[~from_pool] - len(pool)]
        stands = (drawn >= 0) & (drawn != batch.positives) & ~torch.isin(each * catalogue + drawn, known)
        if negatives.screen.reasons:
            stands &= negatives.screen.own(batch.positives, drawn[:, None])[:, 0] == 0
        found = torch.where((found < 0) & stands, drawn, found)
    return found


@torch.no_grad()
def _auc_of(model: TwoTower, pairs: AucPairs) -> float:
    """Score every pair, a block at a time."""
    positive: list[Tensor] = []
    negative: list[Tensor] = []
    for batch, items in zip(pairs.batches, pairs.negatives, strict=True):
        queries, stands = model.query(batch.contexts), items >= 0
        for scores, rows in ((positive, batch.positives), (negative, items.clamp(min=0))):
            scores.append((queries * model.item(rows)).sum(1)[stands].float().cpu())
    return auc(torch.cat(positive).numpy(), torch.cat(negative).numpy())
