"""Updating and reading the streaming frequency estimator: compiled loops against plain NumPy.

Usage: python benchmarks/frequency.py [--rounds 30]

Every occurrence counts; batches of 4,096 positives from a million items by Zipf's law (0.8); 2^22 buckets a hash, one
hash and five. All variants keep the same estimator and give the same numbers, which is checked. In a round each variant
takes in the next fifty batches and reads the 4,096 estimates of each; rounds of the variants are interleaved. So it is
the rate of a stream that is measured: the first batch after another variant finds nothing in the caches, and takes the
compiled loops three times as long. ``--batches`` takes in fewer. Writes frequency.json beside this file.
``--one-by-one`` adds NumPy from occurrence to occurrence, as the algorithm is printed.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np
import torch
from interleaved import interleaved
from results import Row, ratio, write

from hatchway.frequency.hashing import FIRST_FACTOR, SECOND_FACTOR
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.randomness import stream

ITEMS, BATCH, BUCKETS, WINDOW = 1_000_000, 4_096, 2**22, 100
REQUIRED = {1: 8.0, 5: 5.0}


class PlainNumpy:
    """The same estimator in NumPy alone: A, the sum S and the votes W of each hash in arrays of their own."""

    def __init__(self, salts: np.ndarray) -> None:
        self.salts = salts.view(np.uint64)
        # Filled, so that no page of memory is touched for the first time while the clock runs.
        self.last, self.sums, self.votes = (np.full((len(salts), BUCKETS), 0.0) for _ in range(3))
        self.clock = 0

    def _buckets(self, items: np.ndarray, salt: np.uint64) -> np.ndarray:
        z = items.view(np.uint64) + salt
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
        z ^= z >> np.uint64(31)
        return (((z >> np.uint64(32)) * np.uint64(BUCKETS)) >> np.uint64(32)).astype(np.int64)

    def update(self, items: np.ndarray) -> None:
        """Take in a batch, all copies of a bucket together."""
        self.clock += len(items)
        for salt, last, sums, votes in zip(self.salts, self.last, self.sums, self.votes, strict=True):
            at, copies = np.unique(self._buckets(items, salt), return_counts=True)
            cast = votes[at]
            sums[at] = sums[at] * ((WINDOW - 1) / np.maximum(cast, WINDOW - 1)) + (self.clock - last[at])
            votes[at] = np.minimum(cast, WINDOW - 1) + copies
            last[at] = self.clock

    def update_one_by_one(self, items: np.ndarray) -> None:
        """Take in a batch, one occurrence after the other."""
        self.clock += len(items)
        for salt, last, sums, votes in zip(self.salts, self.last, self.sums, self.votes, strict=True):
            for at in self._buckets(items, salt):
                if last[at] < self.clock:
                    if votes[at] > WINDOW - 1:
                        sums[at] *= (WINDOW - 1) / votes[at]
                        votes[at] = WINDOW - 1
                    sums[at] += self.clock - last[at]
                    last[at] = self.clock
                votes[at] += 1

    def chances(self, items: np.ndarray) -> np.ndarray:
        """Read the estimates; all items have been seen."""
        found = np.full(len(items), np.inf)
        for salt, last, sums, votes in zip(self.salts, self.last, self.sums, self.votes, strict=True):
            at = self._buckets(items, salt)
            np.minimum(found, votes[at] / (sums[at] + (self.clock - last[at])), out=found)
        return found


def batches() -> list[torch.Tensor]:
    """Return the batches, which are taken in again and again."""
    shares = 1 / np.arange(1, ITEMS + 1) ** 0.8
    edges = np.cumsum(shares / shares.sum())
    draw = stream(1, "frequency benchmark")
    return [torch.from_numpy(np.searchsorted(edges, draw.random(BATCH)).clip(max=ITEMS - 1)) for _ in range(200)]


def variants(hashes: int, *, one_by_one: bool) -> dict[str, Callable[[], object]]:
    """Return the variants; each call takes in one batch and reads it."""
    settings = StreamingSettings(buckets=BUCKETS, hashes=hashes, window=WINDOW)
    quick, fused, plain = (StreamingFrequency(settings, ITEMS, 1, use_compiled=flag) for flag in (True, True, False))
    salts = quick.state()["salts"].numpy()
    arrays = PlainNumpy(salts)
    through = batches()

    def pairs(update: Callable[..., object], read: Callable[..., object]) -> Callable[[], object]:
        turn: Iterator[torch.Tensor] = cycle(through)

        def both() -> object:
            batch = next(turn)
            update(batch)
            return read(batch)

        return both

    def numpy_(call: Callable[[np.ndarray], object]) -> Callable[[torch.Tensor], object]:
        return lambda batch: call(batch.numpy())

    turn = cycle(through)
    made: dict[str, Callable[[], object]] = {
        "compiled": pairs(quick.update, quick.chances),
        "compiled, one pass": lambda: fused.observe(next(turn)),
        "plain torch": pairs(plain.update, plain.chances),
        "numpy": pairs(numpy_(arrays.update), numpy_(arrays.chances)),
    }
    if one_by_one:
        single = PlainNumpy(salts)
        made["numpy, one by one"] = pairs(numpy_(single.update_one_by_one), numpy_(single.chances))
    return made


def in_a_row(call: Callable[[], object], batches: int) -> Callable[[], object]:
    """Return a call that takes in some batches."""

    def some() -> None:
        for _ in range(batches):
            call()

    return some


def main() -> None:
    """Measure one hash and five."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--batches", type=int, default=50, help="batches in a row of one variant")
    parser.add_argument("--one-by-one", action="store_true", help="also measure NumPy from occurrence to occurrence")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, times = [], {}
    for hashes, required in REQUIRED.items():
        calls = variants(hashes, one_by_one=options.one_by_one)
        for _ in range(5):  # compiles, touches the memory, and shows that all say the same
            answers = {name: np.asarray(call()) for name, call in calls.items()}
            for name, answer in answers.items():
                assert np.allclose(answer, answers["numpy"], rtol=1e-12), name  # noqa: S101
        seconds = interleaved({name: in_a_row(call, options.batches) for name, call in calls.items()}, options.rounds)
        group = f"{hashes} {'hash' if hashes == 1 else 'hashes'}"
        times[group] = seconds
        for ours, least in (("compiled, one pass", required), ("compiled", None), ("plain torch", None)):
            path = f"NumPy, update and read of the estimated frequency, {group}"
            rows.append(Row(path, f"ours, {ours}", ratio(seconds, "numpy", ours), "at least", least))
    write("frequency", rows, times)


if __name__ == "__main__":
    main()
