"""What in-batch, uniform and mixed negatives give on Gowalla, with and without the correction, at equal short budgets.

Usage: python experiments/gowalla_sources/run.py GOWALLA_FOLDER [--epochs 5] [--only CELL ...]

Trains one small matrix factorisation a cell (same seed, batches, learning rate and epochs; one CPU thread), evaluates
it on the given test part, and writes results.json beside this file after every cell, so that a stopped run goes on
where it was. The figure and the table of README.md are made from results.json by table.py.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import torch

from hatchway.artefacts.atomic import write_text
from hatchway.config import RunSettings
from hatchway.data.importers.lightgcn import import_lightgcn
from hatchway.job import evaluate_run, train_run
from hatchway.training.memory import keep_freed_memory

HERE = Path(__file__).parent
SOURCES: dict[str, dict[str, object]] = {
    "in-batch": {"in_batch": True, "uniform": 0},
    "uniform": {"in_batch": False, "uniform": 5096},
    "mixed": {"in_batch": True, "uniform": 1000},
}
CORRECTIONS: dict[str, dict[str, object]] = {
    "alpha 0": {"alpha": 0.0},
    "uncorrected": {"alpha": 1.0, "positive": "uncorrected"},
    "count": {"alpha": 1.0, "positive": "count"},
    "yi": {"alpha": 1.0, "positive": "yi"},
}
METRICS = ("recall@20", "ndcg@20")


def settings_of(cell: str, epochs: int) -> RunSettings:
    """Return the settings of one cell; nothing here was tuned on the test part."""
    source, correction = cell.split(" / ")
    return RunSettings.parse(
        {
            "seed": 1,
            "split": {"protocol": "given"},
            "model": {"kind": "factorisation", "dimension": 64},
            "negatives": SOURCES[source] | CORRECTIONS[correction],
            "training": {
                "epochs": epochs,
                "batch": 4096,
                "temperature": 0.1,
                "table_rate": 0.1,
                "schedule": "constant",
                "select": "last",
            },
            "evaluation": {"k": [20], "resamples": 200},
        }
    )


def main() -> None:
    """Run the cells that are not in results.json yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gowalla", type=Path, help="folder with train.txt and test.txt of the LightGCN split")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=None, help="cells to run, e.g. 'mixed / count'")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    cells = [f"{source} / {correction}" for source in SOURCES for correction in CORRECTIONS]
    with tempfile.TemporaryDirectory() as scratch:
        store = import_lightgcn(options.gowalla, Path(scratch) / "store")
        for cell in options.only or cells:
            found = json.loads(options.out.read_text()) if options.out.exists() else {}
            if cell in found:
                continue
            settings = settings_of(cell, options.epochs)
            start, cpu = time.perf_counter(), time.process_time()
            run = train_run(store, Path(scratch) / cell.replace(" / ", "-"), settings)
            took, cpu = time.perf_counter() - start, time.process_time() - cpu
            evaluation = evaluate_run(run)
            found = json.loads(options.out.read_text()) if options.out.exists() else {}
            found[cell] = {
                "metrics": {name: evaluation.metrics[name].model_dump() for name in METRICS},
                "slices": {
                    name: measured.metrics["recall@20"].model_dump()
                    for name, measured in evaluation.slices["popularity"].items()
                    if measured.cases
                },
                "training_loss": run.model_record().loss,
                "seconds": round(took, 1),
                "cpu_seconds": round(cpu, 1),
                "settings": settings.model_dump(mode="json"),
            }
            write_text(options.out, json.dumps({name: found[name] for name in cells if name in found}, indent=1) + "\n")
            print(
                cell,
                found[cell]["metrics"]["recall@20"]["value"],
                f"{took:.0f} s on {os.cpu_count()} cores",
                flush=True,
            )


if __name__ == "__main__":
    main()
