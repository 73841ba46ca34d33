"""The tiled full softmax against PyTorch's cross-entropy over the whole matrix, and what it leaves in memory."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from hatchway.errors import DataError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream


def world(rows: int, items: int, width: int = 8) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
    """Return queries and items in float64, positives, masked coordinates (with repeats and positives) and weights."""
    draw = torch_stream(11, "full", rows, items)
    query = torch.randn(rows, width, generator=draw, dtype=torch.float64)
    vectors = torch.randn(items, width, generator=draw, dtype=torch.float64)
    positives = torch.randint(0, items, (rows,), generator=draw)
    known = torch.randint(0, rows, (4 * rows,), generator=draw), torch.randint(0, items, (4 * rows,), generator=draw)
    masked = (
        torch.cat([known[0], known[0][:3], torch.arange(rows)]),
        torch.cat([known[1], known[1][:3], positives]),
    )
    return query, vectors, positives, masked, torch.rand(rows, generator=draw) + 0.1


def dense(query: Tensor, items: Tensor, positives: Tensor, masked: tuple[Tensor, Tensor], temperature: float) -> Tensor:
    """Build the matrix and let PyTorch do the rest; a row's own positive is not masked."""
    gone = torch.zeros(len(query), len(items), dtype=torch.bool)
    gone[masked] = True
    gone[torch.arange(len(query)), positives] = False
    logits = (query @ items.T / temperature).masked_fill(gone, -torch.inf)
    return functional.cross_entropy(logits, positives, reduction="none")


