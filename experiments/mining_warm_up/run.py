"""Must mining wait until the model has trained on easy negatives?

Usage: python experiments/mining_warm_up/run.py [--short] [--work FOLDER]

Two mined a positive beside in-batch and uniform ones, from ranks 21 to 100 and each counting about as much as an easy
column, from step 0 or later; asked is the usual model of the day before,
or one that was not trained at all, as a model is at its own beginning.
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
    over_seeds,
    try_claim,
)

MINERS = {"untrained, from step 0": 0, "trained, from step 0": None}


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants: the miner, and when its negatives come."""
    found = {"none": Recipe(mixed(scale))}
    for name, epochs in MINERS.items():
        which = True if epochs is None else Earlier(epochs=epochs)
        found[name] = mining(scale.hard, uniform=scale.uniform, weight=scale.as_easy, warm_up=0, mines=which)
    found["trained, after 1"] = mining(scale.hard, uniform=scale.uniform, weight=scale.as_easy, warm_up=1)
    return found


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure recall, and how much of what each miner gives is noise."""
    found = of_recipes(CLAIM)(scale, seeds, work)
    for number, seed in enumerate(seeds):
        truth = MinedTruth(Market(scale, seed, work))
        for name, epochs in MINERS.items():
            shares = truth.shares(scale.hard, which=Earlier(epochs=epochs))
            found[name][number] |= {f"mined_{key}": value for key, value in shares.items()}
        little = truth.shares(scale.hard, which=Earlier(epochs=1))
        found["trained, from step 0"][number]["other_kind_after_1"] = little["other_kind"]
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    none, untrained, at_once, later = cells
    early = [cell["other_kind_after_1"] - cell["mined_other_kind"] for cell in cells[at_once]]
    return [
        Condition(
            "recall, mined after one epoch less from step 0, above 0", difference(cells, later, at_once, "recall")
        ),
        Condition(
            "other kinds of furniture among the mined, untrained miner less trained one, above 0",
            difference(cells, untrained, at_once, "mined_other_kind"),
        ),
        Condition(
            "other kinds of furniture among the mined, miner of one epoch less trained one, above 0", over_seeds(early)
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
        "other_kind_after_1",
        "mined_liked",
        "mined_hidden",
    ),
    headline=0,
    figure=by_variant(
        {
            "recall": "recall@20, less that without mining",
            "fine": "right order within a kind, less that without",
            "mined_other_kind": "other kinds among the mined",
        },
        against="none",
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
