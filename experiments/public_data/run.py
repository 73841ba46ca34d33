"""The claims about negatives that public data can show, tried on Amazon Beauty, MovieLens-1M and a sample of MIND.

Usage: python experiments/public_data/run.py [--short] [--data FOLDER] [--work FOLDER] [--minutes M]

FOLDER holds the data sets (default: HATCHWAY_DATA); without them nothing is done. Every variant is trained with every
seed, a seed after the other; with M minutes gone, no further seed of a data set is begun once it has three. What
decides each claim is the same as on the simulated markets, where it can be measured here.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from public_figure import draw  # noqa: E402
from public_runs import BATCH, UNIFORM, Beauty, Films, K, News, PublicData, Sequences, Variant  # noqa: E402
from trials import Cells, Condition, difference, over_seeds, verdict  # noqa: E402

from hatchway.artefacts.atomic import write_text  # noqa: E402
from hatchway.randomness import stream  # noqa: E402
from hatchway.training.memory import keep_freed_memory  # noqa: E402

SEEDS, FEWEST = (1, 2, 3, 4, 5), 3
BEAUTY, FILMS, NEWS, ORDER = Beauty.name, Films.name, News.name, f"{Films.name}, ten models"
ALPHAS, BETAS = (0.0, 0.5, 1.0, 1.5), (0.0, 0.75, 1.0)
CLOSE = 0.95
"""Share of the exact softmax's recall that is close enough."""


def script(folder: str) -> ModuleType:
    """Load the script of another experiment, whose measures are used here."""
    name = f"experiment_{folder}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE.parent / folder / "run.py")
        assert spec is not None  # noqa: S101
        assert spec.loader is not None  # noqa: S101
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def wrong_counts() -> AbstractContextManager[None]:
    """Account for uniform columns by popularity, as experiments/blended_frequency does."""
    found: AbstractContextManager[None] = script("blended_frequency").wrong_counts()
    return found


EXPLAINS = "epochs ×2"
"""Added when all others had been measured, to tell what more steps do from what more columns do; it decides nothing."""

IN_BATCH: Mapping[str, Any] = {"uniform": 0}


def drawn(beta: float, alpha: float) -> str:
    """Return what draws by a power of popularity are called."""
    return f"power {beta:g}" + ("" if not beta else " corrected" if alpha else " plain")


def by_power(beta: float, alpha: float) -> Variant:
    """Draw all negatives by a power of popularity."""
    draws = BATCH + UNIFORM
    return Variant({"in_batch": False, "uniform": 0, "popularity": draws, "beta": beta, "alpha": alpha})


ALPHA = {f"alpha {alpha:g}": Variant({**IN_BATCH, "alpha": alpha}) for alpha in ALPHAS}
POWER = {drawn(beta, alpha): by_power(beta, alpha) for beta in BETAS for alpha in (0.0, 1.0) if beta or alpha}
BEAUTY_VARIANTS: Mapping[str, Variant] = {
    **ALPHA,
    "mixed": Variant(),
    "in-batch yi": Variant({**IN_BATCH, "positive": "yi"}),
    "in-batch count": Variant({**IN_BATCH, "positive": "count"}),
    "mixed yi": Variant({"positive": "yi"}),
    "mixed, popularity's count": Variant(around=wrong_counts),
    **POWER,
    "uniform ×2": Variant({"uniform": 2 * UNIFORM}),
    "uniform ×2, popularity's count": Variant({"uniform": 2 * UNIFORM}, around=wrong_counts),
    "batch ×2": Variant(training={"batch": 2 * BATCH}),
    "batch ×2, epochs ×2": Variant(training={"batch": 2 * BATCH, "epochs": 4}),
    EXPLAINS: Variant(training={"epochs": 4}),
}
FILMS_VARIANTS: Mapping[str, Variant] = {
    **ALPHA,
    "in-batch yi": Variant({**IN_BATCH, "positive": "yi"}),
    "mixed": Variant(),
    "mixed, 8 dimensions": Variant(model={"dimension": 8}),
    "mixed, 1 epoch": Variant(training={"epochs": 1}),
    "exact softmax": Variant(full=True),
}
TEN = (*FILMS_VARIANTS, "popularity")
SHOWN = 10
"""Negatives of a row's own, as in experiments/impressions_by_stage."""
NOTHING: Mapping[str, Any] = {"in_batch": False, "uniform": 0}
NEWS_VARIANTS: Mapping[str, Variant] = {
    "easy": Variant(),
    "impressions": Variant({**NOTHING, "impressions": SHOWN}),
    "random": Variant({**NOTHING, "per_row": SHOWN}),
    "easy, impressions": Variant({"impressions": SHOWN}),
}
VARIANTS: Mapping[str, Mapping[str, Variant]] = {
    BEAUTY: BEAUTY_VARIANTS,
    FILMS: FILMS_VARIANTS,
    NEWS: NEWS_VARIANTS,
}


