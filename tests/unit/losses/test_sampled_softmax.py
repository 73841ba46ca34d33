"""The sampled softmax: hand-worked values, and what it refuses."""

import math
from typing import Literal

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from hatchway.errors import DataError, SettingsError, UsageError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses import copies as copies_of_positives
from hatchway.losses.sampled_softmax import SampledSoftmax, sampled_softmax
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, PositiveCorrection, account, draw_ledger
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.sources import SharedSource, Source
from hatchway.negatives.uniform import Uniform

KINDS = torch.full((3,), 2, dtype=torch.int8)


def ledger() -> Ledger:
    """One row with positive 0, three uniform columns from six items: n = 1/2 each."""
    return account(torch.tensor([0]), torch.tensor([1, 2, 0]), KINDS, [Uniform(6, 3)], "uncorrected")


def test_a_row_by_hand() -> None:
    """Scores 1 (positive), 2 and 0, temperature 2, alpha 1: each column counts twice, the copy of the positive not."""
    query = torch.tensor([[1.0]])
    loss = sampled_softmax(query, torch.tensor([[1.0]]), torch.tensor([[2.0], [0.0], [9.0]]), ledger(), temperature=2.0)
    assert float(loss) == pytest.approx(math.log(math.exp(0.5) + 2 * math.e + 2 * 1) - 0.5, rel=1e-6)


def test_temperature_comes_before_the_correction() -> None:
    """At temperature 0.1 the correction weighs ln 2 as at any other, not ten times that."""
    columns = torch.tensor([[0.0], [0.0], [0.0]])
    losses = [
        sampled_softmax(torch.zeros(1, 1), torch.zeros(1, 1), columns, ledger(), temperature=t) for t in (0.1, 1.0)
    ]
    assert [float(loss) for loss in losses] == pytest.approx([math.log(1 + 4)] * 2)


def test_raising_an_items_count_lowers_its_logit() -> None:
    """The sign of the correction: expected more often, it counts less."""
    columns = torch.zeros(3, 1)
    rare, often = (
        account(torch.tensor([0]), torch.tensor([1, 2, 3]), KINDS, [Uniform(n, 3)], "uncorrected") for n in (100, 10)
    )
    zero = torch.zeros(1, 1)
    assert sampled_softmax(zero, zero, columns, often) < sampled_softmax(zero, zero, columns, rare)


def test_alpha_zero_leaves_the_counts_out() -> None:
    """Then the columns count once each."""
    zero = torch.zeros(1, 1)
    assert float(sampled_softmax(zero, zero, torch.zeros(3, 1), ledger(), alpha=0.0)) == pytest.approx(math.log(3))


def test_the_temperature_can_be_learned() -> None:
    """Its gradient is that of the loss; it cannot become negative."""
    module = SampledSoftmax(0.5, learn_temperature=True)
    query, columns = torch.ones(1, 1), torch.tensor([[2.0], [0.0], [9.0]])
    module(query, torch.ones(1, 1), columns, ledger()).backward()
    step = 1e-3
    by_difference = (
        sampled_softmax(query, query, columns, ledger(), temperature=0.5 * math.exp(step))
        - sampled_softmax(query, query, columns, ledger(), temperature=0.5 * math.exp(-step))
    ) / (2 * step)
    assert module.log_temperature.grad is not None
    assert float(module.log_temperature.grad) == pytest.approx(float(by_difference), rel=1e-3)


def test_the_module_gives_rows_too() -> None:
    """Their losses with their weights; the mean is over the weights."""
    query, columns, weight = torch.ones(1, 1), torch.tensor([[2.0], [0.0], [9.0]]), torch.tensor([0.5])
    rows = SampledSoftmax(0.5)(query, query, columns, ledger(), weight, reduction="none")
    by_function = sampled_softmax(query, query, columns, ledger(), temperature=0.5, weight=weight, reduction="none")
    assert torch.equal(rows, by_function)
    assert rows.shape == (1,)
    assert float(rows) == pytest.approx(0.5 * float(SampledSoftmax(0.5)(query, query, columns, ledger(), weight)))


