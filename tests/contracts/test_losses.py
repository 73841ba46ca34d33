"""What every loss must stand: one table of losses, one suite for all of them.

Each entry turns (query [B, d], positive [B, d], negatives [B, K, d]) into the loss, so that the hard cases are the same
for all. The full softmax sees a catalogue that consists of exactly these items, with everything that is not a row's own
masked.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pytest
import torch
from torch import Tensor, nn

from hatchway.errors import DataError, SettingsError, UsageError
from hatchway.losses.binary import (
    GBCE,
    BinaryCrossEntropy,
    NegativeSampling,
    binary_cross_entropy,
    gbce,
    negative_sampling,
)
from hatchway.losses.debiased import (
    DebiasedContrastive,
    HardWeightedContrastive,
    debiased_contrastive,
    hard_weighted_contrastive,
)
from hatchway.losses.full_softmax import FullSoftmax, full_softmax
from hatchway.losses.info_nce import InfoNCE, info_nce
from hatchway.losses.triplet import Triplet, triplet


class Loss(Protocol):
    """A loss of rows with K candidates each."""

    def __call__(
        self,
        query: Tensor,
        positive: Tensor,
        negatives: Tensor,
        *,
        present: Tensor | None = None,
        temperature: Tensor | float = 1.0,
        weight: Tensor | None = None,
        reduction: Literal["mean", "none"] = "mean",
    ) -> Tensor:
        """Return the loss."""
        ...


def catalogue(
    positive: Tensor, negatives: Tensor, present: Tensor | None
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Make one catalogue of all rows' items: the items, the positives' rows, and what is masked for whom."""
    batch, columns = negatives.shape[:2]
    items = torch.cat([positive[:, None], negatives], 1).flatten(0, 1)
    owner = torch.arange(batch).repeat_interleave(1 + columns)
    masked = owner[None] != torch.arange(batch)[:, None]
    if present is not None:
        kept = torch.cat([torch.ones(batch, 1, dtype=torch.bool), present], 1).reshape(-1)
        masked |= ~kept[None]
    rows, columns_ = masked.nonzero(as_tuple=True)
    return items, torch.arange(batch) * (1 + columns), (rows, columns_)


