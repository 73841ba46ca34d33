"""Are two mined negatives a positive the most that help, and is one worth more than random ones at equal tower cost?

Usage: python experiments/mined_per_positive/run.py [--short] [--work FOLDER]

Beside in-batch and uniform negatives. A mined column is one more pass of the item tower for each positive of the batch,
a uniform draw one for the whole batch: so one mined column costs as much as as many uniform draws as the batch has
rows. ``1 + 512`` has one mined a positive and 512 uniform draws. Mined are ranks 21 to 100, and a mined column counts
about as much as an easy one.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trial_figures import by_variant  # noqa: E402
from trials import Cells, Claim, Condition, Recipe, Scale, difference, mining, mixed, try_claim  # noqa: E402

NUMBERS = (1, 2, 4, 8)


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants: numbers of mined at the usual uniform draws, then a set of equal cost."""
    batch, uniform = scale.batch, scale.uniform
    found = {"0": Recipe(mixed(scale))}
    window, weight = scale.hard, scale.as_easy
    found |= {f"{number}": mining(window, uniform=uniform, mined=number, weight=weight) for number in NUMBERS}
    found[f"0 + {2 * batch:,}"] = Recipe({"in_batch": True, "uniform": 2 * batch, "mined": 0})
    found[f"1 + {batch:,}"] = mining(window, uniform=batch, mined=1, weight=weight)
    found["2 + 0"] = mining(window, uniform=0, mined=2, weight=weight)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    zero, _, two, four, eight, cheap_zero, cheap_one, cheap_two = cells
    return [
        Condition("recall, 2 mined less 0, above 0", difference(cells, two, zero, "recall")),
        Condition("recall, 4 mined less 2, below 0", difference(cells, four, two, "recall"), above=False),
        Condition("recall, 8 mined less 2, below 0", difference(cells, eight, two, "recall"), above=False),
        Condition(
            f"at equal cost: recall, {cheap_one} uniform less {cheap_two}, above 0",
            difference(cells, cheap_one, cheap_two, "recall"),
        ),
        Condition(
            f"at equal cost: recall, {cheap_one} uniform less {cheap_zero}, above 0",
            difference(cells, cheap_one, cheap_zero, "recall"),
        ),
    ]


CLAIM = Claim(
    number=9,
    folder=HERE,
    says="At most two mined a positive; at equal tower cost one beside random ones beats two beside fewer, or none",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_head", "recall_torso", "recall_tail", "recall_new", "fine", "liked"),
    headline=0,
    figure=by_variant(
        {
            "recall": "recall@20, less that of 0",
            "recall_tail": "recall@20 of the tail, less that of 0",
            "fine": "right order within a kind, less that of 0",
        },
        "mined (+ uniform)",
        {
            "beside 500 uniform": {name: name for name in ("0", "1", "2", "4", "8")},
            "at equal cost": {name: name for name in ("0 + 1,024", "1 + 512")},
        },
        against="0",
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM)
