"""Should the positive be corrected like a column?

Usage: python experiments/positive_correction/run.py [--short] [--work FOLDER]

`yi` corrects it as published by Yi et al. 2019, `count` gives it and its copies their count given the row, and
`uncorrected` enters it once with its raw logit. Measured: recall by slice, in-batch and mixed; and how far from right
the push on a positive is, 1 - P, where the right one is known: 20,000 items with popularity 1/rank, rows of 512, and a
score for which the exact softmax gives every positive the same chance whatever its popularity.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from exact_setting import kept  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    IN_BATCH,
    SHORT,
    Cells,
    Claim,
    Condition,
    Recipe,
    Scale,
    difference,
    mixed,
    of_recipes,
    over_seeds,
    try_claim,
)

from hatchway.frequency.given import GivenFrequency  # noqa: E402
from hatchway.losses.sampled_softmax import sampled_softmax  # noqa: E402
from hatchway.negatives.counting import PositiveCorrection  # noqa: E402
from hatchway.negatives.in_batch import InBatch  # noqa: E402
from hatchway.negatives.ledger import draw_ledger  # noqa: E402
from hatchway.randomness import torch_stream  # noqa: E402

SWITCHES: tuple[PositiveCorrection, ...] = get_args(PositiveCorrection)
ITEMS, ROWS, CHANCE = 20_000, 512, 0.0032
RANKS = (1, 1_001, 10_001, 20_000)
TOLERANCE = 0.005


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    sources = {"in-batch": IN_BATCH, "mixed": mixed(scale)}
    return {
        f"{kind}, {switch}": Recipe(sources[kind] | {"positive": switch}) for kind in sources for switch in SWITCHES
    }


def push(rank: int, switch: PositiveCorrection, seed: int, draws: int) -> float:
    """Return the mean push on a positive of a popularity rank over draws of the other rows; right is 1 - CHANCE.

    The push is what the row's loss falls by when the item's score rises, wherever in the row the item stands.
    """
    share = 1 / torch.arange(1, ITEMS + 1, dtype=torch.float64)
    share /= share.sum()
    positive = rank - 1
    chance = share * (1 - CHANCE) / (1 - share[positive])
    chance[positive] = CHANCE
    vectors = chance.log().float()[:, None].requires_grad_()
    source = InBatch(GivenFrequency.from_chances(chances=share))
    found = []
    for draw in range(draws):
        generator = torch_stream(seed, "push", rank, draw)
        positives = torch.multinomial(share, ROWS, replacement=True, generator=generator)
        positives[0] = positive
        ledger = draw_ledger(positives, [source], generator, switch)
        one = torch.ones(ROWS, 1)
        losses = sampled_softmax(one, vectors[positives], vectors[ledger.items], ledger, reduction="none")
        (gradient,) = torch.autograd.grad(losses[0], vectors)
        found.append(-float(gradient[positive]))
    return float(np.mean(found))


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure the recipes, and add the push on positives of four ranks."""
    cells = of_recipes(CLAIM)(scale, seeds, work)
    draws = 20 if scale is SHORT else 100
    for place, seed in enumerate(seeds):
        for switch in SWITCHES:
            cells[f"in-batch, {switch}"][place] |= kept(
                work / f"exact-push-{switch}-{seed}.json",
                lambda: {f"push_{rank}": push(rank, switch, seed, draws) for rank in RANKS},  # noqa: B023
            )
    return cells


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    found = []
    for switch in ("uncorrected", "count"):
        rows = cells[f"in-batch, {switch}"]
        off = over_seeds([max(abs(row[f"push_{rank}"] - 1 + CHANCE) for rank in RANKS) for row in rows])
        found.append(
            Condition(f"{switch}: the push is right within {TOLERANCE} at every rank", off, TOLERANCE, above=False)
        )
    rarest = [cell[f"push_{RANKS[-1]}"] - 1 + CHANCE for cell in cells["in-batch, yi"]]
    found.append(
        Condition(
            "yi: the push on the rarest positive is more than .1 too small", over_seeds(rarest), -0.1, above=False
        )
    )
    for kind in ("in-batch", "mixed"):
        other, yi = f"{kind}, uncorrected", f"{kind}, yi"
        found += [
            Condition(
                f"{kind}: tail recall, uncorrected less yi, above 0", difference(cells, other, yi, "recall_tail")
            ),
            Condition(f"{kind}: recall, uncorrected less yi, above 0", difference(cells, other, yi, "recall")),
        ]
    return found


CLAIM = Claim(
    number=6,
    folder=HERE,
    says="Correcting the positive too, as published, under-trains rare positives; leaving it uncorrected does not",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_torso",
        "recall_tail",
        "recall_new",
        "share_head",
        *(f"push_{rank}" for rank in RANKS),
    ),
    headline=3,
    figure=by_variant(
        {
            "recall": "recall@20",
            "recall_head": "recall@20, head",
            "recall_tail": "recall@20, tail",
            f"push_{RANKS[-1]}": "push on the rarest positive, P known",
        },
        groups={kind: {f"{kind}, {switch}": switch for switch in SWITCHES} for kind in ("in-batch", "mixed")},
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
