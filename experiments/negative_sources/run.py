"""What each source of negatives costs, how hard and how popular what it draws is, and how much of it is no negative.

Usage: python experiments/negative_sources/run.py RUN [--batches 10] [--seeds 5]

RUN is a finished run whose log has a test part (the recipe's run on Gowalla). With its vectors fixed, every source
draws for the same batches of 4,096 training positives; what it draws is compared with the rows' positives, with the
items' training counts, and with what the rows' buyers are known to like from the held-out test part. Writes
results.json, the table in README.md and figure.svg.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch import Tensor

from hatchway.artefacts.atomic import write_text
from hatchway.data.engagements import Engagements, Part, training_counts
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.popularity import Popularity
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.training.batches import Batch, epoch_batches
from hatchway.training.run_folder import RunFolder

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
BATCH, SHARED, MINED = 4096, 1000, 2
WINDOWS = {"mined, ranks 1–100": (0, 100), "mined, ranks 101–500": (100, 500)}
SOURCES = ("uniform", "in-batch", "popularity^0.75", *WINDOWS)
POPULARITY_BINS = 12


@dataclass
class Tally:
    """What has been counted of one source under one seed.

    Attributes:
        items: [N] draws of each item.
        pairs: (row, negative) pairs seen.
        below: sum of score(negative) − score(positive).
        harder: pairs whose negative scores above the positive.
        engaged: pairs whose item is a training positive of the row's buyer (masked in training).
        hidden: other pairs whose item is a test positive of the row's buyer: false negatives.
        passes: item vectors needed beyond those of the positives.
        gaps: a histogram of score(negative) − score(positive).
    """

    items: Tensor
    pairs: int = 0
    below: float = 0.0
    harder: int = 0
    engaged: int = 0
    hidden: int = 0
    passes: int = 0
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(len(EDGES) - 1))


EDGES = np.linspace(-2, 1, 121)


def liked(engagements: Engagements, part: Part, items: int) -> Tensor:
    """Return the sorted (buyer, item) pairs of the positives of a part, as numbers buyer · N + item."""
    rows = engagements.positives(part)
    pairs = engagements.buyers[rows].astype(np.int64) * items + engagements.items[rows]
    return torch.from_numpy(np.unique(pairs))


def among(pairs: Tensor, wanted: Tensor) -> Tensor:
    """Say which of ``wanted`` stand in sorted ``pairs``."""
    place = torch.searchsorted(pairs, wanted).clamp(max=len(pairs) - 1)
    return pairs[place] == wanted


def drawn_by(
    source: str, batch: Batch, counts: Tensor, query: Tensor, vectors: Tensor, generator: torch.Generator
) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of rows and what the source gives them: [C] for all of the block, or [block, H] of their own."""
    number = len(counts)
    everything = slice(0, len(batch.positives))
    if source == "uniform":
        yield everything, Uniform(number, SHARED).draw(batch.positives, generator)
    elif source == "in-batch":
        yield everything, InBatch(ExactCounts(counts)).draw(batch.positives, generator)
    elif source == "popularity^0.75":
        yield everything, Popularity(counts, SHARED).draw(batch.positives, generator)
    else:
        low, high = WINDOWS[source]
        for start in range(0, len(query), 512):
            block = slice(start, min(start + 512, len(query)))
            ranked = (query[block] @ vectors.T).topk(high, dim=1).indices[:, low:]
            place = torch.rand(ranked.shape, generator=generator).argsort(1)[:, :MINED]
            yield block, ranked.gather(1, place)


def tally(run: RunFolder, batches: int, seed: int) -> dict[str, Tally]:
    """Let every source draw for the same batches."""
    log = run.log()
    engagements, number = log.engagements, len(log.catalogue)
    model = run.load_model(log).eval()
    counts = torch.from_numpy(training_counts(engagements, number))
    vectors = torch.cat([model.item(rows) for rows in torch.arange(number).split(8192)])
    known, hidden = (liked(engagements, part, number) for part in (Part.TRAIN, Part.TEST))
    found = {source: Tally(torch.zeros(number, dtype=torch.int64)) for source in SOURCES}
    stream = epoch_batches(
        engagements,
        engagements.positives(Part.TRAIN),
        batch=BATCH,
        history=model.history_length,
        history_of=model.history_of,
        mask_days=0,
        seed=seed,
        epoch=0,
    )
    for step, batch in zip(range(batches), stream, strict=False):
        query = model.query(batch.contexts)
        of_positive = (query * vectors[batch.positives]).sum(1)
        buyers = torch.from_numpy(batch.contexts.buyers).long()
        for source, entry in found.items():
            generator = torch_stream(seed, source, step)
            needed = [batch.positives]
            for block, items in drawn_by(source, batch, counts, query, vectors, generator):
                needed.append(items.flatten())
                entry.items += torch.bincount(items.flatten(), minlength=number)
                for rows in torch.arange(block.start, block.stop).split(512):
                    mine = items if items.ndim == 1 else items[rows - block.start]
                    scores = (
                        query[rows] @ vectors[mine].T if items.ndim == 1 else (query[rows, None] * vectors[mine]).sum(2)
                    )
                    theirs = mine.expand(len(rows), -1) if items.ndim == 1 else mine
                    stands = theirs != batch.positives[rows, None]
                    gap = (scores - of_positive[rows, None])[stands]
                    pairs = (buyers[rows, None] * number + theirs)[stands]
                    masked = among(known, pairs)
                    entry.pairs += len(gap)
                    entry.below += float(gap.double().sum())
                    entry.harder += int((gap > 0).sum())
                    entry.engaged += int(masked.sum())
                    entry.hidden += int((among(hidden, pairs) & ~masked).sum())
                    entry.gaps += np.histogram(gap.numpy(), EDGES)[0]
            entry.passes += len(torch.cat(needed).unique()) - len(batch.positives.unique())
    return found


