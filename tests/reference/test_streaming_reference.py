"""The streaming estimator against Algorithm 3 of Yi et al. written out item by item, and its simulation in small."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.hashing import buckets_of
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.frequency.running import RunningCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.randomness import stream


def published(
    batches: list[np.ndarray], hashed: np.ndarray, buckets: int, alpha: float, initial: float
) -> tuple[np.ndarray, np.ndarray]:
    """Run Algorithm 3 as printed: for every item of every batch, one after the other; return A and B."""
    hashes = len(hashed)
    a, b = np.zeros((hashes, buckets)), np.full((hashes, buckets), initial)
    for step, batch in enumerate(batches, 1):
        for item in batch:
            for h in range(hashes):
                cell = hashed[h, item]
                b[h, cell] = (1 - alpha) * b[h, cell] + alpha * (step - a[h, cell])
                a[h, cell] = step
    return a, b


@pytest.mark.parametrize("hashes", [1, 3])
def test_as_published_without_collisions_it_is_algorithm_3(hashes: int) -> None:
    """Batches without replacement, so many cells that no two items share one: the same numbers."""
    settings = StreamingSettings(
        meaning="unique-per-batch", window=50, buckets=2**20, hashes=hashes, initial=100.0, open_gaps=False
    )
    estimator = StreamingFrequency(settings, 60, 4)
    hashed = buckets_of(torch.arange(60), estimator.state()["salts"], 2**20).numpy()
    assert all(len(set(row)) == 60 for row in hashed)
    weights = np.arange(1, 61.0) ** 2
    draw = stream(1, "published")
    batches = [draw.choice(60, 12, replace=False, p=weights / weights.sum()) for _ in range(300)]
    for batch in batches:
        estimator.update(torch.from_numpy(batch))
    _, b = published(batches, hashed, 2**20, 1 / 50, 100.0)
    seen = np.unique(np.concatenate(batches))
    wanted = 1 / np.max([b[h, hashed[h, seen]] for h in range(hashes)], axis=0)
    assert np.allclose(estimator.chances_in_batch(torch.from_numpy(seen)).numpy(), wanted.clip(max=1.0), rtol=1e-12)


def test_what_the_papers_simulation_shows_holds_in_small() -> None:
    """Batches without replacement from shares that are turned around: more hashes err less at equal cells in all.

    A larger alpha is right again sooner after the turn, and errs more in the end.
    """
    items, batch, turn = 300, 38, 2_500
    share = np.arange(items) ** 2.0
    share /= share.sum()
    estimators = {
        (hashes, window): StreamingFrequency(
            StreamingSettings(meaning="unique-per-batch", window=window, buckets=1_500 // hashes, hashes=hashes,
                              initial=100.0, open_gaps=False), items, 2,
        )
        for hashes, window in ((1, 50), (2, 50), (4, 50), (4, 10), (4, 100))
    }  # fmt: skip
    draw, every = stream(2, "simulation"), torch.arange(items)
    sums: dict[tuple[str, tuple[int, int]], list[float]] = {}
    for step in range(3_100):
        now = share if step < turn else share[::-1]
        with np.errstate(divide="ignore"):
            clocks = draw.standard_exponential(items) / now
        drawn = torch.from_numpy(np.argpartition(clocks, batch)[:batch])
        part = "settled" if 1_500 <= step < turn else "turned" if step >= turn + 100 else ""
        for key, estimator in estimators.items():
            estimator.update(drawn)
            if part and step % 50 == 0:
                truth = -np.expm1(-now * solved(now, batch))
                error = np.abs(estimator.chances_in_batch(every).numpy() - truth).sum() / (2 * batch)
                sums.setdefault((part, key), []).append(float(error))
    error = {key: float(np.mean(values)) for key, values in sums.items()}
    assert error["settled", (4, 50)] < error["settled", (2, 50)] < error["settled", (1, 50)]
    assert error["turned", (4, 10)] < error["turned", (4, 50)] < error["turned", (4, 100)]
    assert error["settled", (4, 10)] > 1.5 * error["settled", (4, 50)]


def solved(share: np.ndarray, batch: int) -> float:
    """Return T with sum(1 - exp(-share T)) = batch, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(-share * middle).sum() < batch else (low, middle)
    return low


def impressions(folder: Path, policy: str, campaign: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the shown items of a campaign in order of time, and the true chance that each had of being shown."""
    rows = pl.read_csv(
        folder / "open-bandit" / policy / campaign / f"{campaign}.csv.gz",
        columns=["timestamp", "item_id", "propensity_score"],
    ).sort("timestamp")
    return torch.from_numpy(rows["item_id"].to_numpy().copy()), torch.from_numpy(
        rows["propensity_score"].to_numpy().copy()
    )


def foretold(frequency: LearnedFrequency, items: torch.Tensor) -> torch.Tensor:
    """Return what was estimated of each shown item before its block of fifty was seen."""
    read = []
    for block in items.split(50):
        read.append(frequency.whole_batch(block, 1))
        frequency.update(block)
    return torch.cat(read)


def estimators(catalogue: int) -> dict[str, LearnedFrequency]:
    """Return one of each kind."""
    return {
        "streaming": StreamingFrequency(StreamingSettings(), catalogue, 1),
        "count-min": CountMin(CountMinSettings(half_life=3_000), catalogue, 1),
        "running": RunningCounts(catalogue),
    }


@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_true_propensities_of_a_uniform_policy_are_found(data_folder: Path, campaign: str) -> None:
    """Open Bandit, random policy: every estimate ends as near its true propensity as sampling lets it."""
    items, propensities = impressions(data_folder, "random", campaign)
    catalogue = int(items.max()) + 1
    for name, frequency in estimators(catalogue).items():
        foretold(frequency, items)
        found = frequency.whole_batch(torch.arange(catalogue), 1)
        truth = propensities[0]
        assert float(found.sum()) == pytest.approx(1, abs=0.03)
        occurrences = {"streaming": min(100, 10_000 / catalogue), "running": 10_000 / catalogue}
        noise = 1 / occurrences.get(name, 2 * 3_000 / math.log(2) * 0.9 / catalogue) ** 0.5
        assert float((found / truth).log().square().mean().sqrt()) < 1.3 * noise


@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_true_propensities_of_a_learning_policy_are_followed(data_folder: Path, campaign: str) -> None:
    """Open Bandit, Thompson sampling, whose propensities move from row to row.

    Summed over an item's impressions 1 / propensity is the number of rows in which it could have been shown, whatever
    the propensities did, so that the harmonic mean of an item's propensities is its chance over the whole time. The
    estimates are nearer the row's own propensity than an even share, by more than half of its divergence, and the
    forgetting ones nearer than those that count everything.
    """
    items, propensities = impressions(data_folder, "bts", campaign)
    catalogue, later = int(items.max()) + 1, slice(2_000, None)
    divergence = {}
    for name, frequency in estimators(catalogue).items():
        estimates = foretold(frequency, items)
        divergence[name] = float((propensities / estimates).log()[later].mean())
    even = float((propensities * catalogue).log()[later].mean())
    assert all(0 < found < even / 2 for found in divergence.values())
    assert max(divergence["streaming"], divergence["count-min"]) < divergence["running"]
    running = RunningCounts(catalogue)
    running.update(items)
    often = torch.bincount(items) > 400
    rows = torch.zeros(catalogue, dtype=torch.float64).index_add(0, items, 1 / propensities)
    harmonic = torch.bincount(items) / rows
    ratio = running.chances(torch.arange(catalogue)) / harmonic
    assert float(ratio[often].log().mean()) == pytest.approx(0, abs=0.1)
