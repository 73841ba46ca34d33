"""The kernel against the whole matrix in float64, in blocks, in threads, compiled and plain."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchway import compiled
from hatchway.errors import SettingsError
from hatchway.losses import row_blocks, softmax_rows, tiled_rows
from hatchway.losses.block_rows import Adjustments
from hatchway.losses.row_blocks import row_block_losses

WAYS = [softmax_rows._plain, softmax_rows._compiled] if compiled.available() else [softmax_rows._plain]
NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Give PyTorch one thread, then two."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture(params=["tiles", "compiled", "plain"] if compiled.available() else ["plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use products of our own in tiles, PyTorch's with compiled functions between them, and PyTorch alone."""
    monkeypatch.setattr(tiled_rows, "suitable", lambda *_: request.param == "tiles")
    monkeypatch.setattr(softmax_rows, "suits", lambda *_: request.param == "compiled")
    return str(request.param)


class Case:
    """Inputs of the kernel, and the same computed as one matrix in float64."""

    def __init__(self, batch: int, columns: int, own: int, spread: float = 1.0) -> None:
        generator = torch.Generator().manual_seed(batch + columns)

        def draw(*shape: int) -> Tensor:
            return spread * torch.randn(*shape, generator=generator)

        self.inputs = draw(batch, 8), draw(columns, 8), draw(batch, 1 + own)
        self.inputs[2][::3, 1:] = -INF
        self.bias, self.weight = draw(columns), torch.rand(batch, generator=generator)
        some = torch.rand(batch, columns, generator=generator) < 0.3
        some[:1] = True  # of the first row nothing is left
        rows, at = some.nonzero(as_tuple=True)
        values = torch.where(torch.rand(len(rows), generator=generator) < 0.5, -INF, draw(len(rows)))
        values[rows == 0] = -INF
        self.adjustments = Adjustments(rows, at, values)

    def expected(self) -> list[Tensor]:
        """Return the sum, the losses and the gradients of the sum."""
        query, columns, extra = leaves = [x.double().requires_grad_() for x in self.inputs]
        matrix = query @ columns.T + self.bias
        added = torch.zeros_like(matrix).index_put_(
            (self.adjustments.rows, self.adjustments.columns), self.adjustments.values.double()
        )
        losses = torch.cat([extra, matrix + added], 1).logsumexp(1) - extra[:, 0]
        summed = (losses * self.weight).sum()
        summed.backward()
        return [summed.detach(), losses.detach(), *(x.grad for x in leaves if x.grad is not None)]

    def computed(self, shape: Callable[[Tensor], Tensor] = torch.clone, *, known: bool = True) -> list[Tensor]:
        """Return the kernel's, in float32."""
        query, columns, extra = leaves = [shape(x).requires_grad_() for x in self.inputs]
        weight = self.weight if known else None
        summed, losses = row_block_losses(query, columns, extra, self.bias, self.adjustments, weight)
        if not known:
            summed = (losses * self.weight).sum()
        summed.backward()
        return [summed.detach(), losses.detach(), *(x.grad for x in leaves if x.grad is not None)]


@pytest.mark.usefixtures("threads", "way")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("batch", "columns", "own"), [(1, 0, 0), (1, 1, 2), (128, 5, 1), (700, 300, 2), (301, 905, 1)])
def test_losses_and_gradients_are_those_of_the_matrix(batch: int, columns: int, own: int, known: bool) -> None:
    """In float32 within 1e-5 of float64, with few rows, several blocks, an uneven last block."""
    case = Case(batch, columns, own)
    for found, wanted in zip(case.computed(known=known), case.expected(), strict=True):
        assert float((found - wanted).norm()) <= 1e-5 * float(wanted.norm()) + 1e-12


@pytest.mark.usefixtures("way")
def test_scores_of_ten_thousand() -> None:
    """Nothing overflows, and what is far below the largest is exactly nothing."""
    case = Case(40, 30, 1, spread=60.0)
    for found, wanted in zip(case.computed(), case.expected(), strict=True):
        assert float((found - wanted).norm()) <= 1e-4 * float(wanted.norm())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("lead", [8.0, 14.0, 20.0])
