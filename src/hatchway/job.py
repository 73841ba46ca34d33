"""The main job: from a store to a trained run, from a run to its evaluation, and to the bundle that is served."""

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import torch

from hatchway.artefacts.atomic import write_text
from hatchway.artefacts.manifest import is_not, sha256_of
from hatchway.config import RunSettings, write_recipe
from hatchway.data.engagements import Part
from hatchway.data.living import living_in_training
from hatchway.data.log import build_log
from hatchway.data.store import Store
from hatchway.errors import DataError, SettingsError
from hatchway.evaluation.result import Evaluation
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.settings import EvaluationSettings
from hatchway.evaluation.summary import evaluate
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, is_bundle, write_bundle
from hatchway.index.model_bundle import contents_of
from hatchway.nightly.night import run_night
from hatchway.nightly.pointer import NightRecord
from hatchway.nightly.recipe import NightRecipe
from hatchway.progress import note
from hatchway.screening.build import build_screen
from hatchway.screening.in_a_row import alike_in_a_row
from hatchway.settings import flattened
from hatchway.towers.build import build_model
from hatchway.towers.features import fit_reading
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import steps_an_epoch
from hatchway.training.fitting import fitting_model
from hatchway.training.loop import Validation, train
from hatchway.training.mining.mine_log import MiningRecord, Wanted, mine_log
from hatchway.training.mining.of_run import check_mining, kept_mining, mined_of_run, mining_models
from hatchway.training.mining.triplets import write_triplets
from hatchway.training.run_folder import BUNDLE, ModelRecord, RunFolder, RunRecord, relative_to_run
from hatchway.training.sources import fitting_negatives

_FEW_STEPS = 10
_NAMED = 5


