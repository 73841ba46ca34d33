"""The sampled softmax at the edges: precisions, extreme scores, strides, compilation, with own columns beside."""

import pytest
import torch
from torch import Tensor

from hatchway.errors import UsageError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import SampledSoftmax, sampled_softmax
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, draw_ledger
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.sources import Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

ITEMS, WIDTH = 12, 8

Vectors = tuple[Tensor, Tensor, Tensor, Tensor]


def world(batch: int = 9, draws: int = 15, own: float = 2.5) -> tuple[Vectors, Ledger]:
    """Make query, positive, column and own vectors, and their ledger."""
    generator = torch_stream(6)
    positives = torch.randint(0, ITEMS, (batch,), generator=generator)
    counts = torch.full((ITEMS,), max(batch, 5))
    ledger = draw_ledger(
        positives,
        [InBatch(ExactCounts(counts)), Uniform(ITEMS, draws)],
        generator,
        "count",
        own=[PerRow(UniformDistribution(ITEMS), own, Source.UNIFORM)],
    )
    table = torch.randn(ITEMS, WIDTH, generator=generator)
    query = torch.randn(batch, WIDTH, generator=generator)
    return (query, table[positives], table[ledger.items], table[ledger.own_items.clamp(min=0)]), ledger


def loss_of(vectors: Vectors, ledger: Ledger, temperature: float = 1.0) -> Tensor:
    """Return the mean loss."""
    query, positive, columns, own = vectors
    return sampled_softmax(query, positive, columns, ledger, own=own, temperature=temperature)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, autocast: bool) -> None:
    """The loss is that of the rounded vectors, in float32; gradients come back in the vectors' own type."""
    vectors, ledger = world()
    query, positive, columns, own = (part.to(dtype).requires_grad_() for part in vectors)
    rounded = tuple(part.detach().float() for part in (query, positive, columns, own))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = loss_of((query, positive, columns, own), ledger, 0.05)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, loss_of(rounded, ledger, 0.05))  # type: ignore[arg-type]
    loss.backward()
    for part in (query, positive, columns, own):
        assert part.grad is not None
        assert part.grad.dtype == dtype
        assert bool(torch.isfinite(part.grad).all())


@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_scores_of_ten_thousand_overflow_nothing(temperature: float) -> None:
    """Own and shared scores of ±10,000, and those over 0.01: finite loss and gradients."""
    vectors, ledger = world()
    scaled = tuple((part * 60).requires_grad_() for part in vectors)
    loss = loss_of(scaled, ledger, temperature)  # type: ignore[arg-type]
    loss.backward()
    assert float((scaled[0] @ scaled[2].T).detach().abs().max()) > 1e4
    assert bool(torch.isfinite(loss))
    assert all(bool(torch.isfinite(part.grad).all()) for part in scaled if part.grad is not None)


def test_a_positive_that_has_no_chance_still_gets_its_gradient() -> None:
    """At a loss of hundreds of nats the positive is pulled with its whole weight: no logarithm has a floor."""
    vectors, ledger = world()
    query, positive, columns, own = vectors
    far = (-40 * query).requires_grad_()
    loss = sampled_softmax(query, far, columns, ledger, own=own, reduction="none")
    assert float(loss.detach().min()) > 60
    loss.sum().backward()
    torch.testing.assert_close(far.grad, -query)
    assert len(positive) == len(far)


def test_strided_inputs_are_as_good() -> None:
    """Views with strides, and expanded ones, give what contiguous copies give."""
    vectors, ledger = world()
    wide = [torch.stack([part, part + 1], -1)[..., 0] for part in vectors]
    assert not any(part.is_contiguous() for part in wide)
    torch.testing.assert_close(loss_of(tuple(wide), ledger), loss_of(vectors, ledger))  # type: ignore[arg-type]
    query, positive, columns, own = vectors
    same = own[:, :1].expand_as(own)
    torch.testing.assert_close(
        loss_of((query, positive, columns, same), ledger), loss_of((query, positive, columns, same.clone()), ledger)
    )


@pytest.mark.parametrize("batch", [1, 100])
def test_a_batch_of_one_and_one_larger_than_the_catalogue(batch: int) -> None:
    """Shapes stay what they are and everything is finite."""
    vectors, ledger = world(batch)
    query, positive, columns, own = vectors
    losses = sampled_softmax(query, positive, columns, ledger, own=own, reduction="none")
    assert losses.shape == (batch,)
    assert bool(torch.isfinite(losses).all())


def test_no_shared_columns_at_all() -> None:
    """Own columns alone are a softmax too (InfoNCE with K a row)."""
    generator = torch_stream(2)
    ledger = draw_ledger(
        torch.tensor([0, 1]), [], generator, "count", own=[PerRow(UniformDistribution(ITEMS), 3, Source.UNIFORM)]
    )
    query, own = torch.randn(2, WIDTH, generator=generator), torch.randn(2, 3, WIDTH, generator=generator)
    loss = sampled_softmax(query, query, query.new_empty(0, WIDTH), ledger, own=own)
    logits = torch.cat(
        [
            (query * query).sum(1, keepdim=True) - ledger.positive_log_count[:, None],
            (own @ query[:, :, None])[:, :, 0] - ledger.own_log_count,
        ],
        1,
    )
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.int64)))


@pytest.mark.filterwarnings("ignore")  # the compiler itself does what PyTorch warns of
def test_a_compiled_model_may_call_it() -> None:
    """Whatever PyTorch's compiler makes of the call, loss and gradients are the same."""
    vectors, ledger = world()
    module = SampledSoftmax(0.2)

    def step(scale: Tensor) -> Tensor:
        query, positive, columns, own = (part * scale for part in vectors)
        result: Tensor = module(query, positive, columns, ledger, own=own)
        return result * 2

    found = []
    for function in (step, torch.compile(step, backend="aot_eager")):
        scale = torch.tensor(0.7, requires_grad=True)
        loss = function(scale)
        loss.backward()
        assert scale.grad is not None
        found.append((loss.detach(), scale.grad))
    torch.testing.assert_close(found[0], found[1])


def test_a_second_derivative_is_refused_with_own_columns_too() -> None:
    """Gradients are made once, on the way forward, and the refusal says which loss can be differentiated twice."""
    vectors, ledger = world()
    query, positive, columns, own = vectors
    query.requires_grad_()
    loss = sampled_softmax(query, positive, columns, ledger, own=own)
    (gradient,) = torch.autograd.grad(loss, query, create_graph=True)
    with pytest.raises(UsageError, match="sampled_softmax gives first derivatives only"):
        torch.autograd.grad(gradient.sum(), query)
