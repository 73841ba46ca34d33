"""Are two mined negatives a positive the most that help, and is one worth more than random ones at equal tower cost?

Usage: python experiments/mined_per_positive/run.py [--short] [--work FOLDER]

Beside in-batch and uniform negatives. A mined column is one more pass of the item tower for each positive of the batch,
a uniform draw one for the whole batch: so one mined column costs as much as as many uniform draws as the batch has
rows. ``1 + 1,012`` has one mined a positive and 1,012 uniform draws.
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
    """Return the variants: numbers of mined at the usual uniform draws, then two sets of equal cost."""
    batch, uniform = scale.batch, scale.uniform
    found = {"0": Recipe(mixed(scale))}
    found |= {f"{number}": mining(scale.window, uniform=uniform, mined=number) for number in NUMBERS}
    found[f"1 + {batch + uniform:,}"] = mining(scale.window, uniform=batch + uniform, mined=1)
    found[f"0 + {2 * batch:,}"] = Recipe({"in_batch": True, "uniform": 2 * batch, "mined": 0})
    found[f"1 + {batch:,}"] = mining(scale.window, uniform=batch, mined=1)
    found["2 + 0"] = mining(scale.window, uniform=0, mined=2)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    zero, _, two, four, eight, costly_one, cheap_zero, cheap_one, cheap_two = cells
    return [
        Condition("recall, 2 mined less 0, above 0", difference(cells, two, zero, "recall")),
        Condition("recall, 4 mined less 2, below 0", difference(cells, four, two, "recall"), above=False),
        Condition("recall, 8 mined less 2, below 0", difference(cells, eight, two, "recall"), above=False),
        Condition(
            f"at equal cost: recall, {costly_one} uniform less 2 + the usual, above 0",
            difference(cells, costly_one, two, "recall"),
        ),
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
        {"recall": "recall@20", "fine": "right order within a kind", "recall_new": "recall@20, new"},
        "mined (+ uniform)",
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM)