@pytest.mark.parametrize("known", [True, False])
def test_what_is_left_when_nearly_all_is_learned_keeps_its_digits(lead: float, known: bool) -> None:
    """The positive far above the rest: 1 less its share is less than float32 can take from 1, and right to 1e-5."""
    case = Case(300, 40, 2)
    case.inputs[2][:, 0] = lead
    case.inputs[0].mul_(0.3)
    for found, wanted in zip(case.computed(known=known), case.expected(), strict=True):
        assert float((found - wanted).norm()) <= 1e-5 * float(wanted.norm())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("columns", [90, 350])
def test_inputs_with_gaps(columns: int) -> None:
    """Views whose elements do not lie side by side give the same."""
    case = Case(200, columns, 2)
    gaps = case.computed(lambda x: torch.stack([x, x], 2)[:, :, 0])
    assert all(torch.equal(a, b) for a, b in zip(case.computed(), gaps, strict=True))


def test_threads_agree() -> None:
    """Blocks do not know of each other: only the columns' gradient is summed in another order."""
    found = []
    before = torch.get_num_threads()
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(Case(700, 50, 2).computed())
    torch.set_num_threads(before)
    for place, (one, two) in enumerate(zip(*found, strict=True)):
        assert torch.allclose(one, two, rtol=1e-5, atol=1e-6)
        assert place == 3 or torch.equal(one, two)


@pytest.mark.usefixtures("threads")
def test_in_inference_mode() -> None:
    """Losses without gradients, where PyTorch forbids even to record them."""
    case = Case(700, 50, 2)
    with torch.inference_mode():
        losses = row_block_losses(*case.inputs, case.bias, case.adjustments, None)[1]
    assert torch.allclose(losses, case.expected()[1].float(), rtol=1e-5)


@pytest.mark.parametrize("way_of", WAYS)
def test_a_row_by_hand(way_of: Callable[..., tuple[Tensor, Tensor]]) -> None:
    """Logits 0 + ln 2, masked, ln 3 + ln 1 beside 0: exponentials 2, 0, 3, 1 over the largest, 3."""
    logits, own = torch.tensor([[0.0, 7.0, 3.0]]).log(), torch.zeros(1, 1)
    logits[0, 0], bias = 0.0, torch.tensor([2.0, 1.0, 1.0]).log()
    at = torch.tensor([0])
    others, peak = way_of(logits, own, bias, at, at + 1, torch.tensor([-INF]))
    assert logits[0].tolist() == pytest.approx([2 / 3, 0.0, 1.0])
    assert float(logits[0, 1]) == 0.0
    assert [float(others), float(peak), float(own)] == pytest.approx([5 / 3, float(torch.tensor(3.0).log()), 1 / 3])


@pytest.mark.parametrize("way_of", WAYS)
@pytest.mark.parametrize("bad", [[NAN, 0.0], [-NAN, 0.0], [0.0, NAN], [INF, 0.0], [INF, -INF]])
@pytest.mark.parametrize("place", ["logits", "own"])
def test_what_is_no_number_stays_none(
    way_of: Callable[..., tuple[Tensor, Tensor]], bad: list[float], place: str
) -> None:
    """A NaN or +inf anywhere in a row makes its sum NaN and no other row's: divergence must be seen."""
    logits, own = torch.zeros(3, 2), torch.zeros(3, 2)
    (logits if place == "logits" else own)[1] = torch.tensor(bad)
    none = torch.empty(0, dtype=torch.int64)
    others, _ = way_of(logits, own, torch.zeros(2), none, none, torch.empty(0))
    assert torch.isfinite(others + own[:, 0]).tolist() == [True, False, True]
    assert others[[0, 2]].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("way_of", WAYS)