@dataclass(frozen=True)
class Group:
    """A claim on a data set.

    Attributes:
        claim: its number in the index.
        data: the data set.
        measured: what is looked at, in words.
        variants: which cells stand in the table.
        shown: their measures.
        conditions: what decides.
        headline: which condition's figure stands in the index.
    """

    claim: int
    data: str
    measured: str
    variants: Sequence[str]
    shown: Sequence[str]
    conditions: Callable[[Cells], Sequence[Condition]]
    headline: int = 0


def slope_by(cells: Cells, places: Mapping[str, float]) -> tuple[float, float, float]:
    """Return by how much the score's slope on log popularity changes for 1 of what tells variants apart."""
    rows = np.array([[cell["slope"] for cell in cells[name]] for name in places])
    return over_seeds([float(np.polyfit(list(places.values()), row, 1)[0]) for row in rows.T])


def of_correction(cells: Cells) -> Sequence[Condition]:
    """Claim 1."""
    one, none = "alpha 1", "alpha 0"
    return [
        Condition("recall of head items, alpha 1 less 0, above 0", difference(cells, one, none, "recall_head")),
        Condition("head items among the first 20, alpha 1 less 0, above 0", difference(cells, one, none, "share_head")),
        Condition("recall of all, alpha 1 less 0, above 0", difference(cells, one, none, "recall")),
    ]


def of_alpha(cells: Cells) -> Sequence[Condition]:
    """Claim 2."""
    more, one = "alpha 1.5", "alpha 1"
    return [
        Condition(
            "head items among the first 20, alpha 1.5 less 1, above 0", difference(cells, more, one, "share_head")
        ),
        Condition(
            "tail items among the first 20, alpha 1.5 less 1, below 0",
            difference(cells, more, one, "share_tail"),
            above=False,
        ),
        Condition(
            "the score's slope on log popularity rises, for 1 of alpha, by more than 0 (theory: 1)",
            slope_by(cells, {f"alpha {alpha:g}": alpha for alpha in ALPHAS}),
        ),
    ]


def of_power(cells: Cells) -> Sequence[Condition]:
    """Claim 3."""
    plain, corrected, whole = drawn(0.75, 0), drawn(0.75, 1), drawn(1, 0)
    return [
        Condition(
            "head recall, plain: power .75 less power 1, above 0 (softened)",
            difference(cells, plain, whole, "recall_head"),
        ),
        Condition(
            "head recall, power .75: corrected less plain, above 0 (not removed)",
            difference(cells, corrected, plain, "recall_head"),
        ),
        Condition("recall, power .75: corrected less plain, above 0", difference(cells, corrected, plain, "recall")),
        Condition(
            "slope, plain: falls for 1 of the power by more than .5 (theory: 1)",
            slope_by(cells, {drawn(beta, 0): beta for beta in BETAS}),
            -0.5,
            above=False,
        ),
        Condition(
            "slope, power .75: corrected less plain, above .375 (theory: .75)",
            difference(cells, corrected, plain, "slope"),
            0.375,
        ),
        Condition(
            "slope, corrected: changes for 1 of the power by less than .25 (theory: 0)",
            over_seeds([abs(one) for one in _slopes(cells)]),
            0.25,
            above=False,
        ),
    ]


def _slopes(cells: Cells) -> list[float]:
    """Return, seed by seed, by how much the corrected slope changes for 1 of the power."""
    rows = np.array([[cell["slope"] for cell in cells[drawn(beta, 1)]] for beta in BETAS])
    return [float(np.polyfit(BETAS, row, 1)[0]) for row in rows.T]


def of_blend(cells: Cells) -> Sequence[Condition]:
    """Claim 4."""
    found = []
    for right, factor in (("mixed", 1), ("uniform ×2", 2)):
        wrong = f"{right}, popularity's count"
        for measure, words in (
            ("recall", "recall"),
            ("recall_tail", "tail recall"),
            ("share_tail", "tail items among the first 20"),
        ):
            says = f"{factor} × uniform: {words}, blended less popularity, above 0"
            found.append(Condition(says, difference(cells, right, wrong, measure)))
    return found


