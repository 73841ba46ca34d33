"""The reference workload in other libraries, each in an environment of its own (see ``install.sh``).

Usage: python benchmarks/peers/run.py FOLDER [--turns 3] [--rounds 15]

FOLDER holds the environments. Processes take turns: ours, a peer, ours, the same peer, and so on; every process warms
up, takes the median of its rounds, and ends. A ratio is that of the medians over a peer's turns. Writes peers.json
beside the other results. A peer that is not installed is left out and named.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from results import Row, write  # noqa: E402
from workload import MINED, TEMPERATURE, UNIFORM, WIDTH, ledger_of, make_batch, sources, vectors  # noqa: E402

B, CATALOGUE = 4_096, 1_000_000

# Peer: environment, script and its argument, what it does, the bound and the aim for ours over it.
PEERS = (
    (
        "tensorflow-recommenders",
        "tfrs_loss.py",
        "xla",
        "tensorflow-recommenders' retrieval task, XLA (no own columns)",
        0.80,
        0.40,
    ),
    (
        "tensorflow-recommenders",
        "tfrs_loss.py",
        "graph",
        "tensorflow-recommenders' retrieval task, tf.function (no own columns)",
        None,
        None,
    ),
    (
        "sentence-transformers",
        "sentence_transformers_loss.py",
        "mnrl",
        "sentence-transformers' MultipleNegativesRankingLoss (no masks, no correction, no own columns)",
        None,
        None,
    ),
    (
        "implicit",
        "implicit_bpr.py",
        "bpr",
        "implicit's BPR, the same (one negative a positive, no towers)",
        None,
        None,
    ),
)


def measured(python: Path | str, script: str, argument: str, arrays: Path, rounds: int) -> float:
    """Run one process and return its median, in seconds."""
    said = subprocess.run(
        [str(python), str(HERE / script), str(arrays), argument, str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    return float(json.loads(said.stdout.splitlines()[-1])["seconds"])


def main() -> None:
    """Measure every peer that is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where install.sh put the environments")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rows: list[Row] = []
    seconds: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        arrays = Path(name) / "workload.npz"
        ledger = ledger_of(make_batch(CATALOGUE, B, 1), sources(CATALOGUE), 0)
        np.savez(
            arrays,
            query=vectors(B, 1).numpy(),
            items=vectors(B + UNIFORM, 2).numpy(),
            own=vectors(2 * B, 3).view(B, 2, WIDTH).numpy(),
            ids=ledger.items.numpy(),
            log_count=ledger.log_count.numpy(),
            temperature=TEMPERATURE,
        )
        for environment, script, argument, about, required, aim in PEERS:
            python = options.folder / environment / "bin" / "python"
            if not (options.folder / environment / ".installed").exists():
                print(f"{environment}: not installed in {options.folder}; left out")
                continue
            times: dict[str, list[float]] = {"ours": [], "peer": []}
            ours = "step" if script == "implicit_bpr.py" else "loss"
            for _ in range(options.turns):
                times["ours"].append(measured(sys.executable, "hatchway_loss.py", ours, arrays, options.rounds))
                times["peer"].append(measured(python, script, argument, arrays, options.rounds))
            value = statistics.median(times["ours"]) / statistics.median(times["peer"])
            path = "loss, float32, same-item masks, own columns"
            if ours == "step":  # another number of negatives: compared is the time of one
                path = "whole step, N = 1 million, per positive and negative"
                value /= B - 1 + UNIFORM + MINED
            rows.append(Row(path, about, float(f"{value:.4g}"), "at most", required, aim))
            seconds[f"{environment}, {argument}"] = times
    write("peers", rows, seconds)


if __name__ == "__main__":
    main()
