"""The frequencies of a night: brought up to the moment that training begins with, and held against the last hour."""

from dataclasses import dataclass

import numpy as np
import torch

from hatchway.data.engagements import Int64
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.frequency.staleness import Staleness, staleness
from hatchway.nightly.settings import SketchSettings

_HOUR = 3_600


@dataclass(frozen=True)
class Passed:
    """Positives in the order in which they happened.

    Attributes:
        items: [T] int64 item rows.
        times: [T] int64 Unix seconds, ascending.
    """

    items: Int64
    times: Int64

    def between(self, begin: int, end: int) -> "Passed":
        """Return those from ``begin`` on and before ``end``."""
        first, last = np.searchsorted(self.times, [begin, end])
        return Passed(self.items[first:last], self.times[first:last])


def bring_up_to(sketch: LearnedFrequency, passed: Passed, batch: int) -> None:
    """Let the sketch see positives in their order, ``batch`` at a time; a half-life fades what was before them."""
    for begin in range(0, len(passed.items), batch):
        sketch.update(torch.from_numpy(passed.items[begin : begin + batch]))


def look_at(
    chances: torch.Tensor, passed: Passed, updated: int, now: int, settings: SketchSettings
) -> Staleness | None:
    """Compare chances with the last hour of positives before ``now``, or as many hours as have enough of them.

    Args:
        chances: [N] chance per draw of every item.
        passed: all positives, in order.
        updated: Unix seconds until which the chances know of positives.
        now: Unix seconds.
        settings: how many make an hour, and how many items are looked at.

    Returns:
        None where there is no positive before ``now``, or none that the chances know of.
    """
    before = passed.between(0, now)
    if not len(before.items):
        return None
    hours = int(np.searchsorted(before.times, now - _HOUR))
    first = max(0, min(hours, len(before.items) - settings.fewest))
    recent = torch.from_numpy(before.items[first:])
    return staleness(chances, recent, top=settings.top, updated=min(updated, now), now=now)
