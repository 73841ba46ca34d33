"""What do a larger batch and a larger uniform set buy, and what do they cost?

Usage: python experiments/how_many_columns/run.py [--short] [--work FOLDER]

Each is doubled in turn, up to and from the scale's own; at twice the batch the uniform set is doubled as well, which
says whether its best size goes with the batch. A larger batch has fewer steps in as many epochs, so the doubled batch
is also given twice the epochs. The cost is counted: item vectors that are made for each positive, and products of
vectors.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trial_figures import by_variant  # noqa: E402
from trials import Cells, Claim, Condition, Recipe, Scale, difference, mixed, of_recipes, try_claim  # noqa: E402

SIZES = ((1, 0.25), (1, 0.5), (1, 1), (1, 2), (0.5, 1), (2, 1), (2, 2))
"""Batch and uniform set, in multiples of the scale's, which has about as many uniform draws as rows of a batch; batches
without any uniform draws are in never_engaged."""

OWN = "batch ×1, uniform ×1"

SAME_STEPS = "batch ×2, uniform ×1, epochs ×2"


def name(batch: float, uniform: float) -> str:
    """Return what a variant is called."""
    return f"batch ×{batch:g}, uniform ×{uniform:g}"


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    found = {}
    for batch, uniform in SIZES:
        training: dict[str, Any] = {} if batch == 1 else {"batch": int(batch * scale.batch)}
        found[name(batch, uniform)] = Recipe(mixed(scale) | {"uniform": int(uniform * scale.uniform)}, training)
    twice = {"batch": 2 * scale.batch, "epochs": 2 * scale.epochs}
    return found | {SAME_STEPS: Recipe(mixed(scale), twice)}


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure the recipes, and count what a positive costs."""
    cells = of_recipes(CLAIM)(scale, seeds, work)
    for variant, recipe in recipes(scale).items():
        settings = recipe.settings(scale, 0)
        batch, uniform = settings.training.batch, settings.negatives.uniform
        epochs = settings.training.epochs / scale.epochs
        for cell in cells[variant]:
            cell |= {"columns": batch + uniform, "vectors": epochs * (1 + uniform / batch)}
            cell |= {"products": epochs * (batch + uniform)}
    return cells


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    pairs = [(name(1, more), name(1, less)) for less, more in ((0.25, 0.5), (0.5, 1), (1, 2))]
    pairs += [(OWN, name(0.5, 1)), (name(2, 1), OWN), (SAME_STEPS, OWN)]
    pairs += [(name(2, 2), name(2, 1))]
    return [
        Condition(f"recall, {more} less {less}, above 0", difference(cells, more, less, "recall"))
        for more, less in pairs
    ]


CLAIM = Claim(
    number=12,
    folder=HERE,
    says="More in-batch and more uniform negatives buy recall",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_torso",
        "recall_tail",
        "recall_new",
        "share_never",
        "liked",
        "columns",
        "vectors",
        "products",
    ),
    headline=5,
    figure=by_variant(
        {
            "recall": "recall@20, less that of 512 + 500",
            "recall_tail": "recall@20 of the tail, less",
            "share_never": "never-engaged in a row, less",
            "vectors": "item vectors a positive, less",
            "products": "products of vectors a positive, less",
        },
        "batch + uniform set",
        {
            "batch 512": {
                name(1, 0.25): "512 + 125",
                name(1, 0.5): "512 + 250",
                OWN: "512 + 500",
                name(1, 2): "512 + 1,000",
            },
            "batch 256": {name(0.5, 1): "256 + 500"},
            "batch 1,024": {
                name(2, 1): "1,024 + 500",
                name(2, 2): "1,024 + 1,000",
                SAME_STEPS: "1,024 + 500, epochs ×2",
            },
        },
        against=OWN,
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
