"""The same code with a batch on another device: the CPU's numbers, and nothing mixed (see elsewhere.py).

No accelerator is needed. What is drawn from, counted and remembered may lie on the CPU; what belongs to a batch lies
where its positives and its vectors lie. Run by unit/test_other_device.py, in a process of its own: PyTorch knows the
devices that are there when it first goes backward, and other libraries would find this one.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields

import ledger_losses
import numpy as np
import pytest
import torch
from elsewhere import There, elsewhere
from ledger_losses import Vectors
from torch import Tensor, nn

from hatchway.data.row_table import RowTable
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.given import GivenFrequency
from hatchway.frequency.living import LivingOnly
from hatchway.frequency.protocol import Frequency
from hatchway.frequency.running import RunningCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.micro_batches import in_micro_batches
from hatchway.losses.sampled_softmax import SampledSoftmax, sampled_softmax
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, Masked, draw_ledger, with_masked, with_own_masked
from hatchway.negatives.mined import Mined
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity, PopularityDistribution
from hatchway.negatives.queue import Queue
from hatchway.negatives.sources import OwnSource, Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns, engaged_own
from hatchway.towers.tables import bag, table
from hatchway.training.optimiser import RowWiseAdagrad

ITEMS, BATCH, WIDTH = 20, 6, 4
POSITIVES = [3, 1, 3, 0, 7, 19]
COUNTS = torch.arange(1, ITEMS + 1)
CPU = torch.device("cpu")


@pytest.fixture
def there() -> Iterator[torch.device]:
    """Return the other device, for as long as the test runs."""
    with elsewhere() as device:
        yield device


def here(given: Tensor) -> Tensor:
    """Return the numbers of what must lie elsewhere."""
    assert isinstance(given, There)
    return given.detach().cpu()


def learned(frequency: Frequency, *, feed: torch.device) -> Frequency:
    """Return it after two batches from a device, if it learns."""
    for _ in range(2):
        if isinstance(frequency, StreamingFrequency | CountMin | RunningCounts):
            frequency.update(torch.tensor(POSITIVES, device=feed))
    return frequency


FREQUENCIES: dict[str, Callable[[torch.device, torch.device], Frequency]] = {
    "exact": lambda at, _: ExactCounts(COUNTS.to(at)),
    "running": lambda _, feed: learned(RunningCounts(ITEMS), feed=feed),
    "given": lambda at, _: GivenFrequency.from_counts(counts=COUNTS.to(at)),
    "living": lambda at, _: LivingOnly(ExactCounts(COUNTS), (COUNTS != 5).to(at)),
    "streaming": lambda at, feed: learned(streaming(StreamingSettings(), at), feed=feed),
    "hashed": lambda at, feed: learned(streaming(StreamingSettings(buckets=64), at), feed=feed),
    "count-min": lambda at, feed: learned(CountMin(CountMinSettings(), ITEMS, 1, device=at), feed=feed),
}


def streaming(settings: StreamingSettings, at: torch.device) -> StreamingFrequency:
    """Return the estimator with its cells on a device."""
    return StreamingFrequency(settings, ITEMS, 1, device=at)


def rows_table() -> RowTable:
    """Return the lists of eight engagement rows."""
    lists = [np.arange(row % 4) + row for row in range(8)]
    return RowTable.from_offsets(np.cumsum([0, *map(len, lists)]), np.concatenate(lists))


def filled(queue: Queue, at: torch.device) -> Queue:
    """Put a batch into it, from a device."""
    queue.enqueue(torch.tensor([2, 3, 19], device=at), torch.arange(12.0, device=at).view(3, WIDTH))
    return queue


SHARED: dict[str, Callable[[Frequency, torch.device], SharedSource]] = {
    "in-batch": lambda frequency, _: InBatch(frequency),
    "uniform": lambda _, __: Uniform(ITEMS, 5, torch.arange(ITEMS) != 4),
    "popularity": lambda _, __: Popularity(COUNTS, 5),
    "queue": lambda frequency, at: filled(Queue(frequency, 5, WIDTH), at),
}
OWN: dict[str, Callable[[], OwnSource]] = {
    "uniform": lambda: PerRow(UniformDistribution(ITEMS), 2.5, Source.UNIFORM),
    "popularity": lambda: PerRow(PopularityDistribution(COUNTS, 0.75), 1.5, Source.POPULARITY),
    "mined": lambda: Mined(rows_table(), 2, weight=0.5).resized(1.5),
    "impressions": lambda: Impressions(rows_table(), 2),
}


def drawn(at: torch.device, frequency: Frequency, *, distinct: bool) -> Ledger:
    """Draw a batch's ledger from every source, and mask what buyers engaged with."""
    ledger = draw_ledger(
        torch.tensor(POSITIVES, device=at),
        [of(frequency, at) for of in SHARED.values()],
        torch_stream(1),
        "count",
        own=[of() for of in OWN.values()],
        rows=torch.tensor([0, 1, 2, 3, 5, 7], device=at),
        distinct=distinct,
    )
    known, offsets = torch.tensor([5, 6, 9, 2], device=at), torch.tensor([0, 2, 2, 3, 3, 3, 4], device=at)
    ledger = with_masked(ledger, engaged_columns(ledger, known, offsets))
    return with_own_masked(ledger, engaged_own(ledger, known, offsets), Reason.ENGAGED)


