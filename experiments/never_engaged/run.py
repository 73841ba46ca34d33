"""Are listings that nobody engaged with pushed down only if uniform negatives reach them?

Usage: python experiments/never_engaged/run.py [--short] [--work FOLDER]

In-batch negatives alone, against a growing set of uniform draws beside them; and both again for items that have nothing
but a vector of their own, for what is not said by an item's columns.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trial_figures import by_variant  # noqa: E402
from trials import IN_BATCH, Cells, Claim, Condition, Recipe, Scale, difference, mixed, try_claim  # noqa: E402

BARE = {"item": {"categories": [], "numbers": [], "texts": []}}
"""Items without columns."""


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    return {
        "in-batch": Recipe(IN_BATCH),
        "mixed": Recipe(mixed(scale)),
        "mixed, 4 ×": Recipe(mixed(scale) | {"uniform": 4 * scale.uniform}),
        "ids, in-batch": Recipe(IN_BATCH, model=BARE),
        "ids, mixed": Recipe(mixed(scale), model=BARE),
    }


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    found = []
    for kind, right, wrong in (("", "in-batch", "mixed"), ("ids alone: ", "ids, in-batch", "ids, mixed")):
        found += [
            Condition(
                f"{kind}never-engaged among the first 20, in-batch less mixed, above 0",
                difference(cells, right, wrong, "share_never"),
            ),
            Condition(
                f"{kind}never-engaged among the nearest 20 items, in-batch less mixed, above 0",
                difference(cells, right, wrong, "nearest_never"),
            ),
        ]
    found.append(Condition("recall, mixed less in-batch, above 0", difference(cells, "mixed", "in-batch", "recall")))
    found.append(
        Condition(
            "liked among the first 20, mixed less in-batch, above 0", difference(cells, "mixed", "in-batch", "liked")
        )
    )
    return found


CLAIM = Claim(
    number=5,
    folder=HERE,
    says="Never-engaged listings are pushed down only if uniform negatives reach them",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "share_never",
        "nearest_never",
        "offered_never",
        "recall",
        "recall_head",
        "recall_tail",
        "recall_new",
        "liked",
    ),
    headline=0,
    figure=by_variant(
        {
            "share_never": "never-engaged in a row",
            "nearest_never": "never-engaged among 20 neighbours",
            "recall": "recall@20",
            "recall_new": "recall@20, never-engaged",
        },
        groups={
            "with columns": {"in-batch": "in-batch", "mixed": "mixed", "mixed, 4 ×": "4 × uniform"},
            "ids alone": {"ids, in-batch": "in-batch", "ids, mixed": "mixed"},
        },
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM)
