"""How a night runs: what it trains on, what alarms, what refuses, and what is kept."""

from typing import Literal, Self

import pydantic

from hatchway.index.build import IndexSettings
from hatchway.settings import Settings


class IntakeSettings(Settings):
    """What a day's events must look like.

    Attributes:
        usual_days: the volume of a day is held against the median of so many days before it.
        fewest: a day with less than this share of the usual events is no day: the night ends before it trains.
        most: a day with more than this many times the usual positives is cut back to that many, whole buyers at a time.
        most_late: alarm above this share of late events, of all that the night took in.
        most_repeated: alarm above this share of rows that are there twice.
        longest_session_hours: rows of a session that lie further than this from its middle row come from a clock that
            jumped, and are turned away; 0 turns none away.
        most_jumped: alarm above this share of rows whose clock jumped.
        poisoned_share: an item with more than this share of an hour's positives is poisoned, if it also has
            ``poisoned_lift`` times its share of the rest of the day; its positives of that hour are turned away.
        poisoned_lift: see there.
        poisoned_fewest: hours with fewer positives of the item than this are never poisoned.
        columns: ``same`` ends the night where the log or the catalogue lost a column, or a column or the ids changed
            their type, since the night before; ``any`` takes what comes.
    """

    usual_days: int = pydantic.Field(default=7, ge=1)
    fewest: float = pydantic.Field(default=0.3, ge=0, lt=1)
    most: float = pydantic.Field(default=4.0, gt=1)
    most_late: float = pydantic.Field(default=0.02, ge=0, le=1)
    most_repeated: float = pydantic.Field(default=0.001, ge=0, le=1)
    longest_session_hours: float = pydantic.Field(default=6.0, ge=0)
    most_jumped: float = pydantic.Field(default=0.001, ge=0, le=1)
    poisoned_share: float = pydantic.Field(default=0.2, gt=0, le=1)
    poisoned_lift: float = pydantic.Field(default=5.0, ge=1)
    poisoned_fewest: int = pydantic.Field(default=20, ge=1)
    columns: Literal["same", "any"] = "same"


class CatalogueSettings(Settings):
    """What a catalogue must look like.

    Attributes:
        vanished: what it means that the row of a listing on offer is not in the catalogue any more. ``lost``: the
            catalogue has lost it, yesterday's row stands in, and the listing stays on offer; whatever is sold has to be
            marked in ``gone``. ``gone``, for catalogues of what is for sale alone: it is gone, unless more than
            ``most_lost`` vanished at once.
        most_lost: alarm above this share of listings on offer whose row vanished from the catalogue since the night
            before, and yesterday's rows stand in; with ``vanished = "gone"`` it has to be above what is sold in a day.
        most_missing: alarm where a column that the model reads has become empty or not finite in more than this share
            of the listings, beyond what it was the night before; such values count as missing.
    """

    vanished: Literal["lost", "gone"] = "lost"
    most_lost: float = pydantic.Field(default=0.02, ge=0, le=1)
    most_missing: float = pydantic.Field(default=0.02, ge=0, le=1)


class SketchSettings(Settings):
    """When the frequencies are out of date.

    Attributes:
        top: so many of the most frequent items are looked at.
        most_hours: alarm where the sketch was last updated longer than this before the day began. A night leaves it
            some hours behind (what is held out of the day); from 24 hours on at least one night is missing.
        least_cover: alarm where the top covers less than this share of what it expects of the last hour's positives.
        fewest: fewer positives in the last hour than this say nothing; more hours are then taken.
    """

    top: int = pydantic.Field(default=100, ge=1)
    most_hours: float = pydantic.Field(default=20.0, gt=0)
    least_cover: float = pydantic.Field(default=0.5, ge=0, le=1)
    fewest: int = pydantic.Field(default=50, ge=1)


class GateSettings(Settings):
    """What is refused.

    Attributes:
        metric, k: what the two models are compared by, e.g. recall at 20.
        most_loss: the new model is refused where the whole interval of (new - old) lies below minus this share of the
            old figure, over all cases or in a slice.
        fewest_cases: slices with fewer cases are reported and decide nothing.
        most_shift: refused where the head's share of what is recommended moves by more than this.
        least_recall: refused where the index's measured recall is below this.
        resamples, level: of the bootstrap over buyers; the level holds for all slices that decide together.
        shifted_queries: so many listings' pages are asked for what is recommended.
    """

    metric: Literal["recall", "hit_rate", "ndcg", "mrr", "map"] = "recall"
    k: int = pydantic.Field(default=20, ge=1)
    most_loss: float = pydantic.Field(default=0.02, ge=0, le=1)
    fewest_cases: int = pydantic.Field(default=50, ge=1)
    most_shift: float = pydantic.Field(default=0.15, ge=0, le=1)
    least_recall: float = pydantic.Field(default=0.9, ge=0, le=1)
    resamples: int = pydantic.Field(default=1000, ge=1)
    level: float = pydantic.Field(default=0.95, gt=0, lt=1)
    shifted_queries: int = pydantic.Field(default=512, ge=1)


class NightlySettings(Settings):
    """The settings of a night.

    Attributes:
        replay_days: positives of so many days before the day are trained on again, beside the new ones.
        held_out: the last share of the day's positives (by time), that the new model is judged on and learns from only
            the next night.
        epochs: passes over them, when there is a model to continue from; the first night makes ``training.epochs``.
        most_cases: positives of the day that yesterday's model is asked for, and held-out ones that both models are;
            where there are more, so many are drawn. Each costs a score of every listing and model.
        history_days: days of the log that are read: for histories, masks and counts.
        most_leaked: alarm, and no mined negatives tonight, above this share of mined negatives with the positive's
            seller or a near-identical photo.
        keep_nights: published nights that are kept; the current one and the one before it always are.
        keep_failed: nights that were refused or failed, of which the working files are kept.
        index: how the index is built.
        intake, catalogue, sketch, gate: see there.
    """

    replay_days: int = pydantic.Field(default=2, ge=0)
    held_out: float = pydantic.Field(default=0.2, gt=0, lt=1)
    epochs: int = pydantic.Field(default=1, ge=1)
    most_cases: int = pydantic.Field(default=20_000, ge=1)
    history_days: int = pydantic.Field(default=60, ge=1)
    most_leaked: float = pydantic.Field(default=0.01, ge=0, le=1)
    keep_nights: int = pydantic.Field(default=14, ge=2)
    keep_failed: int = pydantic.Field(default=2, ge=0)
    index: IndexSettings = IndexSettings()
    intake: IntakeSettings = IntakeSettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    sketch: SketchSettings = SketchSettings()
    gate: GateSettings = GateSettings()

    @pydantic.model_validator(mode="after")
    def _reaches(self) -> Self:
        if self.history_days <= self.replay_days:
            raise ValueError(
                f"history_days = {self.history_days} must reach further back than replay_days = {self.replay_days}"
            )
        return self
