"""``hatchway demo``: a week of a market that the package makes, its nights, and four ways to choose negatives."""

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hatchway.artefacts.atomic import write_text
from hatchway.cli.demo_text import K, beside, larger, nights_said, results
from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit
from hatchway.errors import DataError, GateRefusedError
from hatchway.progress import note

if TYPE_CHECKING:
    from hatchway.compare.runs import Comparison
    from hatchway.data.store import Store
    from hatchway.nightly.pointer import NightRecord
    from hatchway.simulation.settings import MarketSettings
    from hatchway.training.run_folder import RunFolder

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
TEST_DAYS = 2
WINDOW = (21, 100)
"""Ranks that the mix mines from: 101 to 500, brought down to a market of a few thousand listings."""
_OURS = {"store", "store-truth", "nights", "recipes", "comparison.json"}


def run(
    out: Annotated[Path, typer.Option(help="Folder of the demo; one that lies there is replaced.")] = Path("demo"),
    listings: Annotated[int, typer.Option(min=100, help="Listings of the market.")] = 2_000,
    buyers: Annotated[int, typer.Option(min=10, help="Buyers of the market.")] = 4_000,
    days: Annotated[int, typer.Option(min=5, help="Days of the market; the last two are the test.")] = 7,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the market.")] = 1,
    photos: Annotated[bool, typer.Option(help="Draw the listings' photos.")] = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the whole job on a simulated market.

    Simulates a week of a marketplace, runs its nights, trains the same model with four ways to choose negatives, and
    shows them side by side: recall by slice, with intervals, and whether what lies between them is more than chance.
    Takes one to two minutes. Ends with the paths of the pages and the command that serves the result.
    """
    begin(quiet)
    check_place(out.parent, f"--out {out}")
    from hatchway.compare.stored import stored_comparison
    from hatchway.data.days import SECONDS_A_DAY, day_name
    from hatchway.job import evaluate_run, index_run
    from hatchway.nightly.page import write_page
    from hatchway.report.page import write_report
    from hatchway.simulation.settings import MarketSettings
    from hatchway.simulation.writing import simulate
    from hatchway.training.memory import keep_freed_memory

    keep_freed_memory()
    _clear(out)
    note(f"1/5 a market: {listings:,} listings, {buyers:,} buyers, {days} days")
    market = MarketSettings.parse({"listings": listings, "buyers": buyers, "days": days})
    store = simulate(out / "store", market, seed, photos=photos)
    note(f"2/5 its nights: {days} of them, each mining with the index of the night before")
    nights = _nights(store, out / "nights", market)
    page = write_page(out / "nights")
    note("3/5 one model, trained with four ways to choose negatives")
    yesterday = day_name(market.start // SECONDS_A_DAY + days - TEST_DAYS - 2)  # of the last day that is trained on
    served = [night.day for night in nights if night.outcome == "published" and night.day <= yesterday]
    runs, comparison = _four_recipes(store, out, out / "nights" / served[-1] / "bundle")
    note("4/5 the mix: evaluated beside popularity and a random order, and its index")
    evaluation = evaluate_run(runs["mix"])
    index_run(runs["mix"])
    note("5/5 the report")
    report = write_report(runs["mix"])
    serve = f"{_program()} serve {out / 'nights'} --photos {store.path}"
    stored = stored_comparison()
    payload: dict[str, object] = {
        "store": str(store.path),
        "nights": [{"day": night.day, "outcome": night.outcome, "reasons": night.reasons} for night in nights],
        "nights_page": str(page),
        "runs": {name: str(folder.path) for name, folder in runs.items()},
        "comparison": comparison.model_dump(mode="json"),
        "larger": None if stored is None else stored.model_dump(mode="json"),
        "evaluation": evaluation.model_dump(mode="json"),
        "report": str(report),
        "serve": serve,
    }
    text = (
        f"{nights_said(nights)}\n\n{beside(comparison)}\n\n"
        + ("" if stored is None else f"{larger(stored)}\n\n")
        + f"The mix beside rankings that need no model:\n\n{results(evaluation)}\n\n"
        f"nights: {page}\nreport: {report}\nserve:  {serve}"
    )
    emit(payload, text, json)


def _nights(store: "Store", folder: Path, market: "MarketSettings") -> "list[NightRecord]":
    """Run the nights of all days; one that is refused is passed over, as it would be by a timer."""
    from hatchway.config import RunSettings
    from hatchway.data.days import SECONDS_A_DAY, day_name
    from hatchway.job import nightly_run
    from hatchway.nightly.pointer import read_record

    settings = RunSettings.parse(RECIPE | {"mining": {"first_rank": WINDOW[0], "last_rank": WINDOW[1]}})
    ended = []
    for day in range(market.days):
        name = day_name(market.start // SECONDS_A_DAY + day)
        with contextlib.suppress(GateRefusedError):
            nightly_run(store.path, folder, name, settings)
        record = read_record(folder / name)
        if record is not None:
            ended.append(record)
    return ended


def _four_recipes(store: "Store", out: Path, earlier: Path) -> "tuple[dict[str, RunFolder], Comparison]":
    """Train the four recipes on all days but the last two and compare them on those.

    Args:
        store: the market.
        out: the demo's folder.
        earlier: the bundle that two of them mine with.
    """
    from hatchway.compare.paired import PairedSettings
    from hatchway.compare.recipes import four_recipes
    from hatchway.compare.runs import compare_runs
    from hatchway.config import RunSettings
    from hatchway.job import train_run

    runs = {}
    for recipe in four_recipes(RECIPE["negatives"]["uniform"], WINDOW):
        changes = {
            "split": RECIPE["split"] | {"validation_days": 0, "test_days": TEST_DAYS},
            "negatives": RECIPE["negatives"] | recipe.negatives,
            "mining": recipe.mining,
        }
        note(f"{recipe.name}: {recipe.about}")
        settings = RunSettings.parse(RECIPE | changes)
        folder = out / "recipes" / recipe.name
        runs[recipe.name] = train_run(store, folder, settings, mine_from=earlier if recipe.mines else None)
    about = {recipe.name: recipe.about for recipe in four_recipes(RECIPE["negatives"]["uniform"], WINDOW)}
    comparison = compare_runs(runs, about, PairedSettings(k=K))
    write_text(out / "comparison.json", comparison.model_dump_json(indent=1) + "\n")
    return runs, comparison


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
    for name, sign in (("nights", "days"), ("recipes", "*/run.json")):
        if (out / name).exists():
            if not any((out / name).glob(sign)):
                raise DataError(f"{out / name} is none of a demo's and is left as it is; name another folder")
            shutil.rmtree(out / name)


def _program() -> str:
    """Return how this program is called from here: by its name where the name finds it, else by its path."""
    here = Path(sys.argv[0])
    found = shutil.which("hatchway")
    by_name = found is not None and here.exists() and Path(found).samefile(here)
    if by_name or here.name != "hatchway":
        return "hatchway"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
