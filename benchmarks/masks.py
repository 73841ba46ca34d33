"""Masks: finding which columns hold a row's positive or an item that its buyer engaged with.

Usage: python benchmarks/masks.py [--rounds 9]

Against the dense comparison of 4,096 rows with 5,096 columns, for the positive alone and for the positive and twenty
history items. All ways find the same coordinates, which is checked. Writes masks.json beside this file.
"""

import argparse
from collections.abc import Callable

import torch
from interleaved import interleaved
from results import Row, ratio, write
from torch import Tensor
from workload import ledger_of, make_batch, sources

from hatchway import compiled
from hatchway.negatives.matching import compiled_join, each_pair_once, plain_join, sorted_once

CATALOGUE = 10_000_000
Join = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    batch = make_batch(CATALOGUE, 4_096, 1)
    items = ledger_of(batch, sources(CATALOGUE), 0).items
    logits = torch.zeros(len(batch.positives), len(items))
    keys = torch.cat([batch.positives[:, None], batch.history], 1)

    def dense_same() -> Tensor:
        found = batch.positives[:, None] == items
        logits.masked_fill_(found, -torch.inf)
        return found

    def dense_history() -> Tensor:
        found = batch.positives[:, None] == items
        for place in range(batch.history.shape[1]):
            found |= batch.history[:, place, None] == items
        logits.masked_fill_(found, -torch.inf)
        return found

    def coordinates(join: Join) -> Callable[[], Tensor]:
        """Return the sorted coordinates, each once, as the loss takes them."""

        def call() -> Tensor:
            which, columns = join(items, keys.view(-1))
            rows = which // keys.shape[1]
            kept = each_pair_once(rows, columns) if join is compiled_join else sorted_once(rows, columns)
            return torch.stack([rows[kept], columns[kept]], 1)

        return call

    ways: dict[str, Join] = {"numba": compiled_join} if compiled.available() else {}
    ways["without numba"] = plain_join
    groups: dict[str, dict[str, Callable[[], object]]] = {
        "same item": {"dense": dense_same}
        | {name: lambda join=join: join(items, batch.positives) for name, join in ways.items()},
        "same item and history": {"dense": dense_history} | {name: coordinates(join) for name, join in ways.items()},
    }
    wanted = dense_history().nonzero()
    for join in ways.values():
        if not torch.equal(coordinates(join)(), wanted):
            raise SystemExit("the coordinates differ")
    seconds = {group: interleaved(variants, rounds) for group, variants in groups.items()}
    rows = [
        Row(
            f"masks, {group}, {name}",
            "the dense comparison",
            ratio(times, name, "dense"),
            "at most",
            0.013 if group == "same item and history" and name == "numba" else None,
            0.004,
        )
        for group, times in seconds.items()
        for name in ways
    ]
    write("masks", rows, seconds)


if __name__ == "__main__":
    main()
