"""The loss, forward and backward: against plain PyTorch, against its matrix products alone, and its memory.

Usage: python benchmarks/loss.py [--rounds 11] [--rounds-large 3]

Writes loss.json beside this file. ``--memory B`` measures one call's extra peak memory in this process and prints it;
the script calls itself so, because memory that a process has had once says nothing about a second call.
"""

import argparse
import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from interleaved import interleaved
from results import Row, ratio, write
from torch import Tensor, nn
from workload import TEMPERATURE, UNIFORM, WIDTH, ledger_of, make_batch, sources, vectors

from hatchway.losses.row_blocks import Products
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.ledger import Ledger, Masked
from hatchway.negatives.matching import matching_columns

CATALOGUE = 1_000_000


class Inputs:
    """A batch's vectors and its ledger; every call starts from leaves of its own, as an optimiser's step would."""

    def __init__(self, rows: int) -> None:
        self.ledger: Ledger = ledger_of(make_batch(CATALOGUE, rows, 1), sources(CATALOGUE), 0)
        self.query = vectors(rows, 1)
        self.items = vectors(rows + UNIFORM, 2)
        self.own = vectors(rows * 2, 3).view(rows, 2, WIDTH)

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, columns and own columns, to be differentiated."""
        query, items, own = (x.detach().requires_grad_() for x in (self.query, self.items, self.own))
        return query, items, own

    def hatchway(self, products: Products = "float32") -> Tensor:
        """Find the same items, mask them, and take loss and gradients."""
        query, items, own = self.leaves()
        rows, columns = matching_columns(self.ledger.items, self.ledger.positives)
        ledger = replace(self.ledger, masked=Masked(rows, columns, torch.ones_like(rows, dtype=torch.int8)))
        loss = sampled_softmax(
            query, items[: len(query)], items, ledger, own=own, temperature=TEMPERATURE, products=products
        )
        loss.backward()
        return loss.detach()

    def plain(self) -> Tensor:
        """Do the same with the whole matrix: compare all with all, fill, concatenate, cross-entropy."""
        query, items, own = self.leaves()
        scaled = query / TEMPERATURE
        logits = scaled @ items.T - self.ledger.log_count
        rows = torch.arange(len(query))
        same = self.ledger.positives[:, None] == self.ledger.items
        same[rows, rows] = False
        # The positive stands on the diagonal, uncorrected.
        logits = logits.masked_fill(same, -torch.inf).diagonal_scatter((scaled * items[: len(query)]).sum(1))
        more = torch.einsum("bd,bhd->bh", scaled, own)
        loss = nn.functional.cross_entropy(torch.cat([logits, more], 1), rows)
        loss.backward()
        return loss.detach()

    def unmasked(self) -> Tensor:
        """Loss and gradients with nothing to mask but the positive's own column, and no own columns."""
        query, items, _ = self.leaves()
        rows = torch.arange(len(query))
        nothing = self.ledger.own_items[:, :0]
        ledger = replace(
            self.ledger,
            masked=Masked(rows, rows, torch.ones(len(rows), dtype=torch.int8)),
            own_items=nothing,
            own_sources=nothing.to(torch.int8),
            own_log_count=nothing.float(),
            own_log_weight=nothing.float(),
            own_masked=nothing.to(torch.int8),
        )
        loss = sampled_softmax(query, items[: len(query)], items, ledger, temperature=TEMPERATURE)
        loss.backward()
        return loss.detach()

    def products(self) -> Callable[[], object]:
        """Return the three matrix products as such, into memory that is there."""
        matrix = torch.empty(len(self.query), len(self.items))
        of_query, of_items = torch.empty_like(self.query), torch.empty_like(self.items)

        def call() -> None:
            torch.mm(self.query, self.items.T, out=matrix)
            torch.mm(matrix, self.items, out=of_query)
            torch.mm(matrix.T, self.query, out=of_items)

        return call


def peak_memory(rows: int) -> float:
    """Return the MiB that one call needs beyond what stood before it."""
    Inputs(300).hatchway()  # compiles, and loads what is loaded on first use
    inputs = Inputs(rows)

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free in the process would otherwise be used without being seen
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    inputs.hatchway()
    return (status("VmHWM") - before) / 1024


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--rounds-large", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="B")
    options = parser.parse_args()
    if options.memory:
        print(peak_memory(options.memory))
        return
    rows, seconds = [], {}
    for batch, rounds, bounds in (
        (4_096, options.rounds, {"float32": (0.26, 0.18), "bf16": (0.20, 0.12)}),
        (16_384, options.rounds_large, {"float32": (0.14, 0.09), "bf16": (0.08, 0.045)}),
    ):
        inputs = Inputs(batch)
        mine, plain = inputs.hatchway(), inputs.plain()
        if not torch.allclose(mine, plain, rtol=1e-4):
            raise SystemExit(f"the losses differ: {float(mine)} and {float(plain)}")
        times = interleaved(
            {
                "float32": inputs.hatchway,
                "bf16": lambda inputs=inputs: inputs.hatchway("bf16"),
                "plain": inputs.plain,
            },
            rounds,
            warm_up=1,
        )
        seconds[f"loss, B = {batch:,}"] = times
        for products, (required, aim) in bounds.items():
            name = f"loss, {products} products, same-item masks, B = {batch:,}"
            rows.append(Row(name, "plain PyTorch", ratio(times, products, "plain"), "at most", required, aim))
        if batch == 4_096:
            times = interleaved({"loss": inputs.unmasked, "products": inputs.products()}, 2 * rounds)
            seconds["loss without masks, B = 4,096"] = times
            value = ratio(times, "loss", "products")
            rows.append(Row("loss, float32, no masks", "its three products alone", value, "at most", 2.0, 1.3))
    for batch, bound in ((4_096, 25), (16_384, 75), (65_536, 250)):
        said = subprocess.run(
            [sys.executable, __file__, "--memory", str(batch)], check=True, capture_output=True, text=True
        )
        name = f"loss, extra peak memory, B = {batch:,}"
        rows.append(Row(name, "nothing", round(float(said.stdout), 1), "at most", bound, unit="MiB"))
    write("loss", rows, seconds)


if __name__ == "__main__":
    main()