def test_half_precision_inputs_are_computed_in_float32() -> None:
    """Under autocast too."""
    columns = torch.tensor([[2.0], [0.0], [9.0]])
    wanted = float(sampled_softmax(torch.ones(1, 1), torch.ones(1, 1), columns, ledger(), temperature=2.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = sampled_softmax(
            torch.ones(1, 1, dtype=torch.bfloat16), torch.ones(1, 1), columns.half(), ledger(), temperature=2.0
        )
    assert got.dtype == torch.float32
    assert float(got) == pytest.approx(wanted, rel=1e-6)


def test_the_way_back_is_in_float32_under_autocast_too() -> None:
    """With ``reduction="none"`` the logits are computed again on the way back, wherever that is called."""
    gradients = []
    for mixed in (False, True):
        query = torch.tensor([[0.123456789, 1.3]], requires_grad=True)
        columns = torch.tensor([[0.7654321, 0.1], [0.3, 0.987654], [1.0, 2.0]])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            sampled_softmax(query, torch.ones(1, 2), columns, ledger(), reduction="none").sum().backward()
        assert query.grad is not None
        gradients.append(query.grad)
    assert torch.equal(*gradients)


def test_columns_may_be_a_strided_view() -> None:
    """Non-contiguous inputs give what contiguous ones give."""
    wide = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    query = torch.randn(1, 8, generator=torch.Generator().manual_seed(2))
    strided = sampled_softmax(query[:, ::2], query[:, ::2], wide[:, ::2], ledger())
    assert float(strided) == pytest.approx(
        float(sampled_softmax(query[:, ::2].clone(), query[:, ::2].clone(), wide[:, ::2].clone(), ledger()))
    )


def test_what_cannot_be_a_batch_is_refused() -> None:
    """The message gives the shape received and the one expected."""
    one = torch.ones(1, 2)
    with pytest.raises(DataError, match=r"columns has shape \(2, 2\), expected \(3, 2\)"):
        sampled_softmax(one, one, torch.ones(2, 2), ledger())
    with pytest.raises(DataError, match=r"positive has shape \(2, 2\), expected \(1, 2\)"):
        sampled_softmax(one, torch.ones(2, 2), torch.ones(3, 2), ledger())
    with pytest.raises(DataError, match=r"query has shape \(1, 1, 2\); allowed: \[B, d\]"):
        sampled_softmax(one[None], one, torch.ones(3, 2), ledger())
    with pytest.raises(DataError, match="not all 0"):
        sampled_softmax(one, one, torch.ones(3, 2), ledger(), weight=torch.zeros(1))
    with pytest.raises(DataError, match="a sum that float32 can hold"):
        sampled_softmax(one, one, torch.ones(3, 2), ledger(), weight=torch.full((1,), math.inf))
    for value in (0.0, -1.0, math.nan, math.inf):
        for temperature in (value, torch.tensor(value), torch.tensor(value, requires_grad=True)):
            with pytest.raises(SettingsError, match=f"temperature is {value}; allowed: above 0"):
                sampled_softmax(one, one, torch.ones(3, 2), ledger(), temperature=temperature)
        with pytest.raises(SettingsError, match="allowed: above 0"):
            SampledSoftmax(value)
    for alpha in (-0.1, math.nan, math.inf):
        with pytest.raises(SettingsError, match=f"alpha is {alpha}; allowed: 0"):
            sampled_softmax(one, one, torch.ones(3, 2), ledger(), alpha=alpha)
        with pytest.raises(SettingsError, match=f"alpha is {alpha}; allowed: 0"):
            SampledSoftmax(0.1, alpha)
    with pytest.raises(SettingsError, match="reduction is 'sum'; allowed: mean, none"):
        sampled_softmax(one, one, torch.ones(3, 2), ledger(), reduction="sum")  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_weights_can_be_learned(reduction: Literal["mean", "none"]) -> None:
    """Their gradient is that of the weighted mean, and the vectors' is the same as with weights that are not."""
    generator = torch.Generator().manual_seed(3)
    positives = torch.tensor([0, 4, 0, 2])
    made = account(positives, torch.tensor([1, 2, 0]), KINDS, [Uniform(6, 3)], "uncorrected")
    query, positive, columns = (torch.randn(n, 5, generator=generator, requires_grad=True) for n in (4, 4, 3))
    weight = torch.tensor([0.0, 1.0, 3.0, 0.5])
    learned = weight.clone().requires_grad_()

    def mean(by: Tensor) -> Tensor:
        loss = sampled_softmax(query, positive, columns, made, weight=by, reduction=reduction)
        return loss if reduction == "mean" else loss.sum() / by.sum()

    rows = sampled_softmax(query, positive, columns, made, reduction="none").detach()
    loss = mean(learned)
    (by_weight,) = torch.autograd.grad(loss, learned, retain_graph=True)
    torch.testing.assert_close(by_weight, (rows - loss.detach()) / weight.sum())
    vectors = query, positive, columns
    torch.testing.assert_close(torch.autograd.grad(loss, vectors), torch.autograd.grad(mean(weight), vectors))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
@pytest.mark.parametrize("temperature", [0.05, 0.03])
@pytest.mark.parametrize("apart", [0.0, 0.01])
def test_late_in_a_training_gradients_keep_their_digits_beside_copies(
    correction: PositiveCorrection, temperature: float, apart: float, reduction: Literal["mean", "none"]
) -> None:
    """Within 1e-5 of float64 though positive and copies pull and push a hundred to a million times as hard.

    Copies are among the shared columns and the row's own, and have the positive's vector or (``apart``) nearly so, as
    from a queue.
    """
    generator = torch.Generator().manual_seed(1)
    table = normalize(torch.randn(50, 16, generator=generator), dim=1)
    epoch = torch.arange(50).repeat_interleave(torch.randint(1, 40, (50,), generator=generator))
    positives = epoch[torch.randperm(len(epoch), generator=generator)[:64]]
    counts = ExactCounts(torch.bincount(epoch, minlength=50))
    sources: list[SharedSource] = [InBatch(counts), Uniform(50, 40)]
    made = draw_ledger(
        positives, sources, generator, correction, own=[PerRow(UniformDistribution(50), 20, Source.UNIFORM)]
    )
    given = [
        table[positives] + 0.02 * torch.randn(64, 16, generator=generator),
        table[positives],
        table[made.items] + apart * torch.randn(len(made.items), 16, generator=generator),
        table[made.own_items] + apart * torch.randn(64, 20, 16, generator=generator),
    ]
    found = []
    for dtype in (torch.float32, torch.float64):
        query, positive, columns, rest = (part.to(dtype).requires_grad_() for part in given)
        if dtype == torch.float32:
            loss = sampled_softmax(
                query, positive, columns, made, own=rest, temperature=temperature, reduction=reduction
            ).mean()
        else:
            logits = query @ columns.T / temperature - made.log_count
            copies = made.positives[:, None] == made.items
            logits = torch.where(
                copies, logits + made.log_count - made.positive_log_count[:, None], logits
            )  # the same number under yi
            logits = logits.index_put((made.masked.rows, made.masked.columns), torch.tensor(-torch.inf).to(dtype))
            more = (query[:, None] * rest).sum(2) / temperature - made.own_log_count
            more = more.masked_fill(~made.own_stands, -torch.inf)
            one = (query * positive).sum(1) / temperature - made.positive_log_count
            loss = (torch.cat([one[:, None], logits, more], 1).logsumexp(1) - one).mean()
        found.append([loss.detach(), *torch.autograd.grad(loss, (query, positive, columns, rest))])
    if correction != "uncorrected":
        assert len(made.copy_rows)
        assert (made.own_stands & (made.own_items == made.positives[:, None])).any()
    for one, exact in zip(*found, strict=True):
        assert float((one.double() - exact).norm()) <= 1e-5 * float(exact.norm())


def test_many_copies_are_looked_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue of three items: every row has hundreds of copies, and parts of them give what all of them give."""
    generator = torch.Generator().manual_seed(2)
    positives = torch.randint(0, 3, (300,), generator=generator)
    made = draw_ledger(positives, [InBatch(ExactCounts(torch.tensor([5, 5, 5])))], generator, "count")
    given = [torch.randn(300, 4, generator=generator) for _ in range(3)]
    found = []
    for numbers in (2**22, 1, 1000):
        monkeypatch.setattr(copies_of_positives, "_NUMBERS_AT_ONCE", numbers)
        vectors = [part.clone().requires_grad_() for part in given]
        loss = sampled_softmax(vectors[0], vectors[1], vectors[2], made)
        found.append([loss.detach(), *torch.autograd.grad(loss, vectors)])
    assert len(made.copy_rows) > 20_000
    for other in found[1:]:
        for one, wanted in zip(other, found[0], strict=True):
            torch.testing.assert_close(one, wanted)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_double_backward_is_refused(reduction: Literal["mean", "none"]) -> None:
    """Gradients are made tile by tile and not recorded, so a second derivative would silently be 0 or missing."""
    query = torch.ones(1, 1, requires_grad=True)
    columns = torch.zeros(3, 1, requires_grad=True)
    loss = sampled_softmax(query, torch.ones(1, 1), columns, ledger(), reduction=reduction).sum()
    by_query, by_columns = torch.autograd.grad(loss, [query, columns], create_graph=True)
    with pytest.raises(UsageError, match=r"sampled_softmax gives first .* hatchway\.losses\.info_nce"):
        by_query.sum().backward(retain_graph=True)
    with pytest.raises(UsageError, match="sampled_softmax gives first derivatives only"):
        torch.autograd.grad(by_columns.square().sum(), query)
