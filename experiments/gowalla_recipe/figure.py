"""Draws figure.svg from results.json: recall on each buyer's last places, epoch by epoch."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
LINES = {
    ("others", 0, 1): ("all other places, as a set", "#c99b3f"),
    ("before", 0, 1): ("a hundred places before, weighted by place", "#4a7c9b"),
    ("before", 256, 1): ("the same, through a hidden layer", "#7a4a86"),
    ("before", 256, 5): ("five means, and items with lengths: the recipe", "#3f7d58"),
}


def kind(entry: dict[str, Any]) -> tuple[str, int, int]:
    """Return what tells the query sides apart."""
    context = entry["settings"]["model"]["context"]
    return context["history_of"], context["hidden"], context.get("pools", 1)


def main() -> None:
    """Draw the last run of each kind that was measured on each buyer's last places."""
    runs = json.loads((HERE / "results.json").read_text())["validation_runs"]
    last = [run for run in runs if run["settings"]["split"].get("validation_rows") == "last"]
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for which, (label, colour) in LINES.items():
        run = [run for run in last if kind(run) == which and not run["settings"]["model"]["context"]["buyer"]][-1]
        per_epoch = run["validations"][-1]["step"] / run["settings"]["training"]["epochs"]
        epochs = [point["step"] / per_epoch for point in run["validations"]]
        axis.plot(epochs, [point["recall@20"] for point in run["validations"]], "o-", color=colour, ms=4, label=label)
    axis.set(xlabel="epochs", ylabel="Recall@20, held out", xlim=(0, None), ylim=(0.14, 0.2))
    axis.grid(axis="y", alpha=0.3)
    axis.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.41), fontsize=8)
    fig.savefig(HERE / "figure.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
