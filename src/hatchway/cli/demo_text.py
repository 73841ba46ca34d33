"""What ``hatchway demo`` prints: how the nights ended, the recipes side by side, the mix beside plain rankings."""

from typing import TYPE_CHECKING

from hatchway.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hatchway.compare.runs import Comparison
    from hatchway.compare.stored import StoredComparison
    from hatchway.evaluation.result import Evaluation, Figure
    from hatchway.nightly.pointer import NightRecord

K = 20
"""The cut-off of every figure that the demo shows."""


def beside(comparison: "Comparison") -> str:
    """Lay out the recipes side by side, with intervals, and what the differences from the first amount to."""
    names = list(comparison.about)
    rows: list[list[object]] = []
    for piece in comparison.slices:
        cells = [_with_interval(piece.figures[name]) for name in names]
        words = ["", *(piece.standings[name] for name in names[1:])]
        rows.append([f"{comparison.metric}, {piece.name}", piece.cases, *cells])
        rows.append(["", "", *words])
    lines = [f"  {name}: {about}" for name, about in comparison.about.items()]
    return (
        "Four ways to choose negatives:\n"
        + "\n".join(lines)
        + "\n\n"
        + table(rows, ["", "cases", *names])
        + f"\n\nin brackets: {comparison.level:.0%} intervals; below: what the paired difference from {names[0]} says, "
        "undecided where its interval has 0 in it"
    )


def larger(stored: "StoredComparison") -> str:
    """Lay out the larger comparison that the package carries."""
    names = list(stored.about)
    rows: list[list[object]] = []
    for piece in stored.slices:
        words = [f" {piece.standings[name]}" if name in piece.standings else "" for name in names]
        cells = [_with_interval(piece.figures[name]) + word for name, word in zip(names, words, strict=True)]
        rows.append([f"{stored.metric}, {piece.name}", piece.cases, *cells])
    market = stored.market
    return (
        f"The same on {len(stored.seeds)} larger markets ({market['listings']:,.0f} listings, {market['buyers']:,.0f} "
        f"buyers, {market['days']:.0f} days; made by {stored.command}):\n\n"
        + table(rows, ["", "cases", *names])
        + "\n\nin brackets: 95% intervals over markets and trainings"
    )


def nights_said(nights: "Sequence[NightRecord]") -> str:
    """Say how the nights ended."""
    rows: list[list[object]] = []
    for night in nights:
        alarms = sum(alarm.raised for alarm in night.alarms)
        rows.append([night.day, night.outcome, alarms, "; ".join(night.reasons)])
    return table(rows, ["night", "outcome", "alarms", "why not"])


def results(evaluation: "Evaluation") -> str:
    """Lay out recall and ndcg of the model beside the baselines, with intervals, and recall by popularity."""
    metrics, others = evaluation.metrics, evaluation.baselines
    recall = f"recall@{K}"
    rows: list[list[object]] = [
        [name, evaluation.cases, _with_interval(metrics[name])]
        + [_with_interval(other.metrics[name]) for other in others.values()]
        for name in (recall, f"ndcg@{K}")
    ]
    for name, measured in evaluation.slices.get("popularity", {}).items():
        if measured.cases:
            beside = [other.slices["popularity"][name].metrics[recall] for other in others.values()]
            rows.append(
                [f"{recall}, {name}", measured.cases, _with_interval(measured.metrics[recall])]
                + [_with_interval(figure) for figure in beside]
            )
    interval = evaluation.interval
    return (
        table(rows, ["", "cases", "model", *others])
        + f"\n\nin brackets: {interval.level:.0%} intervals; head, torso and tail: listings that hold a third of the "
        "training positives each,\nthe most popular first; new: listings that have none"
    )


def _with_interval(figure: "Figure") -> str:
    """Write a figure and its interval, unless that has no width to speak of: a random order is exact."""
    ends = [] if figure.low is None or figure.high is None else [f"{figure.low:.4f}", f"{figure.high:.4f}"]
    return f"{figure.value:.4f}" + (f" [{', '.join(ends)}]" if len(set(ends)) == 2 else "")
