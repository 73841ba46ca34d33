"""What an evaluation says: a record that is the same in Python and in JSON (its shape is in docs/evaluation.md)."""

from typing import Literal

import pydantic

from hatchway.errors import UsageError


class _Record(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class Protocol(_Record):
    """What was asked: the split, its part, and what counts as a candidate."""

    split: str
    part: Literal["validation", "test"]
    cases: Literal["one per buyer", "one per positive"]
    candidates: int
    exclude_seen: bool
    exclude_query_item: bool
    ties: Literal["expected", "mean-rank"]


class Interval(_Record):
    """How the intervals were made."""

    level: float
    resamples: int
    seed: int


class Figure(_Record):
    """A mean over cases and its bootstrap interval (None where there is none)."""

    value: float
    low: float | None = None
    high: float | None = None


class Measured(_Record):
    """The figures of one ranking over some cases, by names like ``recall@20``; empty where there is no case."""

    cases: int
    relevant: int
    metrics: dict[str, Figure]
    rule: str | None = None


class Ranked(_Record):
    """The figures of one ranking over all cases and over the slices, ``slices[kind][name]``."""

    metrics: dict[str, Figure]
    slices: dict[str, dict[str, Measured]]
    tied_share: float | None


class Evaluation(_Record):
    """The whole result: :meth:`value` reads a figure, ``model_dump_json`` writes it all.

    Attributes:
        format: the version of this shape.
        ranking: what was ranked by: ``"model"`` or a baseline's name.
        protocol: what was asked.
        cases: Q.
        relevant: R, the relevant items of all cases.
        k: the cut-offs.
        metrics: the figures over all cases.
        slices: the figures over the slices.
        tied_share: share of the relevant items in the first max(k) positions whose score another candidate has, too;
            None where no relevant item stands there.
        baselines: the same figures of the rankings that need no model.
        chance: what a random order of the candidates is worth in each of ``metrics``, exactly; empty in records that
            an earlier version wrote.
        interval: how the intervals were made.
        notes: what was chosen and what is absent in the log.
        warnings: what makes the figures suspect.
    """

    format: Literal[1] = 1
    ranking: str
    protocol: Protocol
    cases: int
    relevant: int
    k: list[int]
    metrics: dict[str, Figure]
    slices: dict[str, dict[str, Measured]]
    tied_share: float | None
    baselines: dict[str, Ranked]
    chance: dict[str, float] = {}
    interval: Interval
    notes: list[str]
    warnings: list[str]

    @property
    def twins(self) -> dict[str, str]:
        """The metrics that are others under another name, because every case has one relevant item: need no showing."""
        return {"hit_rate": "recall", "map": "mrr"} if self.relevant == self.cases else {}

    def value(self, metric: str, k: int) -> float:
        """Return one mean over all cases, e.g. ``value("recall", 20)``.

        Raises:
            UsageError: the metric was not taken at this cut-off.
        """
        figure = self.metrics.get(f"{metric}@{k}")
        if figure is None:
            raise UsageError(f"{metric}@{k} was not measured; what was: {', '.join(self.metrics)}")
        return figure.value
