"""Trials on simulated markets: train one recipe after another on the same markets, and measure each the same way.

The scripts in the folders beside this file say which recipes a claim is about and which differences decide it; what a
market is, how a run is measured, and when a claim holds is said here and nowhere else.

A market of two weeks is simulated for every seed. The recipes are trained on all days but the last two, whose saves and
messages are what the model is asked for. An earlier model, trained with in-batch and uniform negatives on all days but
the last three, is what mining asks. A run that was measured once is found again by its settings, so a script that was
stopped goes on where it was, and scripts share what they have in common.
"""

import argparse
import fcntl
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import torch
from scipy import stats

from hatchway.artefacts.atomic import write_text
from hatchway.config import RunSettings
from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Part, training_counts
from hatchway.data.log import Log, build_log
from hatchway.data.store import Store, write_store
from hatchway.evaluation.cases import Cases, cases_for
from hatchway.evaluation.metrics import recall
from hatchway.evaluation.ranking import rank_cases
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.slices import popularity_classes
from hatchway.frequency.exact import ExactCounts
from hatchway.job import index_run, train_run
from hatchway.simulation.listings import DAY
from hatchway.simulation.mistakes import wanted
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder
from hatchway.simulation.writing import simulate
from hatchway.towers.two_tower import TwoTower
from hatchway.training import loop
from hatchway.training.memory import keep_freed_memory
from hatchway.training.run_folder import RunFolder
from hatchway.training.sources import negatives_of

K, ASKED, LIKED, TEST_DAYS = 20, 1_000, 4.25, 2
"""The length of a row; queries that the costlier measures ask; the taste at which one would as likely as not save or
write; days that are tested on."""

CLASSES = ("head", "torso", "tail", "new")


@dataclass(frozen=True)
class Scale:
    """How large a trial is.

    Attributes:
        market: size and rules.
        seeds: a market and a start of the training each.
        epochs, batch, uniform: of the recipes, where they do not say otherwise.
        window: first and last rank that are mined from by the text.
        hard: first and last rank where the mined are hard in a catalogue of this size. Of ten thousand listings, ranks
            101 to 500 are other kinds of furniture nine times in ten, as random ones are; 21 to 100 are seven times.
    """

    market: MarketSettings
    seeds: tuple[int, ...]
    epochs: int
    batch: int
    uniform: int
    window: tuple[int, int]
    hard: tuple[int, int]

    @property
    def as_easy(self) -> float:
        """The weight with which a mined column counts about as much as an easy one, which stands for so many items."""
        return float(round(self.market.listings / (self.batch + self.uniform)))


FULL = Scale(
    MarketSettings(listings=10_000, buyers=6_000, days=14), (1, 2, 3, 4, 5), 12, 512, 500, (101, 500), (21, 100)
)
SHORT = Scale(MarketSettings(listings=1_500, buyers=900, days=7), (1, 2), 4, 128, 100, (21, 100), (5, 20))

IN_BATCH = {"in_batch": True, "uniform": 0, "mined": 0}
"""``[negatives]`` of a recipe that has the other rows' positives alone."""


def mixed(scale: Scale) -> dict[str, Any]:
    """Return ``[negatives]`` of in-batch and uniform draws."""
    return {"in_batch": True, "uniform": scale.uniform, "mined": 0}


@dataclass(frozen=True)
class Earlier:
    """Another earlier model than the usual one.

    Attributes:
        days: how many days before the end of the training part its data end.
        epochs: how long it was trained; 0 leaves it as it began.
    """

    days: int = 1
    epochs: int | None = None


@dataclass(frozen=True)
class Recipe:
    """What a run differs in from all others.

    Attributes:
        negatives: ``[negatives]``.
        training, mining, model, screening: changes to these tables.
        mines: whether the earlier model is asked, or which other one.
        unseen_days: days at the end of the training part that the frequencies know nothing of.
    """

    negatives: Mapping[str, Any]
    training: Mapping[str, Any] | None = None
    mining: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    screening: Mapping[str, Any] | None = None
    mines: bool | Earlier = False
    unseen_days: int = 0

    def settings(self, scale: Scale, seed: int) -> RunSettings:
        """Return the complete settings of a run."""
        first, last = scale.window
        item = {"categories": ["category", "style", "condition"], "numbers": ["price"], "texts": ["title"]}
        model = {"kind": "context", "dimension": 64, "text_buckets": 16384, "item": item | {"id_dropout": 0.5}}
        training = {"epochs": scale.epochs, "batch": scale.batch, "layer_rate": 2e-3, "threads": 1, "auc_pairs": 0}
        return RunSettings.parse(
            {
                "seed": seed,
                "split": {"protocol": "global-time", "validation_days": 0, "test_days": TEST_DAYS},
                "model": model | {"context": {"history": 10}} | dict(self.model or {}),
                "negatives": dict(self.negatives),
                "training": training | dict(self.training or {}),
                "mining": {"first_rank": first, "last_rank": last} | dict(self.mining or {}),
                # As it was when the first trials were run: a default that moves must not mix cells of two kinds.
                "screening": {"title_bits": 1.0} | dict(self.screening or {}),
            }
        )