def of_positive(cells: Cells) -> Sequence[Condition]:
    """Claim 6."""
    names = {"in-batch": "alpha 1"} | ({"mixed": "mixed"} if "mixed yi" in cells else {})
    found = []
    for kind, usual in names.items():
        for measure, words in (("recall_tail", "tail recall"), ("recall", "recall")):
            says = f"{kind}: {words}, uncorrected less yi, above 0"
            found.append(Condition(says, difference(cells, usual, f"{kind} yi", measure)))
    if "in-batch count" in cells:
        figure = difference(cells, "in-batch count", "in-batch yi", "recall_tail")
        found.append(Condition("in-batch: tail recall, count less yi, above 0", figure))
    return found


def of_columns(cells: Cells) -> Sequence[Condition]:
    """Claim 12."""
    pairs = (
        ("uniform ×1", "mixed", "none", "alpha 1"),
        ("uniform ×2", "uniform ×2", "×1", "mixed"),
        ("batch ×2", "batch ×2", "×1", "mixed"),
        ("batch ×2, epochs ×2", "batch ×2, epochs ×2", "×1", "mixed"),
    )
    return [
        Condition(f"recall, {more} less {less}, above 0", difference(cells, name, other, "recall"))
        for more, name, less, other in pairs
    ]


def of_order(cells: Cells) -> Sequence[Condition]:
    """Claim 15; what decides is what decides on the simulated markets."""
    found: Sequence[Condition] = script("sampled_evaluation").conditions(cells)
    return found


def of_stage(cells: Cells) -> Sequence[Condition]:
    """Claim 11."""
    return [
        Condition(
            "retrieval: recall, impressions alone less easy negatives, below 0",
            difference(cells, "impressions", "easy", "recall"),
            above=False,
        ),
        Condition(
            "retrieval: recall, impressions alone less as many random ones a row, below 0",
            difference(cells, "impressions", "random", "recall"),
            above=False,
        ),
        Condition(
            "ranking: AUC on shown, impressions less as many random ones, above 0",
            difference(cells, "impressions", "random", "auc_shown"),
        ),
        Condition(
            "the same models: AUC against all articles, impressions less random, below 0",
            difference(cells, "impressions", "random", "auc_random"),
            above=False,
        ),
    ]


def of_full(cells: Cells) -> Sequence[Condition]:
    """Claim 16."""
    exact = cells["exact softmax"]

    def beside(name: str) -> tuple[float, float, float]:
        return over_seeds([one["recall"] / all_["recall"] for one, all_ in zip(cells[name], exact, strict=True)])

    return [
        Condition(f"recall, mixed over exact softmax, above {CLOSE}", beside("mixed"), CLOSE),
        Condition(f"recall, in-batch over exact softmax, above {CLOSE}", beside("alpha 1"), CLOSE),
        Condition(
            "processor seconds of training, exact softmax over mixed, above 1",
            over_seeds([all_["seconds"] / one["seconds"] for one, all_ in zip(cells["mixed"], exact, strict=True)]),
            1.0,
        ),
    ]


