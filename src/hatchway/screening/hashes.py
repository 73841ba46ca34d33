"""Perceptual hashes: 64 bits that say how a photo's light lies, alike where photos look alike.

The hash is the one that is widely called pHash: of the two-dimensional cosine transform of a 32 by 32 luminance, the
eight by eight lowest frequencies, each bit saying whether one is above their median. A mirrored photo has the same
frequencies with the signs of the odd horizontal ones turned, and a cropped one is the transform of a part, so both come
from the same small picture by a product of matrices.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.screening.hamming import UInt64
from hatchway.screening.thumbnails import SIDE, Float32, UInt8, luminance

LOW = 8
_BLOCK = 4096
_CROP = 0.95
_FLAT = 4.0
_FAINT = 0.5
_DETAIL = 16
_BALANCE = 6


@dataclass(frozen=True)
class View:
    """How a photo is looked at: a window of it, mirrored or not; the whole is 0 to 1 in both directions.

    Attributes:
        across: where the window begins and ends, as shares of the width.
        down: the same of the height.
        mirrored: whether left and right change places.
    """

    across: tuple[float, float] = (0.0, 1.0)
    down: tuple[float, float] = (0.0, 1.0)
    mirrored: bool = False


def variants() -> tuple[View, ...]:
    """Return the views beside the plain one: thirty-five crops, the mirrored photo and two crops of that.

    In either direction nothing, a twentieth off one side or both, or a tenth off one side is cut. So two photos of
    which one is cut by up to a tenth agree, in some view, but for a twentieth of a side at most.
    """
    cuts = ((0.0, 1.0), (0.0, 0.95), (0.05, 1.0), (0.05, 0.95), (0.0, 0.9), (0.1, 1.0))
    crops = [View(across, down) for across in cuts for down in cuts][1:]
    within = [(edge, 1 - edge) for edge in (0.0, 0.025, 0.05)]
    return (*crops, *(View(window, window, mirrored=True) for window in within))


def hashes_of(pixels: UInt8, view: View | None = None) -> UInt64:
    """Return the photos' hashes, [N] uint64; bit 8·u + v is that of frequency (u down, v across).

    Args:
        pixels: [N, 32, 32, 3] uint8.
        view: how they are looked at; whole and as they are where None.
    """
    found = np.empty(len(pixels), np.uint64)
    for start in range(0, len(pixels), _BLOCK):
        block = slice(start, start + _BLOCK)
        low = frequencies(luminance(pixels[block]), view or View()).reshape(-1, LOW * LOW)
        bits = low > np.median(low, axis=1, keepdims=True)
        found[block] = np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0]
    return found


def frequencies(light: Float32, view: View) -> Float32:
    """Return the lowest frequencies of a view of each picture: its cosine transform (type II), in units of light.

    Args:
        light: [N, 32, 32] float32.
        view: how the pictures are looked at.

    Returns:
        [N, 8, 8] float32; a pattern of amplitude a in one frequency gives a.
    """
    down, across = (_transform(begin, end) for begin, end in (view.down, view.across))
    found: Float32 = np.asarray(down @ light @ across.T, np.float32)
    if view.mirrored:
        found[..., 1::2] *= -1
    return found


def _transform(begin: float, end: float) -> Float32:
    """Return the matrix that cuts a window out of 32 pixels, scales it to 32 and transforms it, [8, 32]."""
    edges = begin * SIDE + (end - begin) * np.arange(SIDE + 1)
    pixels = np.arange(SIDE)
    # Each new pixel is the mean of what it covers of the old ones.
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    covered = np.maximum(covered, 0)
    covered /= covered.sum(1, keepdims=True)
    waves = np.cos(np.pi * np.arange(LOW)[:, None] * (2 * np.arange(SIDE) + 1) / (2 * SIDE)) * (2 / SIDE)
    waves[0] /= 2
    return np.asarray(waves @ covered, np.float32)


def blank(pixels: UInt8) -> npt.NDArray[np.bool_]:
    """Say which photos show too little to be told apart: one colour, or a few faint or smooth changes of light.

    Their hashes are made of noise, or agree with those of everything else that shows nothing.

    Returns:
        [N] bool: the light varies by less than four of 255 levels, or fewer than sixteen of the 63 frequencies of the
        hash have an amplitude of half a level.
    """
    found = np.empty(len(pixels), np.bool_)
    for start in range(0, len(pixels), _BLOCK):
        light = luminance(pixels[start : start + _BLOCK])
        low = np.abs(frequencies(light, View())).reshape(-1, LOW * LOW)[:, 1:]
        found[start : start + _BLOCK] = (light.std((1, 2)) < _FLAT) | ((low > _FAINT).sum(1) < _DETAIL)
    return found


def empty_hashes(hashes: UInt64) -> npt.NDArray[np.bool_]:
    """Say which hashes of unknown making are those of a blank photo: nearly all bits are alike.

    >>> empty_hashes(np.array([0, 2**63, 2**64 - 1, 0x00FF00FF00FF00FF], np.uint64)).tolist()
    [True, True, True, False]
    """
    ones = np.bitwise_count(hashes)
    return np.asarray((ones < _BALANCE) | (ones > 64 - _BALANCE))