def mining(
    window: tuple[int, int],
    *,
    uniform: int,
    mined: int = 2,
    weight: float = 1.0,
    in_batch: bool = True,
    alpha: float = 1.0,
    warm_up: float = 1.0,
    mines: bool | Earlier = True,
    screening: Mapping[str, Any] | None = None,
) -> Recipe:
    """Return a recipe with mined negatives.

    Args:
        window: first and last rank.
        uniform: shared uniform draws.
        mined: columns a positive.
        weight: of a mined column, in items of the catalogue.
        in_batch: whether other rows' positives are negatives.
        alpha: weight of the correction; without it a mined column counts as any other.
        warm_up: epochs without mined columns.
        mines: which earlier model is asked.
        screening: changes to ``[screening]``.
    """
    asked = {"first_rank": window[0], "last_rank": window[1], "cap": mined, "warm_up_epochs": warm_up}
    if isinstance(mines, Earlier):
        asked["max_index_age_days"] = max(2, mines.days)
    negatives = {"in_batch": in_batch, "uniform": uniform, "mined": mined, "mined_weight": weight, "alpha": alpha}
    return Recipe(negatives, mining=asked, screening=screening, mines=mines)


_PHOTO = ("photo_radius", "photo_variants", "photo_most")

NOT_SCREENED = {"seller": False, "photo": False, "title": False, "engaged_days": 0.0}
"""``[screening]`` without anything."""


