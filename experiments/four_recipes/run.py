"""Four ways to choose negatives on simulated markets: recall by slice, and how much of a row buyers truly want.

Usage: python experiments/four_recipes/run.py [--seeds 5] [--work FOLDER] [--short]

For each seed a market of two weeks is simulated. A first model is trained with in-batch and uniform negatives on all
days but the last three; then the same model is trained anew with each recipe on all days but the last two, and the
recipes that mine ask the first one's index. All are ranked for every save and message of the last two days. Writes
results.json, figure.svg, the table in README.md, and the summary that the package carries for ``hatchway demo``.

--short runs one small market, to see that everything works; it prints, and writes nothing.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import torch
from scipy import stats

import hatchway.compare
from hatchway.artefacts.atomic import write_text
from hatchway.compare.paired import PairedSettings, side_by_side, standing
from hatchway.compare.recipes import four_recipes
from hatchway.config import RunSettings
from hatchway.data.engagements import Part, training_counts
from hatchway.data.store import Store, write_store
from hatchway.evaluation.cases import Cases, cases_for
from hatchway.evaluation.ranking import rank_cases
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.result import Figure
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.slices import Slice, popularity_slices
from hatchway.job import index_run, train_run
from hatchway.simulation.listings import DAY
from hatchway.simulation.mistakes import wanted
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder
from hatchway.simulation.writing import simulate
from hatchway.training.run_folder import RunFolder

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import recipes_verdict  # noqa: E402

CARRIED = Path(hatchway.compare.__file__).parent / "four_recipes.json"
COMMAND = "python experiments/four_recipes/run.py"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
MARKET = MarketSettings(listings=8_000, buyers=5_000, days=14)
SHORT = MarketSettings(listings=2_000, buyers=1_500, days=7)
TEST_DAYS, K, LIKED, ASKED = 2, 20, 4.25, 1_000
WINDOW, SHORT_WINDOW = (41, 200), (21, 100)
RECIPE: dict[str, Any] = {
    "seed": 1,
    "split": {"protocol": "global-time", "validation_days": 0, "test_days": TEST_DAYS},
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
    "negatives": {"in_batch": True, "uniform": 500},
    "training": {"epochs": 12, "batch": 512, "temperature": 0.1, "table_rate": 0.1, "layer_rate": 0.002, "threads": 1},
}
Runs = dict[str, RunFolder]


def trained(store: Store, window: tuple[int, int], settings: MarketSettings, seed: int, work: Path) -> Runs:
    """Train the first model and the four recipes."""
    before = settings.start + (settings.days - TEST_DAYS - 1) * DAY
    known = store.catalogue().frame.filter(pl.col("listed") < before)
    known = known.with_columns(pl.when(pl.col("gone") < before).then("gone").alias("gone"))
    yesterday = write_store(work / "yesterday", store.events().filter(pl.col("time") < before), known)
    recipe = RECIPE | {"seed": seed}
    first = train_run(yesterday, work / "first", RunSettings.parse(recipe | {"split": {"protocol": "none"}}))
    index_run(first)
    runs = {}
    for each in four_recipes(RECIPE["negatives"]["uniform"], window):
        changes = {"negatives": RECIPE["negatives"] | dict(each.negatives), "mining": dict(each.mining)}
        parsed = RunSettings.parse(recipe | changes)
        runs[each.name] = train_run(store, work / each.name, parsed, mine_from=first.path if each.mines else None)
    return runs


def one(settings: MarketSettings, window: tuple[int, int], seed: int, work: Path) -> dict[str, Any]:
    """Do the whole of it for one seed."""
    store = simulate(work / "store", settings, seed, photos=False)
    truth = Truth.open(truth_folder(store.path))
    runs = trained(store, window, settings, seed, work)
    log = next(iter(runs.values())).log()
    cases = cases_for(log.engagements, Part.TEST, grain="row", exclude_seen=False)
    counts = training_counts(log.engagements, len(log.catalogue))
    slices = popularity_slices(cases, counts, 1 / 3, 1 / 3)
    things = truth.listings.thing[log.catalogue.ids.to_numpy() - 1]
    twice = np.bincount(things)[things] > 1
    chosen = twice[cases.relevant_items]
    slices.append(Slice("relists", "relisted", "the listing's object is listed more than once", chosen))
    rankings: dict[str, Ranks] = {}
    liked = {}
    for name, run in runs.items():
        model = run.load_model(log)
        scorer = TowerScorer(model, len(log.catalogue), model.history_length)
        rankings[name] = rank_cases(scorer, cases, log.engagements, depth=K)
        liked[name] = liked_of(scorer, cases, log, truth)
    pieces = side_by_side(rankings, cases, slices, PairedSettings(k=K), seed)
    return {
        "cases": len(cases),
        "positives": len(log.engagements.positives(Part.TRAIN)),
        "slices": [piece.model_dump(mode="json") for piece in pieces],
        "liked": liked,
        "mining": {
            name: json.loads((run.path / "mining.json").read_text())["record"]
            for name, run in runs.items()
            if run.record.mine_from
        },
    }


def liked_of(scorer: TowerScorer, cases: Cases, log: Any, truth: Truth) -> float:
    """Return the share of the first twenty on offer that the buyer would as likely as not save or write about."""
    last = truth.settings.start + truth.settings.days * DAY
    frame = log.catalogue.frame
    away = torch.from_numpy(frame["gone"].is_not_null().to_numpy() | (frame["listed"].to_numpy() >= last))
    end = min(len(cases), ASKED)
    with torch.inference_mode():
        scores = scorer.scores(cases.contexts(log.engagements, 0, end, scorer.history_length)).clone()
        scores[:, away] = -torch.inf
        rows = torch.arange(end)
        asked = torch.from_numpy(cases.query_items[:end].astype(np.int64))
        scores[rows[asked >= 0], asked[asked >= 0]] = -torch.inf
        top = scores.topk(K, dim=1).indices.numpy().ravel()
    buyers = log.buyers.external(np.repeat(cases.buyers[:end], K)).to_numpy()
    liking = wanted(truth, buyers, log.catalogue.external(top).to_numpy(), np.full(end * K, last - 1))
    return float((liking >= LIKED).mean())


def over_seeds(values: list[float]) -> Figure:
    """Return mean and 95 % interval of the mean over seeds."""
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Figure(value=round(mean, 5), low=round(mean - half, 5), high=round(mean + half, 5))


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Bring the seeds together: figures and differences from the mix, with what the latter amount to over seeds."""
    names = list(runs[0]["slices"][0]["figures"])
    found = []
    for place, piece in enumerate(runs[0]["slices"]):
        cells = [run["slices"][place] for run in runs]
        figures = {name: over_seeds([cell["figures"][name]["value"] for cell in cells]) for name in names}
        differences = {name: over_seeds([cell["differences"][name]["value"] for cell in cells]) for name in names[1:]}
        found.append(
            {
                "name": piece["name"],
                "cases": sum(cell["cases"] for cell in cells),
                "figures": {name: figure.model_dump() for name, figure in figures.items()},
                "differences": {name: figure.model_dump() for name, figure in differences.items()},
                "standings": {name: standing(figure) for name, figure in differences.items()},
            }
        )
    liked = {name: over_seeds([run["liked"][name] for run in runs]) for name in names}
    apart = {name: over_seeds([run["liked"][name] - run["liked"][names[0]] for run in runs]) for name in names[1:]}
    return {
        "slices": found,
        "liked": {
            "figures": {name: figure.model_dump() for name, figure in liked.items()},
            "differences": {name: figure.model_dump() for name, figure in apart.items()},
            "standings": {name: standing(figure) for name, figure in apart.items()},
        },
    }


