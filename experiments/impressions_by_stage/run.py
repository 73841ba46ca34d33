"""Are impressions poor negatives for retrieval and the right ones for ranking?

Usage: python experiments/impressions_by_stage/run.py [--short] [--work FOLDER]

Retrieval: the two towers, with what was shown and not engaged with as negatives, recall over the whole catalogue.
Ranking: gradient boosted trees over what is known of page, buyer and listing, with the same impressions as negatives or
with as many listings drawn at random; AUC on what was shown in the last two days.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from shown_pages import NEGATIVES, Pages  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import Cells, Claim, Condition, Market, Recipe, Scale, difference, mixed, of_recipes, try_claim  # noqa: E402

ALONE, RANDOM = "ranker, impressions", "ranker, random"


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants of retrieval."""
    nothing = {"in_batch": False, "uniform": 0, "mined": 0}
    return {
        "easy": Recipe(mixed(scale)),
        "impressions": Recipe(nothing | {"impressions": NEGATIVES}),
        f"{NEGATIVES} random": Recipe(nothing | {"per_row": NEGATIVES}),
        "easy, impressions": Recipe(mixed(scale) | {"impressions": NEGATIVES}),
    }


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure retrieval and ranking."""
    found = of_recipes(CLAIM)(scale, seeds, work)
    found |= {ALONE: [], RANDOM: []}
    for seed in seeds:
        pages = Pages(Market(scale, seed, work))
        for name, shown in ((ALONE, True), (RANDOM, False)):
            found[name].append(pages.ranker(shown=shown))
            print(f"seed {seed}, {name}: {found[name][-1]}", flush=True)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    return [
        Condition(
            "retrieval: recall, impressions alone less easy negatives, below 0",
            difference(cells, "impressions", "easy", "recall"),
            above=False,
        ),
        Condition(
            "retrieval: recall, impressions alone less as many random ones a row, below 0",
            difference(cells, "impressions", f"{NEGATIVES} random", "recall"),
            above=False,
        ),
        Condition(
            "ranking: AUC on shown in the same slot, impressions less random, above 0",
            difference(cells, ALONE, RANDOM, "auc_slot"),
        ),
        Condition(
            "ranking: AUC on shown of what the buyer truly likes, impressions less random, above 0",
            difference(cells, ALONE, RANDOM, "auc_liked"),
        ),
        Condition(
            "the same rankers: AUC against random listings, impressions less random, below 0",
            difference(cells, ALONE, RANDOM, "auc_random"),
            above=False,
        ),
    ]


CLAIM = Claim(
    number=11,
    folder=HERE,
    says="Impressions are poor negatives for retrieval and the right ones for ranking",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_head", "recall_tail", "recall_new", "same_kind", "auc_slot", "auc_liked", "auc_random"),
    headline=0,
    figure=by_variant(
        {
            "recall": "retrieval: recall@20",
            "auc_slot": "ranking: AUC on shown, same slot",
            "auc_random": "ranking: AUC against random",
        }
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
