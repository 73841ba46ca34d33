"""Gradients of the sampled loss approach those of the softmax over the whole catalogue as draws grow.

The right thing to approach is known exactly, and a wrong sign, a forgotten source or chances in place of counts would
approach something else, or nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import PositiveCorrection, draw_ledger
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity, PopularityDistribution
from hatchway.negatives.sources import OwnSource, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

ITEMS, WIDTH, BATCH = 40, 6, 16
COUNTS = (200 / torch.arange(1, ITEMS + 1)).long()
TOTAL = int(COUNTS.sum())

Sources = tuple[list[SharedSource], list[OwnSource]]

MIXTURES: dict[str, Callable[[int], Sources]] = {
    "uniform": lambda draws: ([Uniform(ITEMS, draws)], []),
    "popularity": lambda draws: ([Popularity(COUNTS, draws)], []),
    "popularity itself": lambda draws: ([Popularity(COUNTS, draws, 1.0)], []),
    "in-batch and uniform": lambda draws: ([InBatch(ExactCounts(COUNTS)), Uniform(ITEMS, draws)], []),
    "uniform and popularity": lambda draws: ([Uniform(ITEMS, draws // 2), Popularity(COUNTS, draws // 2)], []),
    "by row": lambda draws: ([], [PerRow(UniformDistribution(ITEMS), draws + 0.5, Source.UNIFORM)]),
    "by row beside shared": lambda draws: (
        [Uniform(ITEMS, draws // 2)],
        [PerRow(PopularityDistribution(COUNTS), draws / 2, Source.POPULARITY)],
    ),
}


def world() -> tuple[Tensor, Tensor, Tensor]:
    """Return query and item vectors in float64, and a batch of a shuffled epoch."""
    generator = torch_stream(11, "world")
    query = torch.randn(BATCH, WIDTH, generator=generator, dtype=torch.float64)
    items = torch.randn(ITEMS, WIDTH, generator=generator, dtype=torch.float64)
    log = torch.repeat_interleave(torch.arange(ITEMS), COUNTS)
    return query, items, log[torch.randperm(TOTAL, generator=generator)[:BATCH]]


def full_gradients() -> tuple[Tensor, Tensor]:
    """Differentiate the exact loss with respect to queries and all items."""
    query, items, positives = world()
    query, items = query.requires_grad_(), items.requires_grad_()
    loss = torch.nn.functional.cross_entropy(query @ items.T, positives)
    loss.backward()
    assert query.grad is not None
    assert items.grad is not None
    return query.grad, items.grad


def sampled_gradients(mixture: str, draws: int, correction: PositiveCorrection, seed: int) -> tuple[Tensor, Tensor]:
    """Differentiate the sampled loss."""
    vectors, items, positives = world()
    query, table = vectors.float().requires_grad_(), items.float().requires_grad_()
    shared, own = MIXTURES[mixture](draws)
    ledger = draw_ledger(positives, shared, torch_stream(seed, mixture, draws), correction, own=own)
    own_vectors = table[ledger.own_items.clamp(min=0)]
    sampled_softmax(query, table[positives], table[ledger.items], ledger, own=own_vectors).backward()
    assert query.grad is not None
    assert table.grad is not None
    return query.grad.double(), table.grad.double()


def error(mixture: str, draws: int, correction: PositiveCorrection) -> float:
    """Return the root mean square of the relative error over some seeds."""
    exact = torch.cat([part.flatten() for part in full_gradients()])
    squares = []
    for seed in range(6):
        got = torch.cat([part.flatten() for part in sampled_gradients(mixture, draws, correction, seed)])
        squares.append(float(((got - exact).norm() / exact.norm()) ** 2))
    return float(torch.tensor(squares).mean().sqrt())


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("correction", ["uncorrected", "count"])
def test_the_error_falls_as_one_over_the_root_of_the_draws(mixture: str, correction: PositiveCorrection) -> None:
    """A hundred times the draws, a tenth of the error (a sixth would do), and at the end 3 %."""
    few, many = error(mixture, 200, correction), error(mixture, 20_000, correction)
    assert many < few / 6
    assert many < 0.03


def test_a_wrong_sign_would_be_found() -> None:
    """The same draws with the correction added instead of subtracted stay far away, however many they are."""
    vectors, items, positives = world()
    query, table = vectors.float().requires_grad_(), items.float()
    ledger = draw_ledger(positives, [Popularity(COUNTS, 20_000)], torch_stream(1), "uncorrected")
    ledger = replace(ledger, log_count=-ledger.log_count)
    sampled_softmax(query, table[positives], table[ledger.items], ledger).backward()
    exact, _ = full_gradients()
    assert query.grad is not None
    assert float((query.grad.double() - exact).norm() / exact.norm()) > 0.2


def test_in_batch_alone_approaches_the_softmax_over_what_was_engaged_with() -> None:
    """Averaged over many batches, in-batch columns know nothing of items without positives: their gradient is 0."""
    counts = COUNTS.clone()
    counts[-10:] = 0
    vectors, items, _ = world()
    table = items.float().requires_grad_()
    log = torch.repeat_interleave(torch.arange(ITEMS), counts)
    for step in range(20):
        positives = log[torch.randperm(len(log), generator=torch_stream(step))[:BATCH]]
        ledger = draw_ledger(positives, [InBatch(ExactCounts(counts))], torch_stream(step), "uncorrected")
        sampled_softmax(vectors.float(), table[positives], table[ledger.items], ledger).backward()
    assert table.grad is not None
    assert float(table.grad[-10:].abs().max()) == 0
    assert float(table.grad[:-10].abs().sum(1).min()) > 0