class Market:
    """One seed's market, its truth, and the earlier model; made when they are first needed.

    Args:
        scale: the trial's size.
        seed: of the market and of every training on it.
        work: the folder that keeps what was made.
        rules: changes to the market's settings.
    """

    def __init__(self, scale: Scale, seed: int, work: Path, rules: Mapping[str, Any] | None = None) -> None:
        self.scale, self.seed = scale, seed
        self.settings = MarketSettings.parse(scale.market.model_dump() | dict(rules or {}))
        self.folder = work / f"market-{_key(self.settings.model_dump())}-{seed}"

    @cached_property
    def store(self) -> Store:
        """The market's store."""
        path = self.folder / "store"
        with _one_at_a_time(path):
            if not path.exists():
                simulate(path, self.settings, self.seed, photos=False)
        return Store.open(path)

    @cached_property
    def truth(self) -> Truth:
        """What buyers truly like, and what is the same thing."""
        return Truth.open(truth_folder(self.store.path))

    def until(self, day: int) -> Store:
        """Return the store as it was at the beginning of a day, counted from 0."""
        path = self.folder / f"until-{day}"
        if path.exists():
            return Store.open(path)
        before = self.settings.start + day * DAY
        known = self.store.catalogue().frame.filter(pl.col("listed") < before)
        known = known.with_columns(pl.when(pl.col("gone") < before).then("gone").alias("gone"))
        return write_store(path, self.store.events().filter(pl.col("time") < before), known)

    @property
    def earlier(self) -> Path:
        """The run of the earlier model, with its index."""
        return self.earlier_run(Earlier())

    def earlier_run(self, which: Earlier) -> Path:
        """Return the run of an earlier model, with its index."""
        name = "earlier" if which == Earlier() else f"earlier-{which.days}-{which.epochs}"
        path = self.folder / name
        with _one_at_a_time(path):
            if not (path / "done").exists():
                shutil.rmtree(path, ignore_errors=True)
                # A model that is to stay as it began makes one pass with rates that move nothing.
                rates = {"table_rate": 1e-12, "layer_rate": 1e-12} if which.epochs == 0 else {}
                changes = {} if which.epochs is None else {"epochs": max(which.epochs, 1)} | rates
                settings = Recipe(mixed(self.scale), changes).settings(self.scale, self.seed).model_dump(mode="json")
                settings["split"] = {"protocol": "none"}
                known = self.until(self.settings.days - TEST_DAYS - which.days)
                index_run(train_run(known, path, RunSettings.parse(settings)))
                (path / "done").touch()
        return path

    def run(self, recipe: Recipe) -> RunFolder:
        """Return the run of a recipe, trained now if it was not before."""
        path = self.folder / f"run-{self._key_of(recipe)}"
        which = Earlier() if recipe.mines is True else recipe.mines
        mine_from = self.earlier_run(which) if which else None
        settings = recipe.settings(self.scale, self.seed)
        if not recipe.unseen_days:
            return train_run(self.store, path, settings, resume=True, mine_from=mine_from)
        frequency = ExactCounts(torch.from_numpy(self.seen(settings, recipe.unseen_days)))
        with mock.patch.object(loop, "negatives_of", partial(negatives_of, frequency=frequency)):
            return train_run(self.store, path, settings, resume=True, mine_from=mine_from)

    def seen(self, settings: RunSettings, unseen_days: int) -> np.ndarray:
        """Return the [N] training positives of every item that frequencies have seen which miss the last days."""
        log = build_log(self.store, settings.positives, settings.split, self.seed)
        rows = log.engagements.positives(Part.TRAIN)
        end = self.settings.start + (self.settings.days - TEST_DAYS - unseen_days) * DAY
        rows = rows[np.asarray(log.engagements.times)[rows] < end]
        return np.bincount(log.engagements.items[rows], minlength=len(log.catalogue))

    def _key_of(self, recipe: Recipe) -> str:
        settings = recipe.settings(self.scale, self.seed).model_dump(mode="json")
        # What trains nothing is not in the key; nor is anything about photos, but for what was always there: these
        # markets have none.
        settings = {name: value for name, value in settings.items() if name not in ("evaluation", "nightly")}
        photos = {name for name in settings["screening"] if name.startswith("photo_")} - set(_PHOTO)
        settings["screening"] = {k: v for k, v in settings["screening"].items() if k not in photos}
        also = [recipe.unseen_days] if recipe.unseen_days else []
        return _key([settings, recipe.mines, *also])

    def measures(self, recipe: Recipe, also: "Also | None" = None) -> dict[str, float]:
        """Return what was measured of a recipe's run; see :func:`measured`.

        Args:
            recipe: how it is trained.
            also: what a claim measures beside that.
        """
        key = self._key_of(recipe)
        kept = self.folder / f"measures-{key}.json"
        more = self.folder / f"{also.__name__}-{key}.json" if also else kept
        with _one_at_a_time(kept):
            if not (kept.exists() and more.exists()):
                begin = time.perf_counter()
                run = self.run(recipe)
                seconds = time.perf_counter() - begin
                if not kept.exists():
                    write_text(kept, json.dumps(measured(self, run) | {"seconds": seconds}, indent=1) + "\n")
                if also and not more.exists():
                    write_text(more, json.dumps(also(self, run), indent=1) + "\n")
                shutil.rmtree(run.path)
        found = json.loads(kept.read_text()) | json.loads(more.read_text())
        return {name: float(value) for name, value in found.items()}

    def ranks(self, recipe: Recipe) -> Ranks:
        """Return where the positives of the last days stand among all items in the ranking of a recipe's run."""
        key = self._key_of(recipe)
        kept = ranks_file(self.folder / f"run-{key}")
        if not kept.exists():
            (self.folder / f"measures-{key}.json").unlink(missing_ok=True)
            self.measures(recipe)
        with np.load(kept) as found:
            return Ranks(found["offsets"], found["better"], found["tied"])


Also = Callable[[Market, RunFolder], dict[str, float]]
"""Measures more of a run; what it measured is kept under the function's name."""


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Let other scripts wait that would make the same thing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def ranks_file(run: Path) -> Path:
    """Return where the ranks of a run's positives are kept when the run itself is gone."""
    return run.with_name(run.name.replace("run-", "ranks-") + ".npz")


