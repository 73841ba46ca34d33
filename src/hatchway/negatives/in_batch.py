"""In-batch negatives: the other rows' positives. Free, and drawn as often as they are popular."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.frequency.protocol import Frequency
from hatchway.negatives.sources import Source


@dataclass(frozen=True)
class InBatch:
    """Column c is the positive of row c.

    Attributes:
        frequency: how often each item is another row's positive.
    """

    frequency: Frequency
    source: Source = Source.IN_BATCH

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002  nothing is drawn
        """Return the positives themselves, in their order."""
        return positives

    def expected_others(self, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) q(j)``."""
        return self.frequency.others(items, batch)

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) q(j | this row's positive is j)``."""
        return self.frequency.others_of_positive(items, batch)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:
        """``B q(j)``, the row's own positive among them."""
        return self.frequency.whole_batch(items, batch)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """``ln P(no other row's positive is j)``."""
        return self.frequency.log_absent_others(items, batch)

    def log_absent_on_average(self, items: Tensor, batch: int) -> Tensor:
        """``ln P(no row's positive is j)``, the row's own among them."""
        return self.frequency.log_absent_whole_batch(items, batch)