RECALLS = ("recall", "recall_head", "recall_torso", "recall_tail")
ROWS = ("share_head", "share_tail", "slope")
METHODS: Sequence[str] = (
    "whole catalogue, other cases",
    "recall@10 of 100",
    "recall@20 of 100",
    "rank",
    "bias and variance",
    "likeliest",
)
FIRST = [name for name in ALPHA if name != "alpha 1.5"]
GROUPS: Sequence[Group] = (
    Group(1, BEAUTY, "recall and rows, in-batch, alpha 0 to 1", FIRST, (*RECALLS, "share_head"), of_correction),
    Group(1, FILMS, "recall and rows, in-batch, alpha 0 to 1", FIRST, (*RECALLS, "share_head"), of_correction),
    Group(2, BEAUTY, "rows and slope, in-batch, alpha 0 to 1.5", list(ALPHA), (*ROWS, "recall"), of_alpha),
    Group(2, FILMS, "rows and slope, in-batch, alpha 0 to 1.5", list(ALPHA), (*ROWS, "recall"), of_alpha),
    Group(
        3,
        BEAUTY,
        "recall and slope, draws by popularity to a power",
        list(POWER),
        ("slope", *RECALLS, "share_head"),
        of_power,
        1,
    ),
    Group(
        4,
        BEAUTY,
        "recall by slice, two counts for in-batch and uniform columns",
        ["mixed", "mixed, popularity's count", "uniform ×2", "uniform ×2, popularity's count"],
        (*RECALLS, *ROWS),
        of_blend,
        1,
    ),
    Group(
        6,
        BEAUTY,
        "recall by slice, three switches of the positive",
        ["alpha 1", "in-batch count", "in-batch yi", "mixed", "mixed yi"],
        (*RECALLS, "share_head"),
        of_positive,
    ),
    Group(
        6,
        FILMS,
        "recall by slice, two switches of the positive",
        ["alpha 1", "in-batch yi"],
        (*RECALLS, "share_head"),
        of_positive,
    ),
    Group(
        11,
        NEWS,
        "recall of clicks, and AUC on what was shown",
        [*NEWS_VARIANTS, "clicks", "clicks a showing"],
        ("recall", "recall_known", "auc_shown", "auc_trained", "auc_random"),
        of_stage,
    ),
    Group(
        12,
        BEAUTY,
        "recall and seconds, batch and uniform set larger in turn",
        ["alpha 1", "mixed", "uniform ×2", "batch ×2", "batch ×2, epochs ×2", EXPLAINS],
        (*RECALLS, "seconds"),
        of_columns,
        1,
    ),
    Group(15, ORDER, "the order of ten models by six evaluations", METHODS, ("wrong", "lost", "off"), of_order),
    Group(
        16,
        FILMS,
        "recall and seconds beside the exact softmax",
        ["exact softmax", "mixed", "alpha 1"],
        (*RECALLS, "seconds"),
        of_full,
    ),
)


