"""From a trained model to the contents of a bundle, and from a bundle back to a query side that answers."""

from collections.abc import Mapping

import numpy as np
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.engagements import Engagements, Part
from hatchway.errors import ArtefactError, SettingsError
from hatchway.index.build import IndexSettings, sample_rows
from hatchway.index.bundle import Bundle, BundleContents
from hatchway.index.protocol import Float32, Int64
from hatchway.index.queries import Queries
from hatchway.progress import note
from hatchway.randomness import stream
from hatchway.settings import Settings
from hatchway.towers.context import ContextTower
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower

_ITEMS_AT_ONCE = 65_536


class ServedSettings(Settings):
    """What ``settings.json`` of a bundle holds.

    Attributes:
        model: the model's settings.
        looked_at_is_engaged: as for :class:`~hatchway.index.queries.Queries`.
    """

    model: ModelSettings
    looked_at_is_engaged: bool


def item_vectors(model: TwoTower, count: int) -> Float32:
    """Return the vectors of items ``0 .. count-1``, [count, d] float32, embedded in blocks."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            ends = range(_ITEMS_AT_ONCE, count + _ITEMS_AT_ONCE, _ITEMS_AT_ONCE)
            rows = [torch.arange(end - _ITEMS_AT_ONCE, min(end, count), device=device) for end in ends]
            blocks = [torch.empty(0, model.dimension), *(model.item(block).float().cpu() for block in rows)]
    finally:
        model.train(was_training)
    vectors: Float32 = torch.cat(blocks).numpy()
    return vectors


def contents_of(
    model: TwoTower,
    catalogue: Catalogue,
    engagements: Engagements,
    settings: IndexSettings,
    origin: Mapping[str, str | int | bool],
) -> BundleContents:
    """Embed the catalogue with a model, and gather what a bundle of it is made of.

    Beside the columns that a page shows, the bundle's catalogue has ``engagements``: each item's positives in the
    training part. Items whose ``gone`` is not null have vectors, but no place in the index. Recall is to be measured on
    the queries of sampled items' pages.

    Args:
        model: the trained model.
        catalogue: the N items.
        engagements: the log that the model was trained on.
        settings: how the index will be built; its seed says which items are sampled.
        origin: what the model came from, for the manifest.
    """
    vectors = item_vectors(model, len(catalogue))
    tower = model.query_tower if isinstance(model.query_tower, ContextTower) else None
    served = ServedSettings(model=model.query_tower.settings, looked_at_is_engaged=looked_at_is_engaged(engagements))
    queries = Queries(vectors, tower, looked_at_is_engaged=served.looked_at_is_engaged)
    sampled = sample_rows(len(catalogue), settings.sampled_queries, stream(settings.seed, "index", "queries"))
    counts = np.bincount(engagements.items[engagements.positives(Part.TRAIN)], minlength=len(catalogue))
    return BundleContents(
        catalogue=Catalogue(catalogue.frame.with_columns(engagements=counts.astype(np.int64))),
        vectors=vectors,
        queries=queries.similar(sampled),
        weights={} if tower is None else tower.state_dict(),
        settings=served.model_dump(mode="json"),
        origin=origin,
        rows=None if settings.include_gone else living_rows(catalogue),
    )


def living_rows(catalogue: Catalogue) -> Int64 | None:
    """Return the row numbers of the items that are not gone; None (all) where none is gone, or none is not."""
    if not catalogue.has("gone"):
        return None
    living = np.flatnonzero(catalogue.frame["gone"].is_null().to_numpy())
    if not len(living) and len(catalogue):
        note("every item of the catalogue is gone; all are indexed, since there is nothing else to recommend")
    return living.astype(np.int64) if 0 < len(living) < len(catalogue) else None


def looked_at_is_engaged(engagements: Engagements) -> bool:
    """Say whether the query item of most training positives is the buyer's last engagement: so it is without views."""
    rows = engagements.positives(Part.TRAIN)
    rows = rows[engagements.query_items[rows] >= 0]
    if not len(rows):
        return True
    end = engagements.context_end[rows]
    known = end > engagements.offsets[engagements.buyers[rows]]
    last = np.where(known, engagements.items[np.maximum(end - 1, 0)], -1)
    return bool((last == engagements.query_items[rows]).mean() > 0.5)


def queries_of(bundle: Bundle) -> Queries:
    """Put the query side of a bundle's model together again.

    Raises:
        ArtefactError: settings and weights do not fit each other, or this version of Hatchway.
    """
    remedy = "make the bundle again: hatchway index RUN"
    try:
        served = ServedSettings.parse(bundle.settings)
    except SettingsError as error:
        raise ArtefactError(f"{bundle.path}/settings.json is of another version ({error}); {remedy}") from None
    tower = None
    if served.model.kind == "context":
        buyers = len(bundle.weights.get("by_buyer.weight", ()))
        with torch.device("meta"):  # no memory, no random numbers: every tensor is replaced
            tower = ContextTower(bundle.manifest.items, buyers, served.model)
        try:
            tower.load_state_dict(bundle.weights, assign=True)
        except RuntimeError as error:
            wrong = str(error).splitlines()[-1].strip()
            raise ArtefactError(f"the weights of {bundle.path} do not fit its settings ({wrong}); {remedy}") from None
        tower.eval()
    return Queries(bundle.vectors, tower, looked_at_is_engaged=served.looked_at_is_engaged)
