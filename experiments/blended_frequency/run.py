"""Is the blended expected count right where in-batch and uniform columns are mixed, and the popularity count wrong?

Usage: python experiments/blended_frequency/run.py [--short] [--work FOLDER]

Right: n(j) = (B - 1) q(j) + U / N. Wrong: n(j) = (B - 1 + U) q(j), as if popularity had drawn the uniform columns too,
with what the frequency sketch says of a listing that it never saw. The package cannot be told to do that, so its
ledgers are rewritten here. Measured: the gradient's bias against the exact softmax where all is known, and recall.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from exact_setting import SmallMarket, kept  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    SHORT,
    Cells,
    Claim,
    Condition,
    Market,
    Recipe,
    Scale,
    difference,
    level,
    mixed,
    try_claim,
)

from hatchway.data.engagements import training_counts  # noqa: E402
from hatchway.frequency.independent import floor_of  # noqa: E402
from hatchway.losses.full_softmax import full_softmax  # noqa: E402
from hatchway.losses.sampled_softmax import sampled_softmax  # noqa: E402
from hatchway.negatives.ledger import Ledger, draw_ledger  # noqa: E402
from hatchway.negatives.uniform import Uniform  # noqa: E402
from hatchway.randomness import torch_stream  # noqa: E402
from hatchway.training import loop  # noqa: E402
from hatchway.training.batches import Batch  # noqa: E402
from hatchway.training.step import Negatives  # noqa: E402

WRONG = "popularity"
FACTORS = (1, 4)
"""Uniform columns, in multiples of the scale's."""


def variant(kind: str, factor: int) -> str:
    """Return what a variant is called."""
    return f"{kind}, {factor} × uniform"


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants; those with the wrong count are the same settings."""
    sizes = {factor: Recipe(mixed(scale) | {"uniform": factor * scale.uniform}) for factor in FACTORS}
    return {variant(kind, factor): sizes[factor] for factor in FACTORS for kind in ("blended", WRONG)}


class ByPopularity(Negatives):
    """The negatives of a run whose shared columns are all accounted for as if popularity had drawn them."""

    def __init__(self, made: Negatives, log_share: Tensor) -> None:
        super().__init__(**{name: getattr(made, name) for name in made.__dataclass_fields__})
        object.__setattr__(self, "log_share", log_share)

    def ledger(self, batch: Batch, epoch: int, step: int) -> Ledger:
        """Write the ledger, and replace its counts."""
        return by_popularity(super().ledger(batch, epoch, step), self.log_share)  # type: ignore[attr-defined]


def by_popularity(ledger: Ledger, log_share: Tensor) -> Ledger:
    """Replace n(j) of every shared column by the number of other columns times the item's share of the positives."""
    others = torch.tensor(float(len(ledger.items) - 1)).log()
    return replace(ledger, log_count=(log_share[ledger.items] + others).float())