def by_catalogue(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    present: Tensor | None = None,
    temperature: Tensor | float = 1.0,
    weight: Tensor | None = None,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    """Full softmax over the rows' own items, in tiles that do not divide the shapes."""
    items, positives, masked = catalogue(positive, negatives, present)
    result: Tensor = full_softmax(
        query,
        items,
        positives,
        temperature=temperature,
        masked=masked,
        weight=weight,
        reduction=reduction,
        tile=(3, 4),
    )
    return result


def by_margin(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    present: Tensor | None = None,
    temperature: Tensor | float = 1.0,
    weight: Tensor | None = None,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    """Triplet loss of raw scores; it has no temperature, so the query is divided by it."""
    return triplet(
        query / temperature,
        positive,
        negatives,
        margin=0.5,
        distance="dot",
        present=present,
        weight=weight,
        reduction=reduction,
    )


def given(function: Callable[..., Tensor], **settings: Any) -> Loss:
    """Return the loss with further settings bound."""

    def bound(query: Tensor, positive: Tensor, negatives: Tensor, **options: Any) -> Tensor:
        return function(query, positive, negatives, **settings, **options)

    return bound


@dataclass(frozen=True)
class Entry:
    """A loss, and what is particular about it.

    Attributes:
        loss: the loss.
        zero: what a row without candidates loses, given its positive's score.
        tempered: it takes a temperature of its own.
    """

    loss: Loss
    zero: Callable[[float], float] = lambda _: 0.0
    tempered: bool = True


def softplus(x: float) -> float:
    """Return ln(1 + exp x)."""
    return math.log1p(math.exp(x))


LOSSES = {
    "info_nce": Entry(info_nce),
    "full_softmax": Entry(by_catalogue),
    "negative_sampling": Entry(negative_sampling, lambda s: softplus(-s)),
    "binary_cross_entropy": Entry(binary_cross_entropy, lambda s: softplus(-s)),
    # Without candidates beta is 1 - t.
    "gbce": Entry(given(gbce, catalogue=50, calibration=0.75), lambda s: 0.25 * softplus(-s)),
    "triplet": Entry(by_margin, tempered=False),
    "debiased": Entry(given(debiased_contrastive, positive_share=0.1)),
    "hard_weighted": Entry(given(hard_weighted_contrastive, positive_share=0.1, hardness=0.7)),
}

every_loss = pytest.mark.parametrize("entry", LOSSES.values(), ids=LOSSES.keys())
Vectors = tuple[Tensor, Tensor, Tensor]


def vectors(
    batch: int, columns: int, width: int = 6, scale: float = 1.0, dtype: torch.dtype = torch.float32
) -> Vectors:
    """Return random vectors that gather gradients."""
    draw = torch.Generator().manual_seed(batch * 100 + columns)
    query, positive, negatives = (
        (scale * torch.randn(shape, generator=draw, dtype=torch.float64)).to(dtype).requires_grad_()
        for shape in ((batch, width), (batch, width), (batch, columns, width))
    )
    return query, positive, negatives


def gradients(loss: Tensor, inputs: Vectors) -> list[Tensor]:
    """Return the gradients, all of which must be there and finite."""
    found = torch.autograd.grad(loss, inputs)
    assert all(bool(torch.isfinite(gradient).all()) for gradient in found)
    return list(found)


@every_loss
def test_float32_is_as_good_as_float64(entry: Entry) -> None:
    """Loss and gradients within 1e-5 of the same in float64, with masks, weights and a temperature."""
    present = torch.rand(9, 5, generator=torch.Generator().manual_seed(1)) < 0.7
    weight = torch.rand(9, generator=torch.Generator().manual_seed(2))
    results = []
    for dtype in (torch.float64, torch.float32):
        inputs = vectors(9, 5, dtype=dtype)
        loss = entry.loss(*inputs, present=present, temperature=0.7, weight=weight)
        assert loss.dtype == dtype
        results.append((loss, *gradients(loss, inputs)))
    for exact, single in zip(*results, strict=True):
        assert float((single.detach().double() - exact.detach()).norm()) <= 1e-5 * float(exact.detach().norm())


@every_loss
def test_gradients_are_those_of_differences(entry: Entry) -> None:
    """Finite differences of the float64 loss, and of the temperature."""
    temperature = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    present = torch.tensor([[True, False, True], [True, True, True]])

    def loss(query: Tensor, positive: Tensor, negatives: Tensor, by: Tensor) -> Tensor:
        return entry.loss(query, positive, negatives, present=present, temperature=by)

    inputs = vectors(2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(loss, (*inputs, temperature))


@every_loss
def test_rows_weights_and_means_agree(entry: Entry) -> None:
    """The mean is Σ weight·loss / Σ weight; single rows are weighted, not averaged; equal weights change nothing."""
    inputs = vectors(4, 3)
    weight = torch.tensor([1.0, 0.0, 2.0, 0.5])
    rows = entry.loss(*inputs, reduction="none")
    assert rows.shape == (4,)
    singly = [float(entry.loss(*(x[i : i + 1] for x in inputs)).detach()) for i in range(4)]
    assert rows.tolist() == pytest.approx(singly, rel=1e-5)
    assert entry.loss(*inputs, reduction="none", weight=weight).tolist() == pytest.approx((rows * weight).tolist())
    mean = entry.loss(*inputs, weight=weight)
    assert float(mean.detach()) == pytest.approx(float((rows * weight).sum().detach()) / 3.5, rel=1e-5)
    alike = entry.loss(*inputs, weight=torch.full((4,), 3.0))
    assert float(alike.detach()) == pytest.approx(float(entry.loss(*inputs).detach()), rel=1e-5)


@every_loss
@pytest.mark.parametrize("batch", [1, 3])
def test_no_candidates(entry: Entry, batch: int) -> None:
    """Rows with no columns at all, and with every column masked: the same finite loss, no gradient to candidates."""
    inputs = vectors(batch, 0)
    scores = (inputs[0] * inputs[1]).sum(1).tolist()
    without = entry.loss(*inputs, reduction="none")
    assert without.tolist() == pytest.approx([entry.zero(score) for score in scores], abs=1e-6)
    gradients(without.sum(), inputs)
    more = (*inputs[:2], vectors(batch, 4)[2])
    masked = entry.loss(*more, present=torch.zeros(batch, 4, dtype=torch.bool), reduction="none")
    assert masked.tolist() == pytest.approx(without.tolist(), abs=1e-6)
    assert float(gradients(masked.sum(), more)[2].abs().max()) == 0.0
    if entry.zero(1.0) == 0.0:
        assert all(
            float(g.abs().max()) == 0.0 for g in gradients(entry.loss(*more, present=torch.zeros(batch, 4) > 0), more)
        )


@every_loss
def test_a_masked_candidate_is_as_if_it_were_not_there(entry: Entry) -> None:
    """Whatever its vector, it changes neither the loss nor a gradient."""
    inputs = vectors(3, 4)
    fewer = (inputs[0], inputs[1], inputs[2][:, :3])
    present = torch.tensor([True, True, True, False]).expand(3, 4)
    wild = torch.cat([inputs[2][:, :3], torch.full((3, 1, 6), 1e4)], 1)
    left, right = entry.loss(*fewer), entry.loss(inputs[0], inputs[1], wild, present=present)
    assert float(left.detach()) == pytest.approx(float(right.detach()), rel=1e-6)
    for one, other in zip(torch.autograd.grad(left, inputs), torch.autograd.grad(right, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


@every_loss
@pytest.mark.parametrize("temperature", [1.0, 0.01])
def test_scores_of_ten_thousand(entry: Entry, temperature: float) -> None:
    """Scores of ±1e4, also at temperature 0.01: loss and gradients stay finite, and agree with float64."""
    inputs = vectors(8, 5, scale=60.0)
    largest = float((inputs[0] @ inputs[1].T).detach().abs().max())
    assert largest > 1e4
    loss = entry.loss(*inputs, temperature=temperature)
    found = gradients(loss, inputs)
    double = vectors(8, 5, scale=60.0, dtype=torch.float64)
    exact = entry.loss(*double, temperature=temperature)
    assert float(loss.detach()) == pytest.approx(float(exact.detach()), rel=1e-4)
    for one, right in zip(found, gradients(exact, double), strict=True):
        assert float((one.double() - right).norm()) <= 1e-2 * float(right.norm())


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_inputs_are_computed_in_float32(entry: Entry, dtype: torch.dtype) -> None:
    """Exactly the loss of the same numbers in float32; the gradients come back in the inputs' type."""
    halves = vectors(5, 4, dtype=dtype)
    loss = entry.loss(*halves, temperature=0.5)
    assert loss.dtype == torch.float32
    if entry.tempered:  # by_margin divides the query itself
        assert float(loss.detach()) == float(entry.loss(*(x.detach().float() for x in halves), temperature=0.5))
    assert {gradient.dtype for gradient in gradients(loss, halves)} == {dtype}


@every_loss
def test_autocast_changes_nothing(entry: Entry) -> None:
    """The loss is computed in float32, and so is its gradient (which belongs outside, as PyTorch's own does)."""
    results = []
    for mixed in (False, True):
        inputs = vectors(5, 4)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            loss = entry.loss(*inputs, temperature=0.5, reduction="none")
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed and entry.loss is by_catalogue):
            results.append([loss, *torch.autograd.grad(loss.sum(), inputs)])
    for plain, cast in zip(*results, strict=True):
        assert torch.equal(plain, cast)


@every_loss
def test_strided_inputs(entry: Entry) -> None:
    """Views with strides give what copies of them give, and so do their gradients."""
    wide = vectors(4, 3, width=12)
    views = tuple(x.detach()[..., ::2].requires_grad_() for x in wide)
    copies = tuple(x.detach().clone(memory_format=torch.contiguous_format).requires_grad_() for x in views)
    assert not views[0].is_contiguous()
    for one, other in zip(
        gradients(entry.loss(*views), (views[0], views[1], views[2])),
        gradients(entry.loss(*copies), (copies[0], copies[1], copies[2])),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@every_loss
# The tracer itself looks at .grad of inputs that are no leaves, wherever a graph breaks.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_a_compiled_loss_is_the_loss(entry: Entry) -> None:
    """Traced forward and backward, with a learned temperature and weights."""
    inputs = vectors(4, 3)
    temperature = torch.tensor(0.5, requires_grad=True)
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0])

    def loss(query: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
        return entry.loss(query * 2, positive, negatives, temperature=temperature, weight=weight)

    torch.compiler.reset()
    compiled = torch.compile(loss, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), loss(*inputs))
    for one, other in zip(
        torch.autograd.grad(compiled(*inputs), (*inputs, temperature)),
        torch.autograd.grad(loss(*inputs), (*inputs, temperature)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@every_loss
def test_second_derivatives_are_right_or_refused(entry: Entry) -> None:
    """Plain PyTorch gives them; what makes its gradient itself says so, and first derivatives still work."""
    inputs = vectors(2, 3, dtype=torch.float64)
    if entry.loss is not by_catalogue:
        assert torch.autograd.gradgradcheck(lambda *x: entry.loss(*x, temperature=0.9), inputs)
        return
    (gradient,) = torch.autograd.grad(entry.loss(*inputs), inputs[0], create_graph=True)
    assert torch.equal(gradient, torch.autograd.grad(entry.loss(*inputs), inputs[0])[0])
    with pytest.raises(UsageError, match="full_softmax gives first derivatives only"):
        gradient.sum().backward()


@every_loss
def test_nonsense_is_refused(entry: Entry) -> None:
    """Temperatures, weights, reductions and shapes that would give a number but no loss."""
    inputs = vectors(2, 3)
    if entry.tempered:
        single = entry.loss(*inputs, temperature=torch.tensor([0.5]))
        for allowed in (0.5, torch.tensor(0.5), torch.tensor([0.5], dtype=torch.float64)):
            torch.testing.assert_close(entry.loss(*inputs, temperature=allowed).float(), single)
        for value in (0.0, -1.0, math.nan, math.inf):
            for temperature in (value, torch.tensor(value), torch.tensor([value], requires_grad=True)):
                with pytest.raises(SettingsError, match=f"temperature is {value}; allowed: above 0"):
                    entry.loss(*inputs, temperature=temperature)
        for shape in ((2,), (1, 1), (1, 1, 1)):
            with pytest.raises(SettingsError, match=f"tensor of shape {re.escape(str(shape))}"):
                entry.loss(*inputs, temperature=torch.ones(shape))
    for weight in (torch.zeros(2), torch.tensor([1.0, -0.5]), torch.tensor([1.0, math.nan]), torch.ones(3)):
        with pytest.raises(DataError, match=r"weight has shape .* allowed: \[B\] = \(2,\)"):
            entry.loss(*inputs, weight=weight)
    with pytest.raises(SettingsError, match="reduction is 'sum'; allowed: mean, none"):
        entry.loss(*inputs, reduction="sum")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="shape"):
        entry.loss(inputs[0][:, :5], inputs[1], inputs[2])
    with pytest.raises(DataError, match="no rows"):
        entry.loss(*(x[:0] for x in inputs))


MODULES: dict[str, tuple[nn.Module, Loss]] = {
    "info_nce": (InfoNCE(0.3), given(info_nce, temperature=0.3)),
    "negative_sampling": (NegativeSampling(0.3), given(negative_sampling, temperature=0.3)),
    "binary_cross_entropy": (BinaryCrossEntropy(0.3), given(binary_cross_entropy, temperature=0.3)),
    "gbce": (GBCE(50, 0.5, 0.3), given(gbce, catalogue=50, calibration=0.5, temperature=0.3)),
    "triplet": (Triplet(0.4, "dot", 2), given(triplet, margin=0.4, distance="dot", hardest=2)),
    "debiased": (DebiasedContrastive(0.2, 0.3), given(debiased_contrastive, positive_share=0.2, temperature=0.3)),
    "hard_weighted": (
        HardWeightedContrastive(0.2, 0.6, 0.3),
        given(hard_weighted_contrastive, positive_share=0.2, hardness=0.6, temperature=0.3),
    ),
}


@pytest.mark.parametrize(("module", "loss"), MODULES.values(), ids=MODULES.keys())
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_module_is_its_function(module: nn.Module, loss: Loss, reduction: Literal["mean", "none"]) -> None:
    """With masks and weights, on average and row by row, and nothing is learned unless asked for."""
    inputs = vectors(4, 5)
    present = torch.rand(4, 5, generator=torch.Generator().manual_seed(3)) < 0.6
    weight = torch.tensor([1.0, 2.0, 0.0, 0.5])
    found = module(*inputs, present=present, weight=weight, reduction=reduction)
    assert found.shape == (() if reduction == "mean" else (4,))
    torch.testing.assert_close(found, loss(*inputs, present=present, weight=weight, reduction=reduction))
    torch.testing.assert_close(module(*inputs), loss(*inputs))
    assert not [parameter for parameter in module.parameters() if parameter.requires_grad]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_the_module_of_the_full_softmax_is_its_function(reduction: Literal["mean", "none"]) -> None:
    """It takes a catalogue instead of candidates."""
    query, positive, negatives = vectors(4, 5)
    items, positives, masked = catalogue(positive, negatives, None)
    weight = torch.tensor([1.0, 2.0, 0.0, 0.5])
    torch.testing.assert_close(
        FullSoftmax(0.3)(query, items, positives, masked=masked, weight=weight, reduction=reduction),
        full_softmax(query, items, positives, temperature=0.3, masked=masked, weight=weight, reduction=reduction),
    )


LEARNED = {
    "info_nce": InfoNCE(0.5, learn_temperature=True),
    "negative_sampling": NegativeSampling(0.5, learn_temperature=True),
    "binary_cross_entropy": BinaryCrossEntropy(0.5, learn_temperature=True),
    "gbce": GBCE(50, temperature=0.5, learn_temperature=True),
    "debiased": DebiasedContrastive(0.1, 0.5, learn_temperature=True),
    "hard_weighted": HardWeightedContrastive(0.1, 0.5, 0.5, learn_temperature=True),
}


@pytest.mark.parametrize("module", LEARNED.values(), ids=LEARNED.keys())
def test_a_temperature_is_learned(module: nn.Module) -> None:
    """Its logarithm is the parameter, and steps against its gradient lower the loss."""
    inputs = [x.detach() for x in vectors(6, 4)]
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    before = module(*inputs)
    before.backward()
    optimiser.step()
    assert float(module(*inputs).detach()) < float(before.detach())
    assert "log_temperature" in module.state_dict()
