"""Is a sampled softmax thousands of times cheaper than the full one, and close enough?

Usage: python experiments/sampled_against_full/run.py [--short] [--work FOLDER]

Cost: the loss of one step, forward and backward, in full (``hatchway.losses.full_softmax``, tile by tile) and sampled
(draws, ledger, masks and ``sampled_softmax``), with the vectors given, at catalogues of 10,000 to 1 million. Once with
the text's batch of 4,096 rows and 1,000 uniform draws, once with 512 rows and 500. CPU seconds of one thread; both are
taken in turns, a figure is the ratio of the medians, and the five seeds are five repetitions. Beside it stands what is
counted: scores, N items for a row in full and batch + uniform in the sample; and multiply-adds, four products of
B · N · 64 in full, where the tiles are computed again on the way back, and three of B · (B + U) · 64 in the sample.

Closeness: the same recipe trained in full and sampled (512 in-batch and 500 uniform columns, corrected), on the same
markets, with the same steps, rates and masks. In full, everything that was on offer stands in every row as one column
with a count of 1, which makes the package's loss the exact softmax. Markets of both
sizes have five seeds; those of 50,000 have a third of the epochs, since each full training of them takes minutes.
"""

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from trial_figures import COLOURS, plt  # noqa: E402
from trials import (  # noqa: E402
    Cells,
    Claim,
    Condition,
    Market,
    Recipe,
    Scale,
    difference,
    level,
    mixed,
    over_seeds,
    try_claim,
)

from hatchway.artefacts.atomic import write_text  # noqa: E402
from hatchway.data.living import living_in_training  # noqa: E402
from hatchway.data.log import Log  # noqa: E402
from hatchway.frequency.given import GivenFrequency  # noqa: E402
from hatchway.job import train_run  # noqa: E402
from hatchway.losses.full_softmax import full_softmax  # noqa: E402
from hatchway.losses.sampled_softmax import sampled_softmax  # noqa: E402
from hatchway.negatives.in_batch import InBatch  # noqa: E402
from hatchway.negatives.ledger import draw_ledger  # noqa: E402
from hatchway.negatives.settings import NegativesSettings  # noqa: E402
from hatchway.negatives.sources import Source  # noqa: E402
from hatchway.negatives.uniform import Uniform  # noqa: E402
from hatchway.randomness import torch_stream  # noqa: E402
from hatchway.screening.screen import Screen  # noqa: E402
from hatchway.training import loop  # noqa: E402
from hatchway.training.run_folder import RunFolder  # noqa: E402
from hatchway.training.step import Negatives  # noqa: E402

BATCHES, WIDTH, TEMPERATURE = ((4_096, 1_000), (512, 500)), 64, 0.1
CATALOGUES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
SHORT_CATALOGUES = (1_000, 3_162)
LARGE, LARGE_SEEDS, FEWER_EPOCHS = 5, 5, 3
"""The larger market has five times the listings, so many seeds, and a third of the epochs."""


