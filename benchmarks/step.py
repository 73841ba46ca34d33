"""A whole training step: towers, negatives, masks, loss, way back, update.

Usage: python benchmarks/step.py [--rounds 9] [--only small flat dense]

The item tower is a table and 64 to 128 to 64; the query tower pools the history's rows of the same table and has layers
of its own. Ours: the ledger's negatives and masks, the sampled softmax, the row-wise optimiser. Plain: whole matrices,
compared with all history items, and SparseAdam (a million items) or Adam (ten million; that one masks the same item
alone, and is left out where less memory is free than it needs). The process keeps freed memory, and its idle threads
sleep early, for both, as with ``hatchway train``. Writes step.json beside this file.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import torch
from interleaved import interleaved
from results import Row, ratio, write
from torch import Tensor, nn
from torch.optim import Optimizer
from workload import HISTORY, TEMPERATURE, UNIFORM, WIDTH, Batch, ledger_of, make_batch, sources

from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.ledger import with_masked, with_own_masked
from hatchway.negatives.sources import Reason, SharedSource
from hatchway.screening.engaged import engaged_columns, engaged_own
from hatchway.towers.tables import Table, bag, empty_rows
from hatchway.training.memory import keep_freed_memory
from hatchway.training.optimiser import RowWiseAdagrad

ROWS, BATCHES, STREAM = 4_096, 4, 12
GIBIBYTE = 2**30


def layers() -> nn.Sequential:
    """Return 64 to 128 to 64."""
    return nn.Sequential(nn.Linear(WIDTH, 128), nn.ReLU(), nn.Linear(128, WIDTH))


class Ours:
    """The step of this package."""

    def __init__(self, catalogue: int, batches: Sequence[Batch], shared: list[SharedSource]) -> None:
        self.table = Table(catalogue, WIDTH, sparse=True, _weight=empty_rows(catalogue, WIDTH).uniform_(-0.1, 0.1))
        self.query_layers, self.item_layers = layers(), layers()
        both = [*self.query_layers.parameters(), *self.item_layers.parameters()]
        self.optimisers: list[Optimizer] = [RowWiseAdagrad([self.table], 0.1), torch.optim.Adam(both)]
        self.batches, self.shared, self.steps = batches, shared, count()

    def step(self) -> float:
        """Take one step."""
        number = next(self.steps)
        batch = self.batches[number % len(self.batches)]
        known = batch.history.reshape(-1)
        ledger = ledger_of(batch, self.shared, number)
        ledger = with_masked(ledger, engaged_columns(ledger, known, batch.history_offsets))
        ledger = with_own_masked(ledger, engaged_own(ledger, known, batch.history_offsets), Reason.ENGAGED)
        pooled = bag(self.table, known, batch.history_offsets, mean=True)
        query = self.query_layers(pooled)
        vectors = self.item_layers(self.table(torch.cat([ledger.items, batch.mined.view(-1)])))
        columns, own = vectors.split([len(ledger.items), batch.mined.numel()])  # one way back, where slices have two
        own = own.view(ROWS, -1, WIDTH)
        loss = sampled_softmax(query, columns[:ROWS], columns, ledger, own=own, temperature=TEMPERATURE)
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        return float(loss.detach())

    @property
    def state_share(self) -> float:
        """The bytes of the table's optimiser state, as a share of the table's."""
        state = self.optimisers[0].state[self.table.weight]
        numbers = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
        return numbers / (self.table.weight.numel() * 4)


class Plain:
    """The step as it is usually written."""

    def __init__(self, catalogue: int, batches: Sequence[Batch], shared: list[SharedSource], *, dense: bool) -> None:
        self.catalogue, self.dense = catalogue, dense
        self.table = nn.Embedding(
            catalogue, WIDTH, sparse=not dense, _weight=torch.empty(catalogue, WIDTH).uniform_(-0.1, 0.1)
        )
        self.query_layers, self.item_layers = layers(), layers()
        both = [*self.query_layers.parameters(), *self.item_layers.parameters()]
        table = list(self.table.parameters())
        self.optimisers: list[Optimizer] = (
            [torch.optim.Adam(table + both)] if dense else [torch.optim.SparseAdam(table), torch.optim.Adam(both)]
        )
        self.batches, self.shared, self.steps = batches, shared, count()
        self.generator = torch.Generator().manual_seed(1)

    def _mask(self, batch: Batch, items: Tensor) -> Tensor:
        rows = torch.arange(ROWS)
        found = batch.positives[:, None] == items
        if not self.dense:
            for place in range(HISTORY):
                found |= batch.history[:, place, None] == items
        found[rows, rows] = False
        return found

    def step(self) -> float:
        """Take one step."""
        batch = self.batches[next(self.steps) % len(self.batches)]
        items = torch.cat([batch.positives, torch.randint(self.catalogue, (UNIFORM,), generator=self.generator)])
        expected = torch.stack([source.expected_others(items, ROWS) for source in self.shared]).sum(0).log().float()
        pooled = nn.functional.embedding_bag(batch.history, self.table.weight, mode="mean", sparse=self.table.sparse)
        query = self.query_layers(pooled) / TEMPERATURE
        vectors = self.item_layers(self.table(torch.cat([items, batch.mined.view(-1)])))
        columns, own = vectors[: len(items)], vectors[len(items) :].view(ROWS, -1, WIDTH)
        logits = query @ columns.T - expected
        logits = logits.masked_fill(self._mask(batch, items), -torch.inf)
        logits = logits.diagonal_scatter((query * columns[:ROWS]).sum(1))
        more = torch.einsum("bd,bhd->bh", query, own)
        loss = nn.functional.cross_entropy(torch.cat([logits, more], 1), torch.arange(ROWS))
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        return float(loss.detach())


def workload(catalogue: int, batches: int = BATCHES) -> tuple[list[Batch], list[SharedSource]]:
    """Return batches and the shared sources."""
    return [make_batch(catalogue, ROWS, seed) for seed in range(batches)], sources(catalogue)


def free_memory() -> int:
    """Return the bytes that are free."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", choices=["small", "flat", "dense"], default=["small", "flat", "dense"])
    options = parser.parse_args()
    if "GOMP_SPINCOUNT" not in os.environ:  # PyTorch has looked for it by now
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"GOMP_SPINCOUNT": "30000"})  # noqa: S606  itself
    keep_freed_memory()
    rows: list[Row] = []
    seconds: dict[str, dict[str, list[float]]] = {}
    if "small" in options.only:
        given = workload(1_000_000)
        ours, plain = Ours(1_000_000, *given), Plain(1_000_000, *given, dense=False)
        seconds["step, N = 1 million"] = times = interleaved({"ours": ours.step, "plain": plain.step}, options.rounds)
        name = "whole step with history masks, N = 1 million"
        rows.append(
            Row(name, "plain loss, dense masks, SparseAdam", ratio(times, "ours", "plain"), "at most", 0.19, 0.09)
        )
        rows.append(Row("state of the table's optimiser", "the table", ours.state_share, "at most", 0.03))
        del ours, plain
    if "flat" in options.only:
        if free_memory() > 9 * GIBIBYTE:
            steps = {f"N = {n:,}": Ours(n, *workload(n)).step for n in (1_000_000, 20_000_000)}
            seconds["step by size of the table"] = times = interleaved(steps, 2 * options.rounds, warm_up=4)
            value = ratio(times, "N = 20,000,000", "N = 1,000,000")
            rows.append(Row("whole step, N = 20 million", "whole step, N = 1 million", value, "at most", 1.3, 1.05))
            del steps
        else:
            print("step by size of the table: left out, it needs 9 GiB of memory")
    if "dense" in options.only:
        if free_memory() > 19 * GIBIBYTE:
            # Steps follow each other as in training, with batches that do not come again soon: a single one after ten
            # seconds of dense Adam would mostly measure how the machine takes up a table that it had put aside.
            given = workload(10_000_000, 2 * STREAM)
            variants: dict[str, Callable[[], float]] = {
                "ours": Ours(10_000_000, *given).step,
                "plain": Plain(10_000_000, *given, dense=True).step,
            }
            seconds["step, N = 10 million"] = times = interleaved(variants, 7, warm_up=2, turns={"ours": STREAM})
            name = "whole step with history masks, N = 10 million"
            value = ratio(times, "ours", "plain")
            rows.append(Row(name, "plain loss, same-item mask, dense Adam", value, "at most", 0.015))
        else:
            print("step, N = 10 million: left out, dense Adam needs 19 GiB of memory")
    write("step", rows, seconds)


if __name__ == "__main__":
    main()
