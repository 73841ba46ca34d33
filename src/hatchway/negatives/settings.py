"""Which negatives are drawn, and how they are corrected."""

from typing import Literal, Self

import pydantic

from hatchway.frequency.count_min import CountMinSettings
from hatchway.frequency.streaming import StreamingSettings
from hatchway.how_many.schedule import ScheduleSettings
from hatchway.negatives.counting import PositiveCorrection
from hatchway.settings import Settings


class NegativesSettings(Settings):
    """The sources of negatives and the correction; docs/negatives.md says what each source is for.

    Attributes:
        in_batch: use the other rows' positives.
        uniform: draws over the catalogue, shared by the batch; 0 for none.
        popularity: draws that follow the items' training counts raised to ``beta``, shared by the batch; 0 for none.
        beta: the power of popularity, 0 (counted items alike) to 1 (popularity itself).
        per_row: K, draws for each row by itself, not necessarily whole; 0 for none.
        per_row_from: what those are drawn from.
        queue: past positives whose vectors are kept as they were; 0 for none.
        queue_warmup: steps before the queue is used; old vectors are the more wrong the faster the weights move.
        impressions: at most so many of the items that were shown with the row and not engaged with, a number that need
            not be whole; 0 for none.
        impressions_weight: down-weight of an impression, above 0 to 1.
        mined: at most so many of the items that were mined for the row, a number that need not be whole, if a table of
            them is handed to the training. They stand alone only where this is given and all others are off.
        mined_weight: weight of a mined item, above 0: it counts as so many items of the catalogue.
        schedule: how many of the draws above each step makes, from 1/k of them to all; None makes all of them at every
            step. It goes for what is drawn at random (uniform, popularity, per_row) and for impressions.
        frequency: how often each item is a row's positive: from the counts of the training positives, or learned from
            the batches as they pass, as it has to be where nobody can count beforehand; docs/frequency.md.
        streaming: the estimator, with frequency "streaming".
        count_min: the sketch, with frequency "count-min".
        distinct: de-duplicate the shared columns; they are then corrected by the chance of being in at all.
        alpha: weight of the correction: 0 is none, 1 the full one.
        positive: what happens to the positive; see :data:`~hatchway.negatives.counting.PositiveCorrection`. With
            alpha 0 there is no correction, and copies of the positive are masked whatever stands here.
    """

    in_batch: bool = True
    uniform: int = pydantic.Field(default=1000, ge=0)
    popularity: int = pydantic.Field(default=0, ge=0)
    beta: float = pydantic.Field(default=0.75, ge=0, le=1)
    per_row: float = pydantic.Field(default=0.0, ge=0)
    per_row_from: Literal["uniform", "popularity"] = "uniform"
    queue: int = pydantic.Field(default=0, ge=0)
    queue_warmup: int = pydantic.Field(default=1000, ge=0)
    impressions: float = pydantic.Field(default=0.0, ge=0)
    impressions_weight: float = pydantic.Field(default=1.0, gt=0, le=1)
    mined: float = pydantic.Field(default=2.0, ge=0)
    mined_weight: float = pydantic.Field(default=1.0, gt=0)
    schedule: ScheduleSettings | None = None
    frequency: Literal["exact", "streaming", "count-min"] = "exact"
    streaming: StreamingSettings = StreamingSettings()
    count_min: CountMinSettings = CountMinSettings()
    distinct: bool = False
    alpha: float = pydantic.Field(default=1.0, ge=0)
    positive: PositiveCorrection = "uncorrected"

    @pydantic.model_validator(mode="after")
    def _some(self) -> Self:
        others = self.in_batch or self.uniform or self.popularity or self.per_row or self.impressions
        # Mined items are there by default for the training that has some; alone they stand only where somebody says so.
        if not others and not (self.mined and "mined" in self.model_fields_set):
            raise ValueError(
                "no negatives: in_batch is false and uniform, popularity, per_row and impressions are 0; the model "
                "would learn nothing (a queue stands beside other negatives, never alone, and mined items only where "
                "negatives.mined is given)"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _counted(self) -> Self:
        for name, given in (("streaming", self.streaming), ("count-min", self.count_min)):
            if self.frequency != name and given != type(given)():
                raise ValueError(
                    f"negatives.{name.replace('-', '_')} is set and frequency = {self.frequency!r} does not look at "
                    f"it; set frequency = {name!r}"
                )
        if self.frequency == "streaming" and self.streaming.meaning == "unique-per-batch" and not self.distinct:
            raise ValueError(
                "streaming.meaning = 'unique-per-batch' is the chance of being in a batch at all, which is right for "
                "de-duplicated columns alone; set distinct = true, or meaning = 'every-occurrence'"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _scheduled(self) -> Self:
        if self.schedule is None:
            return self
        if not (self.uniform or self.popularity or self.per_row or self.impressions):
            raise ValueError(
                "schedule has nothing to work on: uniform, popularity, per_row and impressions are 0, and in-batch "
                "columns, the queue and mined items are as many at every step"
            )
        if self.per_row and self.per_row != self.schedule.k:
            raise ValueError(
                f"per_row = {self.per_row:g} and schedule.k = {self.schedule.k:g} both say how many draws a row has at "
                "the top of the schedule; give both the same"
            )
        return self