def train_run(
    store: Store | Path | str,
    out: Path | str,
    settings: RunSettings | None = None,
    *,
    resume: bool = False,
    mine_from: Path | str | None = None,
    mine_judge: Path | str | None = None,
) -> RunFolder:
    """Train a model on a store and leave a run folder.

    Args:
        store: an opened store, or its path.
        out: the run folder; must not hold a run yet, unless ``resume``.
        settings: everything that decides the run; the defaults where None.
        resume: continue the run in ``out`` from its newest checkpoint, with the same store and settings. A finished run
            is left as it is; where there is none yet, it is begun.
        mine_from: an earlier run or bundle whose index is asked for hard negatives; docs/mining.md. Where it cannot be
            used, the run is trained without them, and ``mining.json`` in its folder says why.
        mine_judge: a stronger run or bundle that must not score a mined item as high as the positive.

    Raises:
        SettingsError: ``out`` holds a run already, or one with other settings or another store; or no step would use
            what is mined.
        ArtefactError: a part of the store is not what was written.
        DataError, DivergedError: see :func:`hatchway.data.log.build_log` and :func:`hatchway.training.loop.train`.
    """
    store = store if isinstance(store, Store) else Store.open(store)
    settings = settings or RunSettings()
    settings = settings.model_copy(update={"split": settings.split.settled(given=store.has("split"))})
    out = Path(out)
    versions = {name: version(name) for name in ("hatchway", "torch", "numpy", "polars")}
    there = _there(out, store, settings, versions, resume=resume)
    mines_with, judged_by = mining_models(there, out, mine_from, mine_judge)
    if there is not None and there.is_finished():
        note(f"{out} is finished already")
        return there
    store.verify()
    shown = settings.negatives.impressions > 0
    log = build_log(store, settings.positives, settings.split, settings.seed, impressions=shown)
    living = living_in_training(log)
    notes = log.notes if living is None else (*log.notes, _say_living(living))
    for line in notes:
        note(line)
    screen = build_screen(log.catalogue, settings.screening, store.path)
    negatives = fitting_negatives(settings.negatives, log)
    made_of = fitting_model(settings.model, log)
    record = RunRecord(
        store=relative_to_run(store.path, out),
        store_digest=store.digest,
        seed=settings.seed,
        positives=settings.positives,
        split=settings.split,
        model=made_of,
        settings=settings.model_dump(mode="json"),
        versions=versions,
        notes=(*notes, *screen.notes),
        mine_from=mines_with,
        mine_judge=judged_by,
    )
    rows = len(log.engagements.positives(Part.TRAIN))
    steps = steps_an_epoch(rows, settings.training.batch)
    mined_from, hard = settings.mining.first_step(steps), None
    if mines_with is not None:
        hard = Wanted(
            source=Path(os.path.normpath(out / mines_with)),
            settings=settings.mining,
            seed=settings.seed,
            columns=negatives.mined,
            engaged_days=settings.screening.engaged_days,
            screen=screen,
            judge=Path(os.path.normpath(out / judged_by)) if judged_by else None,
        )
        check_mining(hard, from_step=mined_from, steps=steps * settings.training.epochs)
    # Item columns that are absent are found out before the folder is claimed, so that the mended command can have it.
    reading = fit_reading(log.catalogue.frame, made_of.item, made_of.text_buckets)
    folder = there or RunFolder.create(out, record)
    write_text(out / "settings.toml", write_recipe(settings))
    if settings.training.threads:
        torch.set_num_threads(settings.training.threads)
    if steps < _FEW_STEPS:
        note(
            f"{rows:,} training positives make {steps} steps an epoch at training.batch = {settings.training.batch:,}; "
            "with a smaller batch the model learns more from so few"
        )
    mined = mined_of_run(out, log, hard, mined_from)
    model = build_model(log.catalogue, len(log.buyers), made_of, settings.seed, reading, living)

    quick = settings.evaluation.model_copy(
        update={"resamples": 0, "slices": False, "baselines": (), "k": (settings.training.validate_k,)}
    )

    def judge(current: TwoTower) -> Mapping[str, float]:
        scorer = TowerScorer(current, len(log.catalogue), current.history_length)
        found = evaluate(scorer, log, quick, protocol=log.protocol, part=Part.VALIDATION, seed=settings.seed)
        return {name: figure.value for name, figure in found.metrics.items()}

    validation = None
    if log.protocol != "none" and len(log.engagements.positives(Part.VALIDATION)):
        validation = Validation(judge, f"{settings.training.validate_metric}@{settings.training.validate_k}")
    done = train(
        model,
        log,
        out,
        settings=settings.training,
        negatives=negatives,
        seed=settings.seed,
        validation=validation,
        resume=resume,
        mined=mined,
        mined_from=mined_from,
        screen=screen,
    )
    said = overfitting(done.history, validation.metric, steps) if validation is not None else None
    if said is not None:
        note(said)
    if mined is not None and done.chosen_step <= mined_from:
        note(
            f"the weights that are kept, of step {done.chosen_step:,}, come from before mined negatives begin (after "
            f"step {mined_from:,}): validation was no better with them; mining.warm_up_epochs = 0 begins with them, "
            "and training.select = 'last' keeps the end"
        )
    folder.save_model(
        model,
        ModelRecord(
            items=len(log.catalogue),
            buyers=len(log.buyers),
            model=made_of,
            reading=reading,
            step=done.chosen_step,
            validation=done.history,
            loss=done.loss,
        ),
    )
    return folder


def _say_living(living: npt.NDArray[np.bool_]) -> str:
    """Return the line about items that no negative can be."""
    absent = int((~living).sum())
    return f"{absent:,} of {len(living):,} items were not on offer in the training part: never negatives"


