"""One run of the Gowalla recipe with settings changed as asked, measured on a held-out part or on the test part.

Usage: python experiments/gowalla_recipe/run.py STORE [--set training.epochs=8 ...] [--test] [--threads 1]

Without --test, the last fifth of each buyer's training positives is held out and the model is ranked on it every epoch:
that is where settings are compared. With --test, the recipe trains on the whole training part and is evaluated once.
The run is appended to results.json beside this file.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from hatchway.artefacts.atomic import write_text
from hatchway.config import load_recipe
from hatchway.job import evaluate_run, train_run
from hatchway.training.memory import keep_freed_memory

HERE = Path(__file__).parent
HELD_OUT = [
    "split.validation_fraction=0.2",
    "split.validation_rows=last",
    "training.validate_epochs=1",
    "training.validate_metric=recall",
]


def main() -> None:
    """Train, measure, and append."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="a store made by: hatchway import lightgcn GOWALLA STORE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="changes")
    parser.add_argument("--test", action="store_true", help="train on everything and evaluate on the test part")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    recipe = HERE.parent.parent / "recipes" / "gowalla.toml"
    settings = load_recipe(recipe, [*([] if options.test else HELD_OUT), *options.changes])
    with tempfile.TemporaryDirectory() as scratch:
        start = time.perf_counter()
        run = train_run(options.store, Path(scratch) / "run", settings)
        minutes = round((time.perf_counter() - start) / 60, 1)
        entry = {"settings": settings.model_dump(mode="json"), "minutes": minutes, "threads": options.threads}
        kind = "test_runs" if options.test else "validation_runs"
        if options.test:
            evaluation = evaluate_run(run)
            entry["metrics"] = {name: found.model_dump() for name, found in evaluation.metrics.items()}
            print({name: round(found.value, 4) for name, found in evaluation.metrics.items()})
        else:
            entry["validations"] = list(run.model_record().validation)
            print(*entry["validations"], sep="\n")
    results = HERE / "results.json"
    found = json.loads(results.read_text())
    found[kind].append(entry)
    write_text(results, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
