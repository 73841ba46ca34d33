"""Nothing is made on the default device by oversight: what belongs to a batch is made where the batch lies.

There is no accelerator where the tests run. So the default device is one without memory, and the batch lies on the CPU:
whatever a forgotten ``device=`` makes meets the batch's tensors on another device, and PyTorch refuses. Compiled loops
work on the CPU alone and are switched off, as they are for tensors elsewhere.
"""

from collections.abc import Callable, Iterator

import ledger_losses
import pytest
import torch
from ledger_losses import Vectors
from torch import Tensor

from hatchway import compiled
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.protocol import Frequency, LearnedFrequency
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.counting import PositiveCorrection
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, draw_ledger, with_masked, with_own_masked
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity
from hatchway.negatives.sources import Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns, engaged_own

ITEMS, BATCH, WIDTH = 20, 6, 4


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a switch that lets forgotten devices show from then on."""
    monkeypatch.setattr(compiled, "available", lambda: False)
    for module in ("frequency.streaming", "negatives.alias"):
        monkeypatch.setattr(f"hatchway.{module}.available", lambda: False)
    yield lambda: torch.set_default_device("meta")
    torch.set_default_device(None)


def made(correction: PositiveCorrection, *, distinct: bool, frequency: Frequency | None = None) -> Ledger:
    """Draw a batch's ledger from all that lies where the batch does, and mask what buyers engaged with."""
    counts = torch.arange(1, ITEMS + 1, device="cpu")
    positives = torch.tensor([3, 1, 3, 0, 7, 19], device="cpu")
    sources: list[SharedSource] = [
        InBatch(ExactCounts(counts) if frequency is None else frequency),
        Uniform(ITEMS, 5, torch.arange(ITEMS, device="cpu") != 4),
        Popularity(counts, 5),
    ]
    own = [PerRow(UniformDistribution(ITEMS), 2.5, Source.UNIFORM)]
    ledger = draw_ledger(positives, sources, torch_stream(1), correction, own=own, distinct=distinct)
    known, offsets = torch.tensor([5, 6, 9, 2], device="cpu"), torch.tensor([0, 2, 2, 3, 3, 3, 4], device="cpu")
    ledger = with_masked(ledger, engaged_columns(ledger, known, offsets))
    return with_own_masked(ledger, engaged_own(ledger, known, offsets), Reason.ENGAGED)


def vectors(ledger: Ledger) -> Vectors:
    """Return vectors for a ledger, to be differentiated."""
    generator = torch_stream(2)
    shapes = {
        "query": (BATCH, WIDTH),
        "positive": (BATCH, WIDTH),
        "columns": (len(ledger.items), WIDTH),
        "own": (*ledger.own_items.shape, WIDTH),
        "items": (ITEMS, WIDTH),
    }
    return {
        name: torch.randn(shape, generator=generator, device="cpu").requires_grad_() for name, shape in shapes.items()
    }


def values(of: Callable[[Ledger, Vectors], Tensor], ledger: Ledger) -> list[Tensor]:
    """Return a loss and its gradients."""
    given = vectors(ledger)
    loss = of(ledger, given)
    loss.sum().backward()
    return [loss.detach(), *(one.grad for one in given.values() if one.grad is not None)]


@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_ledger_lies_where_its_batch_does(
    correction: PositiveCorrection, distinct: bool, elsewhere: Callable[[], None]
) -> None:
    """Every field is on the batch's device, with the numbers of an ordinary draw."""
    wanted = vars(made(correction, distinct=distinct))
    elsewhere()
    found = vars(made(correction, distinct=distinct))
    for name, value in wanted.items():
        parts = vars(value) if name == "masked" else {name: value}
        others = vars(found[name]) if name == "masked" else {name: found[name]}
        for part in parts:
            if isinstance(parts[part], Tensor):
                assert torch.equal(others[part], parts[part]), (name, part)


LOSSES: dict[str, Callable[[Ledger, Vectors], Tensor]] = {
    **ledger_losses.LOSSES,
    "sampled softmax, row by row": lambda ledger, v: sampled_softmax(
        v["query"], v["positive"], v["columns"], ledger, own=v["own"], reduction="none", products="bf16"
    ),
    "full softmax": lambda ledger, v: full_softmax(
        v["query"],
        v["items"],
        ledger.positives,
        tile=(4, 7),
        masked=(ledger.masked.rows, ledger.masked.columns % 3 + 8),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_works_where_its_vectors_lie(name: str, elsewhere: Callable[[], None]) -> None:
    """Value and gradients are made on the vectors' device, and are the ordinary ones."""
    ledger = made("count", distinct=False)
    wanted = values(LOSSES[name], ledger)
    elsewhere()
    for mine, one in zip(values(LOSSES[name], ledger), wanted, strict=True):
        torch.testing.assert_close(mine, one, rtol=1e-6, atol=1e-7)


FREQUENCIES: dict[str, Callable[[], LearnedFrequency]] = {
    "streaming": lambda: StreamingFrequency(StreamingSettings(), ITEMS, 1, device=torch.device("cpu")),
    "hashed": lambda: StreamingFrequency(StreamingSettings(buckets=64), ITEMS, 1, device=torch.device("cpu")),
    "count-min": lambda: CountMin(CountMinSettings(), ITEMS, 1, device=torch.device("cpu")),
}


@pytest.mark.parametrize("name", FREQUENCIES)
def test_a_frequency_answers_where_its_cells_lie(name: str, elsewhere: Callable[[], None]) -> None:
    """Updates and answers, and a ledger that counts with them."""
    seen = torch.tensor([3, 1, 3, 0, 7, 19], device="cpu")

    def answers() -> Tensor:
        frequency = FREQUENCIES[name]()
        for _ in range(3):
            frequency.update(seen)
        counts = made("yi", distinct=False, frequency=frequency).log_count
        return torch.cat([counts.double(), frequency.others(seen, 6), frequency.log_absent_whole_batch(seen, 6)])

    wanted = answers()
    elsewhere()
    assert torch.equal(answers(), wanted)


def test_the_switch_finds_a_forgotten_device(elsewhere: Callable[[], None]) -> None:
    """A plain ``arange`` in the middle of a computation meets a tensor that lies elsewhere."""
    elsewhere()
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(3, device="cpu").index_add_(0, torch.arange(3), torch.ones(3))
