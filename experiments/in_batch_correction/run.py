"""Does in-batch training without correction punish popular listings, and does the logQ correction give them back?

Usage: python experiments/in_batch_correction/run.py [--short] [--work FOLDER]

The other rows' positives are the only negatives; the correction's weight alpha goes from 0 to 1.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trial_figures import by_variant  # noqa: E402
from trials import IN_BATCH, Cells, Claim, Condition, Recipe, Scale, difference, try_claim  # noqa: E402

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def recipes(_: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    return {f"{alpha:g}": Recipe(IN_BATCH | {"alpha": alpha}) for alpha in ALPHAS}


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    return [
        Condition(
            "recall of head listings, alpha 1 less alpha 0, is above 0", difference(cells, "1", "0", "recall_head")
        ),
        Condition(
            "head listings among the first 20, alpha 1 less alpha 0, above 0", difference(cells, "1", "0", "share_head")
        ),
        Condition("recall of all, alpha 1 less alpha 0, is above 0", difference(cells, "1", "0", "recall")),
    ]


CLAIM = Claim(
    number=1,
    folder=HERE,
    says="In-batch negatives without correction punish popular listings; the logQ correction gives them back",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_head", "recall_torso", "recall_tail", "recall_new", "share_head"),
    headline=0,
    figure=by_variant(
        {"recall_head": "recall@20, head", "recall_tail": "recall@20, tail", "share_head": "head listings in a row"},
        "alpha",
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM)
