"""What tiles could do wrong that whole rows cannot, of vector instructions and of a matrix unit.

The kernel's other tests run in tiles as well (test_row_blocks).
"""

import importlib

import pytest
import torch
from torch import Tensor

from hatchway import compiled
from hatchway.compiled import matrix_unit
from hatchway.losses import matrix_unit_rows, tiled_rows
from hatchway.losses.block_rows import Adjustments
from hatchway.losses.row_blocks import Products, row_block_losses

pytestmark = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
BF16 = compiled.available() and importlib.import_module("llvmlite.binding").get_host_cpu_features().get("avx512bf16")
HAS_BF16 = pytest.mark.skipif(not BF16, reason="the processor has no products of bf16")
HAS_UNIT = pytest.mark.skipif(
    not (compiled.available() and matrix_unit.present()),
    reason="the processor has no matrix unit, or we may not use it",
)
WAYS = [
    ("float32", False),
    pytest.param(("bf16", False), marks=HAS_BF16),
    pytest.param(("bf16", True), marks=HAS_UNIT),
]
NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=WAYS, ids=["float32", "bf16", "matrix unit"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Products:
    """Use tiles of either kind, however little there is to do."""
    products: Products = request.param[0]
    monkeypatch.setattr(matrix_unit_rows, "suitable", lambda *_: request.param[1])
    monkeypatch.setattr(tiled_rows, "suitable", lambda *_: not request.param[1])
    return products


@pytest.fixture
def within(kind: Products) -> float:
    """Return how far results may be from float64's, relatively."""
    return 1e-5 if kind == "float32" else 6e-3


class Inputs:
    """Vectors of length 1 at a temperature of .05, three tiles of columns, a block and a part of one."""

    def __init__(self, batch: int = 301, columns: int = 700, width: int = 64) -> None:
        generator = torch.Generator().manual_seed(batch * columns)
        query, items = (torch.randn(n, width, generator=generator) for n in (batch, columns))
        self.query, self.items = (torch.nn.functional.normalize(x, dim=1) for x in (query, items))
        self.query *= 20
        self.extra = 5 * torch.randn(batch, 3, generator=generator)
        self.bias, self.weight = torch.randn(columns, generator=generator), torch.rand(batch, generator=generator)
        rows, at = (torch.rand(batch, columns, generator=generator) < 0.05).nonzero(as_tuple=True)
        self.adjustments = Adjustments(rows, at, torch.full(rows.shape, -INF))

    def computed(self, products: Products = "float32") -> list[Tensor]:
        """Return losses and gradients."""
        query, items, extra = leaves = [x.clone().requires_grad_() for x in (self.query, self.items, self.extra)]
        summed, losses = row_block_losses(query, items, extra, self.bias, self.adjustments, self.weight, products)
        summed.backward()
        return [losses, *(x.grad for x in leaves if x.grad is not None)]

    def expected(self) -> list[Tensor]:
        """Return the same from one matrix in float64."""
        query, items, extra = leaves = [x.double().requires_grad_() for x in (self.query, self.items, self.extra)]
        at = (self.adjustments.rows, self.adjustments.columns)
        matrix = (query @ items.T + self.bias).index_put(at, self.adjustments.values.double(), accumulate=True)
        losses = torch.cat([extra, matrix], 1).logsumexp(1) - extra[:, 0]
        (losses * self.weight).sum().backward()
        return [losses.detach(), *(x.grad for x in leaves if x.grad is not None)]


def close(found: list[Tensor], wanted: list[Tensor], relative: float) -> None:
    """Check each norm of differences against the norm."""
    for one, other in zip(found, wanted, strict=True):
        assert float((one - other).norm()) <= relative * float(other.norm())


@pytest.mark.parametrize("direction", [1, -1])
def test_the_largest_may_come_first_or_last(kind: Products, within: float, direction: int) -> None:
    """Exponentials of early tiles are over another largest than those of late ones, by up to e^60."""
    inputs = Inputs()
    inputs.bias += direction * torch.linspace(0, 60, len(inputs.bias))
    close(inputs.computed(kind), inputs.expected(), within)


def test_a_tile_with_nothing_left(kind: Products, within: float) -> None:
    """All columns of the middle tile, of either kind, are masked for all rows; they would lie far above the rest."""
    inputs = Inputs()
    inputs.bias[256:576] += 50
    rows, columns = torch.cartesian_prod(torch.arange(301), torch.arange(256, 576)).T.contiguous()
    inputs.adjustments = Adjustments(rows, columns, torch.full(rows.shape, -INF))
    found = inputs.computed(kind)
    close(found, inputs.expected(), within)
    assert torch.count_nonzero(found[2][256:576]) == 0


@pytest.mark.parametrize("width", [1, 16, 33, 100])
@pytest.mark.parametrize(("batch", "columns"), [(1, 1), (13, 289), (157, 575)])
def test_memory_that_nobody_wrote_to_is_not_used(
    monkeypatch: pytest.MonkeyPatch, kind: Products, width: int, batch: int, columns: int
) -> None:
    """Rows, columns and widths that fill no tile: with NaN in all new memory results are what they were."""
    inputs = Inputs(batch, columns, width)
    wanted = inputs.computed(kind)
    filled = []

    def poisoned(self: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        dtype = self.dtype if dtype is None else dtype
        filled.append(dtype)
        return self.new_full(shape, NAN if dtype.is_floating_point else 0x7FC07FC0, dtype=dtype)  # two NaN of bf16

    monkeypatch.setattr(Tensor, "new_empty", poisoned)
    for one, other in zip(inputs.computed(kind), wanted, strict=True):
        assert torch.equal(one, other)
    assert set(filled) == ({torch.float32} if kind == "float32" else {torch.float32, torch.int32})


def test_memory_is_the_processors_whatever_the_default_device(kind: Products) -> None:
    """A program may make its tensors elsewhere by default."""
    inputs = Inputs()
    wanted = inputs.computed(kind)
    with torch.device("meta"):
        found = inputs.computed(kind)
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("bad", [NAN, -NAN, INF])
def test_what_is_no_number_stays_in_its_row(kind: Products, bad: float) -> None:
    """One logit of row 150: its loss and gradient are NaN, all other rows' are what they were."""
    inputs = Inputs()
    wanted = inputs.computed(kind)
    more = Adjustments(torch.tensor([150]), torch.tensor([400]), torch.tensor([bad]))
    place = int((inputs.adjustments.rows < 150).sum())
    inputs.adjustments = Adjustments(
        *(
            torch.cat(
                [
                    getattr(inputs.adjustments, name)[:place],
                    getattr(more, name),
                    getattr(inputs.adjustments, name)[place:],
                ]
            )
            for name in ("rows", "columns", "values")
        )
    )
    found = inputs.computed(kind)
    others = torch.arange(301) != 150
    for place in (0, 1, 3):
        assert torch.equal(found[place][others], wanted[place][others])
        assert found[place][150].isnan().all()
    assert found[2].isnan().any()


@pytest.mark.parametrize("low", [-INF, float(torch.finfo(torch.float32).min)])
def test_rows_that_fill_a_tile_up_are_nothing(kind: Products, low: float) -> None:
    """301 rows, and columns whose bias is as low as can be: their gradient is 0, not 0 times infinity."""
    inputs = Inputs()
    inputs.bias[::2] = low
    found = inputs.computed(kind)
    assert torch.count_nonzero(found[2][::2]) == 0
    assert all(part.isfinite().all() for part in found)


def test_gradients_are_near_in_size_and_direction(kind: Products, within: float) -> None:
    """Within .6 % where they are of bf16, cosine at least .9999."""
    for single, wanted in zip(Inputs(900).computed(kind)[1:], Inputs(900).expected()[1:], strict=True):
        found = single.double()
        assert float((found - wanted).norm() / wanted.norm()) < within
        assert float((found * wanted).sum() / found.norm() / wanted.norm()) > 0.9999


@pytest.mark.parametrize("columns", [5_000, 100_000])
def test_sums_of_many_alike_do_not_drift(kind: Products, columns: int) -> None:
    """A tower that says the same of all: what is added to a sum is each time rounded in the same direction."""
    inputs = Inputs(64, columns, 16)
    inputs.items[:] = inputs.items[0].bfloat16().float()
    inputs.query, inputs.bias = inputs.query.bfloat16().float(), torch.zeros(columns)
    found, wanted = inputs.computed(kind)[0], inputs.expected()[0]
    assert float(((found - wanted) / wanted).abs().max()) < 3e-6


def test_without_gradients_losses_are_the_same(kind: Products) -> None:
    """A tile that nobody asks for again is not kept, and that changes nothing."""
    inputs = Inputs()
    losses = row_block_losses(inputs.query, inputs.items, inputs.extra, inputs.bias, inputs.adjustments, None, kind)[1]
    assert torch.equal(losses, inputs.computed(kind)[0])


def test_blocks_have_rows_by_their_columns() -> None:
    """At most 96 rows, of all threads together at most 32 MiB, and whole HEIGHTs; no more than there are."""
    rows = []
    for batch, columns, threads in ((10**4, 5_096, 2), (10**4, 66_536, 2), (10**4, 66_536, 16), (30, 400, 2)):
        query, items = torch.zeros(batch, 16), torch.zeros(columns, 16)
        tiles = tiled_rows.TiledRows(query, items, torch.zeros(columns), threads, "float32", gradients=False)
        rows.append({memory[4].shape[1] for memory in tiles._memory})
    assert rows == [{96}, {60}, {12}, {36}]


@pytest.mark.parametrize(
    ("batch", "columns", "width", "kind", "wanted"),
    [
        (512, 1024, 64, "float32", True),
        (511, 1024, 64, "float32", False),
        (512, 1023, 64, "float32", False),
        (512, 1024, 15, "float32", False),
        (512, 1024, 256, "float32", True),
        (512, 1024, 257, "float32", False),
        (512, 1024, 64, "float64", False),
    ],
)
def test_only_where_there_is_enough(
    monkeypatch: pytest.MonkeyPatch, batch: int, columns: int, width: int, kind: str, wanted: bool
) -> None:
    """Rows, columns, a width that fills a register and not the cache; float32."""
    monkeypatch.setattr(tiled_rows, "quicker", lambda _: True)
    dtype = getattr(torch, kind)
    query, items = torch.zeros(batch, width, dtype=dtype), torch.zeros(columns, width, dtype=dtype)
    assert tiled_rows.suitable(query, items, "float32") is wanted
    monkeypatch.setattr(tiled_rows, "quicker", lambda _: False)
    assert not tiled_rows.suitable(query, items, "float32")
