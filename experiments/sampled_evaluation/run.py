"""Does evaluation against sampled items put models in the wrong order, and do corrected estimators put them right?

Usage: python experiments/sampled_evaluation/run.py [--short] [--work FOLDER]

Ten models of each market are ranked by recall@20 over the whole catalogue, and again from the rank that each positive
has among 100 items drawn at random. A positive of rank r among n items has a sampled rank 1 + Bin(m, (r - 1)/(n - 1)),
so nothing but the exact ranks is needed. The corrections: that of Krichene & Rendle (KDD 2020) which takes the sampled
rank to the whole catalogue, theirs which trades bias for variance, and the likeliest distribution of ranks (Li et al.,
KDD 2020). What the same models' order would be over the whole catalogue with other cases says what is chance.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    IN_BATCH,
    Cells,
    Claim,
    Condition,
    K,
    Market,
    Recipe,
    Scale,
    difference,
    level,
    mixed,
    try_claim,
)

from hatchway.data.engagements import Int64  # noqa: E402
from hatchway.evaluation.ranks import Float64  # noqa: E402
from hatchway.randomness import stream  # noqa: E402

SAMPLED, GAMMA, EM_STEPS, RESAMPLES = 100, 0.01, 500, 200
"""m; the weight of the variance; steps of the likeliest distribution; resampled sets of cases."""

METHODS = (
    "whole catalogue, other cases",
    "recall@10 of 100",
    "recall@20 of 100",
    "rank",
    "bias and variance",
    "likeliest",
)


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the ten models."""
    bare = {"item": {"categories": [], "numbers": [], "texts": []}}
    return {
        **{f"in-batch, alpha {a:g}": Recipe(IN_BATCH | {"alpha": a}) for a in (0.0, 0.25, 0.5, 0.75, 1.0)},
        "in-batch, ids alone": Recipe(IN_BATCH, model=bare),
        "mixed": Recipe(mixed(scale)),
        "mixed, 4 × uniform": Recipe(mixed(scale) | {"uniform": 4 * scale.uniform}),
        "mixed, yi": Recipe(mixed(scale) | {"positive": "yi"}),
        "mixed, ids alone": Recipe(mixed(scale), model=bare),
    }


def pmf(n: int) -> Float64:
    """Return the chance of each sampled rank, [n, m + 1], for every rank from 1 to n."""
    chance = np.arange(n) / (n - 1)
    return np.asarray(stats.binom.pmf(np.arange(SAMPLED + 1)[None, :], SAMPLED, chance[:, None]), np.float64)


def traded(n: int, table: Float64) -> Float64:
    """Return what each sampled rank adds to the estimate of recall@K, [m + 1], with bias against variance.

    x = ((1 - gamma) A'A + gamma diag(c))^-1 A'b with A = sqrt(P(r)) P(sampled | r), b = sqrt(P(r)) [r <= K], c = the
    sum of P(r) P(sampled | r), and P(r) = 1/n: the least bias^2 + gamma variance.
    """
    prior = 1 / n
    within = (np.arange(n) < K).astype(np.float64)
    left = (1 - GAMMA) * prior * table.T @ table + GAMMA * np.diag(prior * table.sum(0))
    return np.asarray(np.linalg.solve(left, prior * table.T @ within), np.float64)


def likeliest(sampled: Int64, table: Float64) -> float:
    """Return recall@K under the distribution of ranks that makes the sampled ranks likeliest, by expectation steps."""
    seen = np.bincount(sampled, minlength=SAMPLED + 1) / len(sampled)
    share = np.full(len(table), 1 / len(table))
    for _ in range(EM_STEPS):
        share = share * (table @ (seen / np.maximum(share @ table, 1e-300)))
    return float(share[:K].sum())


def estimates(ranks: Int64, n: int, table: Float64, weights: Float64, seed: int, model: str) -> dict[str, float]:
    """Return what each method says of a model, from one draw of 100 items for each case; ranks count from 0."""
    sampled = stream(seed, "sampled", model).binomial(SAMPLED, ranks / (n - 1))
    return {
        "recall@10 of 100": float((sampled < 10).mean()),
        "recall@20 of 100": float((sampled < 20).mean()),
        "rank": float((sampled * (n - 1) / SAMPLED < K).mean()),
        "bias and variance": float(weights[sampled].mean()),
        "likeliest": likeliest(sampled, table),
    }


def measure(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure how far each method's order of the ten models is from that of the whole catalogue."""
    cells: Cells = {method: [] for method in METHODS}
    for seed in seeds:
        market = Market(scale, seed, work)
        n = len(market.store.catalogue()) - 1  # without the listing looked at
        table = pmf(n)
        weights = traded(n, table)
        ranks = {}
        for model, recipe in recipes(scale).items():
            found = market.ranks(recipe)
            ranks[model] = np.minimum(found.better + found.tied // 2, n - 1)
        truth = np.array([(mine < K).mean() for mine in ranks.values()])
        said = [estimates(mine, n, table, weights, seed, model) for model, mine in ranks.items()]
        for method in METHODS[1:]:
            cells[method].append(against(truth, np.array([one[method] for one in said])))
        hits = np.array([mine < K for mine in ranks.values()])
        again = stream(seed, "cases").integers(hits.shape[1], size=(RESAMPLES, hits.shape[1]))
        chance = [against(truth, hits[:, cases].mean(1)) for cases in again]
        cells[METHODS[0]].append({name: float(np.mean([one[name] for one in chance])) for name in chance[0]})
        print(f"seed {seed}: " + ", ".join(f"{model} {value:.4f}" for model, value in zip(ranks, truth, strict=True)))
        for method in METHODS:
            print(f"seed {seed}, {method}: {cells[method][-1]}", flush=True)
    return cells


def against(truth: Float64, said: Float64) -> dict[str, float]:
    """Compare an order of models with the true one.

    Returns:
        wrong: the share of pairs in another order, a tie counted half; lost: the recall that is lost by taking the
        model that is said to be best; off: the mean distance of the estimates from the truth.
    """
    one, other = np.triu_indices(len(truth), 1)
    true, seen = np.sign(truth[one] - truth[other]), np.sign(said[one] - said[other])
    return {
        "wrong": float(np.abs(true - seen).mean() / 2),
        "lost": float(truth.max() - truth[int(said.argmax())]),
        "off": float(np.abs(truth - said).mean()),
    }


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    chance, usual, *_ = METHODS
    return [
        Condition(
            "pairs of models in the wrong order, recall@10 of 100 less chance, above 0",
            difference(cells, usual, chance, "wrong"),
        ),
        Condition("recall lost by the choice of recall@10 of 100, above 0", level(cells, usual, "lost")),
        *(
            Condition(
                f"pairs in the wrong order, recall@10 of 100 less {corrected}, above 0",
                difference(cells, usual, corrected, "wrong"),
            )
            for corrected in METHODS[3:]
        ),
    ]


CLAIM = Claim(
    number=15,
    folder=HERE,
    says="Evaluation against sampled items misleads, and corrected estimators mend it",
    recipes=recipes,
    conditions=conditions,
    shown=("wrong", "lost", "off"),
    headline=0,
    figure=by_variant(
        {
            "wrong": "pairs of models in the wrong order",
            "lost": "recall lost by the choice",
            "off": "error of the estimate",
        },
        groups={
            "": dict(zip(METHODS, ("chance", "@10 of 100", "@20 of 100", "rank", "traded", "likeliest"), strict=True))
        },
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, measure)
