"""The tiled loss against a slow, obvious one in float64 that builds the whole matrix."""

import pytest
import torch
from torch import Tensor

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, PositiveCorrection, draw_ledger, with_masked
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

ITEMS, WIDTH = 60, 8

Vectors = tuple[Tensor, Tensor, Tensor]
"""Of the queries, the positives and the columns."""


def leaves(vectors: Vectors, dtype: torch.dtype, scale: float = 1.0) -> Vectors:
    """Copy the vectors to leaves that gather gradients."""
    query, positive, columns = ((t * scale).to(dtype).detach().clone().requires_grad_() for t in vectors)
    return query, positive, columns


def dense(query: Tensor, positive: Tensor, columns: Tensor, ledger: Ledger, temperature: float, alpha: float) -> Tensor:
    """Compute the rows' losses with a loop over rows and columns' logits written out."""
    losses = []
    masked = {(int(r), int(c)) for r, c in zip(ledger.masked.rows, ledger.masked.columns, strict=True)}
    copies = {(int(r), int(c)) for r, c in zip(ledger.copy_rows, ledger.copy_columns, strict=True)}
    for row in range(len(query)):
        own_log = ledger.positive_log_count[row].double()
        own = query[row] @ positive[row] / temperature - alpha * own_log
        logits = [own]
        for column in range(len(columns)):
            if (row, column) in masked:
                continue
            log = own_log if (row, column) in copies else ledger.log_count[column].double()
            logits.append(query[row] @ columns[column] / temperature - alpha * log)
        losses.append(torch.logsumexp(torch.stack(logits), 0) - own)
    return torch.stack(losses)


def world(batch: int, draws: int, correction: PositiveCorrection, seed: int = 5) -> tuple[Vectors, Ledger]:
    """Make vectors in float64 and a ledger with duplicates, accidental hits and engaged items."""
    generator = torch_stream(seed, "test")
    counts = torch.randint(1, 9, (ITEMS,), generator=generator)
    positives = torch.randint(0, ITEMS // 4, (batch,), generator=generator)
    ledger = draw_ledger(positives, [InBatch(ExactCounts(counts)), Uniform(ITEMS, draws)], generator, correction)
    known = torch.randint(0, ITEMS, (batch * 3,), generator=generator)
    ledger = with_masked(ledger, engaged_columns(ledger, known, torch.arange(batch + 1) * 3))
    items = torch.randn(ITEMS, WIDTH, generator=generator, dtype=torch.float64)
    query = torch.randn(batch, WIDTH, generator=generator, dtype=torch.float64)
    return (query, items[positives], items[ledger.items]), ledger


@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("batch", "draws"), [(1, 5), (7, 0), (40, 300)])
def test_losses_and_gradients_agree(correction: PositiveCorrection, alpha: float, batch: int, draws: int) -> None:
    """Loss within 1e-5 and every gradient within 1e-5 of float64, for the mean and for single rows with weights."""
    tensors, ledger = world(batch, draws, correction)
    exact = leaves(tensors, torch.float64)
    single = leaves(tensors, torch.float32)
    weight = torch.rand(batch, generator=torch_stream(1, "weight")) + 0.1
    wanted = dense(*exact, ledger, 0.3, alpha) * weight.double()
    got = sampled_softmax(*single, ledger, temperature=0.3, alpha=alpha, weight=weight, reduction="none")
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-6)
    mean = sampled_softmax(*single, ledger, temperature=0.3, alpha=alpha, weight=weight)
    torch.testing.assert_close(mean.double(), wanted.sum() / weight.double().sum(), rtol=1e-5, atol=1e-6)
    (wanted.sum() / weight.double().sum()).backward()
    by_mean = torch.autograd.grad(mean, single)
    by_rows = torch.autograd.grad(got.sum() / weight.sum(), single)
    for right, one, other in zip(exact, by_mean, by_rows, strict=True):
        assert right.grad is not None
        scale = right.grad.norm().clamp(min=1e-9)
        assert float((one.double() - right.grad).norm() / scale) < 1e-5
        assert float((other.double() - right.grad).norm() / scale) < 1e-5


def test_a_masked_candidate_gets_no_gradient() -> None:
    """What is masked in every row has probability 0: its vector is not moved at all."""
    tensors, ledger = world(6, 40, "uncorrected")
    victim = int(ledger.items[-1])
    known = torch.full((6,), victim)
    ledger = with_masked(ledger, engaged_columns(ledger, known, torch.arange(7)))
    single = leaves(tensors, torch.float32)
    sampled_softmax(*single, ledger).backward()
    assert single[2].grad is not None
    holds = (ledger.items == victim) & ~torch.isin(ledger.items, ledger.positives)
    assert holds.any()
    assert float(single[2].grad[holds].abs().max()) == 0.0


def test_extreme_scores_stay_finite() -> None:
    """Scores of ±10,000 at temperature 0.01 overflow nothing."""
    tensors, ledger = world(9, 30, "count")
    single = leaves(tensors, torch.float32, 1e3)
    loss = sampled_softmax(*single, ledger, temperature=0.01)
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert all(bool(torch.isfinite(t.grad).all()) for t in single if t.grad is not None)


def test_the_gradient_is_that_of_the_product_form_of_khrylchenko() -> None:
    """``uncorrected`` has the gradient of −sg(1 − P̂)·log[e^f(p) / Σ e^(f(d) − log n(d))] (Khrylchenko et al. 2025)."""
    tensors, ledger = world(12, 200, "uncorrected")
    single = leaves(tensors, torch.float32)
    ours = torch.autograd.grad(sampled_softmax(*single, ledger, temperature=0.5), single)
    exact = leaves(tensors, torch.float64)
    query, positive, columns = exact
    logits = query @ columns.T / 0.5 - ledger.log_count.double()
    logits = logits.index_put(
        (ledger.masked.rows, ledger.masked.columns), torch.tensor(-torch.inf, dtype=torch.float64)
    )
    own = (query * positive).sum(1) / 0.5
    others = torch.logsumexp(logits, 1)
    share = torch.sigmoid(own - others).detach()
    product = (-(1 - share) * (own - others)).mean()
    for mine, right in zip(ours, torch.autograd.grad(product, exact), strict=True):
        assert float((mine.double() - right).norm() / right.norm()) < 1e-5