def tensors_of(ledger: Ledger | Masked) -> dict[str, Tensor]:
    """Return its tensors by name."""
    found: dict[str, Tensor] = {}
    for field in fields(ledger):
        value = getattr(ledger, field.name)
        if isinstance(value, Masked):
            found |= {f"masked.{name}": part for name, part in tensors_of(value).items()}
        elif isinstance(value, Tensor):
            found[field.name] = value
    return found


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("name", FREQUENCIES)
def test_a_ledger_lies_where_its_positives_do(name: str, beside: bool, distinct: bool, there: torch.device) -> None:
    """All sources with all frequencies, whose states lie on the CPU or, where they can, beside the positives."""
    wanted = tensors_of(drawn(CPU, FREQUENCIES[name](CPU, CPU), distinct=distinct))
    found = tensors_of(drawn(there, FREQUENCIES[name](there if beside else CPU, there), distinct=distinct))
    assert len(wanted) > 10
    for part, value in wanted.items():
        torch.testing.assert_close(here(found[part]), value, rtol=0, atol=0, msg=part)


LOSSES: dict[str, Callable[[Ledger, Vectors], Tensor]] = {
    **ledger_losses.LOSSES,
    "sampled softmax, weighted rows": lambda ledger, v: sampled_softmax(
        v["query"], v["positive"], v["columns"], ledger, weight=v["weight"].detach(), own=v["own"], reduction="none"
    ),
    "sampled softmax, bf16": lambda ledger, v: sampled_softmax(
        v["query"], v["positive"], v["columns"], ledger, own=v["own"], products="bf16"
    ),
    "sampled softmax, learned temperature": lambda ledger, v: SampledSoftmax(learn_temperature=True).to(
        v["query"].device
    )(v["query"], v["positive"], v["columns"], ledger, own=v["own"]),
    "full softmax": lambda ledger, v: full_softmax(v["query"], v["items"], ledger.positives, tile=(4, 7)),
    "micro-batches": lambda ledger, v: sampled_softmax(
        in_micro_batches(lambda part: v["query"][part].tanh(), BATCH, 4), v["positive"], v["columns"], ledger
    ),
}


def computed(of: Callable[[Ledger, Vectors], Tensor], at: torch.device) -> list[Tensor]:
    """Return a loss and its gradients."""
    ledger = drawn(at, ExactCounts(COUNTS), distinct=False)
    if of is LOSSES["micro-batches"]:
        ledger = draw_ledger(torch.tensor(POSITIVES, device=at), [InBatch(ExactCounts(COUNTS))], torch_stream(1), "yi")
    shapes = {
        "query": (BATCH, WIDTH),
        "positive": (BATCH, WIDTH),
        "columns": (len(ledger.items), WIDTH),
        "own": (*ledger.own_items.shape, WIDTH),
        "items": (ITEMS, WIDTH),
        "weight": (BATCH,),
    }
    stream = torch_stream(2)
    given = {name: torch.rand(shape, generator=stream).to(at).requires_grad_() for name, shape in shapes.items()}
    loss = of(ledger, given)
    loss.sum().backward()
    return [loss.detach(), *(one.grad for one in given.values() if one.grad is not None)]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_computed_where_its_vectors_lie(name: str, there: torch.device) -> None:
    """Its value and its gradients, as on the CPU."""
    wanted = computed(LOSSES[name], CPU)
    found = computed(LOSSES[name], there)
    assert len(found) == len(wanted) > 1
    for mine, one in zip(found, wanted, strict=True):
        torch.testing.assert_close(here(mine), one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_a_table_is_trained_where_it_lies(decay: float, there: torch.device) -> None:
    """Look-ups, bags and the row-wise optimiser."""

    def trained(at: torch.device) -> Tensor:
        torch.manual_seed(1)
        rows = table(ITEMS, WIDTH, 0.1).to(at)
        optimiser = RowWiseAdagrad([rows], 0.1, decay=decay, shrink=0.01)
        history, offsets = torch.tensor([1, 2, 2, 5], device=at), torch.tensor([0, 1, 3, 4], device=at)
        for _ in range(3):
            optimiser.zero_grad()
            pooled = bag(rows, history, offsets, mean=True)
            (pooled * rows(torch.tensor([1, 7, 7], device=at))).sum().backward()
            optimiser.step()
        return rows.weight.detach()

    torch.testing.assert_close(here(trained(there)), trained(CPU))


def test_the_device_is_strict(there: torch.device) -> None:
    """It refuses what an accelerator refuses; otherwise these tests would show nothing."""
    mine = torch.arange(3.0, device=there)
    with pytest.raises(RuntimeError, match="two devices"):
        _ = mine + torch.ones(3)
    with pytest.raises(RuntimeError, match="two devices"):
        _ = torch.ones(3)[mine.long()]
    with pytest.raises((TypeError, RuntimeError)):
        mine.numpy()
    assert here(mine[torch.tensor([2])]).tolist() == [2.0], "indices may lie on the CPU"
    assert isinstance(nn.Linear(3, 2).to(there)(mine), There)
