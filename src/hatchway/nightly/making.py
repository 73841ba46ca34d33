"""The steps between intake and gate: each reads the material, leaves its files, and says what it found."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from hatchway.artefacts.atomic import replacing_file, write_text
from hatchway.artefacts.manifest import sha256_of
from hatchway.data.days import SECONDS_A_DAY
from hatchway.data.engagements import Part, training_counts
from hatchway.data.row_table import RowTable
from hatchway.errors import SettingsError
from hatchway.evaluation.cases import Cases, cases_for
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.slices import Slice, history_slices, popularity_slices
from hatchway.evaluation.summary import evaluate
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.index.bundle import write_bundle
from hatchway.index.model_bundle import contents_of
from hatchway.negatives.settings import NegativesSettings
from hatchway.nightly.alarms import above, below
from hatchway.nightly.comparison import OfferedScorer, compare, recommended_shares
from hatchway.nightly.frequencies import bring_up_to, look_at
from hatchway.nightly.material import Material, digest_of_log
from hatchway.randomness import stream
from hatchway.screening.in_a_row import alike_in_a_row
from hatchway.screening.screen import Screen
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import steps_an_epoch
from hatchway.training.checkpoint import checkpoints, save_tensors
from hatchway.training.loop import train
from hatchway.training.sources import learned_frequency, negatives_of
from hatchway.training.warm_start import carry_on

RUN, BUNDLE, SKETCH = "run", "bundle", "sketch.safetensors"


def honest(material: Material, target: Path) -> dict[str, Any]:
    """Score yesterday's model on the positives of the day, before anything learns from them.

    Args:
        material: what the night works with.
        target: the file of the whole evaluation.
    """
    if material.previous is None:
        return {"measured": False, "reason": "there is no model yet"}
    log, recipe = material.day_log, material.recipe
    model = material.before
    scorer = TowerScorer(model, len(log.catalogue), model.history_length)
    asked = OfferedScorer(scorer, material.candidates(log))
    most = min(recipe.nightly.most_cases, recipe.evaluation.most_cases or recipe.nightly.most_cases)
    settings = recipe.evaluation.model_copy(update={"most_cases": most})
    found = evaluate(asked, log, settings, protocol="global-time", seed=material.seed)
    write_text(target, found.model_dump_json(indent=1) + "\n")
    gate = recipe.nightly.gate
    name = f"{gate.metric}@{gate.k}"
    figures = {"all": found.metrics.get(name)}
    figures |= {piece: measured.metrics.get(name) for piece, measured in found.slices.get("popularity", {}).items()}
    return {
        "measured": True,
        "metric": name,
        "cases": found.cases,
        "figures": {key: None if f is None else f.model_dump(mode="json") for key, f in figures.items()},
    }


def frequencies(material: Material, work: Path) -> dict[str, Any]:
    """Bring the sketch up to the moment that training begins, and hold it against the last hour of positives."""
    recipe, previous = material.recipe, material.previous
    items = len(material.catalogue)
    sketch = sketch_of(material)
    updated = 0 if previous is None else previous.manifest.sketched_until
    settings = recipe.nightly.sketch
    begin, cutoff = material.begin, material.cutoff
    if sketch is None:
        known = material.passed.between(material.trained_from, begin).items
        chances, updated = _counted(known, items), begin
    else:
        chances = _chances(sketch, items)
    end = begin + SECONDS_A_DAY
    stale = look_at(chances, material.passed, updated, end, settings) if previous is not None else None
    if sketch is not None:
        bring_up_to(sketch, material.passed.between(updated, cutoff), recipe.training.batch)
    fresh_chances = (
        _chances(sketch, items)
        if sketch is not None
        else _counted(material.passed.between(material.trained_from, cutoff).items, items)
    )
    fresh = look_at(fresh_chances, material.passed, cutoff, end, settings)
    with replacing_file(work / SKETCH) as partial:
        save_tensors({} if sketch is None else dict(sketch.state()), partial, work / SKETCH)
    lag = None if previous is None else (begin - updated) / 3_600
    cover = None if fresh is None or not fresh.expected_covered else fresh.covered / fresh.expected_covered
    alarms = [
        above(
            "sketch_lag_hours",
            lag,
            settings.most_hours,
            "hours between what the sketch had seen and the beginning of the day",
            "it was brought up to date from the log",
        ),
        below(
            "sketch_cover",
            cover,
            settings.least_cover,
            "what the sketch's top items cover of the last hour's positives, of what they should",
            "training continues with a biased correction: look at head and tail",
        ),
    ]
    return {
        "kind": recipe.negatives.frequency,
        "lag_hours": lag,
        "before": None if stale is None else _finite(vars(stale)),
        "after": None if fresh is None else _finite(vars(fresh)),
        "alarms": [alarm.model_dump(mode="json") for alarm in alarms],
    }


def train_night(material: Material, work: Path, crowd: float | None, mined: RowTable | None) -> dict[str, Any]:
    """Go on training yesterday's model on the mix; the first night trains one from nothing."""
    recipe, previous = material.recipe, material.previous
    log = material.training_log(crowd)
    settings = recipe.training
    if previous is not None:
        settings = settings.model_copy(update={"epochs": recipe.nightly.epochs})
    reached = material.offered.copy()
    rows = log.engagements.positives(Part.TRAIN)
    reached[log.engagements.items[rows]] = True
    run = work / RUN
    model = material.model(reached)
    if previous is not None and not checkpoints(run / "checkpoints"):
        total = steps_an_epoch(len(rows), settings.batch) * settings.epochs
        source = negatives_of(
            recipe.negatives,
            log,
            seed=material.seed,
            dimension=model.dimension,
            mined=mined,
            steps=total,
            screen=material.screen,
        )
        if source.learned is not None:
            source.learned.load_state(safetensors.torch.load_file(work / SKETCH))
        carries = {"queue": source.queue, "frequency": source.learned}
        carried = {name: held for name, held in carries.items() if held is not None}
        carry_on(previous.optimisers(), model, material.buyers_before, run, settings, recipe.negatives, carried)
    done = train(
        model,
        log,
        run,
        settings=settings,
        negatives=recipe.negatives,
        seed=material.seed,
        resume=True,
        mined=mined,
        screen=material.screen,
    )
    material.kept["tonight"] = model
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    said = [line for line in lines if "negatives" in line]
    return {
        "positives": len(rows),
        "from": material.trained_from,
        "until": material.cutoff,
        "crowd": crowd,
        "steps": done.steps,
        "loss": done.loss,
        "negatives": fmean(line["negatives"] for line in said) if said else None,
        "columns": said[-1]["columns"] if said else {},
        "masked_share": said[-1]["masked_share"] if said else {},
        "log": digest_of_log(log.engagements),
    }


