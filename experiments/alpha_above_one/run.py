"""What does a correction of more than 1 do: do rare listings flood the rows, or popular ones?

Usage: python experiments/alpha_above_one/run.py [--short] [--work FOLDER]

With weight alpha a score comes to ln P(item | query) + (alpha - 1) ln Q(item) and a constant, so its slope on ln Q is
that of ln P less 1, plus alpha. Measured on the market with in-batch negatives, and where all is free and P is known.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from exact_setting import STEPS, SmallMarket, kept, learned  # noqa: E402
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
    of_recipes,
    over_seeds,
    try_claim,
)

ALPHAS = (0.0, 0.5, 1.0, 1.25, 1.5)
TOLERANCE = 0.1


def recipes(_: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    return {f"{alpha:g}": Recipe(IN_BATCH | {"alpha": alpha}) for alpha in ALPHAS}


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure the recipes, and add the slope where P is known, as it is and as theory has it."""
    cells = of_recipes(CLAIM)(scale, seeds, work)
    for place, seed in enumerate(seeds):
        market = SmallMarket.make(seed)
        steps = STEPS // 10 if scale is SHORT else STEPS
        for alpha in ALPHAS:
            cells[f"{alpha:g}"][place] |= kept(
                work / f"exact-alpha-{alpha:g}-{seed}.json",
                lambda: {
                    "exact_slope": market.slope(learned(market, [market.in_batch()], alpha=alpha, steps=steps)),  # noqa: B023
                    "theory": market.slope(market.chance.log()) - 1 + alpha,  # noqa: B023
                },
            )
    return cells


def per_alpha(cells: Cells, measure: str, first: float = 0.0) -> tuple[float, float, float]:
    """Return by how much a measure rises for 1 of alpha, by least squares from ``first`` on, over the seeds."""
    alphas = [alpha for alpha in ALPHAS if alpha >= first]
    rows = np.array([[cell[measure] for cell in cells[f"{alpha:g}"]] for alpha in alphas])
    return over_seeds([float(np.polyfit(alphas, row, 1)[0]) for row in rows.T])


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    off = over_seeds(
        [
            max(abs(cells[f"{a:g}"][s]["exact_slope"] - cells[f"{a:g}"][s]["theory"]) for a in ALPHAS)
            for s in range(len(cells["1"]))
        ]
    )
    return [
        Condition(
            "head listings among the first 20, alpha 1.5 less 1, above 0", difference(cells, "1.5", "1", "share_head")
        ),
        Condition(
            "tail listings among the first 20, alpha 1.5 less 1, below 0",
            difference(cells, "1.5", "1", "share_tail"),
            above=False,
        ),
        Condition(
            "never-engaged listings among the first 20, alpha 1.5 less 1, below 0",
            difference(cells, "1.5", "1", "share_never"),
            above=False,
        ),
        Condition("the score's slope on log popularity rises with alpha from 1 on", per_alpha(cells, "slope", 1.0)),
        Condition(
            f"known P: the slope is farthest from theory (alpha, less 1, plus that of ln P) by less than {TOLERANCE}",
            off,
            bound=TOLERANCE,
            above=False,
        ),
    ]


CLAIM = Claim(
    number=2,
    folder=HERE,
    says="An alpha above 1 floods the rows with popular listings, not with rare ones",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_tail",
        "share_head",
        "share_tail",
        "share_never",
        "slope",
        "exact_slope",
        "theory",
    ),
    headline=0,
    figure=by_variant(
        {
            "slope": "slope of the score, market",
            "exact_slope": "slope of the score, P known",
            "recall": "recall@20",
            "share_head": "head listings in a row",
            "share_never": "never-engaged in a row",
        },
        "alpha",
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