@dataclass(frozen=True)
class Everything:
    """A source that gives every item that was on offer, once: n = 1 for each, and the softmax is the exact one.

    Attributes:
        living: [N] bool.
    """

    living: Tensor
    source: Source = Source.UNIFORM

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return all of it."""
        return torch.nonzero(self.living)[:, 0].to(positives.device)

    def expected_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """One of each that was on offer."""
        return self.living[items].double()

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """One of each."""
        return self.expected_others(items, batch)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:
        """One of each."""
        return self.expected_others(items, batch)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """What was on offer is never absent."""
        return torch.where(self.living[items], -torch.inf, 0.0).double()

    def log_absent_on_average(self, items: Tensor, batch: int) -> Tensor:
        """What was on offer is never absent."""
        return self.log_absent_others(items, batch)


def in_full(
    settings: NegativesSettings, log: Log, *, seed: int, steps: int, screen: Screen | None = None, **_: Any
) -> Negatives:
    """Return negatives of everything, in the place of :func:`hatchway.training.sources.negatives_of`."""
    living = living_in_training(log)
    everything = torch.ones(len(log.catalogue), dtype=torch.bool) if living is None else torch.from_numpy(living)
    return Negatives(settings, seed, [Everything(everything)], steps=steps, screen=screen or Screen())


class SampledMarket(Market):
    """A market that notes the CPU seconds of a training."""

    def run(self, recipe: Recipe) -> RunFolder:
        """Return the run of a recipe, whose training this process does from its beginning to its end."""
        begin = time.process_time()
        run = self.trained(recipe)
        write_text(self.noted, json.dumps({"cpu_seconds": time.process_time() - begin}) + "\n")
        return run

    def trained(self, recipe: Recipe) -> RunFolder:
        """Train."""
        return super().run(recipe)

    @property
    def noted(self) -> Path:
        """The file with the seconds; not there where another script had done the training before."""
        return self.folder / f"cpu-{type(self).__name__}-{self.scale.epochs}.json"

    def cell(self, recipe: Recipe) -> dict[str, float]:
        """Return what was measured, with the seconds where they are known."""
        found = self.measures(recipe)
        return found | (json.loads(self.noted.read_text()) if self.noted.exists() else {})


class FullMarket(SampledMarket):
    """A market whose recipes are trained against the whole catalogue."""

    def trained(self, recipe: Recipe) -> RunFolder:
        """Train."""
        settings = recipe.settings(self.scale, self.seed)
        with mock.patch.object(loop, "negatives_of", in_full):
            return train_run(self.store, self.folder / f"run-full-{self.seed}", settings, resume=True)


def recipe_of(scale: Scale, *, full: bool) -> Recipe:
    """Return a recipe; in full it is written down as that many de-duplicated uniform columns, which no other one is."""
    if not full:
        return Recipe(mixed(scale))
    return Recipe({"in_batch": False, "uniform": scale.market.listings, "distinct": True, "mined": 0})


def larger(scale: Scale) -> Scale:
    """Return the scale of the larger market."""
    market = scale.market.model_copy(update={"listings": LARGE * scale.market.listings})
    return replace(scale, market=market, epochs=max(1, scale.epochs // FEWER_EPOCHS))


def trained_name(scale: Scale, *, full: bool) -> str:
    """Return the name of a trained variant."""
    return f"{'full' if full else 'sampled'}, {scale.market.listings:,}"


def timed_name(rows: int, catalogue: int) -> str:
    """Return the name of a timed pair."""
    return f"loss, {rows:,} rows, {catalogue:,}"


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the trained variants, for the record."""
    return {
        trained_name(size, full=full): recipe_of(size, full=full)
        for size in (scale, larger(scale))
        for full in (False, True)
    }


def timed(rows: int, uniform: int, catalogue: int, seed: int) -> dict[str, float]:
    """Take the times of both losses in turns.

    Returns:
        full_seconds, sampled_seconds: medians; times: their ratio; scores, multiply_adds: the ratios that are counted.
    """
    generator = torch_stream(seed, "timed", rows, catalogue)
    query = torch.randn(rows, WIDTH, generator=generator) / WIDTH**0.5
    items = torch.randn(catalogue, WIDTH, generator=generator) / WIDTH**0.5
    chances = 1 / torch.arange(1, catalogue + 1, dtype=torch.float64) ** 0.8
    sources = [InBatch(GivenFrequency.from_chances(chances=chances / chances.sum())), Uniform(catalogue, uniform)]
    positives = torch.multinomial(chances, rows, replacement=True, generator=generator)

    def full() -> None:
        vectors = items.detach().requires_grad_()
        full_softmax(query.detach().requires_grad_(), vectors, positives, temperature=TEMPERATURE).backward()

    def sampled() -> None:
        ledger = draw_ledger(positives, sources, generator, "uncorrected")
        columns = items[ledger.items].requires_grad_()
        leaf = query.detach().requires_grad_()
        sampled_softmax(leaf, columns[:rows], columns, ledger, temperature=TEMPERATURE).backward()

    work = rows * catalogue
    rounds = 1 if work > 2 * 10**8 else 3
    seconds: dict[str, list[float]] = {"full": [], "sampled": []}
    sampled()
    for _ in range(rounds):
        # The short one more than once: its median is what the long one is held against.
        for call, name, often in ((full, "full", 1), (sampled, "sampled", 3)):
            for _ in range(often):
                begin = time.process_time()
                call()
                seconds[name].append(time.process_time() - begin)
    slow, quick, columns = median(seconds["full"]), median(seconds["sampled"]), rows + uniform
    return {
        "full_seconds": slow,
        "sampled_seconds": quick,
        "times": slow / quick,
        "scores": catalogue / columns,
        "multiply_adds": 4 * catalogue / (3 * columns),
    }


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Train and time both; what takes longest comes last."""
    small = trained(scale, seeds, work)
    catalogues = SHORT_CATALOGUES if scale.market.listings < CATALOGUES[0] else CATALOGUES
    pairs: Cells = {}
    for rows, uniform in BATCHES:
        for catalogue in catalogues:
            name = timed_name(rows, catalogue)
            pairs[name] = []
            for seed in seeds:
                kept = work / f"timed-{rows}-{uniform}-{catalogue}-{seed}.json"
                if not kept.exists():
                    write_text(kept, json.dumps(timed(rows, uniform, catalogue, seed)) + "\n")
                pairs[name].append(json.loads(kept.read_text()))
            print(f"{name}: {over_seeds([cell['times'] for cell in pairs[name]])[0]:.1f} times", flush=True)
    return small | trained(larger(scale), seeds[:LARGE_SEEDS], work) | pairs


def trained(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Train both on the markets of a size."""
    found: Cells = {trained_name(scale, full=full): [] for full in (False, True)}
    for seed in seeds:
        for full in (False, True):
            name = trained_name(scale, full=full)
            market = (FullMarket if full else SampledMarket)(scale, seed, work)
            found[name].append(market.cell(recipe_of(scale, full=full)))
            shutil.rmtree(market.folder / f"run-full-{seed}", ignore_errors=True)
            print(f"seed {seed}, {name}: recall {found[name][-1]['recall']:.4f}", flush=True)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides: a thousand times at the largest catalogue, and recall within .01 of the full one's."""
    small, small_full, large, large_full, *pairs = cells
    largest = [name for name in pairs if name.split(", ")[2] == pairs[-1].split(", ")[2]]
    return [
        *(
            Condition(f"{name} items: full takes longer, times, above 1,000", level(cells, name, "times"), 1_000.0)
            for name in largest
        ),
        *(
            Condition(
                f"recall, {mine} less {theirs}, above −.01", difference(cells, mine, theirs, "recall"), bound=-0.01
            )
            for mine, theirs in ((small, small_full), (large, large_full))
        ),
        Condition(
            f"tail recall, {small} less {small_full}, above −.01",
            difference(cells, small, small_full, "recall_tail"),
            bound=-0.01,
        ),
    ]


