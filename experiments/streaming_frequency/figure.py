"""Draws figure.svg and writes the table into README.md, both from results.json."""

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import numpy as np
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
PANELS = {
    "hashes, at 5,000 cells in all": {
        "as published / 1 hashes / alpha 0.01": ("1 hash", "#b5573c"),
        "as published / 2 hashes / alpha 0.01": ("2 hashes", "#4a7c9b"),
        "as published / 4 hashes / alpha 0.01": ("4 hashes", "#3f7d58"),
    },
    "alpha, with 4 hashes": {
        "as published / 4 hashes / alpha 0.05": ("0.05", "#b5573c"),
        "as published / 4 hashes / alpha 0.02": ("0.02", "#c99b3f"),
        "as published / 4 hashes / alpha 0.01": ("0.01", "#3f7d58"),
        "as published / 4 hashes / alpha 0.005": ("0.005", "#4a7c9b"),
    },
    "the start and open gaps, 4 hashes, alpha 0.01": {
        "as published / 4 hashes / alpha 0.01": ("A = 0, B = 100, as published", "#3f7d58"),
        "even start, open gaps / 4 hashes / alpha 0.01": ("even start, open gaps", "#7a4a86"),
    },
}


def table(found: dict[str, dict[str, float | list[float]]]) -> str:
    """Lay out the estimators as Markdown."""
    lines = [
        "| estimator | hashes | alpha | steps 8,100 to 10,000 (95 % interval) | step 10,500 | steps 18,100 to 20,000 |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in found.items():
        kind, hashes, alpha = name.split(" / ")
        mean, half = entry["settled"]  # type: ignore[misc]
        cells = [kind, hashes.split()[0], alpha.split()[1], f"{mean:.4f} ± {half:.4f}"]
        cells += [f"{entry['after_500_steps_of_the_switch']:.4f}", f"{entry['settled_again']:.4f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Write both."""
    result = json.loads((HERE / "results.json").read_text())
    found, steps = result["variants"], np.array(result["steps"])
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
    for axis, (title, lines) in zip(axes, PANELS.items(), strict=True):
        for name, (label, colour) in lines.items():
            mean, half = np.array(found[name]["mean"]), np.array(found[name]["interval"])
            axis.plot(steps, mean, color=colour, linewidth=1.2, label=label)
            axis.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.25, linewidth=0)
        axis.set_title(title, fontsize=9)
        axis.set_yscale("log")
        axis.set_xlabel("step")
        axis.legend(frameon=False)
    axes[0].set_ylabel("sum |p̂ − p| / 256")
    fig.savefig(HERE / "figure.svg", metadata={"Date": None})
    readme = HERE / "README.md"
    text = readme.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    readme.write_text(f"{before}\n{table(found)}\n{after}")


if __name__ == "__main__":
    main()
