"""One step: vectors of a batch and its negatives, the ledger, the masks, the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, carries_positives, draw_ledger, with_masked
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import SharedSource
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import Batch


@dataclass(frozen=True)
class Negatives:
    """The sources of a run and how their columns are corrected and masked.

    Attributes:
        settings: which negatives.
        counts: [N] int64 training positives of each item.
        living: [N] bool, the items that uniform draws can reach; None for all.
        seed: the run's seed.
    """

    settings: NegativesSettings
    counts: Tensor
    seed: int
    living: Tensor | None = None

    @cached_property
    def sources(self) -> Sequence[SharedSource]:
        """The shared sources, in-batch first."""
        found: list[SharedSource] = []
        if self.settings.in_batch:
            found.append(InBatch(ExactCounts(self.counts)))
        if self.settings.uniform:
            found.append(Uniform(len(self.counts), self.settings.uniform, self.living))
        return found

    def ledger(self, batch: Batch, step: int) -> Ledger:
        """Draw and account for the negatives of one step; the draws are a function of the seed and the step."""
        # Without a correction there is nothing to switch: copies of the positive are masked, as they always should be.
        correction = self.settings.positive if self.settings.alpha else "uncorrected"
        drawn = draw_ledger(batch.positives, self.sources, torch_stream(self.seed, "negatives", step), correction)
        if not len(batch.known_items):
            return drawn
        return with_masked(drawn, engaged_columns(drawn, batch.known_items, batch.known_offsets))


def batch_loss(model: TwoTower, loss: SampledSoftmax, batch: Batch, ledger: Ledger, hidden: Tensor | None) -> Tensor:
    """Return the mean loss of a batch.

    Args:
        model: the two towers.
        loss: the loss with its temperature and alpha.
        batch: the positives.
        ledger: their columns.
        hidden: [B + C] bool for id dropout, or None.
    """
    in_batch = bool(carries_positives(ledger.sources, len(batch.positives)).any())
    drawn = ledger.items[len(batch.positives) :] if in_batch else ledger.items
    rows = torch.cat([batch.positives, drawn])
    # One pass of the item tower: in-batch columns are the positives' own vectors.
    vectors = model.item(rows, None if hidden is None else hidden[: len(rows)])
    positive = vectors[: len(batch.positives)]
    columns = vectors if in_batch else vectors[len(batch.positives) :]
    result: Tensor = loss(model.query(batch.contexts), positive, columns, ledger, batch.weight)
    return result