def draw(cells: Cells, target: Path) -> None:
    """Draw the times by catalogue, and recall in full against sampled."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, (cost, close) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=(1.25, 1))
    for (rows, uniform), colour in zip(BATCHES, COLOURS, strict=False):
        names = [name for name in cells if name.startswith(f"loss, {rows:,} rows")]
        at = [int(name.split(", ")[2].replace(",", "")) for name in names]
        measured = np.array([level(cells, name, "times") for name in names])
        around = np.abs(measured[:, 1:].T - measured[:, 0])
        cost.errorbar(
            at, measured[:, 0], around, fmt="o", color=colour, markersize=4, capsize=2,
            label=f"{rows:,} rows, {rows + uniform:,} columns",
        )  # fmt: skip
        ahead = np.array([at[0], 2e7])
        cost.plot(ahead, ahead / (rows + uniform), color=colour, linewidth=0.9, linestyle=":")
    cost.axhline(1_000, color="#888888", linewidth=0.7)
    cost.axvspan(1.25e6, 2.4e7, color="#eeece6", zorder=0)
    cost.text(1.6e6, 2, "not measured", fontsize=8, color="#666666")
    cost.set(xscale="log", yscale="log", xlabel="items in the catalogue")
    cost.set_title("full loss over sampled loss: time (dots), scores (dotted)", fontsize=9)
    cost.legend(frameon=False, fontsize=8)
    small, small_full, large, large_full, *_ = cells
    for place, (mine, theirs, colour) in enumerate(((small, small_full, COLOURS[0]), (large, large_full, COLOURS[1]))):
        for number, measure in enumerate(("recall", "recall_head", "recall_torso", "recall_tail")):
            mean, low, high = difference(cells, mine, theirs, measure)
            seeds = [a[measure] - b[measure] for a, b in zip(cells[mine], cells[theirs], strict=True)]
            at, label = number + 0.16 * (2 * place - 1), mine.removeprefix("sampled, ") + " listings"
            if place:  # too few seeds for an interval that says anything: the seeds themselves
                label = f"{label}, seed by seed"
                close.plot([at] * len(seeds), seeds, "_", color=colour, label=label if not number else None)
            else:
                around = [[mean - low], [high - mean]]
                close.errorbar(
                    at,
                    mean,
                    around,
                    fmt="o",
                    color=colour,
                    markersize=4,
                    capsize=2,
                    label=label if not number else None,
                )
    close.axhline(0, color="#888888", linewidth=0.7)
    close.axhline(-0.01, color="#888888", linewidth=0.7, linestyle=":")
    close.set_xticks(range(4), ["all", "head", "torso", "tail"])
    close.set_title("recall@20, sampled less full", fontsize=9)
    close.legend(frameon=False, fontsize=8)
    fig.savefig(target, metadata={"Date": None})
    plt.close(fig)


CLAIM = Claim(
    number=16,
    folder=HERE,
    says="A sampled softmax is thousands of times cheaper than the full one, and close enough",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_torso",
        "recall_tail",
        "recall_new",
        "liked",
        "cpu_seconds",
        "full_seconds",
        "sampled_seconds",
        "times",
        "scores",
        "multiply_adds",
    ),
    headline=0,
    figure=draw,
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
