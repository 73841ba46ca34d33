"""From a trained model to the contents of a bundle, and from a bundle back to a query side that answers."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.contexts import HistoryOf
from hatchway.data.days import day_name
from hatchway.data.engagements import Engagements, Part, last_training_day
from hatchway.errors import ArtefactError, SettingsError
from hatchway.index.build import IndexSettings, sample_rows
from hatchway.index.bundle import Bundle, BundleContents
from hatchway.index.item_encoder import ItemEncoder, encoder_weights
from hatchway.index.new_items import checked_new_items, new_item_vectors, with_new_items
from hatchway.index.protocol import Float32, Int64
from hatchway.index.queries import Known, Queries
from hatchway.progress import note
from hatchway.randomness import stream
from hatchway.screening.similar import SimilarItems
from hatchway.settings import Settings
from hatchway.towers.context import ContextTower
from hatchway.towers.features import FeatureReading
from hatchway.towers.settings import ItemSettings, ModelSettings
from hatchway.towers.two_tower import TwoTower

_ITEMS_AT_ONCE = 65_536


class ServedSettings(Settings):
    """What ``settings.json`` of a bundle holds.

    Attributes:
        model: the model's settings.
        looked_at_is_engaged: as for :class:`~hatchway.index.queries.Queries`.
        reading: how the model reads item columns; None where it reads none.
    """

    model: ModelSettings
    looked_at_is_engaged: bool
    reading: FeatureReading | None = None


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
    new_items: pl.DataFrame | None = None,
    similar: SimilarItems | None = None,
) -> BundleContents:
    """Embed the catalogue with a model, and gather what a bundle of it is made of.

    Beside the columns that a page shows, the bundle's catalogue has ``engagements``: each item's positives in the
    training part; and ``looked_at`` and ``in_history``, as in :class:`~hatchway.index.queries.Known`. Items whose
    ``gone`` is not null have vectors, but no place in the index. Recall is to be measured on the queries of sampled
    items' pages. Where the log has times, the origin says of which day its last training engagement is (``day``).

    Args:
        model: the trained model.
        catalogue: the N items.
        engagements: the log that the model was trained on.
        settings: how the index will be built; its seed says which items are sampled.
        origin: what the model came from, for the manifest.
        new_items: items that were not there at training, as :func:`~hatchway.index.new_items.checked_new_items` takes
            them; they stand after the known ones.
        similar: which items of the catalogue are relists or near-duplicates of which; new items are like none.

    Raises:
        DataError: the new items cannot be used, or the model knows items by their ids only.
    """
    known_vectors = item_vectors(model, len(catalogue))
    vectors = known_vectors
    if new_items is not None:
        checked = checked_new_items(new_items, catalogue, model.item_tower.reading)
        vectors = np.concatenate([known_vectors, new_item_vectors(model, checked)])
        catalogue = with_new_items(catalogue, checked)
        origin = {**origin, "new_items": len(checked)}
    tower = model.query_tower if isinstance(model.query_tower, ContextTower) else None
    encoder = encoder_weights(model)
    served = ServedSettings(
        model=model.query_tower.settings,
        looked_at_is_engaged=looked_at_is_engaged(engagements),
        reading=model.item_tower.reading if encoder else None,
    )
    known = known_items(engagements, len(catalogue), model.history_length, model.history_of)
    queries = Queries(vectors, tower, looked_at_is_engaged=served.looked_at_is_engaged, known=known)
    sampled = sample_rows(len(catalogue), settings.sampled_queries, stream(settings.seed, "index", "queries"))
    counts = np.bincount(engagements.items[engagements.positives(Part.TRAIN)], minlength=len(catalogue))
    day = last_training_day(engagements)
    if day is not None:
        origin = {**origin, "day": day_name(day)}
    return BundleContents(
        catalogue=Catalogue(
            catalogue.frame.with_columns(
                engagements=counts.astype(np.int64), looked_at=known.looked_at, in_history=known.in_history
            )
        ),
        vectors=vectors,
        queries=queries.similar(sampled),
        weights={} if tower is None else tower.state_dict(),
        settings=served.model_dump(mode="json"),
        origin=origin,
        rows=None if settings.include_gone else living_rows(catalogue),
        encoder=encoder,
        similar=None if similar is None else _enlarged(similar, len(catalogue)),
    )


def _enlarged(similar: SimilarItems, count: int) -> SimilarItems:
    """Give lists of similar items places for items that came after, which are like none."""
    more = np.full(count - len(similar), similar.offsets[-1])
    return SimilarItems(np.concatenate([similar.offsets, more]), similar.items)


def living_rows(catalogue: Catalogue) -> Int64 | None:
    """Return the row numbers of the items that are not gone; None (all) where none is gone, or none is not."""
    if not catalogue.has("gone"):
        return None
    living = np.flatnonzero(catalogue.frame["gone"].is_null().to_numpy())
    if not len(living) and len(catalogue):
        note("every item of the catalogue is gone; all are indexed, since there is nothing else to recommend")
    return living.astype(np.int64) if 0 < len(living) < len(catalogue) else None


def known_items(engagements: Engagements, count: int, history_length: int, history_of: HistoryOf = "before") -> Known:
    """Say which items stood in the contexts that a model was trained on: those of the training positives.

    Args:
        engagements: the log that the model was trained on.
        count: N, the items of the catalogue, those that are new since then included.
        history_length: how many of the last engagements a context holds.
        history_of: which engagements a context holds, see :func:`~hatchway.data.contexts.contexts_of`.
    """
    rows = engagements.positives(Part.TRAIN)
    looked_at, in_history = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    query_items = engagements.query_items[rows]
    looked_at[query_items[query_items >= 0]] = True
    end = (
        engagements.context_end[rows] if history_of == "before" else engagements.training_end[engagements.buyers[rows]]
    )
    begin = np.minimum(np.maximum(engagements.offsets[engagements.buyers[rows]], end - history_length), end)
    if history_of == "others":  # a buyer's only engagement has no others
        begin = np.where(end - begin < 2, end, begin)
    # Contexts overlap: +1 where one begins and -1 where one ends, so that the running sum counts those around a row.
    steps = np.bincount(begin, minlength=len(engagements) + 1) - np.bincount(end, minlength=len(engagements) + 1)
    in_history[engagements.items[np.cumsum(steps)[:-1] > 0]] = True
    return Known(looked_at, in_history)


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


class ServedTower(NamedTuple):
    """The query side of a bundle's model.

    Attributes:
        settings: what the model is made of.
        tower: in evaluation mode; None where the item vectors are all there is.
        known: the items that the tower can be told of; None where it is told of none, or there is no tower.
    """

    settings: ServedSettings
    tower: ContextTower | None
    known: Known | None


def tower_of(bundle: Bundle) -> ServedTower:
    """Put the query tower of a bundle's model together again.

    Raises:
        ArtefactError: settings and weights do not fit each other, or this version of Hatchway.
    """
    remedy = "make the bundle again: hatchway index RUN"
    served = _served(bundle, remedy)
    if served.model.kind != "context":
        return ServedTower(served, None, None)
    items, buyers = (
        max(len(bundle.weights.get(f"by_{name}.weight", ())) for name in names)
        for names in (("query_item", "history"), ("buyer",))
    )
    with torch.device("meta"):  # no memory, no random numbers: every tensor is replaced
        tower = ContextTower(items, buyers, served.model)
    try:
        tower.load_state_dict(bundle.weights, assign=True)
    except RuntimeError as error:
        wrong = str(error).splitlines()[-1].strip()
        raise ArtefactError(f"the weights of {bundle.path} do not fit its settings ({wrong}); {remedy}") from None
    tower.eval()
    told = served.model.context.query_item or served.model.context.history
    return ServedTower(served, tower, _known_to(bundle, items, remedy) if told else None)


def queries_of(bundle: Bundle) -> Queries:
    """Put the query side of a bundle's model together again.

    Raises:
        ArtefactError: settings and weights do not fit each other, or this version of Hatchway.
    """
    served, tower, known = tower_of(bundle)
    return Queries(bundle.vectors, tower, looked_at_is_engaged=served.looked_at_is_engaged, known=known)


def encoder_of(bundle: Bundle) -> ItemEncoder | None:
    """Put the part of a bundle's model together that places an item by its columns; None where it reads none.

    Raises:
        ArtefactError: settings and weights do not fit each other, or this version of Hatchway.
    """
    served = _served(bundle, "make the bundle again: hatchway index RUN")
    if served.reading is None or not bundle.encoder:
        return None
    return ItemEncoder(bundle.encoder, _as_trained(served.reading, served.model.item), served.model)


def _as_trained(reading: FeatureReading, item: ItemSettings) -> FeatureReading:
    """Put the columns in the order in which the model reads them; a settings file has its keys sorted."""
    return reading.model_copy(
        update={
            "categories": {name: reading.categories[name] for name in item.categories},
            "numbers": {name: reading.numbers[name] for name in item.numbers},
            "vectors": {name: reading.vectors[name] for name in item.vectors},
        }
    )


def _served(bundle: Bundle, remedy: str) -> ServedSettings:
    """Read the settings of a bundle."""
    try:
        return ServedSettings.parse(bundle.settings)
    except SettingsError as error:
        raise ArtefactError(f"{bundle.path}/settings.json is of another version ({error}); {remedy}") from None


def _known_to(bundle: Bundle, items: int, remedy: str) -> Known:
    """Read which items the tower of a bundle can be told of; it has a place for the first ``items`` of them."""
    frame = bundle.catalogue.frame
    absent = [name for name in ("looked_at", "in_history") if frame.schema.get(name) != pl.Boolean]
    if absent:
        raise ArtefactError(f"{bundle.path}/catalogue.parquet does not say which items are {absent[0]}; {remedy}")
    known = Known(*(frame[name].fill_null(value=False).to_numpy() for name in ("looked_at", "in_history")))
    if (known.looked_at | known.in_history)[items:].any():
        raise ArtefactError(
            f"{bundle.path} says of items beyond the first {items:,} that the model knows them; its weights are of "
            f"{items:,} items; {remedy}"
        )
    return known