def order_of_models(data: Sequences, seed: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Compare the order of the ten models by each evaluation with that over all items; and their true recalls.

    All items but those of a buyer's own sequence are candidates, whose number differs by ten in three thousand between
    buyers; it is taken as the smallest.
    """
    order = script("sampled_evaluation")
    log = data.log(seed)
    longest = int(np.diff(log.engagements.offsets).max()) - 1
    n = len(log.catalogue) - longest
    table = order.pmf(n)
    weights = order.traded(n, table)
    ranks = {}
    for model in TEN:
        known = model != "popularity"
        found = data.ranks(model, VARIANTS[FILMS][model], seed) if known else data.popularity(seed)
        ranks[model] = np.minimum(found.better + found.tied // 2, n - 1)
    hits = np.array([mine < K for mine in ranks.values()])
    truth = hits.mean(1)
    said = [order.estimates(mine, n, table, weights, seed, model) for model, mine in ranks.items()]
    cells = {method: order.against(truth, np.array([one[method] for one in said])) for method in METHODS[1:]}
    again = stream(seed, "cases").integers(hits.shape[1], size=(order.RESAMPLES, hits.shape[1]))
    chance = [order.against(truth, hits[:, cases].mean(1)) for cases in again]
    cells[METHODS[0]] = {name: float(np.mean([one[name] for one in chance])) for name in chance[0]}
    return {method: cells[method] for method in METHODS}, dict(zip(TEN, truth.tolist(), strict=True))


def measure(data: PublicData, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return what was measured of all variants on a data set with a seed; MovieLens has the order of ten besides."""
    found = {}
    for name, variant in VARIANTS[data.name].items():
        found[name] = data.measures(name, variant, seed)
        print(f"seed {seed}, {data.name}, {name}: recall {found[name]['recall']:.4f}", flush=True)
    if isinstance(data, News):
        found |= data.without_model(seed)
    if isinstance(data, Films):
        order, truth = order_of_models(data, seed)
        found["popularity"] = {"recall": truth["popularity"]}
        return {data.name: found, ORDER: order}
    return {data.name: found}


def results_of(cells: Mapping[str, Cells]) -> list[dict[str, Any]]:
    """Return what became of every claim, from the cells."""
    found = []
    for group in GROUPS:
        conditions = group.conditions(cells[group.data])
        found.append(
            {
                "claim": group.claim,
                "data": group.data,
                "measured": group.measured,
                "verdict": verdict(conditions),
                "headline": group.headline,
                "conditions": [
                    {"says": c.says, "figure": list(c.figure), "bound": c.bound, "above": c.above, "holds": c.holds}
                    for c in conditions
                ],
            }
        )
    return found


def table(group: Group, cells: Cells) -> str:
    """Return the verdict of a claim on a data set, what decided it, and the measures."""
    conditions = group.conditions(cells)
    seeds = len(next(iter(cells.values())))
    lines = [f"**{group.data}: {verdict(conditions)}** ({group.measured}; {seeds} seeds).", ""]
    lines += ["| what has to be true | measured | |", "|---|---|---|"]
    for condition in conditions:
        mean, low, high = condition.figure
        lines.append(f"| {condition.says} | {mean:.4f} ({low:.4f} to {high:.4f}) | {condition.holds} |")
    lines += ["", "| | " + " | ".join(group.shown) + " |", "|---" * (len(group.shown) + 1) + "|"]
    for name in filter(cells.__contains__, group.variants):
        entries = [_entry([cell[measure] for cell in cells[name] if measure in cell]) for measure in group.shown]
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _entry(values: Sequence[float]) -> str:
    """Write a mean with half its interval."""
    if not values:
        return ""
    mean, low, _ = over_seeds(values)
    digits = 4 if abs(mean) < 2 else 1
    return f"{mean:.{digits}f} ± {mean - low:.{digits}f}"


def marks(claim: int) -> tuple[str, str]:
    """Return what stands before and after a claim's tables."""
    return f"<!-- claim {claim} -->", f"<!-- end of claim {claim} -->"


def tables(claim: int, cells: Mapping[str, Cells]) -> str:
    """Return what stands between a claim's marks."""
    return "\n\n".join(table(group, cells[group.data]) for group in GROUPS if group.claim == claim)


def written(page: str, cells: Mapping[str, Cells]) -> str:
    """Return the page with the tables of all claims."""
    for claim in dict.fromkeys(group.claim for group in GROUPS):
        begin, end = marks(claim)
        if begin not in page:
            page += f"\n## Claim {claim}\n\n{begin}\n{end}\n"
        page = page[: page.index(begin) + len(begin)] + f"\n{tables(claim, cells)}\n" + page[page.index(end) :]
    return page


def main() -> None:
    """Run what is not there yet, and write what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HATCHWAY_DATA", "shared/data")))
    parser.add_argument("--work", type=Path, default=Path("build/experiments/public"))
    parser.add_argument("--short", action="store_true", help="a part of the data; prints, and writes nothing")
    parser.add_argument("--minutes", type=float, default=np.inf, help="after which no further seed is begun")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    work = options.work / ("short" if options.short else "full")
    sets = [kind(options.data, work, options.short) for kind in (Beauty, Films, News)]
    absent = [str(data.path()) for data in sets if not data.there()]
    if absent:
        print(f"nothing done: {', '.join(absent)} not there; HATCHWAY_DATA or --data names the public data sets")
        return
    begin = time.monotonic()
    cells: dict[str, Cells] = {}
    done: dict[str, list[int]] = {data.name: [] for data in sets}
    for seed in SEEDS[:2] if options.short else SEEDS:
        for data in sets:
            if len(done[data.name]) >= FEWEST and time.monotonic() - begin > 60 * options.minutes:
                continue
            done[data.name].append(seed)
            for key, found in measure(data, seed).items():
                for name, measures in found.items():
                    cells.setdefault(key, {}).setdefault(name, []).append(measures)
    groups = results_of(cells)
    for group in groups:
        print(f"claim {group['claim']}, {group['data']}: {group['verdict']}")
        for condition in group["conditions"]:
            mean, low, high = condition["figure"]
            print(f"  {condition['holds']:9s} {condition['says']}: {mean:.4g} ({low:.4g} to {high:.4g})")
    if options.short:
        return
    settings = {
        data.name: {
            name: data.settings(variant, 0).model_dump(mode="json", exclude_defaults=True)
            | ({"exact softmax": True} if variant.full else {})
            for name, variant in VARIANTS[data.name].items()
        }
        for data in sets
    }
    result = {"seeds": done, "groups": groups, "settings": settings, "cells": cells}
    write_text(HERE / "results.json", json.dumps(result, indent=1) + "\n")
    draw(cells, HERE / "figure.svg")
    page = HERE / "README.md"
    write_text(page, written(page.read_text("utf-8") if page.exists() else "# The same on public data\n", cells))


if __name__ == "__main__":
    main()
