"""The training loop, read from top to bottom."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from hatchway.artefacts.alone import alone_in
from hatchway.artefacts.atomic import write_text
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import ArtefactError, DataError, DivergedError
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.settings import NegativesSettings
from hatchway.progress import Progress, note
from hatchway.screening.screen import Screen
from hatchway.towers.two_tower import TwoTower
from hatchway.training.aucs import AucMeter, auc_meter
from hatchway.training.batches import Batch, epoch_batches, steps_an_epoch
from hatchway.training.checkpoint import Carried, Progressed, checkpoints, load_checkpoint, save_checkpoint
from hatchway.training.curves import Curves
from hatchway.training.optimiser import RowWiseAdagrad
from hatchway.training.settings import TrainingSettings
from hatchway.training.sources import negatives_of
from hatchway.training.step import Negatives, batch_loss

_WINDOW = 20
"""Steps over which losses are averaged before anything is said or judged about them."""


@dataclass(frozen=True)
class Validation:
    """How a model is judged while it is trained.

    Attributes:
        judge: returns scores by name for a model.
        metric: the name of the score that decides which weights are best; higher is better.
    """

    judge: Callable[[TwoTower], Mapping[str, float]]
    metric: str


@dataclass(frozen=True)
class Trained:
    """What a finished loop leaves, besides the model with its chosen weights.

    Attributes:
        steps: steps done.
        history: the validations, oldest first, each with ``step`` and scores.
        chosen_step: the step whose weights the model has.
        loss: mean loss of the last steps.
    """

    steps: int
    history: tuple[dict[str, float], ...]
    chosen_step: int
    loss: float


def train(
    model: TwoTower,
    log: Log,
    folder: Path,
    *,
    settings: TrainingSettings,
    negatives: NegativesSettings,
    seed: int,
    validation: Validation | None = None,
    resume: bool = False,
    mined: RowTable | None = None,
    mined_from: int = 0,
    screen: Screen | None = None,
) -> Trained:
    """Train a model in place.

    The run is a function of its arguments: on one machine, with one number of threads, the same call gives the same
    weights to the last bit, whether or not it was killed and resumed on the way.

    Args:
        model: the two towers, as :func:`hatchway.towers.build.build_model` made them.
        log: the engagements; rows of :attr:`Part.TRAIN` with a weight are trained on.
        folder: the run folder: ``checkpoints/``, ``curves/`` and ``log.jsonl`` are written into it.
        settings: the loop's settings.
        negatives: which negatives, and their correction.
        seed: the run's seed.
        validation: judges the model after epochs; None judges nothing and keeps the last weights.
        resume: continue from the newest checkpoint in ``folder``, if there is one.
        mined: for each engagement row of the log, items mined for it (hard negatives); None for none.
        mined_from: the step from which they are used: a model that knows little yet learns from easy negatives first.
        screen: what may not stand as a negative, and for how long what a buyer engaged with may not; None: what the
            buyer engaged with in the 30 days before, and nothing else.

    Raises:
        DataError: there is nothing to train on, ``mined`` is of another log, or ``screen`` of another catalogue.
        DivergedError: the loss became NaN or ran away; names the step, the batch and the last good checkpoint.
        UsageError: another process is training in ``folder``.
    """
    engagements = log.engagements
    positives = engagements.positives(Part.TRAIN)
    if not len(positives):
        raise DataError("no positive is left to train on; look at the split and at which events count as positives")
    loss_of = SampledSoftmax(settings.temperature, negatives.alpha, learn_temperature=settings.learn_temperature)
    optimisers = make_optimisers(model, loss_of, settings)
    per_epoch = steps_an_epoch(len(positives), settings.batch)
    total = per_epoch * settings.epochs
    source = negatives_of(
        negatives,
        log,
        seed=seed,
        dimension=model.dimension,
        mined=mined,
        mined_from=mined_from,
        steps=total,
        screen=screen,
    )
    carries: dict[str, Carried | None] = {"queue": source.queue, "frequency": source.learned}
    carried = {name: held for name, held in carries.items() if held is not None}
    saved = folder / "checkpoints"
    with alone_in(folder, "trained"):
        at = Progressed()
        if resume and checkpoints(saved):
            at = load_checkpoint(checkpoints(saved)[-1], model, loss_of, optimisers, carried)
            _say_resumed(at.step, total)
        curves = Curves(folder, after=at.step, bounds_information=source.bounds_information)
        meter = None if validation is None else _meter(model, log, source, settings, at, curves)
        rates: dict[str, float] = {}
        model.train()
        with curves, Progress(total - at.step, "training", "step") as progress:
            while at.step < total:
                epoch, first = divmod(at.step, per_epoch)
                for batch in epoch_batches(
                    engagements,
                    positives,
                    batch=settings.batch,
                    history=model.history_length,
                    history_of=model.history_of,
                    mask_days=source.screen.settings.engaged_days,
                    seed=seed,
                    epoch=epoch,
                    first_step=first,
                ):
                    rates = set_rates(optimisers, settings, at.step / total)
                    source.learn(batch)
                    ledger = source.ledger(batch, epoch, at.step)
                    places = len(batch.positives) + len(ledger.items) + ledger.own_items.numel()
                    hidden = model.item_tower.draw_hidden(places, seed, at.step)
                    loss = batch_loss(model, loss_of, batch, ledger, hidden, source.queue)
                    value = float(loss.detach())
                    at = _counted(at, value)
                    _check(at, value, settings, batch, log, folder)
                    for optimiser in optimisers.values():
                        optimiser.zero_grad(set_to_none=True)
                    loss.backward()
                    for optimiser in optimisers.values():
                        optimiser.step()

                    curves.step(at.step, value, rates, ledger, source.k_at(at.step - 1))
                    progress.advance(text=f"loss {fmean(at.recent_losses):.4f}")
                    if at.step % per_epoch == 0 and validation is not None and _is_due(at.step // per_epoch, settings):
                        at = _validate(at, model, validation, meter, folder, curves)
                        model.train()
                    if at.step % settings.checkpoint_steps == 0 or at.step == total:
                        _check_weights(model, at, folder)
                        save_checkpoint(saved, model, loss_of, optimisers, at, settings.keep_checkpoints, carried)
            curves.finish(at.step, rates)
        model.eval()
        chosen = at.step
        if settings.select == "best" and at.best_score is not None:
            chosen = _take_best(model, folder)
        return Trained(at.step, at.history, chosen, fmean(at.recent_losses))


def _say_resumed(step: int, total: int) -> None:
    """Say where training goes on; a run that was only laid out, as a warm start is, begins."""
    if step:
        note(f"resumed after step {step:,} of {total:,}")


def make_optimisers(model: TwoTower, loss: nn.Module, settings: TrainingSettings) -> dict[str, Optimizer]:
    """Give every table row-wise Adagrad, and every other parameter Adam."""
    tables = [part for part in model.modules() if isinstance(part, nn.Embedding) and part.sparse]
    known = {id(part.weight) for part in tables}
    others = [p for module in (model, loss) for p in module.parameters() if p.requires_grad and id(p) not in known]
    made: dict[str, Optimizer] = {}
    if tables:
        made["tables"] = RowWiseAdagrad(tables, settings.table_rate, shrink=settings.table_shrink)
    if others:
        made["layers"] = torch.optim.Adam(others, lr=settings.layer_rate)
    return made


def set_rates(optimisers: Mapping[str, Optimizer], settings: TrainingSettings, done: float) -> dict[str, float]:
    """Set the learning rates for the point ``done`` (0 to 1) of the run, and return them by optimiser."""
    factor = 1.0 if settings.schedule == "constant" else 1.0 - done
    if done < settings.warmup:
        factor *= done / settings.warmup
    full = {"tables": settings.table_rate, "layers": settings.layer_rate}
    for name, optimiser in optimisers.items():
        for group in optimiser.param_groups:
            group["lr"] = full[name] * factor
    return {name: full[name] * factor for name in optimisers}


def _counted(at: Progressed, value: float) -> Progressed:
    first = at.first_losses if len(at.first_losses) == _WINDOW else (*at.first_losses, value)
    return replace(at, step=at.step + 1, first_losses=first, recent_losses=(*at.recent_losses, value)[-_WINDOW:])


def _check(at: Progressed, value: float, settings: TrainingSettings, batch: Batch, log: Log, folder: Path) -> None:
    """Stop when the loss is no number or has run away."""
    first, recent = fmean(at.first_losses), fmean(at.recent_losses)
    ran_away = at.step >= 2 * _WINDOW and recent > settings.divergence * max(first, 1.0)
    if math.isfinite(value) and not ran_away:
        return
    ids: dict[str, Any] = {
        "step": at.step,
        "buyers": log.buyers.external(batch.contexts.buyers).to_list(),
        "items": log.catalogue.external(batch.positives.numpy()).to_list(),
    }
    listing = folder / "diverged.json"
    write_text(listing, json.dumps(ids))
    good = checkpoints(folder / "checkpoints")
    trend = f" (mean of {_WINDOW} steps {recent:.3g}, of the first {first:.3g})" if ran_away else ""
    raise DivergedError(
        f"the loss is {value} at step {at.step:,}{trend}; buyers and items of the batch are in {listing} (first items: "
        f"{ids['items'][:5]}); "
        + (f"the last good checkpoint is {good[-1]}" if good else "there is no checkpoint yet")
        + ". Lower training.table_rate or training.layer_rate, or look for NaN in the item columns"
    )


def _check_weights(model: TwoTower, at: Progressed, folder: Path) -> None:
    """Refuse to save what no run could continue from: a gradient may overflow although the loss did not."""
    broken = [name for name, weights in model.named_parameters() if not bool(torch.isfinite(weights).all())]
    if broken:
        good = checkpoints(folder / "checkpoints")
        raise DivergedError(
            f"after step {at.step:,} {broken[0]} holds NaN or infinity; "
            + (f"the last good checkpoint is {good[-1]}" if good else "there is no checkpoint yet")
            + ". Lower training.table_rate or training.layer_rate"
        )


def _is_due(epoch: int, settings: TrainingSettings) -> bool:
    """Whether to validate after so many epochs."""
    return epoch == settings.epochs or (settings.validate_epochs > 0 and epoch % settings.validate_epochs == 0)


def _validate(
    at: Progressed, model: TwoTower, validation: Validation, meter: AucMeter | None, folder: Path, curves: Curves
) -> Progressed:
    """Judge the model; where it is the best so far, set its weights aside."""
    model.eval()
    if meter is not None:
        curves.aucs(at.step, meter.measure(model))
    scores = {name: float(score) for name, score in validation.judge(model).items()}
    curves.validation(at.step, scores)
    note(f"step {at.step:,}: " + ", ".join(f"{name} {score:.4f}" for name, score in scores.items()))
    at = replace(at, history=(*at.history, {"step": float(at.step), **scores}))
    score = scores[validation.metric]
    if at.best_score is None or score > at.best_score:
        at = replace(at, best_score=score)
        save_checkpoint(folder / "best", model, nn.Module(), {}, at, keep=1)
    return at


def _meter(
    model: TwoTower, log: Log, negatives: Negatives, settings: TrainingSettings, at: Progressed, curves: Curves
) -> AucMeter | None:
    """Choose the pairs that AUCs are measured on; a run that begins is measured before its first step."""
    meter = auc_meter(model, log, negatives, pairs=settings.auc_pairs, seed=negatives.seed)
    if meter is not None and at.step == 0:
        model.eval()
        curves.aucs(0, meter.measure(model))
    return meter


def _take_best(model: TwoTower, folder: Path) -> int:
    """Give the model the weights of its best validation and return their step."""
    found = checkpoints(folder / "best")
    if not found:
        raise ArtefactError(
            f"{folder / 'best'} has no whole weights left, although the run had a best validation; remove {folder} and "
            "train again"
        )
    return load_checkpoint(found[-1], model, nn.Module(), {}).step
