"""The simulation of Yi et al. (2019): how well inclusion probabilities are learned before and after they change.

Usage: python experiments/streaming_frequency/run.py [--seeds 10]

A thousand items; batches of 128 drawn without replacement with chances proportional to i^2, from step 10,000 on to
(999 - i)^2; 5,000 cells in all, shared between one, two or four hashes; A = 0 and B = 100 in every cell at the start.
The error is sum |p_hat - p| / (2 * 128), where p is an item's chance of being in a batch. Writes results.json beside
this file: every 100 steps the mean over seeds with a 95 % interval. figure.svg is drawn by figure.py.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from scipy import optimize, stats

from hatchway.artefacts.atomic import write_text
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.randomness import stream

HERE = Path(__file__).parent
ITEMS, BATCH, CELLS, STEPS, SWITCH, EVERY = 1_000, 128, 5_000, 20_000, 10_000, 100


def chances(step: int) -> np.ndarray:
    """Return the chances per draw at a step, [1000]."""
    row = np.arange(ITEMS, dtype=np.float64)
    weights = row**2 if step < SWITCH else (ITEMS - 1 - row) ** 2
    return weights / weights.sum()


def in_a_batch(draw: np.ndarray) -> np.ndarray:
    """Return each item's chance to be among 128 draws without replacement.

    Draws without replacement take items in the order of exponential clocks with rates ``draw``; 128 clocks have rung by
    a time T that hardly varies, so that the chance is 1 - exp(-rate T), with T where these sum to 128. ``check`` holds
    it against simulated batches.
    """
    time = optimize.brentq(lambda t: (-np.expm1(-draw * t)).sum() - BATCH, 0, 1e7)
    return -np.expm1(-draw * time)


def batch_of(rng: np.random.Generator, draw: np.ndarray) -> np.ndarray:
    """Draw 128 items without replacement."""
    with np.errstate(divide="ignore"):
        clocks = rng.standard_exponential(ITEMS) / draw
    return np.argpartition(clocks, BATCH)[:BATCH]


def check() -> float:
    """Return the error of ``in_a_batch`` against 50,000 simulated batches, in the experiment's own measure."""
    rng, draw = stream(0, "check"), chances(0)
    counts = np.zeros(ITEMS)
    for _ in range(50_000):
        counts[batch_of(rng, draw)] += 1
    noise = np.sqrt(counts / 50_000 * (1 - counts / 50_000) / 50_000 * 2 / np.pi).sum() / (2 * BATCH)
    return float(np.abs(counts / 50_000 - in_a_batch(draw)).sum() / (2 * BATCH) - noise)


def variants() -> dict[str, StreamingSettings]:
    """Return the estimators that are compared; alpha is 1 / window."""
    made = {}
    for hashes in (1, 2, 4):
        for window in (20, 50, 100, 200) if hashes == 4 else (100,):
            name = f"as published / {hashes} hashes / alpha {1 / window:g}"
            made[name] = StreamingSettings(
                meaning="unique-per-batch", window=window, buckets=CELLS // hashes, hashes=hashes, initial=100.0,
                open_gaps=False,
            )  # fmt: skip
        made[f"even start, open gaps / {hashes} hashes / alpha 0.01"] = StreamingSettings(
            meaning="unique-per-batch", window=100, buckets=CELLS // hashes, hashes=hashes
        )
    return made


def errors_of(seed: int) -> dict[str, list[float]]:
    """Run every estimator over the same batches and return its error every hundred steps."""
    rng = stream(seed, "batches")
    estimators = {name: StreamingFrequency(settings, ITEMS, seed) for name, settings in variants().items()}
    truth = {at: torch.from_numpy(in_a_batch(chances(at))) for at in (0, SWITCH)}
    items = torch.arange(ITEMS)
    found: dict[str, list[float]] = {name: [] for name in estimators}
    for step in range(STEPS):
        draw = chances(step) if step in (0, SWITCH) else draw  # noqa: F821  the first step sets it
        batch = torch.from_numpy(batch_of(rng, draw))
        for name, estimator in estimators.items():
            estimator.update(batch)
            if (step + 1) % EVERY == 0:
                error = (estimator.chances_in_batch(items) - truth[0 if step < SWITCH else SWITCH]).abs().sum()
                found[name].append(float(error) / (2 * BATCH))
    return found


def main() -> None:
    """Run all seeds and write their means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    seeds = list(range(1, options.seeds + 1))
    runs = []
    for seed in seeds:
        runs.append(errors_of(seed))
        print(f"seed {seed}: " + ", ".join(f"{name} {curve[99]:.4f}" for name, curve in runs[-1].items()), flush=True)
    half = float(stats.t.ppf(0.975, len(seeds) - 1)) / np.sqrt(len(seeds))
    result = {
        "seeds": seeds,
        "steps": list(range(EVERY, STEPS + 1, EVERY)),
        "error_of_the_truth": round(check(), 5),
        "variants": {},
    }
    for name in runs[0]:
        curves = np.array([run[name] for run in runs])
        settled = curves[:, 80:100]
        result["variants"][name] = {
            "mean": np.round(curves.mean(0), 5).tolist(),
            "interval": np.round(half * curves.std(0, ddof=1), 5).tolist(),
            "settled": [round(float(v), 5) for v in (settled.mean(), half * settled.mean(1).std(ddof=1))],
            "after_500_steps_of_the_switch": round(float(curves[:, 104].mean()), 5),
            "settled_again": round(float(curves[:, 180:].mean()), 5),
        }
    write_text(HERE / "results.json", json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
