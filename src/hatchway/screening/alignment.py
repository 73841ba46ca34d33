"""Whether two photos that look alike from afar are one picture: laid over each other, what is left of the difference?

A 64-bit hash knows the coarse light of a picture and nothing of its colours or details, so two wardrobes before a white
wall have near hashes. Here the one thumbnail is moved, scaled and turned until it lies on the other as well as it can
(Lucas and Kanade 1981, compositional steps), brightness is evened out, and the worst hundredth of the picture decides.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, grid_sample

from hatchway.screening.hashes import View
from hatchway.screening.thumbnails import SIDE, Float32, UInt8

_BLOCK = 512
_STEPS = 6
_FIRST_STEPS = 2
_LIGHT = (0.299, 0.587, 0.114)
_MANY = 8192
_FIELDS = 8
_FAR = 0.09
_FAR_OF_SHOWN = 0.4
_HOPELESS = 0.6
_UNLIKELY = 0.85
_BRIGHTER = 1.4
_LIGHTER = 0.15
_STRETCHED = 0.115
_SCALED = 0.2
_WORST = 0.01
_SHOWN = 0.2
_MOST = 0.07
_GREY = 0.03


def differences(
    pixels: UInt8, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], views: list[View]
) -> Float32:
    """Lay the second photo of each pair, seen as the view says, over the first, and return what differs.

    Allowed between them are frames that differ by up to a tenth or a little more, small turns, and brightness up to a
    factor of 1.4. Colours are compared where both photos have any.

    Args:
        pixels: [N, 32, 32, 3] uint8.
        first: [P] rows of the photos.
        second: [P] rows of the photos.
        views: [P], how the second photo comes near to the first: where the search begins.

    Returns:
        [P] float32: the mean difference of the worst hundredth of the picture, as a share of what it shows at all;
        infinite where the one cannot be laid over the other, or more than 7 % of full light is left.
    """
    found = np.full(len(first), np.inf, np.float32)
    if not len(first):
        return found
    mirrored = np.array([view.mirrored for view in views], np.bool_)
    looked = np.flatnonzero(_alike_from_afar(pixels, first, second, mirrored))
    for start in range(0, len(looked), _BLOCK):
        block = looked[start : start + _BLOCK]
        still, moved = (_channels(pixels[rows[block]]) for rows in (first, second))
        moved = torch.where(torch.from_numpy(mirrored[block])[:, None, None, None], moved.flip(3), moved)
        found[block] = _differences(still, moved, _begin([views[row] for row in block])).numpy()
    return found


def _alike_from_afar(
    pixels: UInt8, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], mirrored: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Say which pairs are worth a look: eight by eight fields of colour differ little, wherever they lie exactly."""
    fields = np.empty((len(pixels), 3, _FIELDS, _FIELDS), np.float32)
    for start in range(0, len(pixels), _MANY):
        block = _channels(pixels[start : start + _MANY])
        fields[start : start + _MANY] = avg_pool2d(block, SIDE // _FIELDS).numpy()
    greys = np.tensordot(fields, np.array(_LIGHT, np.float32), axes=([1], [0]))[:, None].repeat(3, 1)
    colourless = (fields.max(1) - fields.min(1)).max((1, 2)) < _GREY
    distances = np.abs(fields - np.median(fields, (2, 3), keepdims=True)).max(1).reshape(len(pixels), -1)
    shown = np.sort(distances, 1)[:, -int(_SHOWN * _FIELDS * _FIELDS) :].mean(1)
    result = np.empty(len(first), np.bool_)
    for start in range(0, len(first), _MANY):
        one, other = first[start : start + _MANY], second[start : start + _MANY]
        plain = (colourless[one] | colourless[other])[:, None, None, None]
        still, moved = (np.where(plain, greys[rows], fields[rows]) for rows in (one, other))
        moved = np.where(mirrored[start : start + _MANY, None, None, None], moved[..., ::-1], moved)
        gain = (still * moved).sum((1, 2, 3)) / np.maximum((moved * moved).sum((1, 2, 3)), 1e-6)
        apart = np.abs(still - gain.clip(1 / _BRIGHTER, _BRIGHTER)[:, None, None, None] * moved).max(1).mean((1, 2))
        result[start : start + _MANY] = apart < np.maximum(_FAR, _FAR_OF_SHOWN * np.minimum(shown[one], shown[other]))
    return result


def _channels(pixels: UInt8) -> Tensor:
    """Return pictures as [n, 3, 32, 32] float32 from 0 to 1."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


def _begin(views: list[View]) -> Tensor:
    """Return the maps from the places of the first picture to those of the second, [n, 3, 3], for −1 to 1 across."""
    maps = torch.eye(3).repeat(len(views), 1, 1)
    for row, view in enumerate(views):
        for axis, (begin, end) in enumerate((view.across, view.down)):
            maps[row, axis, axis] = end - begin
            # The window lies on the other side of the picture that has been mirrored.
            maps[row, axis, 2] = 1 - begin - end if view.mirrored and axis == 0 else begin + end - 1
    return maps


def _differences(still: Tensor, moved: Tensor, maps: Tensor) -> Tensor:
    """Align and compare; pairs that are hopeless are left out of what costs time. [n] float32."""
    result = torch.full((len(still),), torch.inf)
    light = torch.tensor(_LIGHT)[:, None, None]
    grey, other = ((picture * light).sum(1, keepdim=True) for picture in (still, moved))
    going = torch.nonzero(_seen(grey, other, maps)[2] > _HOPELESS)[:, 0]
    if not len(going):
        return result
    still, moved, maps, grey, other = still[going], moved[going], maps[going], grey[going], other[going]
    best, closest = _seen(grey, other, maps)[2], maps
    for step in range(_STEPS):
        if step == _FIRST_STEPS:
            likely = torch.nonzero(best > _UNLIKELY)[:, 0]
            going, best, closest, maps = going[likely], best[likely], closest[likely], maps[likely]
            still, moved, grey, other = still[likely], moved[likely], grey[likely], other[likely]
        maps = _step(grey, other, maps)
        agreement = _seen(grey, other, maps)[2]
        better = agreement > best
        best = torch.where(better, agreement, best)
        closest = torch.where(better[:, None, None], maps, closest)
    down, across = closest[:, 1, :2].norm(dim=1), closest[:, 0, :2].norm(dim=1)
    shape = (across / down - 1).abs() < _STRETCHED
    shape &= (across - 1).abs().maximum((down - 1).abs()) < _SCALED
    result[going] = torch.where(shape, _difference(still, moved, closest), torch.inf)
    return result


_ACROSS, _DOWN = torch.meshgrid(*(2 * [(2 * torch.arange(SIDE) + 1) / SIDE - 1]), indexing="xy")
_PLACES = torch.stack([_ACROSS, _DOWN, torch.ones_like(_ACROSS)], -1).reshape(-1, 3)


def _warped(picture: Tensor, maps: Tensor) -> tuple[Tensor, Tensor]:
    """Return the picture as the maps see it, and which of its places lie within it, [n, 1, 32, 32] float32."""
    places = (maps[:, :2] @ _PLACES.T).transpose(1, 2).reshape(-1, SIDE, SIDE, 2)
    within = (places.abs() <= 1).all(-1).float()[:, None]
    return grid_sample(picture, places, align_corners=False, padding_mode="border"), within


def _seen(still: Tensor, moved: Tensor, maps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return both pictures with mean 0 and deviation 1 where they overlap, and their correlation there, [n]."""
    warped, within = _warped(moved, maps)
    size = within.sum((1, 2, 3), keepdim=True).clamp(min=1)
    even = []
    for picture in (still, warped):
        centred = (picture - (picture * within).sum((1, 2, 3), keepdim=True) / size) * within
        spread = (centred.square().sum((1, 2, 3), keepdim=True) / size).sqrt()
        even.append(centred / spread.clamp(min=1e-4))
    # Where little overlaps, agreement says nothing.
    agreement = torch.where(size > SIDE * SIDE / 2, (even[0] * even[1]).sum((1, 2, 3), keepdim=True) / size, 0.0)
    return even[0], even[1], agreement[:, 0, 0, 0]


def _step(still: Tensor, moved: Tensor, maps: Tensor) -> Tensor:
    """Move the maps once towards less difference: a least-squares step in the six numbers of an affine map."""
    here, there, _ = _seen(still, moved, maps)
    across, down = torch.zeros_like(there), torch.zeros_like(there)
    across[..., 1:-1] = (there[..., 2:] - there[..., :-2]) * (SIDE / 4)
    down[..., 1:-1, :] = (there[..., 2:, :] - there[..., :-2, :]) * (SIDE / 4)
    slopes = torch.stack([part.flatten(1) for part in (across, down)], 1)
    changes = (slopes[:, :, None] * _PLACES.T).flatten(1, 2)
    square = changes @ changes.transpose(1, 2)
    # A picture of stripes does not say how far it lies along them; a little damping leaves that as it is.
    square = square + torch.eye(6) * (1e-3 + 1e-2 * square.diagonal(dim1=1, dim2=2).mean(1)[:, None, None])
    move = torch.linalg.solve(square, changes @ (here - there).flatten(1)[..., None])
    towards = torch.eye(3).repeat(len(maps), 1, 1)
    towards[:, :2] += move.reshape(-1, 2, 3)
    return maps @ towards


def _difference(still: Tensor, moved: Tensor, maps: Tensor) -> Tensor:
    """Return the mean difference of the worst hundredth of the picture, brightness evened out, [n].

    It is measured by what the picture shows at all: the mean distance from the background of the fifth that is farthest
    from it, in the fainter of the two.
    """
    warped, within = _warped(moved, maps)
    light = torch.tensor(_LIGHT)[:, None, None]
    # Black-and-white has no colour anywhere; a grey sofa before a white wall has some in its shadows.
    colourless = torch.stack([(p.amax(1) - p.amin(1)).amax((1, 2)) < _GREY for p in (still, warped)]).any(0)
    pictures = [
        torch.where(colourless[:, None, None, None], (p * light).sum(1, keepdim=True).expand_as(p), p) * within
        for p in (still, warped)
    ]
    # Brightness and contrast: the factor and the amount by which the second comes nearest to the first.
    size = 3 * within.sum((1, 2, 3), keepdim=True).clamp(min=1)
    means = [p.sum((1, 2, 3), keepdim=True) / size for p in pictures]
    still_there, moved_there = ((p - mean) * within for p, mean in zip(pictures, means, strict=True))
    product, square = (moved_there * p for p in (still_there, moved_there))
    gain = product.sum((1, 2, 3), keepdim=True) / square.sum((1, 2, 3), keepdim=True).clamp(min=1e-6)
    gain = gain.clamp(1 / _BRIGHTER, _BRIGHTER)
    left = (pictures[0] - gain * pictures[1] - (means[0] - gain * means[1]).clamp(-_LIGHTER, _LIGHTER)) * within
    # Compression and edges that lie half a pixel apart leave differences that cancel among neighbours.
    worst = _farthest(avg_pool2d(left, 3, 1, 1), _WORST)
    shown = torch.stack([_farthest(p - p.flatten(2).median(2).values[..., None, None], _SHOWN) for p in (still, moved)])
    return torch.where(worst < _MOST, worst / shown.amin(0).clamp(min=1e-3), torch.inf)


def _farthest(values: Tensor, share: float) -> Tensor:
    """Return the mean, over the given share of the picture, of the largest values in any colour, [n]."""
    return values.abs().amax(1).flatten(1).topk(max(1, int(share * SIDE * SIDE)), 1).values.mean(1)
