"""Does it matter in which order a run has few and many negatives? Schedules of K at the same mean number of draws.

Usage: python experiments/schedule/run.py SEQUENCES [--seeds 2] [--threads 1]

SEQUENCES is the file of SASRec's edition of MovieLens-1M ("user item" a line, oldest first; gzip is fine). Every row
draws K uniform negatives of its own and has no others. ``fixed`` has K = 10.5 throughout; ``increase`` goes from 1 to
20, ``decrease`` from 20 to 1, ``adaptive`` from 1 to 20 in the first tenth of the steps and back to 1: all have 10.5 on
average. Without the correction (alpha 0, as in the paper of adaptive negative sampling) and with it (alpha 1). The
weights at the end are evaluated on the test items, over the whole catalogue. results.json is written after every run,
so that a stopped script goes on where it was; then the table in README.md.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch

from hatchway.artefacts.atomic import write_text
from hatchway.config import load_recipe
from hatchway.data.importers.sequences import import_sequences
from hatchway.how_many.schedule import ScheduleSettings, Shape
from hatchway.job import evaluate_run, train_run
from hatchway.negatives.settings import NegativesSettings
from hatchway.training.memory import keep_freed_memory

HERE = Path(__file__).parent
MOST, MEAN = 20.0, 10.5
SHAPES: tuple[Shape, ...] = ("fixed", "increase", "decrease", "adaptive")
METRICS = ("hit_rate@10", "ndcg@10")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def negatives(shape: Shape, alpha: float) -> NegativesSettings:
    """Return the settings of one variant."""
    top = MEAN if shape == "fixed" else MOST
    return NegativesSettings(
        in_batch=False,
        uniform=0,
        per_row=top,
        alpha=alpha,
        schedule=ScheduleSettings(shape=shape, k=top),
    )


def table(found: dict[str, dict[str, float]]) -> str:
    """Lay out means over the seeds, and the differences from ``fixed`` seed by seed with their standard errors."""
    lines = [
        "| alpha | schedule | HR@10 | NDCG@10 | HR@10 against fixed | NDCG@10 against fixed |",
        "|---" * 6 + "|",
    ]
    for alpha in ("0", "1"):
        seeds = [name.split()[2] for name in found if name.startswith(f"{alpha} adaptive ")]
        for shape in SHAPES:
            cells = [alpha, shape]
            runs = [found[f"{alpha} {shape} {seed}"] for seed in seeds]
            cells += [f"{statistics.mean(run[metric] for run in runs):.4f}" for metric in METRICS]
            for metric in METRICS:
                gaps = [
                    found[f"{alpha} {shape} {seed}"][metric] - found[f"{alpha} fixed {seed}"][metric] for seed in seeds
                ]
                error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
                cells.append("" if shape == "fixed" else f"{statistics.mean(gaps):+.4f} ± {error:.4f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is not in results.json yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", type=Path, help="the file ml-1m_sasrec.txt, plain or gzip")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    recipe = load_recipe(HERE.parent.parent / "recipes" / "ml-1m.toml")
    context = recipe.model.context.model_copy(update={"history": 20, "hidden": 64})
    model = recipe.model.model_copy(update={"dimension": 32, "context": context})
    training = recipe.training.model_copy(
        update={"epochs": options.epochs, "batch": 4096, "validate_epochs": 0, "select": "last"}
    )
    found: dict[str, dict[str, float]] = json.loads(options.out.read_text()) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        store = import_sequences(options.sequences, Path(scratch) / "store")
        for seed in range(1, options.seeds + 1):
            for alpha in (0, 1):
                for shape in SHAPES:
                    name = f"{alpha} {shape} {seed}"
                    if name in found:
                        continue
                    changed = {"seed": seed, "model": model, "training": training}
                    changed |= {"negatives": negatives(shape, alpha)}
                    start = time.process_time()
                    run = train_run(store, Path(scratch) / name.replace(" ", "-"), recipe.model_copy(update=changed))
                    spent = time.process_time() - start
                    evaluation = evaluate_run(run)
                    found[name] = {metric: evaluation.metrics[metric].value for metric in METRICS}
                    found[name]["processor_seconds"] = round(spent, 1)
                    write_text(options.out, json.dumps(found, indent=1) + "\n")
                    print(name, found[name], flush=True)
    page = HERE / "README.md"
    if options.out == HERE / "results.json" and page.exists():
        before, _, rest = page.read_text("utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        write_text(page, f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}")


if __name__ == "__main__":
    main()
