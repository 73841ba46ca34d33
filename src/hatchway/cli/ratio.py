"""``hatchway ratio``: how many negatives a positive should have, estimated from an AUC."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, table

if TYPE_CHECKING:
    from hatchway.how_many.estimator import Ratio


def run(
    auc: Annotated[
        float | None,
        typer.Option(help="The labels' AUC at one negative a positive: the training AUC before overfitting."),
    ] = None,
    mean: Annotated[float | None, typer.Option(help="Instead: the mean of the positives' scores.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Take the training curve from a run's log.")
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take it from a CSV or JSON file of training and validation AUCs."),
    ] = None,
    weight: Annotated[
        float, typer.Option("--lambda", metavar="WEIGHT", help="The weight of good and bad samples against easy ones.")
    ] = 0.9,
    bound: Annotated[int, typer.Option(help="The greatest number of negatives to look at.")] = 1000,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curve as an .svg or .png.")] = None,
    whole: Annotated[bool, typer.Option("--curve", help="Print every K of the curve, not only some.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Estimate how many negatives a positive should have.

    After Wu, Wu and Huang (2022): the number K whose samples teach most, averaged over a training curve, and the range
    of K that is within 1 % of it. --auc or --mean alone take a simulated curve; --run and --measured a measured one,
    with the labels' AUC from it unless --auc says otherwise. docs/ratio.md says what the estimate assumes.
    """
    begin(quiet)
    from hatchway.errors import UsageError
    from hatchway.how_many.curves import read_points, read_run
    from hatchway.how_many.estimator import ratio

    if run is not None and measured is not None:
        raise UsageError("--run and --measured each name a training curve; give one of them")
    points = read_run(run) if run is not None else read_points(measured) if measured is not None else None
    answer = ratio(auc=auc, mean=mean, measured=points, weight=weight, bound=bound)
    if plot is not None:
        from hatchway.how_many.picture import write_picture

        write_picture(answer, plot)
    by_k = answer.by_k
    columns = {
        "k": by_k.k,
        "effectiveness": by_k.value,
        "good": by_k.good,
        "bad": by_k.bad,
        "easy": by_k.easy,
        "label_reliable": by_k.label,
        "prediction_reliable": by_k.model,
    }
    payload = answer.model_dump(exclude_none=True)
    if whole:
        payload["by_k"] = [
            dict(zip(columns, row, strict=True))
            for row in zip(*(column.tolist() for column in columns.values()), strict=True)
        ]
    shown = range(1, bound + 1) if whole else _some(answer)
    rows = [[int(by_k.k[k - 1]), *(float(column[k - 1]) for column in list(columns.values())[1:])] for k in shown]
    text = table(rows, ["K", "effectiveness", "good", "bad", "easy", "label right", "prediction right"])
    emit(payload, f"{_in_words(answer)}\n\n{text}" + (f"\n\ndrawn: {plot}" if plot else ""), json)


def _in_words(answer: "Ratio") -> str:
    """Say the estimate in two or three lines."""
    word = "negative" if answer.k == 1 else "negatives"
    found = (
        f"{answer.k:,} {word} a positive{' (bounded)' if answer.bounded else ''}; {answer.k_low:,} to "
        f"{answer.k_high:,} are within 1 % of its effectiveness, {answer.effectiveness:.4f}"
    )
    basis = (
        f"labels of AUC {answer.auc:.4g} (mean of the positives {answer.mean:.4g}); {answer.curve} training curve of "
        f"{answer.points:,} point{'' if answer.points == 1 else 's'}; lambda {answer.weight:g}"
    )
    return "\n".join([found, basis, *([f"bounded: {answer.reason}"] if answer.reason else [])])


def _some(answer: "Ratio") -> list[int]:
    """Choose the K that say most: 1, 2, 5, 10, … to the bound, K* and the ends of its range."""
    round_ones = {factor * 10**power for power in range(7) for factor in (1, 2, 5)}
    wanted = round_ones | {answer.k_low, answer.k, answer.k_high, answer.bound}
    return sorted(k for k in wanted if k <= answer.bound)
