"""Two models over the same cases, in whole and by slice, with the interval of the difference."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pydantic
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Engagements, Int64
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.intervals import bootstrap_interval
from hatchway.evaluation.metrics import METRICS
from hatchway.evaluation.ranking import rank_cases
from hatchway.evaluation.scoring import Scorer
from hatchway.evaluation.slices import POPULARITY, Slice, popularity_classes
from hatchway.nightly.settings import GateSettings
from hatchway.randomness import stream

Bools = npt.NDArray[np.bool_]

DECIDING = ("all", "popularity", "alike")
"""The kinds of slices in which a loss refuses a night; the others are reported."""

_CASES_AT_ONCE = 256


class Compared(pydantic.BaseModel):
    """One slice of the comparison.

    Attributes:
        kind, name: the slice.
        cases: how many.
        old, new: the means.
        low, high: interval of (new - old); None where there are too few buyers to say.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    kind: str
    name: str
    cases: int
    old: float
    new: float
    low: float | None
    high: float | None


class OfferedScorer:
    """A scorer for which only some items are candidates; the others score minus infinity.

    Args:
        scorer: what scores.
        candidates: [N] bool.
    """

    def __init__(self, scorer: Scorer, candidates: Bools) -> None:
        self.history_length = scorer.history_length
        self._scorer = scorer
        self._others = torch.from_numpy(np.flatnonzero(~candidates))

    def scores(self, contexts: Contexts) -> Tensor:
        """Return [B, N] scores."""
        scores = self._scorer.scores(contexts)
        scores[:, self._others.to(scores.device)] = -torch.inf
        return scores


def compare(
    scorers: tuple[Scorer, Scorer],
    cases: Cases,
    engagements: Engagements,
    slices: Sequence[Slice],
    settings: GateSettings,
    seed: int,
) -> tuple[Compared, ...]:
    """Compare an old and a new model; every case has the same candidates for both.

    Args:
        scorers: the old and the new.
        cases: what is asked.
        engagements: the log that the cases were made from.
        slices: beside all cases, which is always the first.
        settings: metric, cut-off and bootstrap; its level holds for all slices that decide together (Bonferroni).
        seed: for the bootstrap.
    """
    old = rank_cases(scorers[0], cases, engagements, depth=settings.k)
    new = old if scorers[1] is scorers[0] else rank_cases(scorers[1], cases, engagements, depth=settings.k)
    whole = Slice("all", "all", "every case", np.ones(len(cases.relevant_items), np.bool_))
    measure = METRICS[settings.metric]
    asked = [piece for piece in (whole, *slices) if piece.chosen.any()]
    # Looked at one by one, some of many slices would seem worse in a night where nothing is.
    level = 1 - (1 - settings.level) / max(sum(piece.kind in DECIDING for piece in asked), 1)
    found = []
    for piece in asked:
        mine, kept = old.only(piece.chosen)
        theirs, _ = new.only(piece.chosen)
        values = np.column_stack([measure(mine, settings.k), measure(theirs, settings.k)])
        difference = (values[:, 1] - values[:, 0])[:, None]
        interval = bootstrap_interval(
            difference,
            cases.buyers[kept],
            resamples=settings.resamples,
            level=level,
            generator=stream(seed, "gate", piece.kind, piece.name),
        )
        before, after = values.mean(axis=0)
        low, high = (None, None) if interval is None else (float(interval[0][0]), float(interval[1][0]))
        found.append(
            Compared(
                kind=piece.kind,
                name=piece.name,
                cases=len(kept),
                old=float(before),
                new=float(after),
                low=low,
                high=high,
            )
        )
    return tuple(found)


def recommended_shares(
    scorer: Scorer,
    cases: Cases,
    engagements: Engagements,
    counts: Int64,
    shares: tuple[float, float],
    k: int,
    most: int,
) -> dict[str, float]:
    """Return how the first k places of the cases are divided between popular and rare items.

    Args:
        scorer: the model.
        cases: what is asked.
        engagements: the log that the cases were made from.
        counts: [N] training positives of each item.
        shares: what the head and the torso hold, as in the settings of the evaluation.
        k: places a case.
        most: at most so many cases, the first ones by time of the log's order.

    Returns:
        for head, torso, tail and new the share of the places.
    """
    classes = popularity_classes(counts, *shares)
    total = np.zeros(len(POPULARITY), np.int64)
    last = min(len(cases), most)
    for begin in range(0, last, _CASES_AT_ONCE):
        end = min(begin + _CASES_AT_ONCE, last)
        with torch.inference_mode():
            scores = scorer.scores(cases.contexts(engagements, begin, end, scorer.history_length))
            rows = scores.topk(min(k, scores.shape[1]), dim=1).indices.cpu().numpy()
        total += np.bincount(classes[rows].ravel(), minlength=len(POPULARITY))
    return dict(zip(POPULARITY, (total / max(int(total.sum()), 1)).tolist(), strict=True))
