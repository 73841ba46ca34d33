"""What every loss refuses, in one place: values that would give a number, but not a loss."""

import math
from typing import Literal, get_args

from torch import Tensor

from hatchway.errors import DataError, SettingsError

Reduction = Literal["mean", "none"]


def check_temperature(temperature: Tensor | float) -> None:
    """Refuse a temperature that is not one finite number above 0, whether a number or a tensor (a learned one).

    Raises:
        SettingsError: it is NaN, infinite, 0 or negative, or a tensor of more than one value or of several dimensions,
            which losses would take on.
    """
    if isinstance(temperature, Tensor) and (temperature.numel() != 1 or temperature.dim() > 1):
        raise SettingsError(
            f"temperature is a tensor of shape {tuple(temperature.shape)}; allowed: a number, or a tensor of "
            "shape () or (1,)"
        )
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else temperature
    if not 0 < value < math.inf:
        raise SettingsError(f"temperature is {value}; allowed: above 0 (0.05 to 0.2 is usual with normalised vectors)")


def check_alpha(alpha: float) -> None:
    """Refuse a weight of the correction that is not a finite number of 0 or more.

    Raises:
        SettingsError: it is NaN, infinite or negative.
    """
    check_range("alpha", alpha, 0, math.inf, "0 (no correction) or more; 1 is the full correction")


def check_range(name: str, value: float, low: float, high: float, allowed: str) -> None:
    """Refuse a setting that is NaN, infinite, or not in [low, high].

    Raises:
        SettingsError: with the name, the value and ``allowed``.
    """
    if not low <= value <= high or not math.isfinite(value):
        raise SettingsError(f"{name} is {value}; allowed: {allowed}")


def check_reduction(reduction: Reduction) -> None:
    """Refuse anything but the two reductions there are.

    Raises:
        SettingsError: ``reduction`` is neither of them.
    """
    if reduction not in (allowed := get_args(Reduction)):
        raise SettingsError(f"reduction is {reduction!r}; allowed: {', '.join(allowed)}")


def check_shape(name: str, tensor: Tensor, expected: tuple[int, ...], because: str) -> None:
    """Refuse a tensor of another shape.

    Raises:
        DataError: with the shape received, the one expected, and ``because``, what the expected one follows from.
    """
    if tuple(tensor.shape) != expected:
        raise DataError(f"{name} has shape {tuple(tensor.shape)}, expected {expected}: {because}")


def check_weight(weight: Tensor | None, rows: int) -> None:
    """Refuse weights that cannot be averaged over.

    Raises:
        DataError: the shape is not [rows], or a weight is negative or NaN, or they sum to 0 or to more than float32
            holds.
    """
    if weight is None:
        return
    total = float(weight.detach().float().sum()) if weight.shape == (rows,) else math.nan
    if not 0 < total < math.inf or float(weight.detach().min()) < 0:
        raise DataError(
            f"weight has shape {tuple(weight.shape)} and sum {float(weight.detach().sum())}; allowed: [B] = ({rows},), "
            "none negative, not all 0, and a sum that float32 can hold"
        )


def reduced(losses: Tensor, weight: Tensor | None, reduction: Reduction) -> Tensor:
    """Weigh the rows' losses and average them over the weights, or leave them single.

    Args:
        losses: [B] losses of the rows.
        weight: [B] weights of the rows, 0 or more; None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for ``losses * weight``.

    Returns:
        A scalar, or [B].

    Raises:
        DataError: the weights cannot be averaged over, or there is no row to average.
        SettingsError: ``reduction`` is neither of the two.
    """
    check_reduction(reduction)
    check_weight(weight, len(losses))
    weighted = losses if weight is None else losses * weight.to(losses.dtype)
    if reduction == "none":
        return weighted
    if not len(losses):
        raise DataError("a batch of no rows has no mean loss; allowed: one row or more")
    return weighted.mean() if weight is None else weighted.sum() / weight.to(losses.dtype).sum()
