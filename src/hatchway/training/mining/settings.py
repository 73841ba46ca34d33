"""Which of an earlier model's answers become negatives, from when on, and which earlier models are believed."""

from typing import Self

import pydantic

from hatchway.settings import Settings


class MiningSettings(Settings):
    """How hard negatives are mined; docs/mining.md says what each setting is for.

    Attributes:
        first_rank, last_rank: the window, counted from 1 in the *raw* ranking: all that the earlier model's index
            answers, nothing filtered out before. 101 to 500 did best where windows were compared (Huang et al. 2020).
        cap: how many are kept for a positive at most; fewer where the filter leaves fewer, never others instead.
        warm_up_epochs: epochs without them at the beginning, not necessarily whole; 0 begins with them.
        warm_up_steps: the same in steps; counts instead of ``warm_up_epochs`` where given.
        min_score, max_score: absolute bounds on a candidate's score.
        margin: a candidate must score at least so much below the positive.
        relative_margin: a candidate must score below the positive by at least this share of the positive's size,
            ``score <= positive − share · |positive|``, which is right for negative scores too.
        judge_margin: where there is a judge, it must score a candidate at least so much below the positive.
        max_index_age_days: an index whose data end more days before the log's training part is not asked.
        min_recall: an index with a lower measured recall is not asked.
        queries_at_once: queries that are searched for together; memory, not results, depends on it.
    """

    first_rank: int = pydantic.Field(default=101, ge=1)
    last_rank: int = pydantic.Field(default=500, ge=1)
    cap: int = pydantic.Field(default=2, ge=1)
    warm_up_epochs: float = pydantic.Field(default=1.0, ge=0)
    warm_up_steps: int | None = pydantic.Field(default=None, ge=0)
    min_score: float | None = None
    max_score: float | None = None
    margin: float | None = pydantic.Field(default=None, ge=0)
    relative_margin: float | None = pydantic.Field(default=None, ge=0)
    judge_margin: float = pydantic.Field(default=0.0, ge=0)
    max_index_age_days: int = pydantic.Field(default=2, ge=0)
    min_recall: float = pydantic.Field(default=0.9, ge=0, le=1)
    queries_at_once: int = pydantic.Field(default=512, ge=1)

    @pydantic.model_validator(mode="after")
    def _agree(self) -> Self:
        if self.first_rank > self.last_rank:
            raise ValueError(f"first_rank = {self.first_rank} is after last_rank = {self.last_rank}: no rank is left")
        if self.min_score is not None and self.max_score is not None and self.min_score > self.max_score:
            raise ValueError(f"min_score = {self.min_score} is above max_score = {self.max_score}: no score is left")
        return self

    def first_step(self, steps_an_epoch: int) -> int:
        """Return the step from which mined columns are used, counted from 0.

        Args:
            steps_an_epoch: steps of one epoch.

        >>> MiningSettings().first_step(40), MiningSettings(warm_up_epochs=0.5).first_step(41)
        (40, 21)
        """
        return round(self.warm_up_epochs * steps_an_epoch + 1e-9) if self.warm_up_steps is None else self.warm_up_steps
