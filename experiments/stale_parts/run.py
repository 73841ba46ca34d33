"""Do stale frequencies and a stale index hurt, and does the alarm see it before recall does?

Usage: python experiments/stale_parts/run.py [--short] [--work FOLDER]

``frequencies 4`` trains on all days with frequencies that know nothing of the last four. ``index 4`` mines from the
index of a model whose data end four days before the training part; by default the package refuses one that is older
than two days. Nothing else differs. Mined are ranks 21 to 100, each counting
about as much as an easy column. The alarms are the package's own, with its own limits.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from mined_truth import MinedTruth  # noqa: E402
from trial_figures import by_variant  # noqa: E402
from trials import (  # noqa: E402
    TEST_DAYS,
    Cells,
    Claim,
    Condition,
    Earlier,
    K,
    Market,
    Recipe,
    Scale,
    difference,
    mining,
    mixed,
    over_seeds,
    try_claim,
)

from hatchway.data.engagements import Part  # noqa: E402
from hatchway.evaluation.cases import cases_for  # noqa: E402
from hatchway.evaluation.metrics import recall  # noqa: E402
from hatchway.nightly.frequencies import Passed, look_at  # noqa: E402
from hatchway.nightly.settings import SketchSettings  # noqa: E402
from hatchway.simulation.listings import DAY  # noqa: E402
from hatchway.training.mining.settings import MiningSettings  # noqa: E402

FRESH, RECENT, LOSS = "frequencies 0", 4, 0.02
"""Risen listings had most of their positives in the last four days; recall has fallen that lost two per cent."""


def ages(scale: Scale) -> tuple[int, ...]:
    """Return the days without an update."""
    return tuple(days for days in (1, 2, 4, 8) if days < scale.market.days - TEST_DAYS)


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants; the index of the day before is ``index 1``, and without mining stands ``frequencies 0``."""
    found = {FRESH: Recipe(mixed(scale))}
    found |= {f"frequencies {days}": Recipe(mixed(scale), unseen_days=days) for days in ages(scale)}
    for days in (days for days in ages(scale) if days != 2):
        mines = True if days == 1 else Earlier(days=days)
        found[f"index {days}"] = mining(scale.hard, uniform=scale.uniform, weight=scale.as_easy, mines=mines)
    return found


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure recall by slice, and what the alarms say."""
    found: Cells = {name: [] for name in recipes(scale)}
    for seed in seeds:
        market = Market(scale, seed, work)
        log = MinedTruth(market).log
        settings = Recipe({}).settings(scale, seed)
        relevant = cases_for(log.engagements, Part.TEST, grain="row", exclude_seen=False).relevant_items
        whole, before = (market.seen(settings, days) for days in (0, RECENT))
        slices = {"risen": (whole >= 4) & (before <= whole / 4), "faded": (whole >= 4) & (before == whole)}
        for name, recipe in recipes(scale).items():
            cell = market.measures(recipe)
            ranks = market.ranks(recipe)
            for which, items in slices.items():
                chosen = items[relevant]
                cell[f"recall_{which}"] = float(recall(ranks.only(chosen)[0], K).mean()) if chosen.any() else 0.0
                cell[f"cases_{which}"] = float(chosen.sum())
            cell |= _alarms(market, scale, recipe)
            found[name].append(cell)
            print(f"seed {seed}, {name}: recall {cell['recall']:.4f}", flush=True)
    return found


def _alarms(market: Market, scale: Scale, recipe: Recipe) -> dict[str, float]:
    """Return what the alarms look at, and whether one is raised."""
    if recipe.mines:
        age = recipe.mines.days if isinstance(recipe.mines, Earlier) else 1
        return {"alarm": float(age > MiningSettings().max_index_age_days)}
    settings, limits = Recipe({}).settings(scale, market.seed), SketchSettings()
    log = MinedTruth(market).log
    rows, times = log.engagements.positives(Part.TRAIN), np.asarray(log.engagements.times)
    rows = rows[np.argsort(times[rows], kind="stable")]
    now = market.settings.start + (market.settings.days - TEST_DAYS) * DAY
    seen = torch.from_numpy(market.seen(settings, recipe.unseen_days)).double()
    passed = Passed(log.engagements.items[rows].astype(np.int64), times[rows])
    looked = look_at(seen / seen.sum(), passed, now - recipe.unseen_days * DAY, now, limits)
    if looked is None:
        raise SystemExit("the market has no positive in its last hours")
    cover, hours = looked.covered / looked.expected_covered, looked.seconds / 3_600
    return {"cover": cover, "alarm": float(hours > limits.most_hours or cover < limits.least_cover)}


def first_days(cells: Cells, part: str, measure: str) -> tuple[list[float], list[float]]:
    """Return the days without update after which recall had fallen, and after which the alarm was raised, by seed.

    What had not happened by the last of the days is said to happen the day after it.
    """
    names = [name for name in cells if name.startswith(part)]
    fresh = cells[names[0]]
    never = int(names[-1].split()[-1]) + 1
    fall, alarm = [], []
    for seed, good in enumerate(fresh):
        by_day = {int(name.split()[-1]): cells[name][seed] for name in names}
        fallen = [day for day, cell in by_day.items() if cell[measure] < (1 - LOSS) * good[measure]]
        raised = [day for day, cell in by_day.items() if cell["alarm"]]
        fall.append(float(min(fallen, default=never)))
        alarm.append(float(min(raised, default=never)))
    return fall, alarm


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    oldest = max(int(name.split()[-1]) for name in cells)
    found = [
        Condition(
            f"{what}, frequencies {oldest} days old less fresh, below 0",
            difference(cells, f"frequencies {oldest}", FRESH, measure),
            above=False,
        )
        for what, measure in (("recall", "recall"), ("recall of risen listings", "recall_risen"))
    ]
    found += [
        Condition(
            f"recall, index {oldest} days old less of the day before, below 0",
            difference(cells, f"index {oldest}", "index 1", "recall"),
            above=False,
        ),
        Condition(
            f"recall, index {oldest} days old less no mining, below 0",
            difference(cells, f"index {oldest}", FRESH, "recall"),
            above=False,
        ),
    ]
    for part, measure, what in (
        ("frequencies", "recall_risen", "recall of risen listings has fallen by 2 %"),
        ("index", "recall", "recall has fallen by 2 %"),
    ):
        fall, alarm = first_days(cells, part, measure)
        later = [one - other for one, other in zip(fall, alarm, strict=True)]
        found.append(Condition(f"{part}: the day that {what}, less the day of the alarm, above 0", over_seeds(later)))
    return found


CLAIM = Claim(
    number=13,
    folder=HERE,
    says="Stale frequencies and a stale index hurt, and the alarm sees it first",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_risen", "recall_faded", "recall_head", "recall_tail", "recall_new", "cover", "alarm"),
    headline=1,
    figure=by_variant(
        {
            "recall": "recall@20",
            "recall_risen": "recall@20, risen listings",
            "recall_faded": "recall@20, faded listings",
            "cover": "cover of the last hours",
            "alarm": "alarm",
        },
        "days without update",
        {
            "frequencies": {f"frequencies {days}": float(days) for days in (0, 1, 2, 4, 8)},
            "index": {f"index {days}": float(days) for days in (1, 4, 8)},
        },
    ),
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
