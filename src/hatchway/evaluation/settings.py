"""What an evaluation measures, how it counts, and what it prints beside the model."""

from typing import Annotated, Literal, Self

import pydantic

from hatchway.settings import Settings

BaselineName = Literal["popularity", "random"]
TieRule = Literal["expected", "mean-rank"]


class EvaluationSettings(Settings):
    """Settings of an evaluation.

    Attributes:
        k: the cut-offs at which every metric is taken, ascending.
        most_cases: ask so many of the cases, drawn by the run's seed, where there are more; None asks all. A case costs
            a score of every item, so a large part of a large catalogue takes hours and is as exact with some thousands.
        exclude_seen: leave out the items the buyer engaged with before, as candidates; None asks the protocol: yes for
            ``given`` and ``leave-one-out`` (as everything published on them does), no for ``global-time``, where coming
            back to a listing is part of the behaviour. A relevant item is never left out.
        exclude_query_item: leave out the listing that is being looked at, which its own page never recommends.
        ties: how equal scores count. ``expected``: each metric is its expected value under a random order within the
            tie. ``mean-rank``: every item of a tie stands at the tie's mean position (at the later one where that is a
            half). None: ``expected``, but ``mean-rank`` where popularity itself is what is evaluated, since figures
            of it are published so. The random baseline is always ``expected``.
        resamples: bootstrap resamples for the intervals; 0 gives no intervals.
        level: coverage of the intervals.
        slices: measure the slices too.
        head_share: the most popular items that together hold this share of the training positives are the head.
        torso_share: the next most popular, holding this share, are the torso; the tail has the rest.
        history_edges: the history lengths at which a new bucket begins, ascending; a bucket from 0 is always there.
        baselines: rankings printed beside the model.
    """

    k: tuple[Annotated[int, pydantic.Field(gt=0)], ...] = (5, 10, 20, 50)
    most_cases: int | None = pydantic.Field(default=None, ge=1)
    exclude_seen: bool | None = None
    exclude_query_item: bool = True
    ties: TieRule | None = None
    resamples: int = pydantic.Field(default=1000, ge=0)
    level: float = pydantic.Field(default=0.95, gt=0, lt=1)
    slices: bool = True
    head_share: float = pydantic.Field(default=1 / 3, ge=0, le=1)
    torso_share: float = pydantic.Field(default=1 / 3, ge=0, le=1)
    history_edges: tuple[Annotated[int, pydantic.Field(gt=0)], ...] = (1, 5, 20, 100)
    baselines: tuple[BaselineName, ...] = ("popularity", "random")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse what would be measured twice, or not at all."""
        for name, values in (("k", self.k), ("history_edges", self.history_edges)):
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name} = {list(values)} must ascend without repeats")
        if not self.k:
            raise ValueError("k needs at least one cut-off, e.g. [10]")
        if len(set(self.baselines)) != len(self.baselines):
            raise ValueError(f"baselines = {list(self.baselines)} names one twice")
        if self.head_share + self.torso_share > 1 + 1e-9:
            raise ValueError(f"head_share {self.head_share} and torso_share {self.torso_share} add up to more than 1")
        return self
