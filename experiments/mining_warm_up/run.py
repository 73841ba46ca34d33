"""Must mining wait until the model has trained on easy negatives?

Usage: python experiments/mining_warm_up/run.py [--short] [--work FOLDER]

Two mined a positive beside in-batch and uniform ones, from step 0 or later; asked is the usual model of the day before,
or one that was hardly trained or not at all, as a model is at its own beginning.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mined_truth import MinedTruth  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    Cells,
    Claim,
    Condition,
    Earlier,
    Market,
    Recipe,
    Scale,
    difference,
    mining,
    mixed,
    of_recipes,
    try_claim,
)

MINERS = {"untrained, from step 0": 0, "after 1 epoch, from step 0": 1, "trained, from step 0": None}


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants: the miner, and when its negatives come."""
    found = {"none": Recipe(mixed(scale))}
    for name, epochs in MINERS.items():
        which = True if epochs is None else Earlier(epochs=epochs)
        found[name] = mining(scale.window, uniform=scale.uniform, warm_up=0, mines=which)
    found["trained, after 1"] = mining(scale.window, uniform=scale.uniform, warm_up=1)
    found["trained, after half"] = mining(scale.window, uniform=scale.uniform, warm_up=scale.epochs / 2)
    return found


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure recall, and how much of what each miner gives is noise."""
    found = of_recipes(CLAIM)(scale, seeds, work)
    for number, seed in enumerate(seeds):
        truth = MinedTruth(Market(scale, seed, work))
        for name, epochs in MINERS.items():
            shares = truth.shares(scale.window, which=Earlier(epochs=epochs))
            found[name][number] |= {f"mined_{key}": value for key, value in shares.items()}
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    none, untrained, little, at_once, later, half = cells
    return [
        Condition(
            "recall, mined after one epoch less from step 0, above 0", difference(cells, later, at_once, "recall")
        ),
        Condition(
            "recall, mined after half of the epochs less from step 0, above 0",
            difference(cells, half, at_once, "recall"),
        ),
        Condition(
            "other kinds of furniture among the mined, untrained miner less trained one, above 0",
            difference(cells, untrained, at_once, "mined_other_kind"),
        ),
        Condition(
            "other kinds of furniture among the mined, miner of one epoch less trained one, above 0",
            difference(cells, little, at_once, "mined_other_kind"),
        ),
        Condition("recall, trained miner less untrained one, above 0", difference(cells, at_once, untrained, "recall")),
        Condition(
            "recall, untrained miner less no mining, below 0", difference(cells, untrained, none, "recall"), above=False
        ),
    ]


CLAIM = Claim(
    number=10,
    folder=HERE,
    says="Mining begins only after a warm-up: a random model's neighbours are noise",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_tail",
        "recall_new",
        "fine",
        "mined_other_kind",
        "mined_liked",
        "mined_hidden",
    ),
    headline=0,
    figure=by_variant(
        {"recall": "recall@20", "fine": "right order within a kind", "mined_other_kind": "other kinds among the mined"}
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