def overfitting(history: Sequence[Mapping[str, float]], metric: str, steps_an_epoch: int) -> str | None:
    """Return the line to say where the best validation lies in the first half of a run, None where it does not.

    Args:
        history: the validations, oldest first, each with ``step`` and the metric; the last is that of the end.
        metric: what decides which is best.
        steps_an_epoch: steps of one epoch.
    """
    best = max(history, key=lambda judged: judged[metric], default=None)
    if best is None or 2 * best["step"] > history[-1]["step"]:
        return None
    first, last = (round(judged["step"] / steps_an_epoch) for judged in (best, history[-1]))
    return (
        f"validation was best after epoch {first} of {last} ({metric} {best[metric]:.4f}, at the end "
        f"{history[-1][metric]:.4f}): the later epochs brought nothing there; fewer training.epochs will do, and lower "
        "rates or a smaller model.dimension may do better"
    )


def _there(
    out: Path, store: Store, settings: RunSettings, versions: Mapping[str, str], *, resume: bool
) -> RunFolder | None:
    """Return the run in ``out`` that is to be continued, None where there is none; found out before a log is read.

    Raises:
        SettingsError: there is a run, and it is not to be continued, or is another run.
    """
    if not (out / "run.json").exists():
        return None
    if not resume:
        raise SettingsError(f"{out} holds a run already; choose another --out, continue it with --resume, or remove it")
    run = RunFolder.open(out)
    usual = flattened(RunSettings().model_dump(mode="json"))
    theirs = usual | flattened(run.record.settings) | {f"the version of {n}": v for n, v in run.record.versions.items()}
    mine = usual | flattened(settings.model_dump(mode="json")) | {f"the version of {n}": v for n, v in versions.items()}
    if run.record.store_digest != store.digest:
        theirs["the store's digest"], mine["the store's digest"] = run.record.store_digest[:12], store.digest[:12]
    changed = [name for name in theirs | mine if theirs.get(name) != mine.get(name)]
    if changed:
        said = [f"{name} was {theirs.get(name)!r} and is now {mine.get(name)!r}" for name in changed[:_NAMED]]
        more = f", and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise SettingsError(
            f"{out} holds another run: {'; '.join(said)}{more}. A resumed run must be the same run: give it what it "
            f"was begun with (its settings are in {out / 'settings.toml'}), or choose another --out"
        )
    return run


def evaluate_run(run: RunFolder | Path | str, part: Part = Part.TEST, k: Sequence[int] | None = None) -> Evaluation:
    """Evaluate a finished run over the whole catalogue and write ``evaluation.json`` into it (for the test part).

    Args:
        run: an opened run, or its path.
        part: the part of the split to ask about.
        k: the cut-offs, ascending; those of the run's settings where None.

    Raises:
        SettingsError: the run has no split, or the cut-offs are no ascending numbers from 1.
        ArtefactError: the run's store has changed, or a part of the run cannot be read.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    settings = RunSettings.parse(run.record.settings)
    chosen = settings.evaluation
    if k is not None:
        chosen = EvaluationSettings.parse(chosen.model_dump() | {"k": tuple(k)})
    if run.record.split.protocol == "none":
        raise SettingsError("the run's split.protocol is 'none': there is nothing to evaluate on; train with a split")
    log = run.log()
    model = run.load_model(log)
    scorer = TowerScorer(model, len(log.catalogue), model.history_length)
    found = evaluate(scorer, log, chosen, protocol=log.protocol, part=part, seed=settings.seed)
    if part is Part.TEST:
        write_text(run.path / "evaluation.json", found.model_dump_json(indent=1) + "\n")
    return found


def index_run(
    run: RunFolder | Path | str,
    settings: IndexSettings | None = None,
    out: Path | str | None = None,
    new_items: pl.DataFrame | None = None,
) -> Bundle:
    """Embed a finished run's catalogue, build its index, and write the bundle that is served.

    Args:
        run: an opened run, or its path.
        settings: how the index is built; the defaults where None.
        out: the bundle's folder; ``bundle`` in the run where None. A bundle that lies there is replaced.
        new_items: items that were not in the store at training, a column ``item`` and the catalogue's columns (see
            :func:`hatchway.index.new_items.checked_new_items`); they are embedded from their columns, stand after the
            known ones, and are recommended like them.

    Raises:
        DataError: the run is not finished, ``out`` holds something else, or the new items cannot be used.
        ArtefactError: the run's store has changed, or a part of the run cannot be read.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    settings = settings or IndexSettings()
    log = run.log()
    model = run.load_model(log)
    origin: dict[str, str | int] = {
        "store": run.record.store_digest,
        "weights": sha256_of(run.model_folder / "weights.safetensors"),
        "step": run.model_record().step,
    }
    similar = None
    if {"photo", "title"} & set(log.catalogue.frame.columns):
        screening = RunSettings.parse(run.record.settings).screening
        photos = Path(os.path.normpath(run.path / run.record.store))
        similar = alike_in_a_row(build_screen(log.catalogue, screening, photos))
    contents = contents_of(model, log.catalogue, log.engagements, settings, origin, new_items, similar=similar)
    return write_bundle(run.path / BUNDLE if out is None else out, contents, settings)


