"""One evaluation from scorer to numbers: the means, their intervals, the slices, and the baselines beside them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hatchway.data.engagements import Int64, Part, training_counts
from hatchway.data.log import Log
from hatchway.data.splits import SplitProtocol
from hatchway.evaluation.baselines import baseline_ranks
from hatchway.evaluation.cases import Cases, cases_for, grain_of
from hatchway.evaluation.intervals import bootstrap_interval
from hatchway.evaluation.metrics import METRICS
from hatchway.evaluation.ranking import rank_cases
from hatchway.evaluation.ranks import Float64, Ranks
from hatchway.evaluation.result import Evaluation, Figure, Interval, Measured, Protocol, Ranked
from hatchway.evaluation.scoring import Scorer
from hatchway.evaluation.settings import BaselineName, EvaluationSettings
from hatchway.evaluation.slices import Slice, history_slices, popularity_slices
from hatchway.randomness import stream

_SUSPECT_TIES = 0.05


def evaluate(
    scorer: Scorer,
    log: Log,
    settings: EvaluationSettings | None = None,
    *,
    protocol: SplitProtocol,
    part: Part = Part.TEST,
    seed: int = 1,
) -> Evaluation:
    """Evaluate a model, or anything else that scores items, on one part of the split.

    Args:
        scorer: what is evaluated; for a two-tower model a :class:`~hatchway.evaluation.scoring.TowerScorer`.
        log: the engagements and their split.
        settings: what is measured; the defaults where None.
        protocol: how the log was split.
        part: validation or test.
        seed: the run's seed, for the bootstrap.

    Raises:
        DataError: the part holds no positive.
        FailureError: a score is NaN.
    """
    question = _question(log, settings or EvaluationSettings(), protocol, part, seed)
    ranks = rank_cases(scorer, question.cases, log.engagements, depth=max(question.settings.k))
    return _summary("model", ranks, question)


def evaluate_baseline(
    name: BaselineName,
    log: Log,
    settings: EvaluationSettings | None = None,
    *,
    protocol: SplitProtocol,
    part: Part = Part.TEST,
    seed: int = 1,
) -> Evaluation:
    """Evaluate a ranking that needs no model; the arguments are those of :func:`evaluate`."""
    question = _question(log, settings or EvaluationSettings(), protocol, part, seed)
    return _summary(name, baseline_ranks(name, question.cases, question.counts), question)


@dataclass(frozen=True)
class _Question:
    """What is asked of every ranking alike."""

    protocol: Protocol
    settings: EvaluationSettings
    cases: Cases
    counts: Int64
    notes: tuple[str, ...]
    seed: int


def _question(log: Log, settings: EvaluationSettings, protocol: SplitProtocol, part: Part, seed: int) -> _Question:
    """Make the cases that the split and the settings ask for."""
    grain = grain_of(protocol)
    exclude_seen = grain == "buyer" if settings.exclude_seen is None else settings.exclude_seen
    cases = cases_for(
        log.engagements,
        part,
        grain=grain,
        exclude_seen=exclude_seen,
        exclude_query_item=settings.exclude_query_item,
    )
    notes = log.notes
    if settings.most_cases is not None and len(cases) > settings.most_cases:
        drawn = cases.drawn(settings.most_cases, stream(seed, "evaluation", "cases"))
        notes = (*notes, f"{len(drawn):,} of {len(cases):,} cases were drawn and asked (evaluation.most_cases)")
        cases = drawn
    asked = Protocol(
        split=protocol,
        part="validation" if part is Part.VALIDATION else "test",
        cases="one per positive" if grain == "row" else "one per buyer",
        candidates=len(log.catalogue),
        exclude_seen=exclude_seen,
        exclude_query_item=settings.exclude_query_item,
        ties=settings.ties or "expected",
    )
    return _Question(asked, settings, cases, training_counts(log.engagements, len(log.catalogue)), notes, seed)


def _summary(name: str, ranks: Ranks, question: _Question) -> Evaluation:
    """Measure a ranking and the baselines over the same cases."""
    settings, cases, counts = question.settings, question.cases, question.counts
    rankings = {name: ranks}
    rankings |= {other: baseline_ranks(other, cases, counts) for other in settings.baselines if other != name}
    tied_share = {ranking: _or_none(these.tied_share()) for ranking, these in rankings.items()}
    ties = settings.ties or ("mean-rank" if name == "popularity" else "expected")
    if ties == "mean-rank":
        rankings = {ranking: these if ranking == "random" else these.at_mean() for ranking, these in rankings.items()}
    slices: list[Slice] = []
    if settings.slices:
        slices += popularity_slices(cases, counts, settings.head_share, settings.torso_share)
        slices += history_slices(cases, settings.history_edges)
    everything = Slice("all", "all", "every case", np.ones(len(cases.relevant_items), bool))
    whole = _measure(rankings, everything, question)
    parts: dict[str, dict[str, dict[str, Measured]]] = {ranking: {} for ranking in rankings}
    for piece in slices:
        for ranking, measured in _measure(rankings, piece, question).items():
            parts[ranking].setdefault(piece.kind, {})[piece.name] = measured
    ranked = {
        ranking: Ranked(metrics=whole[ranking].metrics, slices=parts[ranking], tied_share=tied_share[ranking])
        for ranking in rankings
    }
    mine = ranked.pop(name)
    chance = _chance(question)
    return Evaluation(
        ranking=name,
        protocol=question.protocol.model_copy(update={"ties": ties}),
        cases=len(cases),
        relevant=len(cases.relevant_items),
        k=list(settings.k),
        metrics=mine.metrics,
        slices=mine.slices,
        tied_share=mine.tied_share,
        baselines=ranked,
        chance=chance,
        interval=Interval(level=settings.level, resamples=settings.resamples, seed=question.seed),
        notes=list(question.notes),
        warnings=[*_no_better_than_chance(name, mine, chance, settings), *_warnings(name, mine)],
    )


def _measure(rankings: Mapping[str, Ranks], piece: Slice, question: _Question) -> dict[str, Measured]:
    """Measure all rankings over one slice, with the same resamples for all, so that their figures can be compared."""
    settings = question.settings
    names = [f"{metric}@{k}" for metric in METRICS for k in settings.k]
    relevant = int(piece.chosen.sum())
    if not relevant:
        return {ranking: Measured(cases=0, relevant=0, metrics={}, rule=piece.rule) for ranking in rankings}
    columns: list[Float64] = []
    kept = np.zeros(0, np.int64)
    for ranks in rankings.values():
        chosen, kept = ranks.only(piece.chosen)
        columns += [function(chosen, k) for function in METRICS.values() for k in settings.k]
    values = np.column_stack(columns)
    interval = bootstrap_interval(
        values,
        question.cases.buyers[kept],
        resamples=settings.resamples,
        level=settings.level,
        generator=stream(question.seed, "evaluation", "bootstrap", piece.kind, piece.name),
    )
    means = values.mean(axis=0)
    low, high = (None, None) if interval is None else interval
    figures = [
        Figure(
            value=float(means[column]),
            low=None if low is None else float(low[column]),
            high=None if high is None else float(high[column]),
        )
        for column in range(values.shape[1])
    ]
    return {
        ranking: Measured(
            cases=len(kept),
            relevant=relevant,
            metrics=dict(zip(names, figures[number * len(names) :], strict=False)),
            rule=piece.rule,
        )
        for number, ranking in enumerate(rankings)
    }


def _chance(question: _Question) -> dict[str, float]:
    """Return what a random order of the candidates is worth, exactly: for recall@k about k/N."""
    ranks = baseline_ranks("random", question.cases, question.counts)
    cut_offs = question.settings.k
    return {f"{metric}@{k}": float(function(ranks, k).mean()) for metric, function in METRICS.items() for k in cut_offs}


def _no_better_than_chance(
    name: str, mine: Ranked, chance: Mapping[str, float], settings: EvaluationSettings
) -> list[str]:
    """Say where recall is not above what a random order reaches; without intervals the figure itself is compared."""
    if name == "random":
        return []
    said = []
    for k in settings.k:
        figure, level = mine.metrics[f"recall@{k}"], chance[f"recall@{k}"]
        low = figure.value if figure.low is None else figure.low
        # Where there are no more candidates than places every order finds everything.
        if low <= level < 1:
            spread = "" if figure.low is None else f" (interval {figure.low:.4f} to {figure.high:.4f})"
            said.append(f"recall@{k} is {figure.value:.4f}{spread} and {level:.4f} in a random order")
    if not said:
        return []
    return [f"the {name} is not shown to be better than a random order: {'; '.join(said)}"]


def _or_none(value: float) -> float | None:
    """Write NaN as None."""
    return None if np.isnan(value) else value


def _warnings(name: str, mine: Ranked) -> list[str]:
    """Say what makes the figures of a model suspect."""
    if name != "model" or mine.tied_share is None or mine.tied_share < _SUSPECT_TIES:
        return []
    line = (
        f"{mine.tied_share:.0%} of the relevant items near the top share their score with other candidates: the model "
        "tells few items apart"
    )
    return [line]