@pytest.mark.parametrize(
    ("rows", "items", "tile"),
    [
        (1, 1, (1, 1)),
        (1, 30, (7, 16)),
        (13, 5, (1, 1)),
        (13, 5, (512, 2048)),
        (40, 333, (7, 64)),
        (40, 333, (512, 2048)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_losses_and_gradients_agree(rows: int, items: int, tile: tuple[int, int], dtype: torch.dtype) -> None:
    """float64 to its last digits, float32 within 1e-5, in tiles of every shape."""
    query, vectors, positives, masked, weight = world(rows, items)
    exact = [query.clone().requires_grad_(), vectors.clone().requires_grad_()]
    mine = [query.to(dtype).requires_grad_(), vectors.to(dtype).requires_grad_()]
    wanted = dense(exact[0], exact[1], positives, masked, 0.6) * weight.double()
    got = full_softmax(*mine, positives, temperature=0.6, masked=masked, weight=weight, reduction="none", tile=tile)
    close = 1e-12 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(got.double(), wanted, rtol=close, atol=close)
    mean = full_softmax(*mine, positives, temperature=0.6, masked=masked, weight=weight, tile=tile)
    torch.testing.assert_close(mean.double(), wanted.sum() / weight.double().sum(), rtol=close, atol=close)
    right = torch.autograd.grad(wanted.sum() / weight.double().sum(), exact)
    for loss in (mean, got.sum() / weight.to(dtype).sum()):
        for found, gradient in zip(torch.autograd.grad(loss, mine, retain_graph=True), right, strict=True):
            assert float((found.double() - gradient).norm()) <= close * float(gradient.norm()) + close * 1e-2


def test_masked_items_get_no_gradient() -> None:
    """An item that is masked in every row is not moved at all, and does not change the loss."""
    query, vectors, positives, _, _ = world(9, 50)
    victim = next(item for item in range(50) if item not in positives)
    masked = torch.arange(9), torch.full((9,), victim)
    vectors[victim] = 1e6
    vectors.requires_grad_()
    loss = full_softmax(query, vectors, positives, masked=masked, tile=(4, 8))
    loss.backward()
    assert vectors.grad is not None
    assert float(vectors.grad[victim].abs().max()) == 0.0
    others = torch.tensor([item for item in range(50) if item != victim])
    moved = positives - (positives > victim).long()
    assert float(loss.detach()) == pytest.approx(float(full_softmax(query, vectors.detach()[others], moved)))


def test_only_one_of_the_two_needs_a_gradient() -> None:
    """Frozen items or frozen queries: the other gradient is unchanged."""
    query, vectors, positives, masked, _ = world(9, 50)
    both = [query.requires_grad_(), vectors.requires_grad_()]
    wanted = torch.autograd.grad(full_softmax(query, vectors, positives, masked=masked), both)
    (by_query,) = torch.autograd.grad(full_softmax(query, vectors.detach(), positives, masked=masked), query)
    (by_items,) = torch.autograd.grad(full_softmax(query.detach(), vectors, positives, masked=masked), vectors)
    assert torch.equal(by_query, wanted[0])
    assert torch.equal(by_items, wanted[1])


class Largest(TorchDispatchMode):
    """Remembers the most elements that any tensor had."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and look at what it returns."""
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return result


def test_no_matrix_is_ever_built() -> None:
    """Forward and backward, no tensor is larger than the items' vectors or a tile."""
    query, vectors, positives, masked, _ = world(150, 1000)
    query.requires_grad_()
    vectors.requires_grad_()
    with Largest() as mode:
        full_softmax(query, vectors, positives, masked=masked, tile=(32, 64)).backward()
    assert mode.elements == 1000 * 8
    with Largest() as mode:
        dense(query, vectors, positives, masked, 1.0).mean().backward()
    assert mode.elements == 150 * 1000


def test_sampled_gradients_approach_the_full_one() -> None:
    """As draws grow, the corrected sampled softmax has the gradient of the full one; uncorrected it has not."""
    draw = torch_stream(12, "approach")
    items, rows = 200, 64
    counts = torch.randint(1, 40, (items,), generator=draw)
    positives = torch.multinomial(counts.double(), rows, replacement=True, generator=draw)
    vectors = torch.randn(items, 8, generator=draw, dtype=torch.float64)
    query = vectors[positives]  # as after training, so that the positives' probabilities are not all near 0
    right = [query.clone().requires_grad_(), vectors.clone().requires_grad_()]
    full_softmax(*right, positives).backward()
    distances = {}
    for alpha in (1.0, 0.0):
        for draws in (50, 500, 50_000):
            ledger = draw_ledger(positives, [InBatch(ExactCounts(counts)), Uniform(items, draws)], draw, "uncorrected")
            leaves = [query.float().requires_grad_(), vectors.float().requires_grad_()]
            sampled_softmax(leaves[0], leaves[1][positives], leaves[1][ledger.items], ledger, alpha=alpha).backward()
            apart = [
                float((mine.grad.double() - full.grad).norm() / full.grad.norm())
                for mine, full in zip(leaves, right, strict=True)
                if mine.grad is not None and full.grad is not None
            ]
            distances[alpha, draws] = max(apart)
    assert distances[1.0, 50_000] < 0.03
    assert distances[1.0, 50_000] < distances[1.0, 500] / 4 < distances[1.0, 50] / 4
    assert distances[0.0, 50_000] > 0.2


def test_rows_that_cannot_be_are_refused() -> None:
    """Item rows outside of the catalogue, other types, other shapes."""
    query, vectors, positives, masked, _ = world(4, 10)
    with pytest.raises(DataError, match="positives is from 0 to 10; allowed: from 0 to 9"):
        full_softmax(query, vectors, torch.tensor([0, 10, 1, 2]))
    with pytest.raises(DataError, match="positives is from -1 to 2; allowed: from 0 to 9"):
        full_softmax(query, vectors, torch.tensor([0, -1, 1, 2]))
    with pytest.raises(DataError, match=r"positives is torch.int32"):
        full_softmax(query, vectors, positives.int())
    with pytest.raises(DataError, match=r"positives has shape \(3,\), expected \(4,\)"):
        full_softmax(query, vectors, positives[:3])
    with pytest.raises(DataError, match=r"masked\[0\] is from 0 to 4; allowed: from 0 to 3"):
        full_softmax(query, vectors, positives, masked=(torch.tensor([0, 4]), torch.tensor([1, 1])))
    with pytest.raises(DataError, match=r"masked\[1\] is from 1 to 10; allowed: from 0 to 9"):
        full_softmax(query, vectors, positives, masked=(torch.tensor([0, 3]), torch.tensor([1, 10])))
    with pytest.raises(DataError, match=r"masked\[1\] has shape"):
        full_softmax(query, vectors, positives, masked=(masked[0], masked[1][:1]))
    with pytest.raises(DataError, match=r"query has shape \(4, 8\) and items \(10, 7\); allowed"):
        full_softmax(query, vectors[:, :7], positives)
    with pytest.raises(DataError, match=r"tile is \(0, 5\)"):
        full_softmax(query, vectors, positives, tile=(0, 5))


@pytest.mark.parametrize("pull", [1.0, 2.0, 5.0])
def test_float32_keeps_its_digits_where_nearly_all_is_learned(pull: float) -> None:
    """Losses of a thousandth to a hundred millionth: they and their gradients stay within 1e-5 of float64's."""
    generator = torch.Generator().manual_seed(3)
    query = torch.nn.functional.normalize(torch.randn(64, 64, generator=generator), dim=1)
    items = torch.nn.functional.normalize(torch.randn(3_000, 64, generator=generator), dim=1)
    items[:64] = torch.nn.functional.normalize(query + items[:64] / pull, dim=1)
    found = []
    for dtype in (torch.float32, torch.float64):
        mine = [x.to(dtype, copy=True).requires_grad_() for x in (query, items)]
        loss = full_softmax(*mine, torch.arange(64), temperature=0.03)
        loss.backward()
        found.append([loss.detach().double(), *(x.grad.double() for x in mine if x.grad is not None)])
    assert 1e-9 < float(found[1][0]) < 1e-2
    for near, exact in zip(*found, strict=True):
        assert float((near - exact).norm() / exact.norm()) < 1e-5
