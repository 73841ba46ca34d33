"""How many negatives a positive has at each step of a run: adaptive negative sampling, and what it is compared with.

After Wu, Wu and Huang (2022, section 5): K grows quickly from 1 to K*, turns at a tenth of the steps, and declines
slowly to 1. The paper shows the curve as a picture and gives no equation; straight lines are the default here. K is a
real number: a positive has ⌊K⌋ negatives or one more, K on average.

Everything is a pure function of the settings and the step, so a resumed run continues exactly.
"""

import math
from typing import Literal, Self

import pydantic
import torch
from torch import Tensor

from hatchway.settings import Settings

Shape = Literal["adaptive", "fixed", "increase", "decrease"]
Decline = Literal["linear", "cosine", "exponential"]


class ScheduleSettings(Settings):
    """How many negatives a positive has over a run.

    Attributes:
        shape: ``adaptive`` goes from 1 up to ``k`` and back to 1; ``increase`` goes from 1 to ``k`` in a straight line
            over the whole run, ``decrease`` from ``k`` to 1; ``fixed`` stays at ``k``.
        k: K*, the most negatives a positive has; ``hatchway ratio`` estimates it.
        turning_point: adaptive only: the share of the steps after which K is ``k``; the paper's is a tenth.
        decline: adaptive only: how K falls after it: ``linear``; ``cosine``, slowly at first and at the end;
            ``exponential``, by the same factor every step.
    """

    shape: Shape = "adaptive"
    k: float = pydantic.Field(default=4.0, ge=1)
    turning_point: float = pydantic.Field(default=0.1, ge=0, le=1)
    decline: Decline = "linear"

    @pydantic.model_validator(mode="after")
    def _only_of_adaptive(self) -> Self:
        stray = sorted(self.model_fields_set & {"turning_point", "decline"})
        if self.shape != "adaptive" and any(
            getattr(self, name) != type(self).model_fields[name].default for name in stray
        ):
            raise ValueError(f"{' and '.join(stray)} go with shape adaptive; shape is {self.shape}")
        return self


def k_at(settings: ScheduleSettings, step: int, total: int) -> float:
    """Return K, the expected number of negatives a positive has at one step.

    Args:
        settings: the schedule.
        step: 0 to total − 1; the first has the value at the beginning, the last that at the end.
        total: steps of the whole run, 1 or more.

    >>> ans = ScheduleSettings(k=5)
    >>> [round(k_at(ans, step, 101), 2) for step in (0, 5, 10, 55, 100)]
    [1.0, 3.0, 5.0, 3.0, 1.0]
    """
    if not 0 <= step < total:
        raise ValueError(f"step {step} is not one of a run of {total} steps, which are 0 to {total - 1}")
    done = step / max(total - 1, 1)
    if settings.shape == "adaptive":
        return _adaptive(settings, done)
    height = {"fixed": 1.0, "increase": done, "decrease": 1 - done}[settings.shape]
    return 1 + (settings.k - 1) * height


def _adaptive(settings: ScheduleSettings, done: float) -> float:
    """Return K of adaptive negative sampling after the share ``done`` of a run."""
    turning = settings.turning_point
    if done < turning:
        return 1 + (settings.k - 1) * done / turning
    left = (1 - done) / (1 - turning) if turning < 1 else 1.0
    if settings.decline == "exponential":
        return math.exp(left * math.log(settings.k))
    height = left if settings.decline == "linear" else (1 - math.cos(math.pi * left)) / 2
    return 1 + (settings.k - 1) * height


def negatives_of_rows(k: float, rows: int, generator: torch.Generator) -> Tensor:
    """Draw how many negatives each positive has: ⌊k⌋ + 1 with the chance of k's fraction, else ⌊k⌋; k on average.

    Args:
        k: 0 or more.
        rows: B.
        generator: one uniform number is drawn from it for every row, whatever ``k`` is.

    Returns:
        [B] int64.
    """
    whole = math.floor(k)
    drawn = torch.rand(rows, generator=generator, dtype=torch.float64, device=generator.device)
    return whole + (drawn < k - whole).to(torch.int64)


def share_at(settings: ScheduleSettings, step: int, total: int) -> float:
    """Return K/K*, the share of the draws at the top of the schedule that a step makes, above 0 to 1.

    >>> [share_at(ScheduleSettings(k=4), step, 101) for step in (0, 10, 55, 100)]
    [0.25, 1.0, 0.625, 0.25]
    """
    return min(k_at(settings, step, total) / settings.k, 1.0)


BOUND_CAVEAT = (
    "information_bound is ln(K + 1) - loss, at most ln(K + 1) nats. It bounds the mutual information of query and item "
    "where labels are clean and negatives are drawn as positives are (with others it bounds the information plus the "
    "divergence of the two); on pairs that are trained on, as here, it can be above the truth, and over a schedule it "
    "moves with K."
)
"""Said beside the bound wherever it is logged."""


def information_bound(loss: float, k: float) -> float:
    """Return ln(K + 1) − loss, in nats: InfoNCE's lower bound on the mutual information of query and item.

    It is one only where ``loss`` is the mean InfoNCE loss in nats, all K + 1 candidates have one scoring function of
    query and item (alpha 0, or ``positive = "yi"``), the negatives are drawn as positives are (in-batch; with negatives
    of another distribution it bounds the information plus the divergence of the two), the labels are clean, and the
    pairs are not those that were trained on. It never says more than ln(K + 1), and its changes over a schedule are
    partly those of K.

    >>> round(information_bound(math.log(5.0), 4), 12)
    0.0
    """
    return math.log(k + 1) - loss
