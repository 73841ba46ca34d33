"""How many mined negatives are none, by the truth of a simulated market, and what the filter does about it.

Usage: python experiments/hidden_positives/run.py [--seeds 8] [--work FOLDER] [--short]

For each seed a month of a busy market is simulated, a quarter of whose listings are relists; a model is trained on all
days but the last; its index is asked for the positives of the last day, as in a night's work. What is mined from three
windows of its raw ranking is held against the truth, with more and more of the filter switched on. What a duplicate
and a hidden positive is stands in docs/market.md. Writes results.json, figure.svg and the table in README.md.

--short runs one small market, to see that everything works; it prints, and writes nothing.
"""

import argparse
import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from scipy import stats

from hatchway.artefacts.atomic import write_text
from hatchway.config import RunSettings
from hatchway.data.engagements import Part
from hatchway.data.log import Log, build_log
from hatchway.data.store import Store, write_store
from hatchway.job import index_run, train_run
from hatchway.negatives.sources import Reason
from hatchway.screening.build import build_screen
from hatchway.screening.settings import ScreeningSettings
from hatchway.simulation.listings import DAY
from hatchway.simulation.mistakes import Engaged, Mistake, mistakes, wanted
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder
from hatchway.simulation.writing import simulate
from hatchway.training.mining.earlier import Skipped, open_earlier
from hatchway.training.mining.mine import mine
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
BUSY = {"sessions_per_day": 2.0, "relist_share": 0.25, "objects_per_model": 20.0, "makers_share": 0.5}
MARKET = MarketSettings.parse(BUSY | {"listings": 4_000, "buyers": 1_000, "days": 30})
SHORT = MarketSettings.parse(BUSY | {"listings": 1_000, "buyers": 300, "days": 8})
WINDOWS = ((1, 50), (21, 100), (101, 500))
JUDGED = (1, 50)  # the window that the verdict is about
STAGES = ("nothing", "engaged", "and seller", "and photo", "and title")
LIKED = 4.25  # having opened it, the buyer would as likely as not save it or write about it: a lower bar than 6.0
RECIPE: dict[str, Any] = {
    "seed": 1,
    "split": {"protocol": "none"},
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
    "training": {"epochs": 10, "batch": 512, "temperature": 0.1, "table_rate": 0.1, "layer_rate": 0.002, "threads": 1},
}


@dataclass(frozen=True)
class Night:
    """What a night begins with, and the truth about it.

    Attributes:
        log: all days, the last one included.
        rows: [P] engagement rows of the last day's positives.
        run: the model of the days before, with its bundle.
        offered: [N] bool, what was on offer on the last day.
        engaged: the truth, and who engaged with what.
        filters: for each stage what it looks at.
    """

    log: Log
    rows: np.ndarray
    run: Path
    offered: np.ndarray
    engaged: Engaged
    filters: dict[str, RowFilter]


def prepare(settings: MarketSettings, seed: int, work: Path) -> Night:
    """Simulate a market, train on all days but the last, and open the log of all days."""
    store = simulate(work / "store", settings, seed)
    last = settings.start + (settings.days - 1) * DAY
    events, catalogue = store.events(), store.catalogue().frame

    def until(name: str, time: int) -> Store:
        """Write the store as it was known at a time."""
        known = catalogue.filter(pl.col("listed") < time)
        known = known.with_columns(pl.when(pl.col("gone") < time).then("gone").alias("gone"))
        return write_store(work / name, events.filter(pl.col("time") < time), known)

    run = train_run(until("yesterday", last), work / "run", RunSettings.parse(RECIPE))
    index_run(run)
    recipe = RunSettings.parse(RECIPE)
    log = build_log(until("today", last + DAY), recipe.positives, recipe.split, recipe.seed)
    engagements, frame = log.engagements, log.catalogue.frame
    rows, times = engagements.positives(Part.TRAIN), _times(log)
    gone = frame["gone"].fill_null(last + 2 * DAY).to_numpy()
    offered = gone > last
    whole = build_screen(log.catalogue, ScreeningSettings(), store.path)
    screens = {
        "and seller": replace(whole, photos=None, titles=None),
        "and photo": replace(whole, titles=None),
        "and title": whole,
    }
    filters = {
        stage: RowFilter(engagements, 0.0 if stage == "nothing" else 30.0, offered, screens.get(stage))
        for stage in STAGES
    }
    truth = Truth.open(truth_folder(store.path))
    return Night(log, rows[times[rows] >= last], run.path, offered, Engaged.of(truth, store), filters)


def _times(log: Log) -> np.ndarray:
    """Return the times of the engagements; a market has them always."""
    return np.zeros(0) if log.engagements.times is None else log.engagements.times


def mined(night: Night, window: tuple[int, int], stage: str, cap: int, seed: int) -> Mined:
    """Mine for the rows of the last day from a window, with a part of the filter."""
    settings = MiningSettings(first_rank=window[0], last_rank=window[1], cap=cap)
    opened = open_earlier(night.run, night.log, settings)
    if isinstance(opened, Skipped):
        raise SystemExit(opened.message)
    return mine(opened[0], night.rows, night.filters[stage], settings, seed)


