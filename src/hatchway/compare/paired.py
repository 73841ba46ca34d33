"""Several rankings of the same cases: their figures, and each one's difference from the first, with its interval."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pydantic

from hatchway.evaluation.cases import Cases
from hatchway.evaluation.intervals import bootstrap_interval
from hatchway.evaluation.metrics import METRICS
from hatchway.evaluation.ranks import Float64, Ranks
from hatchway.evaluation.result import Figure
from hatchway.evaluation.slices import Slice
from hatchway.randomness import stream
from hatchway.settings import Settings

Standing = Literal["better", "worse", "undecided"]


class PairedSettings(Settings):
    """What rankings are compared by.

    Attributes:
        metric, k: the metric and its cut-off.
        resamples, level: of the bootstrap over buyers.
    """

    metric: Literal["recall", "hit_rate", "ndcg", "mrr", "map"] = "recall"
    k: int = pydantic.Field(default=20, ge=1)
    resamples: int = pydantic.Field(default=1000, ge=1)
    level: float = pydantic.Field(default=0.95, gt=0, lt=1)


class Beside(pydantic.BaseModel):
    """The rankings over one slice of the cases.

    Attributes:
        kind, name: the slice.
        rule: what is in it, in words.
        cases: how many.
        figures: the mean of each ranking, with its interval.
        differences: of each ranking but the first, its mean less that of the first, with the interval of that.
        standings: of each ranking but the first: ``better`` or ``worse`` than the first where the whole interval of the
            difference says so, else ``undecided``.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    kind: str
    name: str
    rule: str
    cases: int
    figures: dict[str, Figure]
    differences: dict[str, Figure]
    standings: dict[str, Standing]


def side_by_side(
    rankings: Mapping[str, Ranks], cases: Cases, slices: Sequence[Slice], settings: PairedSettings, seed: int
) -> tuple[Beside, ...]:
    """Measure rankings of the same cases.

    Cases are drawn for all rankings at once, so what is hard about a case is hard for all and does not widen the
    interval of a difference (Efron & Tibshirani 1993, chapter 8: paired data).

    Args:
        rankings: by name; the others are held against the first. All are of ``cases``, with the same candidates, and
            exact at least as deep as ``settings.k``.
        cases: what was asked.
        slices: beside all cases, which is always the first; a slice without a case is left out.
        settings: metric, cut-off and bootstrap.
        seed: for the bootstrap.
    """
    names, measure = list(rankings), METRICS[settings.metric]
    whole = Slice("all", "all", "every case", np.ones(len(cases.relevant_items), np.bool_))
    found = []
    for piece in (whole, *slices):
        if not piece.chosen.any():
            continue
        columns: list[Float64] = []
        kept = np.zeros(0, np.int64)
        for ranks in rankings.values():
            mine, kept = ranks.only(piece.chosen)
            columns.append(measure(mine, settings.k))
        columns += [column - columns[0] for column in columns[1:]]
        values = np.column_stack(columns)
        interval = bootstrap_interval(
            values,
            cases.buyers[kept],
            resamples=settings.resamples,
            level=settings.level,
            generator=stream(seed, "compare", piece.kind, piece.name),
        )
        figures = _figures(values, interval)
        differences = dict(zip(names[1:], figures[len(names) :], strict=True))
        found.append(
            Beside(
                kind=piece.kind,
                name=piece.name,
                rule=piece.rule,
                cases=len(kept),
                figures=dict(zip(names, figures[: len(names)], strict=True)),
                differences=differences,
                standings={name: standing(difference) for name, difference in differences.items()},
            )
        )
    return tuple(found)


def standing(difference: Figure) -> Standing:
    """Say what a difference with its interval amounts to.

    >>> [standing(Figure(value=0.1, low=low, high=0.2)) for low in (0.05, 0.0, None)]
    ['better', 'undecided', 'undecided']
    """
    if difference.low is not None and difference.low > 0:
        return "better"
    return "worse" if difference.high is not None and difference.high < 0 else "undecided"


def _figures(values: Float64, interval: tuple[Float64, Float64] | None) -> list[Figure]:
    """Return the mean of every column with its interval."""
    means = values.mean(axis=0)
    if interval is None:
        return [Figure(value=float(mean)) for mean in means]
    return [
        Figure(value=float(m), low=float(low), high=float(high)) for m, low, high in zip(means, *interval, strict=True)
    ]
