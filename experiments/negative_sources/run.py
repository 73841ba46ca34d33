"""What each source of negatives costs, how hard and how popular what it draws is, and how much of it is no negative.

Usage: python experiments/negative_sources/run.py RUN [--batches 4] [--seeds 5]

RUN is a finished run whose log has a test part: the recipe's on Gowalla, or what movielens.py makes of MovieLens-1M;
which of the two, its store says. With its vectors fixed, every source draws for the same batches of 4,096 training
positives; what it draws is compared with the rows' positives, with the items' training counts, and with what the rows'
buyers are known to like from the held-out test part. Writes the data set's results, its table in README.md and its
figure: results.json and figure.svg for Gowalla, ml-1m.json and ml-1m.svg for MovieLens-1M.
"""

import argparse
import json
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from measuring import EDGES, SETTINGS, figures, tally
from movielens import ORIGIN
from sources import IMPRESSIONS, QUEUE, sources_of

from hatchway.artefacts.atomic import write_text
from hatchway.data.engagements import training_counts
from hatchway.data.log import build_log
from hatchway.training.run_folder import RunFolder

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
FILES = {"lightgcn": ("gowalla", "results.json", "figure.svg"), ORIGIN: ("ml-1m", "ml-1m.json", "ml-1m.svg")}
"""By the origin of the run's store: the name of the table in README.md, the results, the figure."""

HEADS = (
    "source",
    "extra item vectors a batch",
    "score against the positive's",
    "above it",
    "above it, of the unmasked",
    "slope of draws on popularity",
    "draws on the tail",
    "masked: known positives",
    "false negatives",
)
LINES = {
    "uniform": ("#4a7c9b", "-"),
    "in-batch": ("#b5573c", "-"),
    QUEUE: ("#e8b7a6", (0, (2, 2))),
    "popularity^0.75": ("#c99a3b", "-"),
    IMPRESSIONS: ("#222222", "-"),
    "mined, ranks 1–100": ("#5b4b8a", "-"),
    "mined, ranks 101–500": ("#3f7d58", "-"),
}
"""Colour and dashes; the queue's lie upon the in-batch line, which has the same negatives a batch later."""

LEAST_SEEN = 0.03
"""The figure goes as far as some source's density is above this."""


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Lay out the measurements as Markdown: means over the seeds."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for source, entry in found.items():
        mean = {name: value["mean"] for name, value in entry.items()}
        lines.append(
            f"| {source} | {mean['extra_passes_per_batch']:,.0f} | {mean['score_against_positive']:+.3f} "
            f"| {100 * mean['scores_above_positive']:.2f} % | {100 * mean['unmasked_above_positive']:.2f} % "
            f"| {mean['slope_on_popularity']:.2f} "
            f"| {100 * mean['share_on_tail']:.0f} % | {100 * mean['known_positive_share']:.3f} % "
            f"| {100 * mean['false_negative_share']:.3f} % |"
        )
    return "\n".join(lines)


def with_table(page: str, name: str, text: str) -> str:
    """Return the page with the table of a data set put in place of the one that it has."""
    begin, end = f"<!-- table: {name} -->", f"<!-- end of table: {name} -->"
    return f"{page[: page.index(begin) + len(begin)]}\n{text}\n{page[page.index(end) :]}"


def draw_figure(gaps: dict[str, list[float]], path: Path) -> None:
    """Draw how far below the positive each source's negatives score."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    middle, width = (EDGES[1:] + EDGES[:-1]) / 2, EDGES[1] - EDGES[0]
    density = {source: np.array(heights) / np.sum(heights) / width for source, heights in gaps.items()}
    axis.axvline(0, color="#9a9a9a", linewidth=0.8)
    for source, heights in density.items():
        colour, dashes = LINES[source]
        axis.plot(middle, heights, color=colour, linestyle=dashes, label=source)
    worth_seeing = middle[np.max(list(density.values()), axis=0) > LEAST_SEEN]
    axis.set(
        xlabel="score of the negative − score of the positive",
        ylabel="density",
        xlim=(worth_seeing[0], worth_seeing[-1]),
        ylim=(0, None),
    )
    axis.annotate(
        "above the positive →", (0, 1), (4, -2), xycoords=("data", "axes fraction"), textcoords="offset points",
        va="top", color="#6a6a6a",
    )  # fmt: skip
    axis.legend(frameon=False, loc="upper left")
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def main() -> None:
    """Measure, and write the three files of the data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run whose log has a test part")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    run = RunFolder.open(options.run)
    store, record = run.store(), run.record
    if store.manifest.origin not in FILES:
        parser.error(f"the run's store is of {store.manifest.origin!r}; allowed: {', '.join(map(repr, FILES))}")
    name, results, figure = FILES[store.manifest.origin]
    log = build_log(store, record.positives, record.split, record.seed, impressions=True)
    model = run.load_model(log).eval()
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    began = time.perf_counter()
    with torch.inference_mode():
        tallies = [tally(log, model, options.batches, seed) for seed in range(1, options.seeds + 1)]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for source in sources_of(log):
        each = [figures(one[source], counts, options.batches) for one in tallies]
        found[source] = {
            key: {
                "mean": float(np.mean([one[key] for one in each])),
                "standard_error": float(np.std([one[key] for one in each], ddof=1) / np.sqrt(len(each))),
            }
            for key in each[0]
        }
    gaps = {source: np.sum([one[source].gaps for one in tallies], axis=0).tolist() for source in found}
    written = {
        "settings": {**SETTINGS, "batches": options.batches},
        "seeds": list(range(1, options.seeds + 1)),
        "seconds": round(time.perf_counter() - began, 1),
        "sources": found,
        "gaps": gaps,
    }
    write_text(HERE / results, json.dumps(written, indent=1) + "\n")
    readme = HERE / "README.md"
    write_text(readme, with_table(readme.read_text("utf-8"), name, table(found)))
    draw_figure(gaps, HERE / figure)


if __name__ == "__main__":
    main()
