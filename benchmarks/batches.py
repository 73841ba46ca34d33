"""Batches: array look-ups against a DataLoader over a Python data set that gives the same tensors.

Usage: python benchmarks/batches.py [--rounds 15]

A log of two million engagements of 100,000 buyers; batches of 4,096 positives with histories of 20 and what the buyer
engaged with in the 30 days before; five batches a turn. Writes batches.json beside this file.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from interleaved import interleaved
from results import Row, ratio, write
from torch.utils.data import DataLoader, Dataset

from hatchway.data.engagements import Engagements, Part
from hatchway.randomness import stream
from hatchway.training.batches import Batch, epoch_batches

ROWS, BUYERS, ITEMS, BATCH, BATCHES, HISTORY, DAYS = 2_000_000, 100_000, 1_000_000, 4_096, 5, 20, 30.0


def make_log() -> Engagements:
    """Make a log in which every buyer has about twenty engagements over half a year."""
    random = stream(1, "benchmark log")
    buyers = np.sort(random.integers(BUYERS, size=ROWS)).astype(np.int32)
    offsets = np.searchsorted(buyers, np.arange(BUYERS + 1)).astype(np.int64)
    times = random.integers(180 * 86_400, size=ROWS)
    times = times[np.lexsort((times, buyers))]
    items = random.integers(ITEMS, size=ROWS).astype(np.int32)
    rows = np.arange(ROWS)
    return Engagements(
        offsets=offsets,
        buyers=buyers,
        items=items,
        parts=np.full(ROWS, Part.TRAIN, np.int8),
        weights=np.ones(ROWS, np.float32),
        query_items=np.where(rows > offsets[buyers], items[rows - 1], -1).astype(np.int32),
        times=times,
        context_end=rows,
    )


class PythonRows(Dataset[dict[str, Any]]):
    """One row at a time, as data sets are usually written."""

    def __init__(self, log: Engagements) -> None:
        self.log = log

    def __len__(self) -> int:
        return len(self.log)

    def __getitem__(self, row: int) -> dict[str, Any]:
        """Return the row's context, its positive, and what its buyer is known for."""
        log = self.log
        begin, end = log.offsets[log.buyers[row]], log.context_end[row]
        earliest = log.times[row] - DAYS * 86_400 if log.times is not None else 0
        known = log.times[begin:end] >= earliest if log.times is not None else slice(None)
        return {
            "buyer": int(log.buyers[row]),
            "query_item": int(log.query_items[row]),
            "history": torch.from_numpy(log.items[max(begin, end - HISTORY) : end]),
            "positive": int(log.items[row]),
            "known": torch.from_numpy(log.items[begin:end][known]),
        }


def collate(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Put rows together."""
    made = {name: torch.tensor([row[name] for row in rows]) for name in ("buyer", "query_item", "positive")}
    for name in ("history", "known"):
        made[name] = torch.cat([row[name] for row in rows])
        lengths = torch.tensor([0] + [len(row[name]) for row in rows])
        made[f"{name}_offsets"] = lengths.cumsum(0)
    return made


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    log = make_log()
    positives = log.positives(Part.TRAIN)

    def quick() -> Iterator[Batch]:
        for epoch in itertools.count():
            yield from epoch_batches(log, positives, batch=BATCH, history=HISTORY, mask_days=DAYS, seed=1, epoch=epoch)

    loader = DataLoader(PythonRows(log), BATCH, shuffle=True, collate_fn=collate)
    mine, theirs = quick(), iter(loader)
    first = next(mine)
    same = collate([PythonRows(log)[int(row)] for row in first.rows])
    for name, tensor in {
        "history": torch.from_numpy(first.contexts.history),
        "history_offsets": torch.from_numpy(first.contexts.history_offsets),
        "known": first.known_items,
        "known_offsets": first.known_offsets,
        "positive": first.positives,
    }.items():
        if not torch.equal(tensor.long(), same[name].long()):
            raise SystemExit(f"{name} differs")

    def turn(batches: Iterator[object]) -> Callable[[], None]:
        def some() -> None:
            for _ in range(BATCHES):
                next(batches)

        return some

    seconds = {"five batches": interleaved({"arrays": turn(mine), "DataLoader": turn(theirs)}, rounds)}
    value = ratio(seconds["five batches"], "DataLoader", "arrays")
    write(
        "batches", [Row("a DataLoader over a Python data set", "batches from arrays", value, "at least", 50)], seconds
    )


if __name__ == "__main__":
    main()
