"""``hatchway demo``: the whole job on a market that the package makes itself, from nothing to a page to look at."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, table
from hatchway.errors import DataError

if TYPE_CHECKING:
    from hatchway.evaluation.result import Evaluation, Figure

# The same as recipes/market.toml, which a test makes sure of: an installed package has no folder of recipes.
RECIPE: dict[str, Any] = {
    "seed": 1,
    "split": {"protocol": "global-time", "validation_days": 1, "test_days": 3},
    "model": {
        "kind": "context",
        "dimension": 64,
        "text_buckets": 16384,
        "item": {
            "categories": ["category", "style", "condition"],
            "numbers": ["price"],
            "texts": ["title"],
            "id_dropout": 0.5,
        },
        "context": {"history": 10},
    },
    "negatives": {"in_batch": True, "uniform": 500, "alpha": 1.0, "positive": "uncorrected"},
    "training": {
        "epochs": 15,
        "batch": 512,
        "temperature": 0.1,
        "table_rate": 0.1,
        "layer_rate": 0.002,
        "validate_epochs": 3,
    },
}
K = 20
_OURS = {"store", "store-truth", "run"}


def run(
    out: Annotated[Path, typer.Option(help="Folder of the demo; one that lies there is replaced.")] = Path("demo"),
    listings: Annotated[int, typer.Option(min=100, help="Listings of the market.")] = 4_000,
    buyers: Annotated[int, typer.Option(min=10, help="Buyers of the market.")] = 2_000,
    days: Annotated[int, typer.Option(min=5, help="Days of the market; the last three are the test.")] = 14,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the market.")] = 1,
    photos: Annotated[bool, typer.Option(help="Draw the listings' photos.")] = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the whole job on a simulated market.

    Simulates, trains, evaluates, builds the index and writes the report, in one to two minutes. Ends with the figures
    of the model beside those of popularity and of a random order, the path of the HTML report, and the command that
    serves the result.
    """
    begin(quiet)
    from hatchway.config import RunSettings
    from hatchway.job import evaluate_run, index_run, train_run
    from hatchway.progress import note
    from hatchway.report.page import write_report
    from hatchway.simulation.settings import MarketSettings
    from hatchway.simulation.writing import simulate
    from hatchway.training.memory import keep_freed_memory

    keep_freed_memory()
    _clear(out)
    note(f"1/5 a market: {listings:,} listings, {buyers:,} buyers, {days} days")
    market = MarketSettings.parse({"listings": listings, "buyers": buyers, "days": days})
    store = simulate(out / "store", market, seed, photos=photos)
    note("2/5 training: in-batch and uniform negatives in one corrected softmax")
    folder = train_run(store, out / "run", RunSettings.parse(RECIPE))
    note("3/5 evaluation: every listing ranked for every save and message of the last three days")
    evaluation = evaluate_run(folder)
    note("4/5 the index")
    bundle = index_run(folder)
    note("5/5 the report")
    report = write_report(folder)
    serve = f"{_program()} serve {folder.path}"
    payload: dict[str, object] = {
        "store": str(store.path),
        "run": str(folder.path),
        "bundle": str(bundle.path),
        "report": str(report),
        "serve": serve,
        "evaluation": evaluation.model_dump(mode="json"),
    }
    emit(payload, f"{results(evaluation)}\n\nreport: {report}\nserve:  {serve}", json)


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


def _clear(out: Path) -> None:
    """Remove the run of an earlier demo; the store is replaced by whoever writes it.

    Raises:
        DataError: the folder holds something that no demo wrote.
    """
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; name a folder: hatchway demo --out FOLDER")
    strangers = sorted(path.name for path in out.glob("*") if path.name not in _OURS) if out.is_dir() else []
    if strangers:
        raise DataError(
            f"{out} holds {strangers[0]!r}, which no demo wrote, and is left as it is; "
            "name another folder: hatchway demo --out FOLDER"
        )
    if (out / "run").exists():
        if not (out / "run" / "run.json").is_file():
            raise DataError(f"{out / 'run'} is not a run and is left as it is; name another folder, or remove it first")
        shutil.rmtree(out / "run")


def _program() -> str:
    """Return how this program is called from here: by its name where the name finds it, else by its path."""
    here = Path(sys.argv[0])
    found = shutil.which("hatchway")
    by_name = found is not None and here.exists() and Path(found).samefile(here)
    if by_name or here.name != "hatchway":
        return "hatchway"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
