"""What do draws by popularity to a power below 1 change, and what does the correction?

Usage: python experiments/popularity_power/run.py [--short] [--work FOLDER]

All negatives are drawn by the training count to the power beta. Without correction a score comes to ln P less
beta ln Q, with it to ln P: slopes on ln Q of 1 - beta and 1, where ln P has a slope of 1. Besides: how many draws go to
dead listings, those that their sellers have forgotten, and how many to listings that were gone by then.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from exact_setting import BATCH, STEPS, SmallMarket, kept, learned  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    SHORT,
    TEST_DAYS,
    Cells,
    Claim,
    Condition,
    Market,
    Recipe,
    Scale,
    difference,
    of_recipes,
    over_seeds,
    try_claim,
)

from hatchway.data.engagements import training_counts  # noqa: E402
from hatchway.data.living import living_in_training  # noqa: E402
from hatchway.data.log import build_log  # noqa: E402
from hatchway.negatives.distribution import Distribution, UniformDistribution  # noqa: E402
from hatchway.negatives.popularity import Popularity, PopularityDistribution  # noqa: E402
from hatchway.simulation.listings import DAY  # noqa: E402

BETAS = (0.75, 1.0)
DRAWS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Powers of which it is looked at where their draws go."""

TOLERANCE = 0.1


def name(beta: float, alpha: float) -> str:
    """Return what a variant is called."""
    return f"{beta:g} {'corrected' if alpha else 'plain'}"


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants; draws over the whole catalogue stand at the end, for the dead ones among them."""
    draws = scale.batch + scale.uniform
    found = {
        name(beta, alpha): Recipe(
            {"in_batch": False, "uniform": 0, "popularity": draws, "mined": 0, "beta": beta, "alpha": alpha}
        )
        for alpha in (0.0, 1.0)
        for beta in BETAS
    }
    return found | {"uniform": Recipe({"in_batch": False, "uniform": draws, "mined": 0})}


def wasted(market: Market, beta: float | None) -> dict[str, float]:
    """Return the shares of draws that go to listings that nobody can want; beta None draws from the whole catalogue.

    Dead is what its seller has forgotten and answers nobody about; gone is what was gone when the last day of training
    began; rare is what had one or two positives.
    """
    settings = Recipe({"in_batch": True}).settings(market.scale, market.seed)
    log = build_log(market.store, settings.positives, settings.split, market.seed)
    living = living_in_training(log)
    alive = None if living is None else torch.from_numpy(living)
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    drawn: Distribution = UniformDistribution(len(counts), alive)
    if beta is not None:
        drawn = PopularityDistribution(counts, beta, alive)
    chance = drawn.chance(torch.arange(len(counts))).numpy()
    last = market.settings.start + (market.settings.days - TEST_DAYS - 1) * DAY
    gone = (log.catalogue.frame["gone"] < last).fill_null(value=False).to_numpy()
    objects = market.truth.listings
    dead = objects.stale[log.catalogue.ids.to_numpy() - 1].astype(bool)
    return {
        "dead": float(chance[dead].sum()),
        "gone": float(chance[gone].sum()),
        "rare": float(chance[(counts.numpy() > 0) & (counts.numpy() <= 2)].sum()),
    }


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure the recipes; add the slope where P is known, and where the draws go."""
    cells = of_recipes(CLAIM)(scale, seeds, work)
    steps = STEPS // 10 if scale is SHORT else STEPS
    for place, seed in enumerate(seeds):
        market, small = Market(scale, seed, work), SmallMarket.make(seed)
        cells["uniform"][place] |= wasted(market, None)
        for beta in DRAWS:
            cells.setdefault(f"{beta:g}", []).append(wasted(market, beta))
        for beta in BETAS:
            for alpha in (0.0, 1.0):
                source = Popularity(small.popularity * 1e6, BATCH, beta)
                cells[name(beta, alpha)][place] |= kept(
                    work / f"exact-power-{beta:g}-{alpha:g}-{seed}.json",
                    lambda: {
                        "exact_slope": small.slope(learned(small, [source], alpha=alpha, steps=steps)),  # noqa: B023
                        "theory": small.slope(small.chance.log()) - (0 if alpha else beta),  # noqa: B023
                    },
                )
    return cells


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    seeds = range(len(cells["uniform"]))
    known = [name(beta, alpha) for beta in BETAS for alpha in (0.0, 1.0)]
    off = over_seeds([max(abs(cells[n][s]["exact_slope"] - cells[n][s]["theory"]) for n in known) for s in seeds])
    return [
        Condition(
            "head recall, plain: power .75 less power 1 is above 0 (softened)",
            difference(cells, name(0.75, 0), name(1, 0), "recall_head"),
        ),
        Condition(
            "head recall, power .75: corrected less plain is above 0 (not removed)",
            difference(cells, name(0.75, 1), name(0.75, 0), "recall_head"),
        ),
        Condition(
            "recall, power .75: corrected less plain is above 0",
            difference(cells, name(0.75, 1), name(0.75, 0), "recall"),
        ),
        Condition(
            "slope of the score, plain: power .75 less power 1 is above 0 (theory: .25)",
            difference(cells, name(0.75, 0), name(1, 0), "slope"),
        ),
        Condition(
            "slope of the score, power .75: corrected less plain is above .375 (theory: .75)",
            difference(cells, name(0.75, 1), name(0.75, 0), "slope"),
            0.375,
        ),
        Condition(
            f"known P: the slope is farthest from theory (1 - beta plain, 1 corrected) by less than {TOLERANCE}",
            off,
            TOLERANCE,
            above=False,
        ),
        Condition(
            "share of draws on dead listings, beta 0 less beta 1, above 0",
            difference(cells, "0", "1", "dead"),
        ),
        Condition(
            "share of draws on dead listings, whole catalogue less beta 0.75, above 0",
            difference(cells, "uniform", "0.75", "dead"),
        ),
    ]


CLAIM = Claim(
    number=3,
    folder=HERE,
    says="Frequency to the power .75 only softens the bias; the correction removes it",
    recipes=recipes,
    conditions=conditions,
    shown=(
        "recall",
        "recall_head",
        "recall_tail",
        "recall_new",
        "share_head",
        "share_never",
        "slope",
        "exact_slope",
        "theory",
        "dead",
        "gone",
        "rare",
    ),
    headline=1,
    figure=by_variant(
        {
            "slope": "slope of the score, market",
            "exact_slope": "slope of the score, P known",
            "recall_head": "recall@20, head",
            "dead": "draws on dead listings",
            "gone": "draws on listings gone by then",
            "rare": "draws on listings with one positive or two",
        },
        "power of the frequency",
        {
            "corrected": {name(beta, 1): beta for beta in BETAS},
            "plain": {name(beta, 0): beta for beta in BETAS},
            "draws alone": {f"{beta:g}": beta for beta in DRAWS},
        },
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
