"""Faults that were found in programs of this kind, and what no other test shows of them; docs/decisions/faults.md."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hatchway import compiled
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.info_nce import info_nce
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import account, draw_ledger, with_masked
from hatchway.negatives.matching import compiled_pairs, plain_pairs
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def shared(query: Tensor, positive: Tensor, negatives: Tensor, reduction: str = "mean") -> Tensor:
    """Sampled softmax of rows with shared columns that are no row's positive; each column counts once."""
    positives = torch.arange(len(query))
    items = torch.arange(len(negatives)) + len(query)
    kinds = torch.full((len(items),), 2, dtype=torch.int8)
    everything = len(query) + len(items)
    ledger = account(positives, items, kinds, [Uniform(everything, everything)], "uncorrected")
    return sampled_softmax(query, positive, negatives, ledger, reduction=reduction)  # type: ignore[arg-type]


LOSSES: dict[str, Loss] = {
    "sampled softmax": shared,
    "InfoNCE": info_nce,
    "full softmax": lambda query, positive, negatives: full_softmax(
        query,
        torch.cat([positive, negatives]),
        torch.arange(len(query)),
        masked=tuple((~torch.eye(len(query), dtype=torch.bool)).nonzero(as_tuple=True)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_row_without_loss_counts_in_the_mean(name: str) -> None:
    """A row whose loss is exactly 0 is a row: dividing by the rows that have some would move the mean.

    By hand: the first row's positive scores 0 beside negatives of 0 and 0, so its loss is ln 3; the second's scores 400
    above both, so its loss is 0 in float32. The mean is ln(3) / 2.
    """
    query = torch.tensor([[1.0, 0.0], [0.0, 400.0]])
    positive = torch.tensor([[0.0, 5.0], [0.0, 1.0]])
    loss = LOSSES[name](query, positive, torch.zeros(2, 2))
    assert float(loss) == pytest.approx(float(torch.tensor(3.0).log()) / 2, rel=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_hopeless_positive_still_pulls(name: str) -> None:
    """A positive of probability 1e-13 has the whole gradient: something added inside a logarithm would swallow it.

    With a positive 30 below the only negative, the gradient of the loss with respect to the query is the negative's
    vector less the positive's, to the last digit.
    """
    query = torch.tensor([[1.0, 1.0]], requires_grad=True)
    positive, negative = torch.tensor([[-15.0, 0.0]]), torch.tensor([[0.0, 15.0]])
    loss = LOSSES[name](query, positive, negative)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(30.0)
    assert query.grad is not None
    assert query.grad.tolist() == [[15.0, 15.0]]


@pytest.mark.parametrize("name", LOSSES)
def test_a_batch_twice_as_large_is_no_other_task(name: str) -> None:
    """The mean loss and the gradient of what all rows share do not grow with the batch, so neither does the rate.

    Nor does a small last batch look ten times as good, as it would with a sum.
    """
    generator = torch.Generator().manual_seed(1)
    query, positive, negatives = (torch.randn(rows, 4, generator=generator) for rows in (3, 3, 5))
    found = []
    for times in (1, 8):
        common = negatives.clone().requires_grad_()
        loss = LOSSES[name](query.repeat(times, 1), positive.repeat(times, 1), common)
        loss.backward()
        assert common.grad is not None
        found.append((loss.detach(), common.grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_a_copy_of_the_positive_has_a_share_of_exactly_nothing() -> None:
    """Each row's own positive is looked up, not the first row's: no copy moves, whatever its score.

    Rows 0 and 2 have item 5, row 1 has item 7; the columns hold both twice. A remover that subtracts something tiny, or
    that reads one row's positive for all, would leave a copy its probability, here of nearly 1.
    """
    counts = torch.tensor([0, 0, 0, 0, 0, 6, 0, 3, 2])
    positives = torch.tensor([5, 7, 5])
    kinds = torch.tensor([1, 1, 1, 2, 2, 2], dtype=torch.int8)
    items = torch.tensor([5, 7, 5, 7, 5, 8])
    ledger = account(positives, items, kinds, [InBatch(ExactCounts(counts)), Uniform(9, 3)], "uncorrected")
    columns = torch.full((6, 1), 50.0, requires_grad=True)
    query = torch.ones(3, 1)
    # Row by row: what a row gives a column is its probability times the query.
    for row in range(3):
        losses = sampled_softmax(query, torch.zeros(3, 1), columns, ledger, reduction="none")
        (gradient,) = torch.autograd.grad(losses[row], columns)
        moved = (gradient[:, 0] != 0).tolist()
        assert moved == [int(item) != int(positives[row]) for item in items]


def test_what_is_masked_cannot_cancel() -> None:
    """A thousand masked columns hold all but 4e-21 of the row's mass; the two that are left are as good as alone.

    Subtracting the masked mass from the whole would leave none of their digits.
    """
    masked, left = torch.full((1000, 1), 25.0), torch.tensor([[-25.0], [-24.0]])
    query, positive = torch.ones(1, 1), torch.tensor([[-25.0]])
    items = torch.arange(1002) + 1
    kinds = torch.full((1002,), 2, dtype=torch.int8)
    ledger = account(torch.tensor([0]), items, kinds, [Uniform(1003, 1003)], "uncorrected")
    ledger = with_masked(ledger, engaged_columns(ledger, items[:1000], torch.tensor([0, 1000])))
    columns = torch.cat([masked, left]).requires_grad_()
    loss = sampled_softmax(query, positive, columns, ledger)
    loss.backward()
    shares = torch.softmax(torch.tensor([-25.0, -25.0, -24.0], dtype=torch.float64), 0)
    assert float(loss.detach()) == pytest.approx(-math.log(float(shares[0])), rel=1e-6)
    assert columns.grad is not None
    assert columns.grad[:1000].eq(0).all()
    assert columns.grad[1000:, 0].tolist() == pytest.approx(shares[1:].tolist(), rel=1e-6)


def test_masks_of_a_hundred_thousand_rows_are_found_without_a_matrix() -> None:
    """Time and memory follow rows and columns, not their product: dense, these are forty thousand million pairs.

    Row r knows items r and r + 1 of columns 0, 1, 2, …, so every row finds two columns and the last one.
    """
    number = 200_000
    items = torch.arange(number)
    keys = torch.stack([items, items + 1], 1).flatten()
    for find in (plain_pairs, compiled_pairs) if compiled.available() else (plain_pairs,):
        rows, columns = find(items, keys, torch.arange(number + 1) * 2)
        assert len(rows) == 2 * number - 1
        assert torch.equal(columns - rows, torch.arange(2 * number - 1) % 2)


def test_a_batch_may_hold_a_buyer_and_an_item_any_number_of_times() -> None:
    """No loader has to keep them apart: one buyer's eight rows of three items mask each other, and nothing is dropped.

    A batch of that buyer alone has no negatives but the uniform ones that the buyer does not know.
    """
    positives = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    counts = torch.tensor([3, 3, 2, 0, 0, 0])
    ledger = draw_ledger(positives, [InBatch(ExactCounts(counts)), Uniform(6, 50)], torch_stream(1), "uncorrected")
    known = torch.tensor([0, 1, 2]).repeat(8)
    ledger = with_masked(ledger, engaged_columns(ledger, known, torch.arange(9) * 3))
    masked = torch.zeros(8, 58, dtype=torch.bool)
    masked[ledger.masked.rows, ledger.masked.columns] = True
    assert torch.equal(masked, (ledger.items < 3).expand(8, -1))


def test_draws_are_the_same_whatever_the_hash_seed() -> None:
    """Nothing goes through a set of hashes on its way into a batch, and no global generator is asked."""
    program = """
import numpy, random, torch
random.seed({seed}); numpy.random.seed({seed}); torch.manual_seed({seed})
from hatchway.data.row_table import RowTable
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.mined import Mined
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity
from hatchway.negatives.sources import Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
counts = torch.arange(1, 31)
positives = torch.arange(8) * 3
frequency = StreamingFrequency(StreamingSettings(buckets=64), 30, 1)
frequency.update(positives)
table = RowTable.from_offsets(numpy.arange(0, 81, 10), numpy.arange(80) % 30)
own = [Mined(table, most=2), PerRow(UniformDistribution(30), 1.5, Source.UNIFORM)]
sources = [InBatch(frequency), Uniform(30, 9), Popularity(counts, 9)]
ledger = draw_ledger(positives, sources, torch_stream(1), "count", own=own, rows=torch.arange(8), distinct=False)
print(ledger.items.tolist(), ledger.own_items.tolist(), ledger.log_count.tolist())
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", program.replace("{seed}", seed)],
            env=os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].startswith("[0, 3, 6")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="asks Linux for the peak of a call's memory")
def test_a_loss_needs_no_memory_for_its_matrix() -> None:
    """8,192 rows by 16,384 columns are 512 MiB of logits; forward and backward take less than a sixth of that."""
    program = """
import ctypes, gc, torch
from pathlib import Path
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.ledger import account
from hatchway.negatives.uniform import Uniform
def status(field):
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(field))
def step(rows, columns):
    items = torch.arange(columns) + rows
    ledger = account(torch.arange(rows), items, torch.full((columns,), 2, dtype=torch.int8),
                     [Uniform(rows + columns, columns)], "uncorrected")
    query, positive, vectors = (torch.randn(n, 32).requires_grad_() for n in (rows, rows, columns))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    sampled_softmax(query, positive, vectors, ledger).backward()
    return (status("VmHWM") - before) / 1024
step(200, 300)
print(step(8192, 16384))
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 0 < float(said) < 80