def trained(material: Material, work: Path) -> TwoTower:
    """Return the model that :func:`train_night` left."""
    if "tonight" in material.kept:
        return material.kept["tonight"]
    model = material.model()
    weights = safetensors.torch.load_file(checkpoints(work / RUN / "checkpoints")[-1] / "weights.safetensors")
    model.load_state_dict(weights)
    return model.eval()


def index_night(material: Material, work: Path, training: Mapping[str, Any]) -> dict[str, Any]:
    """Embed the catalogue with tonight's model, build the index, measure its recall, and write the bundle."""
    origin: dict[str, str | int | bool] = {
        "log": str(training["log"]),
        "weights": sha256_of(checkpoints(work / RUN / "checkpoints")[-1] / "weights.safetensors"),
        "step": int(training["steps"]),
    }
    model, similar = trained(material, work), alike_in_a_row(material.screen)
    contents = contents_of(
        model, material.catalogue, material.log.engagements, material.recipe.nightly.index, origin, similar=similar
    )
    bundle = write_bundle(work / BUNDLE, contents, material.recipe.nightly.index)
    return {"digest": bundle.digest, "index": bundle.manifest.index.model_dump(mode="json")}


def evaluate_night(material: Material, work: Path) -> dict[str, Any]:
    """Rank the whole catalogue with tonight's model and with yesterday's, for what neither has seen."""
    recipe, log = material.recipe, material.log
    gate, evaluation = recipe.nightly.gate, recipe.evaluation
    items = len(log.catalogue)
    every = cases_for(log.engagements, Part.TEST, grain="row", exclude_seen=False)
    cases = every.drawn(recipe.nightly.most_cases, stream(material.seed, "night", "cases"))
    counts = training_counts(log.engagements, items)
    slices = popularity_slices(cases, counts, evaluation.head_share, evaluation.torso_share)
    slices += history_slices(cases, evaluation.history_edges)
    slices += near_duplicates(cases, material.watched)
    candidates = material.candidates(log)
    new = trained(material, work)
    models = [new] if material.previous is None else [material.before, new]
    scorers = [OfferedScorer(TowerScorer(model, items, model.history_length), candidates) for model in models]
    old_scorer, new_scorer = scorers[0], scorers[-1]
    compared = compare((old_scorer, new_scorer), cases, log.engagements, slices, gate, material.seed)
    shares = [
        recommended_shares(
            scorer,
            cases,
            log.engagements,
            counts,
            (evaluation.head_share, evaluation.torso_share),
            gate.k,
            gate.shifted_queries,
        )
        for scorer in (old_scorer, new_scorer)
    ]
    return {
        "metric": f"{gate.metric}@{gate.k}",
        "cases": len(cases),
        "held_out": len(every),
        "compared": [piece.model_dump(mode="json") for piece in compared],
        "shares": {"old": shares[0], "new": shares[1]},
        "first": material.previous is None,
    }


