"""The report of one run: everything gathered and laid out as one HTML file that needs nothing from elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pydantic

from hatchway.artefacts.atomic import write_text
from hatchway.errors import ArtefactError, DataError
from hatchway.evaluation.result import Evaluation, Figure
from hatchway.report.curves import TrainingLog, draw_curves
from hatchway.report.negatives import account_of
from hatchway.report.rows import Row, example_rows
from hatchway.settings import flattened
from hatchway.training.run_folder import RunFolder

_PREFERRED_K = 20


@dataclass(frozen=True)
class Bar:
    """One figure beside the baselines, as it is drawn on a scale that the table shares.

    Attributes:
        name: what it is the figure of.
        rule: what is in it.
        cases: how many cases.
        figure: the model's, or None without cases.
        others: the baselines' figures by name.
    """

    name: str
    rule: str
    cases: int
    figure: Figure | None
    others: dict[str, Figure]


def write_report(run: RunFolder | Path | str) -> Path:
    """Write ``report.html`` into a finished, evaluated run, and return its path.

    Raises:
        DataError: the run is not finished, or was not evaluated.
        ArtefactError: a file of the run is damaged.
    """
    run = run if isinstance(run, RunFolder) else RunFolder.open(run)
    log = run.log()
    rows = example_rows(run.load_model(log), log, run.store().path)
    target = run.path / "report.html"
    write_text(target, render_report(run, rows))
    return target


def read_evaluation(run: RunFolder) -> Evaluation:
    """Read the evaluation that lies in a run.

    Raises:
        DataError: there is none.
        ArtefactError: it is damaged.
    """
    path = run.path / "evaluation.json"
    if not path.is_file():
        raise DataError(f"{run.path} has not been evaluated; do that first: hatchway evaluate {run.path}")
    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        raise ArtefactError(
            f"{path} is damaged or of another version of Hatchway ({error.error_count()} faults); "
            f"evaluate again: hatchway evaluate {run.path}"
        ) from None


def render_report(run: RunFolder, rows: tuple[Row, ...] = ()) -> str:
    """Lay the report out.

    Args:
        run: the run.
        rows: examples of what the model shows; may be empty.
    """
    evaluation, model = read_evaluation(run), run.model_record()
    training = TrainingLog.read(run.path / "log.jsonl")
    settings: dict[str, Any] = run.record.settings
    of_training = settings.get("training", {})
    metric = f"{of_training.get('validate_metric', 'ndcg')}@{of_training.get('validate_k', 20)}"
    k = max((k for k in evaluation.k if k <= _PREFERRED_K), default=evaluation.k[0])
    store = run.store().manifest
    whole = Bar("all", "every case", evaluation.cases, evaluation.metrics[f"recall@{k}"], _others(evaluation, k))
    groups = [("", [whole]), *_slice_bars(evaluation, f"recall@{k}").items()]
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"figure": _figure, "percent": _percent, "amount": _amount, "value": _value}
    return templates.get_template("report.html").render(
        name=run.path.resolve().name,
        run=run,
        store=store,
        evaluation=evaluation,
        model=model,
        k=k,
        headline=_headline(evaluation, k),
        whole=whole,
        groups=groups,
        scale=_scale([line for _, lines in groups for line in lines]),
        curves=draw_curves([training.loss(), training.validation(metric)], model.step),
        account=account_of(training.lines),
        seconds=training.lines[-1].get("seconds") if training.lines else None,
        rows=rows,
        metrics=[
            name for name in dict.fromkeys(n.split("@")[0] for n in evaluation.metrics) if name not in evaluation.twins
        ],
        settings={name: flattened(part) for name, part in settings.items() if isinstance(part, dict)},
        plain={name: part for name, part in settings.items() if not isinstance(part, dict)},
    )


def _others(evaluation: Evaluation, k: int) -> dict[str, Figure]:
    """Return the baselines' recall over all cases."""
    return {name: ranked.metrics[f"recall@{k}"] for name, ranked in evaluation.baselines.items()}


def _headline(evaluation: Evaluation, k: int) -> list[tuple[str, str]]:
    """Say how the model compares with each baseline: how many times its recall, or that it is undecided."""
    mine = evaluation.metrics[f"recall@{k}"]
    lines = []
    for name, other in _others(evaluation, k).items():
        apart = None not in (mine.low, mine.high, other.low, other.high) and (
            float(mine.low or 0) > float(other.high or 0) or float(mine.high or 0) < float(other.low or 0)
        )
        times = mine.value / other.value if other.value > 0 else None
        if None in (mine.low, mine.high, other.low, other.high):
            lines.append((name, "undecided: no intervals were measured"))
        elif not apart:
            lines.append((name, "undecided: the intervals overlap"))
        elif times is None:
            lines.append((name, "it finds nothing at all"))
        else:
            lines.append((name, f"{times:,.1f} times its recall" if times >= 1 else f"only {times:.0%} of its recall"))
    return lines


def _slice_bars(evaluation: Evaluation, metric: str) -> dict[str, list[Bar]]:
    """Gather one metric over the slices, by kind of slice."""
    return {
        kind: [
            Bar(
                name,
                measured.rule or "",
                measured.cases,
                measured.metrics.get(metric),
                {
                    other: found
                    for other, ranked in evaluation.baselines.items()
                    if (found := ranked.slices[kind][name].metrics.get(metric)) is not None
                },
            )
            for name, measured in slices.items()
        ]
        for kind, slices in evaluation.slices.items()
    }


def _scale(lines: list[Bar]) -> float:
    """Return where the scale of the bars ends: a little above the largest figure."""
    figures = [figure for line in lines for figure in (line.figure, *line.others.values()) if figure is not None]
    return 1.04 * max((max(figure.value, figure.high or 0.0) for figure in figures), default=0.0) or 1.0


def _figure(value: float | None) -> str:
    """Write a metric.

    >>> _figure(0.30501), _figure(None)
    ('0.3050', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def _percent(share: float) -> str:
    r"""Write a share; what is there but small is not written as nothing.

    >>> _percent(0.3051), _percent(0.00012), _percent(0.0)
    ('30.5\xa0%', '0.012\xa0%', '0\xa0%')
    """
    if share == 0:
        return "0\u00a0%"
    return f"{share:.1%}".replace("%", "\u00a0%") if share >= 0.001 else f"{share * 100:.2g}\u00a0%"


def _amount(value: float) -> str:
    """Write a number of things, with a decimal only where there are few.

    >>> _amount(5096), _amount(3.25)
    ('5,096', '3.2')
    """
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:,.1f}"


def _value(setting: object) -> str:
    """Write a setting.

    >>> _value(None), _value(True), _value([5, 10]), _value(())
    ('–', 'yes', '5, 10', 'none')
    """
    if setting is None:
        return "–"
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    if isinstance(setting, (list, tuple)):
        return ", ".join(map(str, setting)) or "none"
    return str(setting)
