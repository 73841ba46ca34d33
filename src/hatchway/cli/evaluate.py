"""``hatchway evaluate``: rank the whole catalogue for every buyer of the test part, and say how well."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, table
from hatchway.errors import UsageError

if TYPE_CHECKING:
    from hatchway.evaluation.result import Evaluation, Figure


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder; with --baseline, a store.")],
    baseline: Annotated[
        Literal["popularity", "random"] | None,
        typer.Option(help="Evaluate this ranking on a store instead of a run's model."),
    ] = None,
    part: Annotated[Literal["validation", "test"], typer.Option(help="The part of the split to ask about.")] = "test",
    k: Annotated[
        str | None, typer.Option(metavar="K,K,...", help="Cut-offs, e.g. 5,50. [default: as in the run's settings]")
    ] = None,
    protocol: Annotated[
        Literal["given", "leave-one-out", "global-time"] | None,
        typer.Option(help="With --baseline: how to split the store. [default: as in training]"),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="With --baseline: a recipe, for what counts as a positive and the split.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --baseline: a setting, e.g. evaluation.k=[10,100]."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rank the whole catalogue and say how well.

    Prints recall, hit rate, ndcg, mrr and map at several cut-offs k, each with a bootstrap interval, in slices and
    beside baselines. Seen items are no candidates where the split's protocol says so; a relevant item always is one.
    Equal scores count by expectation under a random order, but popularity on its own by mean rank, as it is published.
    docs/evaluation.md explains the figures and the JSON.
    """
    begin(quiet)
    from hatchway.data.engagements import Part

    asked = Part.TEST if part == "test" else Part.VALIDATION
    cut_offs = None if k is None else _cut_offs(k)
    if baseline is None:
        if protocol or recipe or assignments:
            raise UsageError("--protocol, --recipe and --set go with --baseline; a run is evaluated as it was trained")
        from hatchway.job import evaluate_run

        evaluation = evaluate_run(path, asked, cut_offs)
    else:
        from hatchway.config import load_recipe
        from hatchway.data.log import build_log
        from hatchway.data.store import Store
        from hatchway.evaluation.summary import evaluate_baseline
        from hatchway.progress import note

        chosen = [f"split.protocol={protocol}"] if protocol else []
        chosen += [] if cut_offs is None else [f"evaluation.k={cut_offs}"]
        settings = load_recipe(recipe, [*(assignments or []), *chosen])
        store = Store.open(path)
        store.verify()
        log = build_log(store, settings.positives, settings.split, settings.seed)
        for line in log.notes:
            note(line)
        evaluation = evaluate_baseline(
            baseline,
            log,
            settings.evaluation,
            protocol=log.protocol,
            part=asked,
            seed=settings.seed,
        )
    emit(evaluation.model_dump(mode="json"), as_text(evaluation), json)


def _cut_offs(text: str) -> list[int]:
    """Read ``--k``, in whatever order they are given.

    >>> _cut_offs("50, 5,5")
    [5, 50]
    """
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise UsageError(f"--k {text}: write whole numbers with commas between, as in --k 5,50") from None


def as_text(evaluation: "Evaluation") -> str:
    """Lay an evaluation out for reading: what was asked, all figures with the baselines beside them, and the slices."""
    protocol, interval = evaluation.protocol, evaluation.interval
    left_out = [
        name
        for name, chosen in (("seen items", protocol.exclude_seen), ("the query item", protocol.exclude_query_item))
        if chosen
    ]
    ties = "in expectation" if protocol.ties == "expected" else "by mean rank"
    spread = f"{interval.level:.0%} intervals from {interval.resamples:,} resamples of buyers"
    head = (
        f"{evaluation.ranking}, {protocol.split}, {protocol.part} part: {evaluation.cases:,} cases ({protocol.cases}), "
        f"{evaluation.relevant:,} relevant items, {protocol.candidates:,} candidates\n"
        f"left out of the candidates: {' and '.join(left_out) or 'nothing'}; ties {ties}; "
        f"{spread if interval.resamples else 'no intervals'}"
    )
    chance = [f"{name} {evaluation.chance[name]:.4f}" for name in evaluation.metrics if name.startswith("recall@")]
    head += f"\nchance, a random order of the candidates: {', '.join(chance)}"
    if evaluation.twins:
        head += "\none relevant item in every case, so " + " and ".join(
            f"{twin} is {metric}" for twin, metric in evaluation.twins.items()
        )
    others = evaluation.baselines
    figures = table(
        [
            [name, figure.value, _interval(figure), *(other.metrics[name].value for other in others.values())]
            for name, figure in evaluation.metrics.items()
            if name.split("@")[0] not in evaluation.twins
        ],
        ["metric", evaluation.ranking, "interval", *others],
    )
    sections = [head, figures, *([_slices(evaluation)] if evaluation.slices else [])]
    return "\n\n".join([*sections, *evaluation.warnings])


def _slices(evaluation: "Evaluation") -> str:
    """Lay out recall in the slices, at the cut-off nearest below 20."""
    k = max((k for k in evaluation.k if k <= 20), default=evaluation.k[0])
    name = f"recall@{k}"
    rows = []
    for kind, slices in evaluation.slices.items():
        for piece, measured in slices.items():
            figure = measured.metrics.get(name)
            others = [other.slices[kind][piece].metrics.get(name) for other in evaluation.baselines.values()]
            rows.append(
                [
                    f"{kind} {piece}",
                    measured.cases,
                    figure and figure.value,
                    figure and _interval(figure),
                    *(other and other.value for other in others),
                    measured.rule,
                ]
            )
    return table(rows, ["slice", "cases", name, "interval", *evaluation.baselines, "what is in it"])


def _interval(figure: "Figure") -> str | None:
    """Write an interval, or a dash where there is none."""
    return None if figure.low is None else f"{figure.low:.4f}–{figure.high:.4f}"