def slope(draws: Tensor, counts: Tensor) -> float:
    """Fit ln(draws an item) = slope · ln(count an item) + c over bins of items of like popularity.

    Bins hold equal numbers of items with a count; those in which nothing was drawn are left out.
    """
    order = torch.argsort(counts)
    order = order[counts[order] > 0]
    bins = order.tensor_split(POPULARITY_BINS)
    x = np.array([float(counts[b].double().mean()) for b in bins])
    y = np.array([float(draws[b].double().mean()) for b in bins])
    there = y > 0
    return float(np.polyfit(np.log(x[there]), np.log(y[there]), 1)[0])


def figures(entry: Tally, counts: Tensor, batches: int) -> dict[str, float]:
    """Turn a tally into the figures of the table."""
    order = torch.argsort(counts, descending=True, stable=True)
    share = counts[order].cumsum(0).double() / counts.sum()
    tail = order[share > 2 / 3]
    return {
        "extra_passes_per_batch": entry.passes / batches,
        "score_against_positive": entry.below / entry.pairs,
        "scores_above_positive": entry.harder / entry.pairs,
        "slope_on_popularity": slope(entry.items, counts),
        "share_on_tail": float(entry.items[tail].sum() / entry.items.sum()),
        "known_positive_share": entry.engaged / entry.pairs,
        "false_negative_share": entry.hidden / entry.pairs,
    }


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Lay out the measurements as Markdown: means over the seeds."""
    heads = (
        "source",
        "extra item vectors a batch",
        "score against the positive's",
        "above it",
        "slope of draws on popularity",
        "draws on the tail",
        "masked: known positives",
        "false negatives",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for source, entry in found.items():
        mean = {name: value["mean"] for name, value in entry.items()}
        lines.append(
            f"| {source} | {mean['extra_passes_per_batch']:,.0f} | {mean['score_against_positive']:+.3f} "
            f"| {100 * mean['scores_above_positive']:.2f} % | {mean['slope_on_popularity']:.2f} "
            f"| {100 * mean['share_on_tail']:.0f} % | {100 * mean['known_positive_share']:.3f} % "
            f"| {100 * mean['false_negative_share']:.3f} % |"
        )
    return "\n".join(lines)


def draw_figure(gaps: dict[str, list[float]]) -> None:
    """Draw how far below the positive each source's negatives score."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    colours = ("#4a7c9b", "#b5573c", "#c99a3b", "#5b4b8a", "#3f7d58")
    fig, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    middle = (EDGES[1:] + EDGES[:-1]) / 2
    for (source, heights), colour in zip(gaps.items(), colours, strict=True):
        axis.plot(middle, np.array(heights) / np.sum(heights) / (EDGES[1] - EDGES[0]), color=colour, label=source)
    axis.axvline(0, color="#222222", linewidth=0.8)
    axis.set(
        xlabel="cosine of the negative − cosine of the positive", ylabel="density", xlim=(-1.3, 0.7), ylim=(0, None)
    )
    axis.legend(frameon=False)
    fig.savefig(HERE / "figure.svg", metadata={"Date": None})


def main() -> None:
    """Measure, and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run whose log has a test part")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    run = RunFolder.open(options.run)
    log = run.log()
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    began = time.perf_counter()
    with torch.inference_mode():
        tallies = [tally(run, options.batches, seed) for seed in range(1, options.seeds + 1)]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for source in SOURCES:
        each = [figures(one[source], counts, options.batches) for one in tallies]
        found[source] = {
            name: {
                "mean": float(np.mean([one[name] for one in each])),
                "standard_error": float(np.std([one[name] for one in each], ddof=1) / np.sqrt(len(each))),
            }
            for name in each[0]
        }
    gaps = {source: np.sum([one[source].gaps for one in tallies], axis=0).tolist() for source in SOURCES}
    written = {
        "settings": {"batch": BATCH, "shared": SHARED, "mined": MINED, "batches": options.batches, "edges": 121},
        "seeds": list(range(1, options.seeds + 1)),
        "seconds": round(time.perf_counter() - began, 1),
        "sources": found,
        "gaps": gaps,
    }
    write_text(HERE / "results.json", json.dumps(written, indent=1) + "\n")
    readme = HERE / "README.md"
    text = readme.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    write_text(readme, f"{before}\n{table(found)}\n{after}")
    draw_figure(gaps)


if __name__ == "__main__":
    main()
