"""Draws that follow popularity^.75: 1,000 a call from 20 million items.

Usage: python benchmarks/draws.py [--rounds 60] [--items 20000000]

Ten calls a turn, against numpy.searchsorted in cumulative chances of the same items, and torch.multinomial at its
largest number of categories, 2^24. Writes draws.json beside this file.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from interleaved import interleaved
from results import Row, ratio, write

from hatchway.negatives.popularity import PopularityDistribution
from hatchway.randomness import stream, torch_stream

DRAWS, CALLS = 1_000, 10


def calls(draw: Callable[[], object]) -> Callable[[], None]:
    """Return ten calls of 1,000 draws, so that what is timed is the draws and not how cold the machine is."""

    def turn() -> None:
        for _ in range(CALLS):
            draw()

    return turn


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--items", type=int, default=20_000_000)
    options = parser.parse_args()
    random = stream(1, "benchmark draws")
    counts = (1e6 * np.arange(1.0, options.items + 1) ** -0.8).astype(np.int64) + 1
    random.shuffle(counts)
    edges = np.cumsum(counts**0.75)
    edges /= edges[-1]
    most = min(options.items, 2**24)
    chances = torch.from_numpy(counts[:most] ** 0.75).float()
    distribution = PopularityDistribution(torch.from_numpy(counts))
    generator = torch_stream(1, "benchmark draws")
    distribution.sample(1, generator)
    begin = time.perf_counter()
    del distribution.__dict__["_table"]
    distribution.sample(1, generator)
    built = time.perf_counter() - begin
    seconds = {
        "ten times 1,000 draws": interleaved(
            {
                "alias table": calls(lambda: distribution.sample(DRAWS, generator)),
                "numpy.searchsorted": calls(lambda: np.searchsorted(edges, random.random(DRAWS))),
            },
            options.rounds,
        ),
        "ten times 1,000 draws, against multinomial": interleaved(
            {
                "alias table": calls(lambda: distribution.sample(DRAWS, generator)),
                "torch.multinomial, 2^24 items": calls(
                    lambda: torch.multinomial(chances, DRAWS, replacement=True, generator=generator)
                ),
            },
            max(options.rounds // 10, 3),
        ),
        "building the alias table": {"alias table": [built]},
    }
    rows = [
        Row(
            f"{other}, popularity^.75, N = {number:,}, 1,000 draws",
            "the alias table",
            ratio(seconds[group], other, "alias table"),
            "at least",
            bound,
        )
        for other, number, group, bound in (
            ("numpy.searchsorted", options.items, "ten times 1,000 draws", 15),
            ("torch.multinomial, 2^24 items", most, "ten times 1,000 draws, against multinomial", 800),
        )
    ]
    write("draws", rows, seconds)


if __name__ == "__main__":
    main()
