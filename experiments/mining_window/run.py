"""Do mined negatives from ranks 101 to 500 beat those from the very top?

Usage: python experiments/mining_window/run.py [--short] [--work FOLDER]

Two mined a positive beside in-batch and uniform ones, from windows of the ranking of a model of the day before; and
the true share of hidden positives among what a window gives, with the filter and without. A mined column counts as one
item of the catalogue.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mined_truth import MinedTruth  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    NOT_SCREENED,
    Cells,
    Claim,
    Condition,
    Market,
    Recipe,
    Scale,
    difference,
    mining,
    mixed,
    of_recipes,
    try_claim,
)


def windows(scale: Scale) -> Mapping[str, tuple[int, int]]:
    """Return the windows by name: 1 to 20, 1 to 100, 101 to 500, 501 to 2,000 at full size."""
    first, last = scale.window
    top = first - 1
    found = [(1, top // 5), (1, top), (first, last), (last + 1, 4 * last)]
    return {f"{begin}–{end}": (begin, end) for begin, end in found}


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants."""
    found = {"none": Recipe(mixed(scale))}
    found |= {name: mining(window, uniform=scale.uniform) for name, window in windows(scale).items()}
    for name, window in [list(windows(scale).items())[place] for place in (1, 2)]:
        found[f"{name} unfiltered"] = mining(window, uniform=scale.uniform, screening=NOT_SCREENED)
    return found


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure recall, and what the windows give."""
    found = of_recipes(CLAIM)(scale, seeds, work)
    for number, seed in enumerate(seeds):
        truth = MinedTruth(Market(scale, seed, work))
        for name, window in windows(scale).items():
            unfiltered = truth.shares(window, screened=False)
            shares = truth.shares(window)
            more = {f"mined_{key}": value for key, value in shares.items()}
            found[name][number] |= more | {"unfiltered_hidden": unfiltered["hidden"]}
            if f"{name} unfiltered" in found:
                found[f"{name} unfiltered"][number] |= {f"mined_{key}": value for key, value in unfiltered.items()}
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    _, _, top, middle, deep, bare_top, bare_middle = cells
    return [
        Condition(f"recall, ranks {middle} less {top}, above 0", difference(cells, middle, top, "recall")),
        Condition(
            f"recall without the filter, ranks {middle} less {top}, above 0",
            difference(cells, bare_middle, bare_top, "recall"),
        ),
        Condition(f"recall, ranks {middle} less {deep}, above 0", difference(cells, middle, deep, "recall")),
        Condition(
            f"hidden positives without the filter, ranks {top} less {middle}, above 0",
            difference(cells, top, middle, "unfiltered_hidden"),
        ),
        Condition(
            f"hidden positives behind the filter, ranks {top} less {middle}, above 0",
            difference(cells, top, middle, "mined_hidden"),
        ),
    ]


CLAIM = Claim(
    number=8,
    folder=HERE,
    says="Negatives from ranks 101 to 500 beat those from the very top, where hidden positives stand",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_tail",
        "recall_relisted",
        "fine",
        "unfiltered_hidden",
        "mined_hidden",
        "mined_same_model",
        "mined_liked",
        "mined_other_kind",
    ),
    headline=0,
    figure=by_variant(
        {
            "recall": "recall@20",
            "mined_hidden": "hidden positives among the mined",
            "mined_other_kind": "other kinds among the mined",
        },
        "ranks",
        {
            "with the filter": {name: name for name in ("none", "1–20", "1–100", "101–500", "501–2000")},
            "without": {f"{name} unfiltered": name for name in ("1–100", "101–500")},
        },
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
