"""Photos as the screen sees them: small, square, in colour; files that cannot be read are counted and left out."""

import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps

from hatchway.progress import Progress

UInt8 = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]

SIDE = 32
LARGEST_FILE = 64 * 2**20  # bytes
LARGEST_PHOTO = 80_000_000  # pixels
_BATCH = 64
_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """N photos, each 32 by 32 pixels whatever its shape was.

    Attributes:
        pixels: [N, 32, 32, 3] uint8 red, green, blue; zeros where there is none.
        there: [N] bool, whether the photo could be read.
        faults: how many could not, by why: ``no photo`` (the name is null or empty), ``no file``, ``too large``,
            ``unreadable`` (no image, cut short, damaged).
    """

    pixels: UInt8
    there: npt.NDArray[np.bool_]
    faults: dict[str, int]


def read_thumbnails(names: Sequence[str | None], folder: Path) -> Thumbnails:
    """Read photo files.

    A file of more than 64 MiB or 80 million pixels is not decoded: a small file may unfold into more than memory holds.

    Args:
        names: [N] paths, absolute or from ``folder`` on; None or empty where there is no photo.
        folder: where relative paths start.
    """
    pixels = np.zeros((len(names), SIDE, SIDE, 3), np.uint8)
    there = np.zeros(len(names), np.bool_)
    faults: Counter[str] = Counter()

    def read(start: int) -> list[str]:
        said = []
        for row in range(start, min(start + _BATCH, len(names))):
            found = _thumbnail(names[row], folder)
            if isinstance(found, str):
                said.append(found)
            else:
                pixels[row], there[row] = found, True
        return said

    # Pillow only warns of images of moderately absurd size; here they are errors, which are caught one by one. Filters
    # belong to the process, so they are set around the threads and not within.
    with warnings.catch_warnings(), Progress(len(names), "photos", "photo") as progress:
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        # Pillow lets go of the interpreter while it decodes and scales.
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            starts = range(0, len(names), _BATCH)
            for start, said in zip(starts, pool.map(read, starts), strict=True):
                faults.update(said)
                progress.advance(min(_BATCH, len(names) - start))
    return Thumbnails(pixels, there, dict(sorted(faults.items())))


def _thumbnail(name: str | None, folder: Path) -> UInt8 | str:
    """Return one photo, or why there is none."""
    if not name:
        return "no photo"
    try:
        path = folder / name
        if not path.is_file():
            return "no file"
        return "too large" if path.stat().st_size > LARGEST_FILE else _decoded(path)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return "too large"
    except Exception:  # noqa: BLE001  damaged files make decoders fail in every way there is
        return "unreadable"


def _decoded(path: Path) -> UInt8 | str:
    """Decode one file that is not too large."""
    with Image.open(path) as image:
        if image.width * image.height > LARGEST_PHOTO:
            return "too large"
        image.draft("RGB", (4 * SIDE, 4 * SIDE))  # JPEG: only as many frequencies are decoded as will be seen
        return _on_white(ImageOps.exif_transpose(image))


def _on_white(image: Image.Image) -> UInt8:
    """Scale an image down, whatever it is made of; what is transparent becomes white."""
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        solid = Image.new("RGBA", image.size, "white")
        solid.alpha_composite(image.convert("RGBA"))
        image = solid
    elif image.mode.startswith(("I;16", "I", "F")):
        deep = np.asarray(image, np.float32)
        scale = 255.0 / max(float(deep.max(initial=0.0)), 1.0)
        image = Image.fromarray((deep.clip(0) * scale).astype(np.uint8))
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX))


def luminance(pixels: UInt8) -> Float32:
    """Return how light each pixel is, [..., 32, 32] float32 from 0 to 255 (ITU-R BT.601)."""
    return np.asarray(pixels @ _LUMINANCE)
