"""What was found among a folder's photos, kept beside them: reading and comparing them again would find the same."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from hatchway.artefacts.atomic import replacing_file
from hatchway.errors import DataError, FailureError
from hatchway.progress import note
from hatchway.screening.photos import SimilarPhotos, perceptual_hashes, similar_pictures
from hatchway.screening.settings import ScreeningSettings
from hatchway.screening.similar import SimilarItems

KEPT = ".similar-photos.safetensors"
"""The file's name in the folder of photos; it may be removed at any time."""

_VERSION = 1


@dataclass(frozen=True, eq=False)
class FolderPhotos:
    """What was found among the photos of a folder.

    Attributes:
        found: which are near-identical.
        usable: how many could be compared.
        faults: how many could not, by why.
    """

    found: SimilarPhotos
    usable: int
    faults: dict[str, int]


def photos_in(names: Sequence[str | None], folder: Path, settings: ScreeningSettings) -> FolderPhotos:
    """Find the near-identical photos among files, or read what was found before.

    What was found is kept in the folder, and read again while the names, the files' sizes and times of change, and the
    settings of the photos are the same. Where the folder cannot be written to, nothing is kept.

    Args:
        names: [N] paths, absolute or from ``folder`` on; None or empty where there is no photo.
        folder: where relative paths start.
        settings: those of the photos.
    """
    key = _key(names, folder, settings)
    kept = _read(folder / KEPT, key, len(names))
    if kept is not None:
        return kept
    seen = perceptual_hashes(names, folder)
    found = similar_pictures(
        seen,
        settings.photo_radius,
        settings.photo_difference,
        settings.photo_most,
        with_variants=settings.photo_variants,
    )
    result = FolderPhotos(found, int(seen.usable.sum()), seen.faults)
    if seen.usable.any():
        _write(folder / KEPT, key, result)
    return result


def _key(names: Sequence[str | None], folder: Path, settings: ScreeningSettings) -> str:
    """Hash everything that decides what is found, but for the files' contents, whose size and time stand for them."""
    photos = {name: value for name, value in settings.model_dump().items() if name.startswith("photo")}
    digest = hashlib.sha256(json.dumps([_VERSION, photos]).encode())
    for name in names:
        try:
            about = (folder / name).stat() if name else None
        except (OSError, ValueError):  # no file, or no name for one
            about = None
        state = None if about is None else [about.st_size, about.st_mtime_ns]
        digest.update(json.dumps([name, state]).encode())
    return digest.hexdigest()


def _write(path: Path, key: str, photos: FolderPhotos) -> None:
    found = photos.found
    tensors: dict[str, np.ndarray] = {
        "offsets": found.similar.offsets,
        "items": found.similar.items,
        "crowded": found.crowded.astype(np.uint8),
    }
    about = {"usable": photos.usable, "faults": photos.faults, "largest_group": found.largest_group}
    try:
        with replacing_file(path) as partial:
            safetensors.numpy.save_file(tensors, partial, metadata={"key": key, "about": json.dumps(about)})
    except (OSError, FailureError) as error:
        note(f"screening: what was found among the photos is not kept ({error})")


def _read(path: Path, key: str, size: int) -> FolderPhotos | None:
    """Return what is kept under this key; None where it is not there, damaged or of other photos."""
    try:
        with safetensors.safe_open(path, "np") as file:
            held = file.metadata() or {}
            if held.get("key") != key:
                return None
            about = json.loads(held["about"])
            similar = SimilarItems(file.get_tensor("offsets"), file.get_tensor("items"))
            crowded = file.get_tensor("crowded").astype(np.bool_)
    except (OSError, safetensors.SafetensorError, KeyError, ValueError, DataError):
        return None
    if len(similar) != size or len(crowded) != size:
        return None
    return FolderPhotos(SimilarPhotos(similar, crowded, about["largest_group"]), about["usable"], about["faults"])
