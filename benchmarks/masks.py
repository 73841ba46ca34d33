"""Masks: finding which columns hold a row's positive or an item that its buyer engaged with.

Usage: python benchmarks/masks.py [--rounds 9]

Against the dense comparison of 4,096 rows with 5,096 columns, for the positive alone and for the positive and twenty
history items. And where the catalogue is small and histories are long (3,500 items, 20 to 310 engagements of each of
1,024 rows): the ledger's masks, from its columns to its coordinates, against a table of rows and items, filled and
looked up by the columns. All ways find the same coordinates, which is checked. Writes masks.json beside this file.
"""

import argparse
from collections.abc import Callable

import torch
from interleaved import interleaved
from results import Row, ratio, write
from torch import Tensor
from workload import ledger_of, make_batch, power_law, sources

from hatchway import compiled
from hatchway.negatives import matching
from hatchway.negatives.ledger import with_masked
from hatchway.negatives.matching import compiled_join, compiled_pairs, plain_join, plain_pairs
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

CATALOGUE = 10_000_000
SMALL, ROWS = 3_500, 1_024
Join = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
Pairs = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def small_catalogue(ways: dict[str, tuple[Join, Pairs]]) -> dict[str, Callable[[], object]]:
    """Return the ways to mask long histories in a small catalogue, after checking that they agree."""
    batch = make_batch(SMALL, ROWS, 1)
    ledger = ledger_of(batch, sources(SMALL), 0)
    generator = torch_stream(1, "benchmark of masks")
    lengths = torch.randint(20, 311, (ROWS,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    known = power_law(int(offsets[-1]), SMALL, generator)
    logits = torch.zeros(ROWS, len(ledger.items))

    def table() -> Tensor:
        of_rows = torch.zeros(ROWS, SMALL, dtype=torch.bool)
        of_rows[torch.repeat_interleave(torch.arange(ROWS), lengths), known] = True
        of_rows[torch.arange(ROWS), batch.positives] = True
        found = of_rows[:, ledger.items]
        logits.masked_fill_(found, -torch.inf)
        return found

    def masked(way: str) -> Callable[[], Tensor]:
        def call() -> Tensor:
            matching.suits = lambda *_: way == "numba"
            found = with_masked(ledger, engaged_columns(ledger, known, offsets)).masked
            return torch.stack([found.rows, found.columns], 1)

        return call

    made: dict[str, Callable[[], object]] = {way: masked(way) for way in ways}
    # The ledger masks mined columns besides: a copy of what a row has on purpose.
    wanted = {tuple(pair) for pair in table().nonzero().tolist()} | {
        tuple(pair) for pair in torch.stack([ledger.masked.rows, ledger.masked.columns], 1).tolist()
    }
    for way, call in made.items():
        if {tuple(pair) for pair in call().tolist()} != wanted:  # type: ignore[attr-defined]
            raise SystemExit(f"{way}: the coordinates differ")
    return {"dense": table} | made


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

    offsets = torch.arange(len(keys) + 1) * keys.shape[1]
    ways: dict[str, tuple[Join, Pairs]] = {"numba": (compiled_join, compiled_pairs)} if compiled.available() else {}
    ways["without numba"] = plain_join, plain_pairs
    groups: dict[str, dict[str, Callable[[], object]]] = {
        "same item": {"dense": dense_same}
        | {name: lambda join=join: join(items, batch.positives) for name, (join, _) in ways.items()},
        "same item and history": {"dense": dense_history}
        | {name: lambda find=find: find(items, keys.view(-1), offsets) for name, (_, find) in ways.items()},
        "small catalogue, long histories": small_catalogue(ways),
    }
    wanted = dense_history().nonzero()
    for _, find in ways.values():
        if not torch.equal(torch.stack(find(items, keys.view(-1), offsets), 1), wanted):
            raise SystemExit("the coordinates differ")
    seconds = {group: interleaved(variants, rounds) for group, variants in groups.items()}
    rows = []
    for group, times in seconds.items():
        dense = "a table of rows and items" if group.startswith("small") else "the dense comparison"
        for name in ways:
            required = 0.013 if group == "same item and history" and name == "numba" else None
            aim = None if group.startswith("small") else 0.004
            row = Row(f"masks, {group}, {name}", dense, ratio(times, name, "dense"), "at most", required, aim)
            rows.append(row)
    write("masks", rows, seconds)


if __name__ == "__main__":
    main()
