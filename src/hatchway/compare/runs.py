"""Finished runs on one log, compared over the same held-out cases."""

from collections.abc import Mapping
from pathlib import Path

import pydantic

from hatchway.compare.paired import Beside, PairedSettings, side_by_side
from hatchway.data.engagements import Part, training_counts
from hatchway.errors import UsageError
from hatchway.evaluation.cases import cases_for, grain_of
from hatchway.evaluation.ranking import rank_cases
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.settings import EvaluationSettings
from hatchway.evaluation.slices import popularity_slices
from hatchway.training.run_folder import RunFolder


class Comparison(pydantic.BaseModel):
    """Rankings side by side.

    Attributes:
        metric: with its cut-off, as in ``recall@20``.
        level: of the intervals.
        about: what each ranking is, in a sentence; the others are held against the first.
        slices: all cases, then the slices.
        note: what the intervals do not cover.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    metric: str
    level: float
    about: dict[str, str]
    slices: tuple[Beside, ...]
    note: str = "the intervals are over cases: another seed of the training may move a figure further"


def compare_runs(
    runs: Mapping[str, RunFolder | Path | str],
    about: Mapping[str, str],
    settings: PairedSettings | None = None,
    evaluation: EvaluationSettings | None = None,
    seed: int = 1,
) -> Comparison:
    """Compare finished runs over the test part, in whole and by the popularity of the item that is right.

    Args:
        runs: opened runs or their paths, by name; all of the same store and split. The others are held against the
            first.
        about: what each is, in a sentence.
        settings: metric, cut-off and bootstrap.
        evaluation: which candidates are left out, and what head and torso are.
        seed: for the bootstrap.

    Raises:
        UsageError: the runs are of different stores or splits.
        DataError: one is not finished, or the split keeps nothing to ask about.
        ArtefactError: the store has changed, or a part of a run cannot be read.
    """
    settings, evaluation = settings or PairedSettings(), evaluation or EvaluationSettings()
    opened = {name: run if isinstance(run, RunFolder) else RunFolder.open(run) for name, run in runs.items()}
    first_name, first = next(iter(opened.items()))
    for name, run in opened.items():
        mine, theirs = run.record, first.record
        same = (mine.store_digest, mine.split, mine.positives) == (theirs.store_digest, theirs.split, theirs.positives)
        if not same:
            raise UsageError(
                f"{name} ({run.path}) is of another store, split or choice of positives than {first_name} "
                f"({first.path}); only runs that are asked the same can be compared"
            )
    log = first.log()
    grain = grain_of(log.protocol)
    cases = cases_for(
        log.engagements,
        Part.TEST,
        grain=grain,
        exclude_seen=grain == "buyer" if evaluation.exclude_seen is None else evaluation.exclude_seen,
        exclude_query_item=evaluation.exclude_query_item,
    )
    rankings: dict[str, Ranks] = {}
    for name, run in opened.items():
        model = run.load_model(log)
        scorer = TowerScorer(model, len(log.catalogue), model.history_length)
        rankings[name] = rank_cases(scorer, cases, log.engagements, depth=settings.k)
    counts = training_counts(log.engagements, len(log.catalogue))
    slices = popularity_slices(cases, counts, evaluation.head_share, evaluation.torso_share)
    return Comparison(
        metric=f"{settings.metric}@{settings.k}",
        level=settings.level,
        about=dict(about),
        slices=side_by_side(rankings, cases, slices, settings, seed),
    )
