"""The reference workload: 4,096 positives, 1,000 shared uniform negatives, two mined ones a row, 20-item histories.

Items follow a power law of exponent 0.8, as in large marketplaces. Every benchmark of the loss, the masks and the whole
step takes its batches from here, so that all variants see the same ones.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, draw_ledger
from hatchway.negatives.sources import SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

WIDTH, UNIFORM, MINED, HISTORY, TEMPERATURE = 64, 1_000, 2, 20, 0.1


@dataclass(frozen=True)
class Batch:
    """B rows.

    Attributes:
        positives: [B] int64 items.
        history: [B, 20] int64 items that the row's buyer engaged with.
        mined: [B, 2] int64 items mined for the row.
    """

    positives: Tensor
    history: Tensor
    mined: Tensor

    @property
    def history_offsets(self) -> Tensor:
        """[B + 1] int64."""
        return torch.arange(len(self.positives) + 1) * self.history.shape[1]


def power_law(number: int, catalogue: int, generator: torch.Generator) -> Tensor:
    """Draw items of which the k-th has a chance in proportion to k^−0.8, spread over the catalogue."""
    place = torch.rand(number, generator=generator, dtype=torch.float64)
    rank = ((place * (catalogue**0.2 - 1) + 1) ** 5).long().clamp(max=catalogue) - 1
    return rank * 2_654_435_761 % catalogue  # a prime factor: popular items do not lie side by side


def make_batch(catalogue: int, rows: int, seed: int) -> Batch:
    """Make a batch."""
    generator = torch_stream(seed, "benchmark batch", catalogue, rows)
    return Batch(
        power_law(rows, catalogue, generator),
        power_law(rows * HISTORY, catalogue, generator).view(rows, HISTORY),
        torch.randint(catalogue, (rows, MINED), generator=generator),
    )


@dataclass(frozen=True)
class Given:
    """Own columns that are handed in."""

    items: Tensor
    source: Source = Source.MINED
    on_purpose: bool = True
    log_weight: float = 0.0

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the items."""
        return self.items

    def expected(self, items: Tensor) -> Tensor:
        """There on purpose: nothing is expected."""
        return torch.zeros(items.shape, dtype=torch.float64)


def sources(catalogue: int) -> list[SharedSource]:
    """Return in-batch and uniform negatives; the counts are those of the power law for five positives an item."""
    items = torch.arange(catalogue)
    rank = torch.empty_like(items)
    rank[items * 2_654_435_761 % catalogue] = items
    counts = (catalogue * (rank + 1.0).pow(-0.8) / catalogue**0.2).long() + 1
    return [InBatch(ExactCounts(counts)), Uniform(catalogue, UNIFORM)]


def ledger_of(batch: Batch, shared: list[SharedSource], step: int) -> Ledger:
    """Draw the negatives of a step."""
    return draw_ledger(
        batch.positives, shared, torch_stream(1, "benchmark", step), "uncorrected", own=[Given(batch.mined)]
    )


def vectors(number: int, seed: int) -> Tensor:
    """Return [number, 64] vectors of length 1."""
    drawn = torch.randn(number, WIDTH, generator=torch_stream(seed, "benchmark vectors"))
    return nn.functional.normalize(drawn, dim=1)