@contextmanager
def wrong_counts() -> Iterator[None]:
    """Let trainings account by popularity alone."""
    right = loop.negatives_of

    def made(settings: Any, log: Any, **options: Any) -> Negatives:
        counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue))).double()
        share = (counts / counts.sum()).clamp(min=floor_of(len(counts), int(counts.sum())))
        return ByPopularity(right(settings, log, **options), share.log())

    loop.negatives_of = made
    try:
        yield
    finally:
        loop.negatives_of = right


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Train with the right and the wrong counts, and measure the gradient where all is known."""
    cells: Cells = {name: [] for name in recipes(scale)}
    for seed in seeds:
        right, wrong = Market(scale, seed, work), Market(scale, seed, work / WRONG)
        for name, recipe in recipes(scale).items():
            if WRONG in name:
                with wrong_counts():
                    found = wrong.measures(recipe)
            else:
                found = right.measures(recipe)
            factor = int(name.split(", ")[1].split(" ")[0])
            exact = work / f"exact-gradient-{'wrong' if WRONG in name else 'right'}-{factor}-{seed}.json"
            found |= kept(exact, lambda: bias(seed, factor, WRONG in name, 200 if scale is SHORT else 800))  # noqa: B023
            cells[name].append(found)
            print(f"seed {seed}, {name}: recall {found['recall']:.4f}", flush=True)
    return cells


def bias(seed: int, factor: int, wrong: bool, draws: int, batch: int = 64) -> dict[str, float]:
    """Measure the sampled gradient of half-learned scores against the exact one.

    Returns:
        bias: length of (mean sampled gradient - exact gradient) over that of the exact gradient, freed of the noise of
            the draws by multiplying the errors of two halves of them.
        push_never: the mean sampled push on never-engaged items over the exact one.
    """
    market = SmallMarket.make(seed, items=240, never=60)
    queries, size = market.chance.shape
    known = market.popularity > 0
    scores = torch.zeros(queries, size, dtype=torch.float64)
    scores[:, known] = market.chance[:, known].log() / 2
    scores[:, ~known] = scores[:, known].mean(1, keepdim=True)

    def gradient(loss: Any) -> Tensor:
        table = scores.clone().requires_grad_()
        (found,) = torch.autograd.grad(loss(table), table)
        return found

    asked, positives = (market.chance > 0).nonzero(as_tuple=True)
    weight = market.chance[asked, positives]
    one_hot = torch.eye(queries, dtype=torch.float64)
    exact = gradient(lambda table: full_softmax(one_hot[asked], table.T, positives, weight=weight))
    sources = [market.in_batch(), Uniform(size, factor * batch)]
    floor = floor_of(size, 200 * batch)
    log_share = market.popularity.clamp(min=floor).log()
    halves = [torch.zeros_like(exact), torch.zeros_like(exact)]
    for draw in range(draws):
        generator = torch_stream(seed, "gradient", factor, draw)
        rows, wanted = market.rows(batch, generator)
        ledger = draw_ledger(wanted, sources, generator, "uncorrected")
        if wrong:
            ledger = by_popularity(ledger, log_share)
        halves[draw % 2] += gradient(
            lambda table: sampled_softmax(one_hot[rows], table.T[wanted], table.T[ledger.items], ledger)  # noqa: B023
        )
    first, second = (half / (draws / 2) - exact for half in halves)
    mean = exact + (first + second) / 2
    return {
        "bias": float((first * second).sum().clamp(min=0).sqrt() / exact.norm()),
        "push_never": float(mean[:, ~known].sum() / exact[:, ~known].sum()),
    }


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    found = [
        Condition(
            "1 × uniform: gradient bias of the blended count below .05",
            level(cells, variant("blended", 1), "bias"),
            0.05,
            above=False,
        )
    ]
    for factor in FACTORS:
        right, wrong = variant("blended", factor), variant(WRONG, factor)
        found += [
            Condition(
                f"{factor} × uniform: gradient bias, popularity less blended, above 0",
                difference(cells, wrong, right, "bias"),
            ),
            Condition(
                f"{factor} × uniform: recall, blended less popularity, above 0",
                difference(cells, right, wrong, "recall"),
            ),
            Condition(
                f"{factor} × uniform: never-engaged in a row, blended less popularity, above 0",
                difference(cells, right, wrong, "share_never"),
            ),
        ]
    return found


CLAIM = Claim(
    number=4,
    folder=HERE,
    says="With in-batch and uniform columns the blended count is right, and the popularity count is wrong",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "bias",
        "push_never",
        "recall",
        "recall_head",
        "recall_torso",
        "recall_tail",
        "recall_new",
        "share_head",
        "share_never",
        "slope",
    ),
    headline=1,
    figure=by_variant(
        {
            "bias": "bias of the gradient, all known",
            "recall": "recall@20",
            "recall_head": "recall@20, head",
            "share_never": "never-engaged in a row",
        }
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