def export_triplets(run: RunFolder | Path | str, out: Path | str) -> tuple[Path, MiningRecord]:
    """Write what a run mined as ``triplets.parquet`` into a folder; docs/mining.md has its columns.

    A run that mined nothing is mined for now, with its own bundle and its own settings.

    Args:
        run: an opened run, or its path.
        out: the folder; made if it is not there.

    Raises:
        DataError: the run's mining was skipped, or its own bundle cannot be used; the message has the reason.
        ArtefactError: the run's store has changed, or a part of the run cannot be read.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    log = run.log()
    if run.record.mine_from is not None:
        mined, about = kept_mining(run.path)
        record = about.record
    else:
        settings = RunSettings.parse(run.record.settings)
        columns, days = settings.negatives.mined, settings.screening.engaged_days
        screen = build_screen(log.catalogue, settings.screening, run.store().path)
        mined, record = mine_log(log, Wanted(run.path, settings.mining, settings.seed, columns, days, screen))
    if mined is None:
        raise DataError(f"{run.path} has no mined set: {record.said()}")
    return write_triplets(Path(out), mined, log), record


def open_bundle(path: Path | str) -> Bundle:
    """Open the bundle of a run, or the bundle at ``path`` itself.

    Raises:
        DataError: ``path`` is neither, or the run has no bundle yet.
        ArtefactError: the bundle is damaged.
    """
    path = Path(path)
    if is_bundle(path):
        return Bundle.open(path)
    if is_bundle(path / BUNDLE):
        bundle = Bundle.open(path / BUNDLE)
        made_from, newest = bundle.manifest.origin.get("step"), RunFolder.open(path).model_record().step
        if made_from != newest:
            note(f"{bundle.path} was made from step {made_from}, the model is of step {newest}: hatchway index {path}")
        return bundle
    if (path / "run.json").is_file():
        raise DataError(f"{path} has no bundle yet; make it with: hatchway index {path}")
    raise DataError(f"{is_not('a run or a bundle', path)}; train a run, then make its bundle with: hatchway index RUN")


def nightly_run(store: Path | str, nights: Path | str, day: str, settings: RunSettings | None = None) -> NightRecord:
    """Run the night of one day; see :func:`hatchway.nightly.night.run_night`.

    Args:
        store: the store.
        nights: the folder of nights.
        day: the day, as in ``2026-03-02``.
        settings: everything that decides the night; the split is the night's own.
    """
    settings = settings or RunSettings()
    if settings.training.threads:
        torch.set_num_threads(settings.training.threads)
    recipe = NightRecipe(
        seed=settings.seed,
        positives=settings.positives,
        model=settings.model,
        negatives=settings.negatives,
        screening=settings.screening,
        mining=settings.mining,
        training=settings.training,
        evaluation=settings.evaluation,
        nightly=settings.nightly,
    )
    return run_night(store, nights, day, recipe)