def near_duplicates(cases: Cases, screen: Screen) -> list[Slice]:
    """Return the slice of cases that ask on the page of a listing for another that looks like it, by photo or title.

    A model that learned to push copies away loses here first, while all cases together look fine. The seller is not
    asked: most of what a shop offers looks like nothing else of it.

    Args:
        cases: what is asked.
        screen: knows photos and titles.
    """
    similar = [part for part in (screen.photos, screen.titles) if part is not None]
    if not similar:
        return []
    looked_at = np.repeat(cases.query_items, np.diff(cases.relevant_offsets)).astype(np.int64)
    there = np.flatnonzero(looked_at >= 0)
    chosen = np.zeros(len(looked_at), np.bool_)
    for part in similar:
        chosen[there] |= part.contains(looked_at[there], cases.relevant_items[there].astype(np.int64))
    return [Slice("alike", "near-duplicates", "the listing looked at and the right one look the same", chosen)]


def check_sketch(settings: NegativesSettings) -> None:
    """Refuse a sketch whose size would change with the catalogue.

    Raises:
        SettingsError: so it would.
    """
    if settings.frequency == "count-min" and settings.count_min.buckets is None:
        raise SettingsError(
            "negatives.count_min.buckets is not given: a sketch that is kept from night to night cannot grow with the "
            "catalogue; give it a size, e.g. twice the listings that there will be"
        )


def sketch_of(material: Material) -> LearnedFrequency | None:
    """Return the frequencies as the night before left them; None where counts are made anew every night."""
    items = len(material.catalogue)
    previous = material.previous
    before = items if previous is None else len(previous.catalogue())
    sketch = learned_frequency(material.recipe.negatives, before, material.recipe.seed)
    if sketch is not None and previous is not None:
        sketch.load_state(previous.sketch())
        sketch.grow(items)
    return sketch


def _chances(sketch: LearnedFrequency, items: int) -> Tensor:
    return sketch.whole_batch(torch.arange(items), 1)


def _counted(rows: Any, items: int) -> Tensor:
    counts = torch.bincount(torch.from_numpy(rows), minlength=items)
    return ExactCounts(counts).whole_batch(torch.arange(items), 1) if len(rows) else torch.full((items,), 1.0 / items)


def _finite(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Write infinities as None: JSON has no word for them."""
    return {key: value if math.isfinite(value) else None for key, value in figures.items()}
