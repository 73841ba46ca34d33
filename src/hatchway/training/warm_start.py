"""Going on from an earlier model: its tables are carried over to a catalogue that has grown, row by row.

Items and the values of a category keep their rows from one model to the next, and new ones stand after them; buyers are
found again by their ids. What is carried is written as a checkpoint of step 0, so that the loop resumes from it as from
any other.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from hatchway.data.engagements import Int64
from hatchway.errors import ArtefactError
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.settings import NegativesSettings
from hatchway.towers.features import UNKNOWN, FeatureReading
from hatchway.towers.two_tower import BuyerTower, TwoTower
from hatchway.training.checkpoint import Carried, Progressed, restore_optimisers, save_checkpoint
from hatchway.training.loop import make_optimisers
from hatchway.training.settings import TrainingSettings

_REMEDY = "the settings of the model have changed: begin a new series with the new ones, or take the old ones back"


def extended_reading(old: FeatureReading, fresh: FeatureReading) -> FeatureReading:
    """Return the old reading with the values that are new: what was read before is read the same way.

    Args:
        old: how the earlier model reads item columns.
        fresh: a reading fitted on the present catalogue.

    Raises:
        ArtefactError: they read other columns, or vectors of another length.

    >>> old = FeatureReading(categories={"kind": ("lamp", "sofa")})
    >>> extended_reading(old, FeatureReading(categories={"kind": ("bed", "sofa")})).categories["kind"]
    ('lamp', 'sofa', 'bed')
    """
    theirs, mine = ((set(r.categories), set(r.numbers), r.texts, r.vectors, r.buckets) for r in (old, fresh))
    if theirs != mine:
        raise ArtefactError(f"the earlier model reads other item columns, or the same ones another way; {_REMEDY}")
    categories = {
        name: (*values, *(value for value in fresh.categories[name] if value not in set(values)))
        for name, values in old.categories.items()
    }
    return old.model_copy(update={"categories": categories})


def carry_weights(model: TwoTower, old: Mapping[str, Tensor], buyers: Int64) -> None:
    """Give a freshly built model the weights of an earlier one.

    New items say nothing of their own where the model reads their columns: what would be a random vector is zero until
    it is trained. A new value of a category begins as what stands for an unknown one.

    Args:
        model: built for the present catalogue, with an :func:`extended_reading`.
        old: the earlier model's tensors by name.
        buyers: [buyers] the rows of the present buyers in the earlier model, -1 for new ones.

    Raises:
        ArtefactError: the earlier model is made of other parts.
    """
    fresh = model.state_dict()
    if fresh.keys() != old.keys():
        other = min(fresh.keys() ^ old.keys())
        raise ArtefactError(f"the earlier model and this one do not both have {other}; {_REMEDY}")
    model.load_state_dict({name: _carried(name, old[name], tensor, model, buyers) for name, tensor in fresh.items()})


def carry_on(
    checkpoint_tensors: Mapping[str, Tensor],
    model: TwoTower,
    buyers: Int64,
    folder: Path,
    settings: TrainingSettings,
    negatives: NegativesSettings,
    carried: Mapping[str, Carried],
) -> Path:
    """Write a checkpoint of step 0 for a run that goes on from an earlier one, optimisers included.

    Args:
        checkpoint_tensors: ``state.safetensors`` of the earlier run's last checkpoint.
        model: with the weights that :func:`carry_weights` gave it.
        buyers: as there.
        folder: the run folder.
        settings: the loop's settings of the run to come.
        negatives: its negatives.
        carried: what else it carries from step to step, as it is to begin.

    Raises:
        ArtefactError: the state is of another model or other settings.
    """
    loss = SampledSoftmax(settings.temperature, negatives.alpha, learn_temperature=settings.learn_temperature)
    if settings.learn_temperature:
        theirs = {k.removeprefix("loss."): v for k, v in checkpoint_tensors.items() if k.startswith("loss.")}
        loss.load_state_dict(theirs)
    optimisers = make_optimisers(model, loss, settings)
    names = [name for name, part in model.named_modules() if isinstance(part, nn.Embedding) and part.sparse]
    state = {}
    for key, tensor in checkpoint_tensors.items():
        owner, _, rest = key.partition(".")
        if owner == "tables" and tensor.ndim:
            place = int(rest.partition(".")[0])
            if place >= len(names):
                raise ArtefactError(f"the earlier run has a table more than this one; {_REMEDY}")
            name = f"{names[place]}.weight"
            state[key] = _rows(name, tensor, _zeros(tensor, len(model.state_dict()[name])), model, buyers)
        else:
            state[key] = tensor
    try:
        restore_optimisers(optimisers, state)
    except (ValueError, KeyError) as error:
        raise ArtefactError(f"the earlier run's optimisers do not fit this model ({error}); {_REMEDY}") from None
    return save_checkpoint(
        folder / "checkpoints", model, loss, optimisers, Progressed(), settings.keep_checkpoints, carried
    )


def _carried(name: str, old: Tensor, fresh: Tensor, model: TwoTower, buyers: Int64) -> Tensor:
    """Carry one tensor of the model."""
    if name == "item_tower.unreached":
        # Nothing has moved the vectors of new items yet, nor of those that no training reached so far.
        return _rows(name, old, torch.ones_like(fresh), model, buyers)
    begin = fresh.clone()
    if name.startswith("item_tower.columns.by_category.") and len(old) < len(fresh):
        begin[len(old) :] = old[UNKNOWN]
    elif name in _OF_ITEMS and model.item_tower.columns is not None:
        begin[len(old) :] = 0.0
    return _rows(name, old, begin, model, buyers)


_OF_ITEMS = ("item_tower.own.weight", "query_tower.by_query_item.weight", "query_tower.by_history.weight")


def _rows(name: str, old: Tensor, begin: Tensor, model: TwoTower, buyers: Int64) -> Tensor:
    """Put the old rows over the first of ``begin``, or by the buyers' old rows.

    Raises:
        ArtefactError: they do not fit.
    """
    of_buyers = name == "query_tower.by_buyer.weight" or (
        name == "query_tower.own.weight" and isinstance(model.query_tower, BuyerTower)
    )
    if old.shape[1:] != begin.shape[1:] or (len(old) > len(begin) if old.ndim and not of_buyers else False):
        raise ArtefactError(f"{name} was {tuple(old.shape)} and is {tuple(begin.shape)} now; {_REMEDY}")
    if of_buyers:
        found = torch.from_numpy(buyers)
        known = found >= 0
        begin = begin.clone()
        begin[known] = old[found[known]]
        return begin
    if not old.ndim:
        return old
    growing = name in (*_OF_ITEMS, "item_tower.unreached") or name.startswith("item_tower.columns.by_category.")
    if len(old) != len(begin) and not growing:
        raise ArtefactError(f"{name} was {tuple(old.shape)} and is {tuple(begin.shape)} now; {_REMEDY}")
    return torch.cat([old, begin[len(old) :]])


def _zeros(like: Tensor, rows: int) -> Tensor:
    return like.new_zeros(rows, *like.shape[1:])
