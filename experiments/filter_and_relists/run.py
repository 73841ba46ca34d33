"""Does the filter for hidden positives matter where relists are many?

Usage: python experiments/filter_and_relists/run.py [--short] [--work FOLDER]

Markets in which none, 5 % or 20 % of the listings are relists. Two mined a positive beside in-batch and uniform
negatives, from ranks 21 to 100 and each counting about as much as an easy column; the filter (seller, title, what the
buyer engaged with in 30 days) works on all three sources, or is off. The markets have no photos. Near-duplicate queries
are the pages of listings whose object is listed more than once.
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
    NOT_SCREENED,
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
    over_seeds,
    ranks_file,
    try_claim,
)

from hatchway.evaluation.metrics import recall  # noqa: E402
from hatchway.evaluation.ranks import Ranks  # noqa: E402
from hatchway.training.run_folder import RunFolder  # noqa: E402

RATES = (0.0, 0.05, 0.2)


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants of each market: filter on and off."""
    return {
        name: mining(scale.hard, uniform=scale.uniform, weight=scale.as_easy, screening=screening)
        for name, screening in (("on", None), ("off", NOT_SCREENED))
    }


def copies(market: Market, run: RunFolder) -> dict[str, float]:
    """Measure near-duplicate queries: what they find, and what their rows show of the object and of its model.

    Returns:
        recall_duplicated: recall@20 of what buyers went for from the page of a listing whose object is listed more than
            once; copies, models: of the other listings of the object and of the model, the share that is among the
            first 20 on offer, over pages that have any.
    """
    asked = asked_of(market, run)
    scores = asked.scorer.scores(asked.contexts).clone()
    scores[:, torch.from_numpy(~asked.on_offer)] = -torch.inf
    looked_at = asked.cases.query_items[: len(scores)].astype(np.int64)
    rows = np.flatnonzero(looked_at >= 0)
    scores[rows, looked_at[rows]] = -torch.inf
    top = scores[rows].topk(K, dim=1).indices.numpy()
    ids = asked.log.catalogue.ids.to_numpy() - 1
    things, asking = market.truth.listings.thing[ids], asked.cases.query_items.astype(np.int64)
    duplicated = (asking >= 0) & (np.bincount(things)[things] > 1)[asking]
    found = {}
    if duplicated.any():
        with np.load(ranks_file(run.path)) as kept:
            # One case has one positive here, so that cases and positives are the same rows.
            ranks = Ranks(kept["offsets"], kept["better"], kept["tied"]).only(duplicated)[0]
        found["recall_duplicated"] = float(recall(ranks, K).mean())
    for name, group in (("copies", things), ("models", market.truth.listings.model[ids])):
        shares = []
        for query, row in zip(looked_at[rows], top, strict=True):
            same = (group == group[query]) & asked.on_offer
            same[query] = False
            if same.any():
                shares.append(same[row].sum() / min(int(same.sum()), K))
        if shares:
            found[name] = float(np.mean(shares))
    return found


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure each variant on the markets of each rate."""
    found: Cells = {}
    for seed in seeds:
        for rate in RATES:
            market = Market(scale, seed, work, {"relist_share": rate})
            for name, recipe in recipes(scale).items():
                cell = market.measures(recipe, copies)
                found.setdefault(f"{rate:.0%} {name}", []).append(cell)
                print(f"seed {seed}, {rate:.0%} {name}: recall {cell['recall']:.4f}", flush=True)
    return found


def _gain(cells: Cells, rate: str, measure: str) -> list[float]:
    pairs = zip(cells[f"{rate} on"], cells[f"{rate} off"], strict=True)
    return [on[measure] - off[measure] for on, off in pairs]


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    more = [many - none for many, none in zip(_gain(cells, "20%", "recall"), _gain(cells, "0%", "recall"), strict=True)]
    return [
        Condition(
            "20 % relists: recall of relisted, filter on less off, above 0",
            difference(cells, "20% on", "20% off", "recall_relisted"),
        ),
        Condition(
            "20 % relists: recall of near-duplicate queries, filter on less off, above 0",
            difference(cells, "20% on", "20% off", "recall_duplicated"),
        ),
        Condition(
            "20 % relists: other listings of the object that its page shows, on less off, above 0",
            difference(cells, "20% on", "20% off", "copies"),
        ),
        Condition("recall of all: what the filter brings at 20 % less at 0 %, above 0", over_seeds(more)),
        Condition(
            "5 % relists: recall of relisted, filter on less off, above 0",
            difference(cells, "5% on", "5% off", "recall_relisted"),
        ),
        Condition(
            "5 % relists: recall of near-duplicate queries, filter on less off, above 0",
            difference(cells, "5% on", "5% off", "recall_duplicated"),
        ),
    ]


CLAIM = Claim(
    number=14,
    folder=HERE,
    says="The filter for hidden positives matters where relists are many",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_relisted",
        "recall_duplicated",
        "recall_head",
        "recall_tail",
        "recall_new",
        "copies",
        "models",
        "liked",
    ),
    headline=0,
    figure=by_variant(
        {
            "recall": "recall@20",
            "recall_relisted": "recall@20, relisted",
            "recall_duplicated": "recall@20, near-duplicate queries",
            "copies": "other listings of the object shown",
            "models": "other listings of the model shown",
        },
        "relists among the listings, %",
        {f"filter {which}": {f"{rate:.0%} {which}": 100 * rate for rate in RATES} for which in ("on", "off")},
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
