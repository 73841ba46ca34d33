"""A market so small that everything is known: the exact softmax, its gradient, and what a score has to become.

Every score of a query and an item is a free number, so nothing but the choice of negatives and their correction decides
what is learned. Items are popular as 1/rank; queries differ in taste, and taste has nothing to do with popularity. The
draws, the ledger and the losses are the package's own.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hatchway.artefacts.atomic import write_text
from hatchway.frequency.given import GivenFrequency
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.counting import PositiveCorrection
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.sources import SharedSource
from hatchway.randomness import stream, torch_stream

BATCH, STEPS, RATE = 128, 2_000, 0.1


@dataclass(frozen=True)
class SmallMarket:
    """Queries and items with known chances.

    Attributes:
        chance: [X, N] float64, P(item | query); all queries are asked as often.
        seed: of the tastes and of everything drawn.
    """

    chance: Tensor
    seed: int

    @classmethod
    def make(cls, seed: int, *, queries: int = 8, items: int = 200, never: int = 0) -> "SmallMarket":
        """Make a market in which the last ``never`` items are never engaged with."""
        popular = 1.0 / np.arange(1, items + 1)
        popular[items - never :] = 0
        weight = popular * np.exp(stream(seed, "tastes").normal(size=(queries, items)))
        return cls(torch.from_numpy(weight / weight.sum(1, keepdims=True)), seed)

    @property
    def popularity(self) -> Tensor:
        """[N] float64, the chance that a positive is the item."""
        return self.chance.mean(0)

    def in_batch(self) -> InBatch:
        """Return the other rows' positives as a source."""
        return InBatch(GivenFrequency.from_chances(chances=self.popularity))

    def rows(self, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw [B] queries and their [B] positives."""
        queries = torch.randint(len(self.chance), (batch,), generator=generator)
        return queries, torch.multinomial(self.chance[queries], 1, generator=generator)[:, 0]

    def slope(self, scores: Tensor) -> float:
        """Return the slope of scores [X, N] on the logarithm of popularity, over items that have one."""
        known = self.popularity > 0
        popularity = self.popularity[known].log()
        popularity = popularity - popularity.mean()
        return float((scores.double()[:, known].mean(0) @ popularity) / (popularity @ popularity))


def learned(
    market: SmallMarket,
    sources: Sequence[SharedSource],
    *,
    alpha: float = 1.0,
    correction: PositiveCorrection = "uncorrected",
    steps: int = STEPS,
) -> Tensor:
    """Return the scores [X, N] that a sampled softmax comes to, from 0 on, with a rate that falls to 0."""
    scores = torch.zeros(market.chance.shape, requires_grad=True)
    optimiser = torch.optim.Adam([scores], lr=RATE)
    one_hot = torch.eye(len(scores))
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = RATE * (1 - step / steps)
        generator = torch_stream(market.seed, "exact", step)
        queries, positives = market.rows(BATCH, generator)
        ledger = draw_ledger(positives, sources, generator, correction if alpha else "uncorrected")
        vectors = scores.T
        loss = sampled_softmax(one_hot[queries], vectors[positives], vectors[ledger.items], ledger, alpha=alpha)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return scores.detach()


def kept(path: Path, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Return what was measured before, or measure it and keep it."""
    if not path.exists():
        write_text(path, json.dumps(make(), indent=1) + "\n")
    found = json.loads(path.read_text())
    return {name: float(value) for name, value in found.items()}
