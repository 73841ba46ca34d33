"""Which negatives are drawn, and how they are corrected."""

from typing import Self

import pydantic

from hatchway.negatives.counting import PositiveCorrection
from hatchway.settings import Settings


class NegativesSettings(Settings):
    """The sources of negatives and the correction.

    Attributes:
        in_batch: use the other rows' positives.
        uniform: draws over the catalogue, shared by the batch; 0 for none.
        alpha: weight of the correction: 0 is none, 1 the full one.
        positive: what happens to the positive; see :data:`~hatchway.negatives.counting.PositiveCorrection`. With
            alpha 0 there is no correction, and copies of the positive are masked whatever stands here.
        mask_engaged_days: a buyer's engagements of so many days before the row are no negatives for it. Where the log
            has no times, all of the buyer's training engagements. 0 masks none.
    """

    in_batch: bool = True
    uniform: int = pydantic.Field(default=1000, ge=0)
    alpha: float = pydantic.Field(default=1.0, ge=0)
    positive: PositiveCorrection = "uncorrected"
    mask_engaged_days: float = pydantic.Field(default=30.0, ge=0)

    @pydantic.model_validator(mode="after")
    def _some(self) -> Self:
        if not self.in_batch and not self.uniform:
            raise ValueError("no negatives: in_batch is false and uniform is 0; the model would learn nothing")
        return self
