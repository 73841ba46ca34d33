"""A few rows "More like this" as the trained model fills them, with the catalogue's photos where there are files."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hatchway.data.engagements import training_counts
from hatchway.data.log import Log
from hatchway.index.model_bundle import item_vectors, known_items, looked_at_is_engaged
from hatchway.index.queries import Queries
from hatchway.towers.context import ContextTower
from hatchway.towers.two_tower import TwoTower

LARGEST = 500_000
"""Catalogues above this are not embedded again for a report."""
_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
_LARGEST_PHOTO = 60_000  # bytes; the report is one file


@dataclass(frozen=True)
class Shown:
    """One item in a row: its id, title, what else is known of it, and its photo as a data URI ("" for none)."""

    item: str
    title: str
    detail: str
    photo: str


@dataclass(frozen=True)
class Row:
    """A listing that is looked at, and what the model puts beside it, best first."""

    query: Shown
    beside: tuple[Shown, ...]


def example_rows(model: TwoTower, log: Log, photos: Path, *, rows: int = 4, length: int = 6) -> tuple[Row, ...]:
    """Fill the rows of some well-known listings, of different categories where there are any.

    Only what is for sale is shown, where the catalogue knows (column ``gone``).

    Args:
        model: the trained model.
        log: its log.
        photos: the folder that the catalogue's photo paths start from.
        rows: how many listings.
        length: how many items beside each.

    Returns:
        The rows; none where the catalogue has no titles or is too large to be embedded for a picture.
    """
    frame = log.catalogue.frame
    if not log.catalogue.has("title") or len(frame) > LARGEST or len(frame) < 2:
        return ()
    vectors = item_vectors(model, len(frame))
    tower = model.query_tower if isinstance(model.query_tower, ContextTower) else None
    engagements = log.engagements
    known = known_items(engagements, len(frame), model.history_length, model.history_of)
    queries = Queries(vectors, tower, looked_at_is_engaged=looked_at_is_engaged(engagements), known=known)
    there = frame["gone"].is_null().to_numpy() if log.catalogue.has("gone") else np.ones(len(frame), np.bool_)
    chosen = _well_known(log, there, rows)
    if not len(chosen):
        return ()
    scores = np.where(there[None, :], queries.similar(chosen) @ vectors.T, -np.inf)
    scores[np.arange(len(chosen)), chosen] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :length]
    best_scores = np.take_along_axis(scores, best, axis=1)
    return tuple(
        Row(
            _shown(frame.row(int(query), named=True), photos),
            tuple(
                _shown(frame.row(int(item), named=True), photos)
                for item, score in zip(beside, found, strict=True)
                if score > -np.inf
            ),
        )
        for query, beside, found in zip(chosen, best, best_scores, strict=True)
    )


def _well_known(log: Log, there: np.ndarray, rows: int) -> np.ndarray:
    """Choose the most engaged listing of each category, best known first; the most engaged ones without categories."""
    counts = np.where(there, training_counts(log.engagements, len(there)), -1)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    if log.catalogue.has("category"):
        category = log.catalogue.frame["category"].fill_null("").to_numpy()[order]
        _, first = np.unique(category, return_index=True)
        order = order[np.sort(first)]
    return order[:rows]


def _shown(known: dict[str, Any], photos: Path) -> Shown:
    """Put what the catalogue says of an item into words."""
    price = known.get("price")
    details = [str(known["category"])] if known.get("category") is not None else []
    details += [f"{price:,.0f}"] if isinstance(price, (int, float)) and np.isfinite(price) else []
    item = str(known["item"])
    return Shown(item, known.get("title") or f"Item {item}", " · ".join(details), _embedded(known.get("photo"), photos))


def _embedded(name: object, photos: Path) -> str:
    """Return a photo file as a data URI; empty where there is none inside the folder, or it is too large."""
    if not isinstance(name, str) or "\0" in name:
        return ""
    path = (photos / name).resolve()
    kind = _TYPES.get(path.suffix.lower())
    if kind is None or not path.is_relative_to(photos.resolve()) or not path.is_file():
        return ""
    data = path.read_bytes() if path.stat().st_size <= _LARGEST_PHOTO else b""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}" if data else ""
