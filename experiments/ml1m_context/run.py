"""How far the context tower gets on MovieLens-1M, leave-one-out, ranked over the whole catalogue.

Usage: python experiments/ml1m_context/run.py SEQUENCES [--seeds 1] [--threads 1]

SEQUENCES is the file of SASRec's edition ("user item" a line, oldest first; gzip is fine). Trains recipes/ml-1m.toml,
keeps the weights that are best on the validation items, evaluates once on the test items, and writes results.json after
every seed, so that a stopped run goes on where it was.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from hatchway.artefacts.atomic import write_text
from hatchway.config import load_recipe
from hatchway.data.importers.sequences import import_sequences
from hatchway.job import evaluate_run, train_run
from hatchway.training.memory import keep_freed_memory

HERE = Path(__file__).parent
METRICS = ("hit_rate@10", "ndcg@10", "hit_rate@50", "ndcg@50")


def main() -> None:
    """Run the seeds that are not in results.json yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", type=Path, help="the file ml-1m_sasrec.txt, plain or gzip")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--recipe", type=Path, default=HERE.parent.parent / "recipes" / "ml-1m.toml")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    recipe = load_recipe(options.recipe)
    with tempfile.TemporaryDirectory() as scratch:
        store = import_sequences(options.sequences, Path(scratch) / "store")
        for seed in range(1, options.seeds + 1):
            found = json.loads(options.out.read_text()) if options.out.exists() else {}
            if str(seed) in found:
                continue
            settings = recipe.model_copy(update={"seed": seed})
            start = time.perf_counter()
            run = train_run(store, Path(scratch) / f"seed-{seed}", settings)
            minutes = (time.perf_counter() - start) / 60
            evaluation = evaluate_run(run)
            record = run.model_record()
            found[str(seed)] = {
                "metrics": {name: evaluation.metrics[name].model_dump() for name in METRICS},
                "validations": list(record.validation),
                "chosen_step": record.step,
                "minutes": round(minutes, 1),
                "threads": options.threads,
                "settings": settings.model_dump(mode="json"),
            }
            write_text(options.out, json.dumps(found, indent=1) + "\n")
            print(seed, {name: round(evaluation.metrics[name].value, 4) for name in METRICS}, flush=True)


if __name__ == "__main__":
    main()
