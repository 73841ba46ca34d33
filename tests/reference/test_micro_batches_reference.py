"""Gradient caching against the same batch encoded at once: equal gradients, and nothing kept on the way."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.micro_batches import in_micro_batches, unique_in_micro_batches
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

ITEMS, WIDTH = 20, 6


class Encoder(nn.Module):
    """Two layers with dropout from PyTorch's global stream between them."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, WIDTH))
        self.most_rows = 0
        self.calls = 0

    def forward(self, features: Tensor) -> Tensor:
        """Encode rows."""
        self.most_rows = max(self.most_rows, len(features))
        self.calls += 1
        result: Tensor = self.layers(features)
        return result


def training_step(size: int | None, dropout: float = 0.0) -> tuple[float, list[Tensor], Encoder]:
    """Take one step's gradients of a batch of ten, with an in-batch ledger and a learned temperature.

    With a size the queries go through micro-batches and so do the different items; without one all at once.
    """
    draw = torch_stream(21, "micro")
    features = torch.randn(10, WIDTH, generator=draw)
    catalogue = torch.randn(ITEMS, WIDTH, generator=draw)
    positives = torch.randint(0, 6, (10,), generator=draw)
    counts = torch.full((ITEMS,), 3)
    ledger = draw_ledger(positives, [InBatch(ExactCounts(counts)), Uniform(ITEMS, 9)], draw, "count")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        query_encoder, item_encoder = Encoder(dropout), Encoder(dropout)
        loss = SampledSoftmax(0.3, learn_temperature=True)
        if size is None:
            query, items = query_encoder(features), item_encoder(catalogue[ledger.items])
        else:
            query = in_micro_batches(lambda part: query_encoder(features[part]), len(features), size)
            items = unique_in_micro_batches(lambda rows: item_encoder(catalogue[rows]), ledger.items, size)
        value = loss(query, items[:10], items, ledger)
        torch.manual_seed(99)  # whatever happens between the two passes
        torch.rand(7)
        value.backward()
    parameters = [*query_encoder.parameters(), *item_encoder.parameters(), *loss.parameters()]
    assert all(parameter.grad is not None for parameter in parameters)
    return float(value.detach()), [p.grad for p in parameters if p.grad is not None], query_encoder


@pytest.mark.parametrize("size", [1, 3, 4, 10, 64])
def test_gradients_are_those_of_the_whole_batch(size: int) -> None:
    """All parameters of both towers and the temperature; the last micro-batch may be smaller."""
    whole, wanted, _ = training_step(None)
    value, got, encoder = training_step(size)
    assert value == pytest.approx(whole, rel=1e-6)
    for mine, right in zip(got, wanted, strict=True):
        # What adds up to 0 over the batch (of an output's bias, say) is rounding, of terms around .1.
        torch.testing.assert_close(mine, right, rtol=1e-5, atol=5e-7)
    assert encoder.most_rows == min(size, 10)
    assert encoder.calls == 2 * -(-10 // size)


def encoded(size: int, dropout: Callable[[Tensor], Tensor], generators: tuple[torch.Generator, ...]) -> list[Tensor]:
    """Return vectors, and the gradients of their squares' sum to the weights and to the features."""
    draw = torch_stream(22, "features")
    features = torch.randn(7, WIDTH, generator=draw).requires_grad_()
    weights = torch.randn(WIDTH, WIDTH, generator=draw).requires_grad_()
    vectors = in_micro_batches(lambda part: dropout(features[part] @ weights), 7, size, generators)
    torch.rand(5)
    return [vectors, *torch.autograd.grad((vectors**2).sum(), [weights, features])]


@pytest.mark.parametrize("own", [False, True])
def test_both_passes_have_the_same_dropout(own: bool) -> None:
    """From the global stream and from a generator of one's own: the gradient is that of the vectors that were seen."""
    stream = torch_stream(23, "dropout")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        found = encoded(
            3,
            lambda x: x * (torch.rand(x.shape, generator=stream if own else None) < 0.5) * 2,
            (stream,) if own else (),
        )
        after = torch.rand(3, generator=stream if own else None)
        torch.manual_seed(5)
        stream = torch_stream(23, "dropout")
        masks = [(torch.rand(rows, WIDTH, generator=stream if own else None) < 0.5) * 2 for rows in (3, 3, 1)]
        for mask, rows in zip(masks, (3, 3, 1), strict=True):
            assert mask.shape == (rows, WIDTH)
        if not own:
            torch.rand(5)
        # The second pass has put the stream back to where the first one left it.
        assert torch.equal(after, torch.rand(3, generator=stream if own else None))
    wanted = encoded(7, lambda x: x * torch.cat(masks), ())
    for mine, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, right)


def test_dropout_modules_run_twice_alike() -> None:
    """With dropout in both towers the step's gradient is that of one pass whose masks are repeated."""
    first, second = training_step(3, dropout=0.4), training_step(3, dropout=0.4)
    assert first[0] == second[0]
    for one, other in zip(first[1], second[1], strict=True):
        assert torch.equal(one, other)
    assert first[0] != training_step(3)[0]


def test_nothing_but_the_vectors_is_kept() -> None:
    """After the first pass no hidden layer is alive; on the way back one micro-batch is at a time."""
    hidden: list[weakref.ref[Tensor]] = []
    alive: list[int] = []
    weights = torch.randn(WIDTH, WIDTH, generator=torch_stream(24, "weights")).requires_grad_()
    features = torch.randn(12, WIDTH, generator=torch_stream(24, "features"))

    def encode(part: slice) -> Tensor:
        layer = torch.tanh(features[part] @ weights)
        hidden.append(weakref.ref(layer))
        alive.append(sum(reference() is not None for reference in hidden))
        return layer @ weights

    vectors = in_micro_batches(encode, 12, 2)
    gc.collect()
    assert [reference() for reference in hidden] == [None] * 6
    vectors.sum().backward()
    assert len(alive) == 12
    assert max(alive) <= 2


def test_without_gradients_it_encodes_once() -> None:
    """In evaluation the micro-batches are only a way to save memory."""
    encoder = Encoder(0.0)
    features = torch.randn(5, WIDTH, generator=torch_stream(25, "features"))
    with torch.no_grad():
        got = in_micro_batches(lambda part: encoder(features[part]), 5, 2)
        assert encoder.calls == 3
        torch.testing.assert_close(got, encoder(features))
    assert in_micro_batches(lambda part: encoder(features[part]), 0, 2).shape == (0, WIDTH)


def test_autocast_is_that_of_the_first_pass() -> None:
    """Vectors made under autocast are made under autocast again, wherever backward is called."""
    encoder = Encoder(0.0)
    features = torch.randn(5, WIDTH, generator=torch_stream(26, "features"))
    gradients = []
    for size in (5, 2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = in_micro_batches(lambda part: encoder(features[part]), 5, size)
        assert vectors.dtype == torch.bfloat16
        gradients.append(torch.autograd.grad(vectors.float().square().sum(), list(encoder.parameters())))
    for one, other in zip(*gradients, strict=True):
        assert float((one - other).norm()) <= 0.02 * float(one.norm())


def test_what_cannot_be_is_refused() -> None:
    """Sizes below one, encoders that return something else."""
    features = torch.zeros(4, WIDTH)
    for size in (0, -1):
        with pytest.raises(SettingsError, match=f"size of a micro-batch is {size}; allowed: 1"):
            in_micro_batches(lambda part: features[part], 4, size)
    with pytest.raises(DataError, match=r"encode returned shape \(1, 6\) for 2 rows"):
        in_micro_batches(lambda part: features[part][:1], 4, 2)