def pairs_of(night: Night, found: Mined, reasons: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return buyers, positives, candidates (ids of the store) and times of the candidates with one of some reasons."""
    engagements, times = night.log.engagements, _times(night.log)
    chosen = np.flatnonzero(np.isin(found.reasons, reasons))
    rows = found.rows[np.repeat(np.arange(len(found)), np.diff(found.offsets))[chosen]]
    return (
        night.log.buyers.external(engagements.buyers[rows]).to_numpy(),
        night.log.catalogue.external(engagements.items[rows]).to_numpy(),
        night.log.catalogue.external(found.items[chosen]).to_numpy(),
        times[rows],
    )


def judged(night: Night, window: tuple[int, int], stage: str, seed: int) -> dict[str, float]:
    """Mine two a positive and say how many of them are none, in shares."""
    found = mined(night, window, stage, 2, seed)
    buyers, positives, candidates, times = pairs_of(night, found, (0,))
    told = mistakes(night.engaged, buyers, positives, candidates, times)
    liking = wanted(night.engaged.truth, buyers, candidates, times)
    shares = {mistake.name.lower(): float((told == mistake).mean()) for mistake in Mistake if mistake}
    wrong = np.isin(told, (Mistake.DUPLICATE, Mistake.KNOWN, Mistake.WANTED))
    return {
        "wrong": float(wrong.mean()),
        **shares,
        "liked": float((liking >= LIKED).mean()),
        "per_positive": float(found.numbers.mean()),
        "short": float((found.numbers < 2).mean()),
    }


def removed(night: Night, window: tuple[int, int], seed: int) -> dict[str, dict[str, float]]:
    """Look at every candidate of a window and say how often each reason is right about what it removes."""
    found = mined(night, window, STAGES[-1], window[1], seed)
    result = {}
    for name, reasons in (
        ("photo", (Reason.PHOTO,)),
        ("title", (Reason.TITLE,)),
        ("photo and title", (Reason.PHOTO, Reason.TITLE)),
        ("seller", (Reason.SELLER,)),
    ):
        told = mistakes(night.engaged, *pairs_of(night, found, tuple(int(reason) for reason in reasons)))
        counts = {mistake.name.lower(): int((told == mistake).sum()) for mistake in Mistake}
        result[name] = {"removed": len(told), "wrong": counts.pop("none"), **counts}
    return result


def one(settings: MarketSettings, seed: int, work: Path) -> dict[str, Any]:
    """Do the whole of it for one seed."""
    night = prepare(settings, seed, work)
    listings = night.engaged.truth.listings
    return {
        "relists": float((listings.relists >= 0).mean()),
        "on_offer": int(night.offered.sum()),
        "rows": len(night.rows),
        "windows": {
            f"{window[0]}-{window[1]}": {
                "stages": {stage: judged(night, window, stage, seed) for stage in STAGES},
                "removed": removed(night, window, seed),
            }
            for window in WINDOWS
        },
    }


def interval(values: list[float]) -> list[float]:
    """Return mean, lower and upper end of the 95 % interval of the mean over seeds."""
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return [round(figure, 5) for figure in (mean, mean - half, mean + half)]


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Bring seeds together, and say of each bound whether it holds, does not, or is undecided."""
    windows: dict[str, Any] = {}
    for name in runs[0]["windows"]:
        cells = [run["windows"][name] for run in runs]
        stages = {
            stage: {key: interval([cell["stages"][stage][key] for cell in cells]) for key in cells[0]["stages"][stage]}
            for stage in STAGES
        }
        # Seeds remove different numbers of pairs; what is wrong is a share of all of them, with the seeds resampled.
        told = {}
        for reason in cells[0]["removed"]:
            wrong = np.array([cell["removed"][reason]["wrong"] for cell in cells], float)
            count = np.array([cell["removed"][reason]["removed"] for cell in cells], float)
            told[reason] = {"removed": int(count.sum()), "wrong": ratio(wrong, count)}
        windows[name] = {"stages": stages, "removed": told}
    cell = windows[f"{JUDGED[0]}-{JUDGED[1]}"]
    first, full = cell["stages"][STAGES[0]], cell["stages"][STAGES[-1]]
    bounds = {
        "relists at least 10 %": (interval([run["relists"] for run in runs]), 0.10, True),
        "without the filter at least 5 % are none": (first["wrong"], 0.05, True),
        "with it at most 1 %": (full["wrong"], 0.01, False),
        "at most 5 % of what photo and title remove is wrong": (
            cell["removed"]["photo and title"]["wrong"],
            0.05,
            False,
        ),
        "at least 1.9 a positive arrive": (full["per_positive"], 1.9, True),
    }
    verdicts = {
        name: {"measured": value, "holds": holds(*bound)} for name, bound in bounds.items() for value in bound[:1]
    }
    return {"windows": windows, "verdicts": verdicts}


def ratio(part: np.ndarray, whole: np.ndarray) -> list[float]:
    """Return a ratio of sums over seeds and its 95 % interval by the delta method."""
    share, seeds = part.sum() / whole.sum(), len(part)
    spread = np.std(part - share * whole, ddof=1) * np.sqrt(seeds) / whole.sum()
    half = stats.t.ppf(0.975, seeds - 1) * spread
    return [round(float(figure), 5) for figure in (share, share - half, share + half)]


def holds(measured: list[float], bound: float, at_least: bool) -> str:
    """Say whether the whole interval lies on the right side of a bound: yes, no, or undecided."""
    _, low, high = measured
    if at_least:
        return "yes" if low >= bound else "no" if high < bound else "undecided"
    return "yes" if high <= bound else "no" if low > bound else "undecided"


def table(windows: dict[str, Any]) -> str:
    """Lay out the judged window's stages, then the other windows with nothing and everything, as Markdown."""
    lines = [
        "| ranks | filter | are none (95 % interval) | duplicate | known | wanted | same model | liked | a positive |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, cell in windows.items():
        for stage in STAGES if name == f"{JUDGED[0]}-{JUDGED[1]}" else (STAGES[0], STAGES[-1]):
            row = cell["stages"][stage]
            mean, low, high = (100 * figure for figure in row["wrong"])
            shares = [f"{100 * row[key][0]:.2f} %" for key in ("duplicate", "known", "wanted", "same_model", "liked")]
            cells = [name.replace("-", "–"), stage, f"{mean:.2f} % ({low:.2f} to {high:.2f})", *shares]
            lines.append("| " + " | ".join([*cells, f"{row['per_positive'][0]:.3f}"]) + " |")
    lines += ["", "| ranks | reason | removed | wrong (95 % interval) |", "|---|---|---|---|"]
    for name, cell in windows.items():
        for reason, row in cell["removed"].items():
            mean, low, high = (100 * figure for figure in row["wrong"])
            cells = [name.replace("-", "–"), reason, f"{row['removed']:,}", f"{mean:.1f} % ({low:.1f} to {high:.1f})"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(windows: dict[str, Any], target: Path) -> None:
    """Draw the share of mined negatives that are none, by window and stage."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, axes = plt.subplots(1, len(windows), figsize=(10, 3.4), sharey=True, layout="constrained")
    colours = {"duplicate": "#4a7c9b", "known": "#b5573c", "wanted": "#c99b3f"}
    for axis, (name, cell) in zip(axes, windows.items(), strict=True):
        bottom = np.zeros(len(STAGES))
        for key, colour in colours.items():
            height = np.array([100 * cell["stages"][stage][key][0] for stage in STAGES])
            axis.bar(range(len(STAGES)), height, 0.7, bottom=bottom, color=colour, label=key)
            bottom += height
        ends = 100 * np.array([cell["stages"][stage]["wrong"] for stage in STAGES])
        around = np.abs(ends[:, 1:].T - ends[:, 0])
        axis.errorbar(range(len(STAGES)), ends[:, 0], around, fmt="none", ecolor="#333333", elinewidth=1, capsize=2)
        for level in (1, 5):
            axis.axhline(level, color="#888888", linewidth=0.7, linestyle=":")
        axis.set_title(f"ranks {name.replace('-', '–')}", fontsize=9)
        axis.set_xticks(range(len(STAGES)), STAGES, rotation=35, ha="right")
    axes[0].set_ylabel("% of mined negatives that are none")
    axes[0].legend(frameon=False)
    fig.savefig(target, metadata={"Date": None})


def write(seeds: list[int], runs: list[dict[str, Any]]) -> None:
    """Write the results, the figure and the table."""
    found = summary(runs)
    about = {"market": MARKET.model_dump(), "seeds": seeds, "rows": [run["rows"] for run in runs]}
    about["on_offer"] = [run["on_offer"] for run in runs]
    write_text(HERE / "results.json", json.dumps(about | found | {"runs": runs}, indent=1) + "\n")
    draw(found["windows"], HERE / "figure.svg")
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    write_text(readme, f"{before}\n{table(found['windows'])}\n{after}")


def main() -> None:
    """Run all seeds and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--work", type=Path, help="folder for markets and runs; a temporary one where none is given")
    parser.add_argument("--short", action="store_true", help="one small market; nothing is written")
    options = parser.parse_args()
    seeds = [1] if options.short else list(range(1, options.seeds + 1))
    runs = []
    for seed in seeds:
        work = Path(tempfile.mkdtemp(prefix="market-", dir=options.work))
        try:
            runs.append(one(SHORT if options.short else MARKET, seed, work))
        finally:
            shutil.rmtree(work)
        print(json.dumps({"seed": seed} | runs[-1]), flush=True)
    if options.short:
        return
    write(seeds, runs)


if __name__ == "__main__":
    main()