def _key(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Asked:
    """What the model of a run is asked, and what is known of the items.

    Attributes:
        log: the run's log.
        model: the trained towers.
        cases: one for each save and message of the last days.
        counts: [N] training positives of every item.
        classes: [N] position in :data:`CLASSES`.
        on_offer: [N] bool, at the end of the market.
    """

    log: Log
    model: TwoTower
    cases: Cases
    counts: np.ndarray
    classes: np.ndarray
    on_offer: np.ndarray

    @cached_property
    def scorer(self) -> TowerScorer:
        """The model as a scorer."""
        return TowerScorer(self.model, len(self.log.catalogue), self.model.history_length)

    @property
    def contexts(self) -> Contexts:
        """The first of the cases, for the costlier measures."""
        return self.cases.contexts(self.log.engagements, 0, min(len(self.cases), ASKED), self.scorer.history_length)


def asked_of(market: Market, run: RunFolder) -> Asked:
    """Prepare the questions to a run's model."""
    log = run.log()
    cases = cases_for(log.engagements, Part.TEST, grain="row", exclude_seen=False)
    counts = training_counts(log.engagements, len(log.catalogue))
    last = market.settings.start + market.settings.days * DAY
    frame = log.catalogue.frame
    on_offer = frame["gone"].is_null().to_numpy() & (frame["listed"].to_numpy() < last)
    classes = popularity_classes(counts, 1 / 3, 1 / 3)
    return Asked(log, run.load_model(log), cases, counts, classes, on_offer)


def measured(market: Market, run: RunFolder) -> dict[str, float]:
    """Measure a run.

    Returns:
        recall: recall@20 of the positives of the last two days, every item a candidate; recall_head, recall_torso,
            recall_tail, recall_new by training popularity; recall_relisted where the listing's object is listed twice.
        share_head, share_tail, share_never: of the first 20 on offer, how many are head or tail items, how many had no
            training positive; offered_never of all that is on offer.
        liked: of the first 20 on offer, how many the buyer would as likely as not save or write about, by the truth.
        same_kind: of the first 20 on offer, how many are of the kind of the listing looked at.
        fine: how often the positive scores above a random item of its kind and another style.
        slope: of the score over the temperature on the logarithm of the training count, over items that have one; a
            score that says ln P(item | query) has a slope near 1 where tastes do not depend on popularity.
        nearest_never: of the 20 nearest items of items with positives, how many had none.
        mined, per_positive: mined columns a positive; and the seconds of training are added by whoever trained.
    """
    asked = asked_of(market, run)
    found = {"cases": float(len(asked.cases))}
    ranks = rank_cases(asked.scorer, asked.cases, asked.log.engagements)
    np.savez(ranks_file(run.path), offsets=ranks.offsets, better=ranks.better, tied=ranks.tied)
    found["recall"] = float(recall(ranks, K).mean())
    mine = asked.classes[asked.cases.relevant_items]
    things = market.truth.listings.thing[asked.log.catalogue.ids.to_numpy() - 1]
    slices = {f"recall_{name}": mine == number for number, name in enumerate(CLASSES)}
    slices["recall_relisted"] = (np.bincount(things)[things] > 1)[asked.cases.relevant_items]
    for name, chosen in slices.items():
        if chosen.any():
            found[name] = float(recall(ranks.only(chosen)[0], K).mean())
    found |= _of_rows(market, asked) | _of_scores(asked, RunSettings.parse(run.record.settings).training.temperature)
    if (run.path / "mining.json").exists():
        figures = json.loads((run.path / "mining.json").read_text())["record"].get("figures") or {}
        found["per_positive"] = float(figures.get("per_positive", 0.0))
    return found


def _of_rows(market: Market, asked: Asked) -> dict[str, float]:
    """Measure the first 20 on offer of each row."""
    frame, end = asked.log.catalogue.frame, min(len(asked.cases), ASKED)
    scores = asked.scorer.scores(asked.contexts).clone()
    scores[:, torch.from_numpy(~asked.on_offer)] = -torch.inf
    looked_at = torch.from_numpy(asked.cases.query_items[:end].astype(np.int64))
    rows = torch.arange(end)
    scores[rows[looked_at >= 0], looked_at[looked_at >= 0]] = -torch.inf
    top = scores.topk(K, dim=1).indices.numpy()
    last = market.settings.start + market.settings.days * DAY
    buyers = np.repeat(asked.log.buyers.external(asked.cases.buyers[:end]).to_numpy(), K)
    liking = wanted(
        market.truth, buyers, asked.log.catalogue.external(top.ravel()).to_numpy(), np.full(top.size, last - 1)
    )
    kinds = frame["category"].rank("dense").to_numpy().astype(np.int64)
    asks = looked_at.numpy() >= 0
    return {
        "share_head": float((asked.classes[top] == 0).mean()),
        "share_tail": float((asked.classes[top] == 2).mean()),
        "share_never": float((asked.counts[top] == 0).mean()),
        "offered_never": float((asked.counts[asked.on_offer] == 0).mean()),
        "liked": float((liking >= LIKED).mean()),
        "same_kind": float((kinds[top[asks]] == kinds[looked_at.numpy()[asks]][:, None]).mean()),
    }


def _of_scores(asked: Asked, temperature: float) -> dict[str, float]:
    """Measure slopes, neighbours and fine distinctions."""
    frame, end = asked.log.catalogue.frame, min(len(asked.cases), ASKED)
    with torch.inference_mode():
        scores = asked.scorer.scores(asked.contexts).numpy()
        vectors = asked.model.item(torch.arange(len(asked.log.catalogue)))
    known = np.flatnonzero(asked.counts > 0)
    popularity = np.log(asked.counts[known])
    popularity = popularity - popularity.mean()
    slopes = (scores[:, known] / temperature) @ popularity / (popularity @ popularity)
    offered = np.flatnonzero(asked.on_offer)
    bought = offered[asked.counts[offered] > 0][:ASKED]
    with torch.inference_mode():
        near = vectors[bought] @ vectors[offered].T
        near[torch.from_numpy(bought[:, None] == offered[None, :])] = -torch.inf
        nearest = offered[near.topk(K, dim=1).indices.numpy()]
    kind = frame["category"].rank("dense").to_numpy()
    style = frame["style"].rank("dense").to_numpy()
    positive = asked.cases.relevant_items[asked.cases.relevant_offsets[:end]]
    better, pairs = 0.0, 0
    for row, item in enumerate(positive):
        others = offered[(kind[offered] == kind[item]) & (style[offered] != style[item])]
        if len(others):
            better += float((scores[row, item] > scores[row, others]).mean())
            pairs += 1
    return {
        "slope": float(slopes.mean()),
        "nearest_never": float((asked.counts[nearest] == 0).mean()),
        "fine": better / max(pairs, 1),
    }


@dataclass(frozen=True)
class Condition:
    """What has to be true for a claim: a figure with its interval on one side of a bound.

    Attributes:
        says: in words.
        figure: mean, lower and upper end over seeds.
        bound: what it is held against.
        above: whether it has to be above the bound, or below.
    """

    says: str
    figure: tuple[float, float, float]
    bound: float = 0.0
    above: bool = True

    @property
    def holds(self) -> str:
        """``yes`` or ``no`` where the whole interval is on one side of the bound, else ``undecided``."""
        _, low, high = self.figure
        if low > self.bound:
            return "yes" if self.above else "no"
        if high < self.bound:
            return "no" if self.above else "yes"
        return "undecided"


def verdict(conditions: Sequence[Condition]) -> str:
    """Say what becomes of a claim: the rule by which every verdict here follows from its intervals.

    >>> yes, no = Condition("", (1.0, 0.5, 1.5)), Condition("", (-1.0, -1.5, -0.5))
    >>> verdict([yes, yes]), verdict([yes, no]), verdict([no])
    ('holds', 'holds in part', 'does not hold')
    """
    found = {condition.holds for condition in conditions}
    if found == {"yes"}:
        return "holds"
    if "yes" in found:
        return "holds in part"
    return "does not hold" if "no" in found else "undecided"


def over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean over seeds and the ends of its 95 % interval by Student's t; one seed has no interval."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, -np.inf, np.inf
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


Cells = dict[str, list[dict[str, float]]]
"""What was measured of each variant, seed by seed."""


def level(cells: Cells, name: str, measure: str) -> tuple[float, float, float]:
    """Return a measure of a variant over the seeds."""
    return over_seeds([cell[measure] for cell in cells[name]])


def difference(cells: Cells, name: str, other: str, measure: str) -> tuple[float, float, float]:
    """Return by how much a measure of one variant is above that of another, seed by seed."""
    pairs = zip(cells[name], cells[other], strict=True)
    return over_seeds([mine[measure] - theirs[measure] for mine, theirs in pairs])


@dataclass(frozen=True)
class Claim:
    """A claim and what it takes to decide it.

    Attributes:
        number: in the index.
        folder: where its script lies.
        says: the claim in a sentence.
        recipes: the variants by name, at a scale.
        conditions: what decides, from the cells.
        shown: the measures that stand in the table.
        headline: which condition's figure stands in the index.
        figure: draws the figure into a file.
    """

    number: int
    folder: Path
    says: str
    recipes: Callable[[Scale], Mapping[str, Recipe]]
    conditions: Callable[[Cells], Sequence[Condition]]
    shown: Sequence[str]
    headline: int
    figure: Callable[[Cells, Path], None]


def try_claim(claim: Claim, measure: Callable[[Scale, Sequence[int], Path], Cells] | None = None) -> None:
    """Run a claim's trials from the command line and write what came out.

    Args:
        claim: what is tried.
        measure: makes the cells where they are not simply the recipes' runs.
    """
    parser = argparse.ArgumentParser(description=claim.says)
    parser.add_argument(
        "--work", type=Path, default=Path("build/experiments"), help="keeps what was made, to go on from"
    )
    parser.add_argument("--short", action="store_true", help="small markets; prints, and writes nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    scale = SHORT if options.short else FULL
    work: Path = options.work / ("short" if options.short else "full")
    work.mkdir(parents=True, exist_ok=True)
    cells = (measure or of_recipes(claim))(scale, scale.seeds, work)
    conditions = list(claim.conditions(cells))
    for condition in conditions:
        mean, low, high = condition.figure
        print(f"{condition.holds:9s} {condition.says}: {mean:.4g} ({low:.4g} to {high:.4g})")
    print(verdict(conditions))
    if options.short:
        return
    result = {
        "claim": claim.number,
        "says": claim.says,
        "verdict": verdict(conditions),
        "headline": claim.headline,
        "conditions": [
            {"says": c.says, "figure": list(c.figure), "bound": c.bound, "above": c.above, "holds": c.holds}
            for c in conditions
        ],
        "market": scale.market.model_dump(),
        "seeds": list(scale.seeds),
        "recipes": {
            name: recipe.settings(scale, 0).model_dump(mode="json", exclude_defaults=True)
            for name, recipe in claim.recipes(scale).items()
        },
        "cells": cells,
    }
    write_text(claim.folder / "results.json", json.dumps(result, indent=1) + "\n")
    claim.figure(cells, claim.folder / "figure.svg")
    _write_table(claim, table(claim, cells, conditions))


def of_recipes(
    claim: Claim, also: Also | None = None, rules: Mapping[str, Any] | None = None
) -> Callable[[Scale, Sequence[int], Path], Cells]:
    """Measure every recipe of a claim on every seed's market.

    Args:
        claim: the claim.
        also: what it measures beside the usual.
        rules: changes to the market.
    """

    def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
        found: Cells = {name: [] for name in claim.recipes(scale)}
        for seed in seeds:
            market = Market(scale, seed, work, rules)
            for name, recipe in claim.recipes(scale).items():
                found[name].append(market.measures(recipe, also))
                print(f"seed {seed}, {name}: recall {found[name][-1]['recall']:.4f}", flush=True)
        return found

    return cells


BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def table(claim: Claim, cells: Cells, conditions: Sequence[Condition]) -> str:
    """Return what stands between the marks of the folder's README: the verdict, what decided it, and the measures."""
    seeds = f"{len(next(iter(cells.values())))} seeds; 95 % intervals of the mean over seeds."
    lines = [f"**{verdict(conditions).capitalize()}.** {seeds}", ""]
    lines += ["| what has to be true | measured | |", "|---|---|---|"]
    for condition in conditions:
        mean, low, high = condition.figure
        lines.append(f"| {condition.says} | {mean:.4g} ({low:.4g} to {high:.4g}) | {condition.holds} |")
    lines += ["", "| | " + " | ".join(claim.shown) + " |", "|---" * (len(claim.shown) + 1) + "|"]
    for name in cells:
        known = {measure: [cell[measure] for cell in cells[name] if measure in cell] for measure in claim.shown}
        lines.append(f"| {name} | " + " | ".join(_entry(values) for values in known.values()) + " |")
    return "\n".join(lines)


def _entry(values: Sequence[float]) -> str:
    """Write a mean with half its interval; what is the same for all seeds without."""
    if not values:
        return ""
    mean, low, _ = over_seeds(values)
    digits = 4 if abs(mean) < 10 else 0
    if max(values) - min(values) < 10 ** -(digits + 2):
        return f"{mean:,.4f}".rstrip("0").rstrip(".")
    return f"{mean:,.{digits}f} ± {mean - low:,.{digits}f}"


def _write_table(claim: Claim, text: str) -> None:
    """Write the verdict and the table into the folder's README, between the marks."""
    readme = claim.folder / "README.md"
    old = readme.read_text(encoding="utf-8") if readme.exists() else f"# {claim.says}\n\n{BEGIN}\n{END}\n"
    before, after = old[: old.index(BEGIN) + len(BEGIN)], old[old.index(END) :]
    write_text(readme, f"{before}\n{text}\n{after}")