def table(found: dict[str, Any]) -> str:
    """Lay out the recipes side by side as Markdown, under what follows for the mix."""
    names = list(found["slices"][0]["figures"])
    lines = [recipes_verdict.line({"metric": f"recall@{K}"} | found), ""]
    lines += ["| | cases | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    rows = [(f"recall@{K}, {piece['name']}", f"{piece['cases']:,}", piece) for piece in found["slices"]]
    rows.append((f"truly liked among the first {K} on offer", "", found["liked"]))
    for name, cases, piece in rows:
        cells = []
        for each in names:
            figure = piece["figures"][each]
            word = f" **{piece['standings'][each]}**" if each in piece["standings"] else ""
            cells.append(f"{figure['value']:.4f} ({figure['low']:.4f} to {figure['high']:.4f}){word}")
        lines.append("| " + " | ".join([name, cases, *cells]) + " |")
    return "\n".join(lines)


def draw(found: dict[str, Any], target: Path) -> None:
    """Draw each recipe's difference from the mix, by slice."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    names = list(found["slices"][0]["differences"])
    colours = ["#4a7c9b", "#c99b3f", "#b5573c"]
    fig, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for number, (name, colour) in enumerate(zip(names, colours, strict=True)):
        cells = [piece["differences"][name] for piece in found["slices"]]
        at = np.arange(len(cells)) + 0.22 * (number - 1)
        mean = np.array([cell["value"] for cell in cells])
        around = [[m - cell["low"] for m, cell in zip(mean, cells, strict=True)],
                  [cell["high"] - m for m, cell in zip(mean, cells, strict=True)]]  # fmt: skip
        axis.errorbar(at, mean, around, fmt="o", color=colour, capsize=2, markersize=4, label=name)
    axis.axhline(0, color="#888888", linewidth=0.7)
    axis.set_xticks(range(len(found["slices"])), [piece["name"] for piece in found["slices"]])
    axis.set_ylabel(f"recall@{K} less that of the mix")
    axis.legend(frameon=False)
    fig.savefig(target, metadata={"Date": None})


def write(seeds: list[int], runs: list[dict[str, Any]]) -> None:
    """Write the results, the figure, the table, and what the package carries."""
    found = summary(runs)
    about = {each.name: each.about for each in four_recipes(RECIPE["negatives"]["uniform"], WINDOW)}
    head = {
        "command": COMMAND,
        "market": MARKET.model_dump(),
        "seeds": seeds,
        "metric": f"recall@{K}",
        "about": about,
    }
    write_text(HERE / "results.json", json.dumps(head | found | {"runs": runs}, indent=1) + "\n")
    write_text(CARRIED, json.dumps(head | found, indent=1) + "\n")
    draw(found, HERE / "figure.svg")
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    write_text(readme, f"{before}\n{table(found)}\n{after}")


def main() -> None:
    """Run all seeds and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder for markets and runs; a temporary one where none is given")
    parser.add_argument("--short", action="store_true", help="one small market; nothing is written")
    options = parser.parse_args()
    seeds = [1] if options.short else list(range(1, options.seeds + 1))
    settings, window = (SHORT, SHORT_WINDOW) if options.short else (MARKET, WINDOW)
    runs = []
    for seed in seeds:
        work = Path(tempfile.mkdtemp(prefix="recipes-", dir=options.work))
        try:
            runs.append(one(settings, window, seed, work))
        finally:
            shutil.rmtree(work)
        print(json.dumps({"seed": seed} | runs[-1]), flush=True)
    if options.short:
        return
    write(seeds, runs)


if __name__ == "__main__":
    main()
