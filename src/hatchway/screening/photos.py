"""Near-identical photos: by their hashes alone or, where image files are at hand, by a closer look at the near ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64
from hatchway.errors import DataError
from hatchway.screening.alignment import differences
from hatchway.screening.hamming import UInt64, near_pairs
from hatchway.screening.hashes import View, blank, empty_hashes, hashes_of, variants
from hatchway.screening.similar import SimilarItems
from hatchway.screening.thumbnails import UInt8, read_thumbnails

Bools = npt.NDArray[np.bool_]

_CANDIDATES = 20
"""A photo's hash may be near so many times as many others as may look like it at last; more is a placeholder."""


@dataclass(frozen=True, eq=False)
class PhotoHashes:
    """The hashes of N photos.

    Attributes:
        hashes: [N] uint64.
        usable: [N] bool: there is a photo, and it shows enough to be told from others.
        faults: how many photos could not be used, by why: what :class:`~hatchway.screening.thumbnails.Thumbnails` says,
            and ``blank``.
        pixels: [N, 32, 32, 3] uint8 thumbnails, None where only hashes are known.
    """

    hashes: UInt64
    usable: Bools
    faults: dict[str, int]
    pixels: UInt8 | None = None


@dataclass(frozen=True, eq=False)
class SimilarPhotos:
    """What was found among N photos.

    Attributes:
        similar: which are near-identical.
        crowded: [N] bool, photos that look like too many others: placeholders, or a maker's picture that everybody
            uses. They match none.
        largest_group: how many photos share the hash that most photos share; 0 without photos.
    """

    similar: SimilarItems
    crowded: Bools
    largest_group: int


def perceptual_hashes(names: Sequence[str | None], folder: Path) -> PhotoHashes:
    """Read photo files and hash them.

    Args:
        names: [N] paths, absolute or from ``folder`` on; None or empty where there is no photo.
        folder: where relative paths start.
    """
    seen = read_thumbnails(names, folder)
    empty = seen.there & blank(seen.pixels)
    faults = seen.faults | ({"blank": int(empty.sum())} if empty.any() else {})
    return PhotoHashes(hashes_of(seen.pixels), seen.there & ~empty, faults, seen.pixels)


def given_hashes(hashes: UInt64, known: Bools) -> PhotoHashes:
    """Take 64-bit hashes that the catalogue has; those of blank photos are told by nearly all bits being alike.

    Args:
        hashes: [N] uint64.
        known: [N] bool, where there is one.
    """
    empty = known & empty_hashes(hashes)
    faults = {"no photo": int((~known).sum()), "blank": int(empty.sum())}
    return PhotoHashes(hashes, known & ~empty, {why: number for why, number in faults.items() if number})


def similar_photos(hashes: UInt64, usable: Bools, radius: int, most: int = 200) -> SimilarPhotos:
    """Find the photos whose hashes differ in at most ``radius`` bits, without comparing all with all.

    Args:
        hashes: [N] uint64.
        usable: [N] bool; the others match none.
        radius: 0 to 16.
        most: a photo that is near more than so many others matches none.

    Raises:
        DataError, SettingsError: see :func:`~hatchway.screening.hamming.near_pairs`.
    """
    rows, own = _usable_rows(hashes, usable)
    near = near_pairs(own, own, radius, most + 1)  # a hash is near itself
    return _found(len(hashes), rows, near.crowded, own, rows[near.first], rows[near.second])


def similar_pictures(
    seen: PhotoHashes, radius: int, difference: float = 0.12, most: int = 200, *, with_variants: bool = True
) -> SimilarPhotos:
    """Find the photos that show the same picture: hashes within the radius first, then a closer look at those pairs.

    Args:
        seen: the photos with their thumbnails.
        radius: 0 to 16, for the plain hashes and those of the variants.
        difference: two photos show the same picture where the worst hundredth differs by less than this share of what
            they show (:func:`~hatchway.screening.alignment.differences`).
        most: a photo that shows the same picture as more than so many others matches none.
        with_variants: also compare with mirrored and cropped photos.

    Raises:
        DataError: there are no thumbnails.
    """
    if seen.pixels is None:
        raise DataError("only hashes are known of these photos, so nothing can be looked at; use similar_photos")
    rows, own = _usable_rows(seen.hashes, seen.usable)
    views = (View(), *variants()) if with_variants else (View(),)
    asked = np.concatenate([own, *(hashes_of(seen.pixels[rows], view) for view in views[1:])])
    near = near_pairs(asked, own, radius, _CANDIDATES * most + 1)
    crowded = near.crowded[: len(rows)].copy()
    # A view of one photo comes near to another: the closest view of a pair is where the look begins.
    view_of, looked = np.divmod(near.first, max(len(rows), 1))
    apart = np.bitwise_count(asked[near.first] ^ own[near.second])
    kept = (looked != near.second) & ~crowded[looked] & ~crowded[near.second]
    mirrored = np.array([view.mirrored for view in views])[view_of]
    low, high = np.minimum(looked, near.second), np.maximum(looked, near.second)
    order = np.lexsort((view_of, apart, mirrored, high, low))
    order = order[kept[order]]
    fresh = np.ones(len(order), np.bool_)
    for part in (low, high, mirrored):
        fresh[1:] &= part[order[1:]] == part[order[:-1]]
    chosen = order[~fresh | (np.arange(len(order)) == 0)]
    apart = differences(
        seen.pixels, rows[near.second[chosen]], rows[looked[chosen]], [views[v] for v in view_of[chosen]]
    )
    same = apart < difference
    first, second = looked[chosen[same]], near.second[chosen[same]]
    counts = SimilarItems.from_pairs(len(rows), first, second).counts
    crowded |= counts > most
    kept = ~crowded[first] & ~crowded[second]
    return _found(len(seen.hashes), rows, crowded, own, rows[first[kept]], rows[second[kept]])


def _usable_rows(hashes: UInt64, usable: Bools) -> tuple[Int64, UInt64]:
    if usable.shape != hashes.shape:
        raise DataError(f"{len(hashes)} hashes, and {len(usable)} times said whether one is usable; give both alike")
    rows = np.flatnonzero(usable)
    return rows, hashes[rows]


def _found(size: int, rows: Int64, crowded: Bools, own: UInt64, first: Int64, second: Int64) -> SimilarPhotos:
    """Put what was found among the usable photos into lists of all; pairs with a crowded photo are left out."""
    everywhere = np.zeros(size, np.bool_)
    everywhere[rows[crowded]] = True
    kept = ~everywhere[first] & ~everywhere[second]
    groups = np.unique(own, return_counts=True)[1]
    return SimilarPhotos(
        SimilarItems.from_pairs(size, first[kept], second[kept]), everywhere, int(groups.max(initial=0))
    )
