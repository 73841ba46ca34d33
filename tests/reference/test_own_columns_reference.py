"""Own columns beside shared ones: the tiled loss against a slow, obvious one in float64, by the rules alone."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import SampledSoftmax, sampled_softmax
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, PositiveCorrection, draw_ledger, with_own_masked
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.sources import Reason, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

ITEMS, WIDTH, BATCH = 30, 8, 14


Vectors = tuple[Tensor, Tensor, Tensor, Tensor]
"""Of the queries, the positives, the shared columns and the own columns."""


@dataclass(frozen=True)
class Given:
    """Own columns that are there on purpose, as a test wants them."""

    items: Tensor
    log_weight: float = 0.0
    source: Source = Source.MINED
    on_purpose: bool = True

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return them."""
        return self.items

    def expected(self, items: Tensor) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(items.shape, dtype=torch.float64)

    def log_absent(self, items: Tensor) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(items.shape, dtype=torch.float64)


@dataclass(frozen=True)
class World:
    """Vectors in float64, and their ledger."""

    vectors: Vectors
    ledger: Ledger

    def leaves(self, dtype: torch.dtype) -> Vectors:
        """Copy the vectors to leaves that gather gradients."""
        query, positive, columns, own = (v.to(dtype).detach().clone().requires_grad_() for v in self.vectors)
        return query, positive, columns, own


def world(correction: PositiveCorrection, *, distinct: bool = False, seed: int = 5) -> World:
    """Mix everything: in-batch, uniform, 2.5 draws a row, two mined ones at half weight, some absent."""
    generator = torch_stream(seed, "test")
    counts = torch.randint(1, 9, (ITEMS,), generator=generator)
    positives = torch.randint(0, ITEMS // 3, (BATCH,), generator=generator)
    mined = torch.randint(0, ITEMS, (BATCH, 2), generator=generator)
    mined[0], mined[1, 0], mined[2, 1] = -1, positives[1], mined[2, 0]
    ledger = draw_ledger(
        positives,
        [InBatch(ExactCounts(counts)), Uniform(ITEMS, 20)],
        generator,
        correction,
        own=[PerRow(UniformDistribution(ITEMS), 2.5, Source.UNIFORM), Given(mined, math.log(0.5))],
        distinct=distinct,
    )
    items = torch.randn(ITEMS, WIDTH, generator=generator, dtype=torch.float64)
    query = torch.randn(BATCH, WIDTH, generator=generator, dtype=torch.float64)
    return World((query, items[positives], items[ledger.items], items[ledger.own_items.clamp(min=0)]), ledger)


def dense(vectors: Vectors, ledger: Ledger, temperature: float, alpha: float) -> Tensor:
    """Compute the rows' losses with every logit written out."""
    query, positive, columns, own = vectors
    masked = {(int(r), int(c)) for r, c in zip(ledger.masked.rows, ledger.masked.columns, strict=True)}
    copies = {(int(r), int(c)) for r, c in zip(ledger.copy_rows, ledger.copy_columns, strict=True)}
    losses = []
    for row in range(len(query)):
        positive_log = ledger.positive_log_count[row].double()
        logits = [query[row] @ positive[row] / temperature - alpha * positive_log]
        for column in range(len(columns)):
            if (row, column) not in masked:
                log = positive_log if (row, column) in copies else ledger.log_count[column].double()
                logits.append(query[row] @ columns[column] / temperature - alpha * log)
        for place in range(own.shape[1]):
            if int(ledger.own_items[row, place]) >= 0 and int(ledger.own_masked[row, place]) == 0:
                score = query[row] @ own[row, place] / temperature
                log, weight = ledger.own_log_count[row, place].double(), ledger.own_log_weight[row, place].double()
                logits.append(score - alpha * log + weight)
        losses.append(torch.logsumexp(torch.stack(logits), 0) - logits[0])
    return torch.stack(losses)


@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("distinct", [False, True])
def test_losses_and_gradients_are_those_of_the_whole_matrix(
    correction: PositiveCorrection, alpha: float, distinct: bool
) -> None:
    """To 1e-5 of float64, for queries, positives, shared and own vectors, by the mean and row by row."""
    made = world(correction, distinct=distinct)
    exact, single = made.leaves(torch.float64), made.leaves(torch.float32)
    wanted = dense(exact, made.ledger, 0.3, alpha)
    query, positive, columns, own = single
    got = sampled_softmax(
        query, positive, columns, made.ledger, own=own, temperature=0.3, alpha=alpha, reduction="none"
    )
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-6)
    mean = sampled_softmax(query, positive, columns, made.ledger, own=own, temperature=0.3, alpha=alpha)
    right = torch.autograd.grad(wanted.mean(), exact)
    for by in (torch.autograd.grad(mean, single), torch.autograd.grad(got.mean(), single)):
        for one, other in zip(by, right, strict=True):
            assert float((one.double() - other).norm() / other.norm()) < 1e-5


def test_the_module_takes_them_too() -> None:
    """With its temperature and alpha."""
    made = world("count")
    query, positive, columns, own = made.leaves(torch.float32)
    wanted = sampled_softmax(query, positive, columns, made.ledger, own=own, temperature=0.3, alpha=0.5)
    torch.testing.assert_close(SampledSoftmax(0.3, 0.5)(query, positive, columns, made.ledger, own=own), wanted)


def test_a_masked_or_absent_own_column_is_not_moved() -> None:
    """Its vector has gradient 0, also where a screen masked it afterwards."""
    made = world("uncorrected")
    where = torch.zeros_like(made.ledger.own_items, dtype=torch.bool)
    where[3] = True
    ledger = with_own_masked(made.ledger, where, Reason.ENGAGED)
    query, positive, columns, own = made.leaves(torch.float32)
    sampled_softmax(query, positive, columns, ledger, own=own).backward()
    assert own.grad is not None
    moved = own.grad.abs().sum(2) > 0
    assert torch.equal(moved, ledger.own_stands)
    assert not moved[3].any()
    assert moved[4:].any()


def test_own_vectors_of_another_shape_are_refused() -> None:
    """Left out although the ledger has own columns, or one column short."""
    made = world("uncorrected")
    query, positive, columns, own = made.leaves(torch.float32)
    with pytest.raises(DataError, match=r"own has shape \(14, 0, 8\), expected \(14, 5, 8\)"):
        sampled_softmax(query, positive, columns, made.ledger)
    with pytest.raises(DataError, match=r"own has shape \(14, 4, 8\), expected \(14, 5, 8\)"):
        sampled_softmax(query, positive, columns, made.ledger, own=own[:, 1:])