def test_exponentials_to_seven_digits(way_of: Callable[..., tuple[Tensor, Tensor]]) -> None:
    """Every x from −87 to 0: 5e-7 of the exponential in float64; below that 0 or nearly so."""
    x = torch.linspace(-100, 0, 300_001)[None]
    logits, none = x.clone(), torch.empty(0, dtype=torch.int64)
    way_of(logits, torch.full((1, 1), -200.0), torch.zeros(x.shape[1]), none, none, torch.empty(0))
    wanted = x.double().exp()
    seen = x >= -87
    assert float(((logits - wanted).abs() / wanted)[seen].max()) < 5e-7
    assert float(logits[~seen].max()) < 2e-38


def test_products_in_bf16_are_near_and_leave_the_switches_alone() -> None:
    """Gradients within 0.6 % and 0.9999 in direction, wherever bf16 is multiplied; float32 elsewhere."""
    backends: Any = torch.backends
    switches = (backends.mkldnn.matmul, backends.cuda.matmul)
    before = [switch.fp32_precision for switch in switches], torch.get_float32_matmul_precision()
    case = Case(700, 300, 2)
    seen = []
    real = softmax_rows.exponentials

    def watching(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        seen.append([switch.fp32_precision for switch in switches])
        return real(*arguments)

    query, columns, extra = leaves = [x.clone().requires_grad_() for x in case.inputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "exponentials", watching)
        summed, _ = row_block_losses(query, columns, extra, case.bias, case.adjustments, case.weight, "bf16")
    summed.backward()
    assert seen
    assert all(values == ["bf16", "tf32"] for values in seen)
    assert ([switch.fp32_precision for switch in switches], torch.get_float32_matmul_precision()) == before
    for leaf, wanted in zip(leaves, case.expected()[2:], strict=True):
        assert leaf.grad is not None
        found = leaf.grad.double()
        assert float((found - wanted).norm() / wanted.norm()) < 6e-3
        assert float((found * wanted).sum() / found.norm() / wanted.norm()) > 0.9999


def test_a_failure_leaves_the_switches_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens inside, the process multiplies afterwards as before."""
    case = Case(10, 3, 0)

    def failing(*_: Tensor) -> tuple[Tensor, Tensor]:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(row_blocks, "exponentials", failing)
    backends: Any = torch.backends
    before = backends.mkldnn.matmul.fp32_precision
    with pytest.raises(RuntimeError, match="in the middle"):
        row_block_losses(*case.inputs, case.bias, case.adjustments, case.weight, "bf16")
    assert backends.mkldnn.matmul.fp32_precision == before


def test_other_products_are_refused() -> None:
    """The two that there are, are named."""
    case = Case(2, 2, 0)
    with pytest.raises(SettingsError, match="'half'; allowed: float32, bf16"):
        row_block_losses(*case.inputs, case.bias, case.adjustments, None, "half")  # type: ignore[arg-type]


def test_blocks_have_rows_by_their_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 rows, or as many as keep all threads' blocks within 24 MiB; a block never has less than 32."""
    rows = []
    for threads, columns in ((1, 5_096), (2, 17_384), (2, 66_536), (2, 130_000), (16, 66_536)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        rows.append(row_blocks._rows_per_block(columns))
    assert rows == [128, 128, 47, 32, 32]


@pytest.mark.usefixtures("way")
def test_a_second_way_back_makes_the_gradients_again() -> None:
    """The first one takes those that were made on the way forward, and scales them where they are."""
    case = Case(70, 40, 2)
    leaves = [x.clone().requires_grad_() for x in case.inputs]
    summed, _ = row_block_losses(*leaves, case.bias, case.adjustments, case.weight)  # type: ignore[call-arg,arg-type]
    first = torch.autograd.grad(summed, leaves, torch.tensor(3.0), retain_graph=True)
    second = torch.autograd.grad(summed, leaves)
    for one, other, wanted in zip(first, second, case.expected()[2:], strict=True):
        torch.testing.assert_close(other.double(), wanted, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(one, 3 * other)
