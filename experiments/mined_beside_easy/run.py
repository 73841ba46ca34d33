"""Do mined negatives alone lose to random ones, and do a few of them beside many easy ones win?

Usage: python experiments/mined_beside_easy/run.py [--short] [--work FOLDER]

Mined negatives come from the index of a model of the day before, alone from ranks 21 to 100. Where a source stands
alone, there is no correction, so that every column counts alike. ``easy`` is in-batch and uniform, corrected: it stands
for the whole catalogue, and a mined column beside it counts as one item.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    Cells,
    Claim,
    Condition,
    K,
    Market,
    Recipe,
    Scale,
    asked_of,
    difference,
    mining,
    mixed,
    try_claim,
)

from hatchway.training.run_folder import RunFolder  # noqa: E402

ALONE = ("2 random a row", "2 mined")


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants: random ones alone, mined ones alone, a few beside many."""
    nothing = {"in_batch": False, "uniform": 0, "mined": 0, "alpha": 0.0}
    found = {"2 random a row": Recipe(nothing | {"per_row": 2})}
    found["2 mined"] = mining(scale.hard, uniform=0, in_batch=False, alpha=0.0, warm_up=0.0)
    found["easy"] = Recipe(mixed(scale))
    top = scale.window[0] - 1
    for first, last in ((1, top // 5), (1, top), scale.window):
        found[f"easy, 2 of {first}–{last}"] = mining((first, last), uniform=scale.uniform)
    return found


def title_match(market: Market, run: RunFolder) -> dict[str, float]:
    """Return which share of the words of the looked-at title the first 20 on offer have, and of other words of its."""
    asked = asked_of(market, run)
    contexts = asked.contexts
    scores = asked.scorer.scores(contexts).clone()
    scores[:, torch.from_numpy(~asked.on_offer)] = -torch.inf
    looked_at = asked.cases.query_items[: len(scores)].astype(np.int64)
    rows = np.flatnonzero(looked_at >= 0)
    scores[rows, looked_at[rows]] = -torch.inf
    top = scores[rows].topk(K, dim=1).indices.numpy()
    words = [set(title.lower().split()) for title in asked.log.catalogue.frame["title"]]
    found = [
        np.mean([len(words[query] & words[item]) for item in row]) / max(len(words[query]), 1)
        for query, row in zip(looked_at[rows], top, strict=True)
    ]
    return {"title_match": float(np.mean(found))}


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure each variant; the words of titles where a source stands alone."""
    found: Cells = {name: [] for name in recipes(scale)}
    for seed in seeds:
        market = Market(scale, seed, work)
        for name, recipe in recipes(scale).items():
            found[name].append(market.measures(recipe, title_match if name in ALONE else None))
            print(f"seed {seed}, {name}: recall {found[name][-1]['recall']:.4f}", flush=True)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    *_, few = cells
    return [
        Condition(
            "recall, 2 mined alone less easy ones alone, is below 0",
            difference(cells, "2 mined", "easy", "recall"),
            above=False,
        ),
        Condition(
            "recall, 2 mined alone less 2 random a row alone, is below 0",
            difference(cells, "2 mined", "2 random a row", "recall"),
            above=False,
        ),
        Condition(
            "words of the looked-at title that a row has, 2 mined alone less 2 random a row alone, below 0",
            difference(cells, "2 mined", "2 random a row", "title_match"),
            above=False,
        ),
        Condition(f"recall, {few} less easy alone, above 0", difference(cells, few, "easy", "recall")),
        Condition(f"right order within a kind, {few} less easy alone, above 0", difference(cells, few, "easy", "fine")),
    ]


CLAIM = Claim(
    number=7,
    folder=HERE,
    says="Mined negatives alone lose to random ones; a few beside many easy ones win",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_head", "recall_tail", "recall_new", "fine", "title_match", "same_kind", "liked"),
    headline=3,
    figure=by_variant(
        {"recall": "recall@20", "fine": "right order within a kind", "title_match": "words of the title"}
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
