"""From a catalogue to its screen: each reason is prepared, or said in a line to be off."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.progress import note
from hatchway.screening.kept import FolderPhotos, photos_in
from hatchway.screening.photos import given_hashes, similar_photos
from hatchway.screening.screen import Screen
from hatchway.screening.sellers import seller_rows, without_shops
from hatchway.screening.settings import ScreeningSettings
from hatchway.screening.similar import SimilarItems
from hatchway.screening.titles import similar_titles


def build_screen(
    catalogue: Catalogue, settings: ScreeningSettings, photos: Path | None = None, said: Collection[str] = ()
) -> Screen:
    """Find out which items of a catalogue are hidden positives for each other.

    What is switched off, and what the catalogue has no column for, is not asked; the latter is said in a line each.

    Args:
        catalogue: N items, with the columns ``seller``, ``photo`` and ``title`` or some of them.
        settings: what to screen for.
        photos: the folder where relative paths of photos start, None where no files are at hand.
        said: lines that were said before, and are not said again.

    Returns:
        The screen, with its lines in its ``notes``.
    """
    notes: list[str] = []
    frame = catalogue.frame
    sellers = _sellers(frame, settings, notes) if settings.seller else None
    similar = _photos(frame, settings, photos, notes) if settings.photo else None
    titles = _titles(frame, settings, notes) if settings.title else None
    for line in notes:
        if line not in said:
            note(line)
    return Screen(settings, sellers, similar, titles, tuple(notes))


def _absent(frame: pl.DataFrame, column: str, notes: list[str]) -> bool:
    """Say that the catalogue lacks a column, or has nothing in it."""
    if column in frame.columns and frame[column].null_count() < len(frame):
        return False
    what = f"the catalogue has no column {column!r}" if column not in frame.columns else f"column {column!r} is empty"
    notes.append(f"screening: {what}, so screening.{column} is off")
    return True


def _sellers(frame: pl.DataFrame, settings: ScreeningSettings, notes: list[str]) -> np.ndarray | None:
    if _absent(frame, "seller", notes):
        return None
    rows, shops = without_shops(seller_rows(frame["seller"]), settings.seller_share)
    if len(shops):
        notes.append(
            f"screening: {len(shops)} sellers offer more than {settings.seller_share:.0%} of the catalogue each "
            f"(the largest {shops[0]:,} of {len(frame):,} items); their items are not screened by seller"
        )
    return rows


def _photos(
    frame: pl.DataFrame, settings: ScreeningSettings, folder: Path | None, notes: list[str]
) -> SimilarItems | None:
    if _absent(frame, "photo", notes):
        return None
    column = frame["photo"]
    if column.dtype == pl.UInt64:
        seen = given_hashes(column.fill_null(0).to_numpy(), column.is_not_null().to_numpy())
        near = similar_photos(seen.hashes, seen.usable, settings.photo_radius, settings.photo_most)
        looked = FolderPhotos(near, int(seen.usable.sum()), seen.faults)
    elif folder is None:
        notes.append("screening: column 'photo' has paths and no folder of photos is given, so screening.photo is off")
        return None
    else:
        looked = photos_in(column.to_list(), folder, settings)
    notes.append(_say_photos(looked, settings))
    if looked.usable:
        return looked.found.similar
    notes.append("screening: no photo can be used, so screening.photo is off")
    return None


def _titles(frame: pl.DataFrame, settings: ScreeningSettings, notes: list[str]) -> SimilarItems | None:
    if _absent(frame, "title", notes):
        return None
    found = similar_titles(frame["title"], settings.title_threshold, settings.title_bits, settings.title_most)
    line = f"screening: {found.read:,} titles read; {found.similar.pairs:,} pairs say the same"
    if found.crowded.any():
        line += (
            f"; {int(found.crowded.sum()):,} titles are like more than {settings.title_most:,} others and match none "
            f"(the largest group of one wording has {found.largest_group:,})"
        )
    notes.append(line)
    return found.similar


def _say_photos(looked: FolderPhotos, settings: ScreeningSettings) -> str:
    """Return the line about the photos."""
    found = looked.found
    out = "".join(f", {number:,} {why}" for why, number in looked.faults.items())
    line = f"screening: {looked.usable:,} photos looked at{out}; {found.similar.pairs:,} near-identical pairs"
    if found.crowded.any():
        line += (
            f"; {int(found.crowded.sum()):,} photos are like more than {settings.photo_most:,} others and match none "
            f"(placeholders; the largest group of one hash has {found.largest_group:,})"
        )
    return line
