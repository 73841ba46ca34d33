"""How far a quick score can be from the true one: what makes a filter by quick scores exact.

With x' the item and q' the query as they enter the product (rounded to bf16, or as they are),
``q·x - q'·x' = q·(x - x') + (q - q')·x'``, and by Cauchy and Schwarz its size is at most
``|q| |x - x'| + |q - q'| |x'|``. What rounding did is known, so these are its lengths and no estimates. The product is
summed in float32; its error is at most d·u·|q'| |x'| with the unit u of each sum's rounding (Higham 2002, section 3.1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Float64 = npt.NDArray[np.float64]

_SUM_UNIT = 2.0**-21
"""Sums in float32 have 2^-24. Matrix units may cut digits off instead of rounding, and align numbers first."""

_ROUNDED_PRODUCT = 2.0**-7 * 1.01
"""Where float32 products may be made of bf16 or TF32 numbers: twice a unit of 2^-8, the lengths being unknown."""

_FLUSHED = 2.0**-120
"""Numbers below 2^-126 may be taken as zero; this times the lengths, and d, is more than what that can change."""

_LARGEST = 2.0**120
"""Scores that may reach this size could overflow on the way; nothing is ruled out by them."""


@dataclass(frozen=True)
class Lengths:
    """The longest of each tile of items, each [tiles] float64, rounded up.

    Attributes:
        entered: of the vectors as they enter the product, |x'|.
        lost: of what rounding took from them, |x - x'|.
    """

    entered: Float64
    lost: Float64


def lengths(vectors: Tensor, entered: Tensor) -> tuple[Tensor, Tensor]:
    """Return |x'| and |x - x'| of each of the [M, d] vectors, [M] float64 each.

    Args:
        vectors: [M, d] float32.
        entered: [M, d], the same as they enter the product.
    """
    rounded = entered.float()  # exact, and so is the difference
    whole, difference = (
        torch.linalg.vector_norm(part, dim=1, dtype=torch.float64) for part in (rounded, vectors - rounded)
    )
    return whole, difference


def error_bounds(queries: Tensor, entered: Tensor, items: Lengths, *, full_precision: bool) -> Float64:
    """Bound the size of (quick score - true score) of each query with any item of each tile.

    Args:
        queries: [b, d] float32.
        entered: [b, d], the same as they enter the product.
        items: the lengths of the items of each tile.
        full_precision: whether the product takes the numbers that enter as they are, and rounds only sums.

    Returns:
        [b, tiles] float64; inf where quick scores could overflow and say nothing.
    """
    dimension = queries.shape[1]
    within, lost = (part.cpu().numpy()[:, None] for part in lengths(queries, entered))
    summed = (dimension + 2) * _SUM_UNIT + (0.0 if full_precision else _ROUNDED_PRODUCT)
    bounds: Float64 = (
        (within + lost) * items.lost
        + lost * items.entered
        + summed * within * items.entered
        + _FLUSHED * dimension * (1 + within + items.entered)
    )
    return np.where(within * items.entered < _LARGEST, bounds * (1 + 1e-6), np.inf)


def thresholds(worst: npt.NDArray[np.float32], bounds: Float64) -> npt.NDArray[np.float32]:
    """Return the quick score below which no item can have a score that ``worst``, itself rounded, does not beat.

    Args:
        worst: [b] float32, the k-th best score so far.
        bounds: [b] float64.

    Returns:
        [b] float32, rounded down.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        exact = worst.astype(np.float64) - np.abs(worst) * 2.0**-23 - bounds
        rounded = exact.astype(np.float32)
        lower = np.where(rounded > exact, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    return np.where(np.isfinite(exact), lower, np.float32(-np.inf)).astype(np.float32)


def float32_products_are_full() -> bool:
    """Say whether PyTorch multiplies float32 matrices as they are, on CPU and GPU: its switches for less are global."""
    backends: Any = torch.backends
    switches = (backends, backends.mkldnn.matmul, backends.cuda.matmul)
    return all(switch.fp32_precision in {"none", "ieee"} for switch in switches)
