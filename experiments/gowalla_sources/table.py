"""Writes the table into README.md and draws figure.svg, both from results.json."""

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
COLOURS = {"in-batch": "#b5573c", "uniform": "#4a7c9b", "mixed": "#3f7d58"}


def table(found: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """Lay out the cells as Markdown."""
    lines = [
        "| sources | correction | Recall@20 (95 % interval) | NDCG@20 | head | torso | tail | CPU minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell, entry in found.items():
        source, correction = cell.split(" / ")
        recall, ndcg = entry["metrics"]["recall@20"], entry["metrics"]["ndcg@20"]
        slices = [f"{entry['slices'][name]['value']:.4f}" for name in ("head", "torso", "tail")]
        minutes = float(entry["cpu_seconds"]) / 60  # type: ignore[arg-type]
        figures = [f"{recall['value']:.4f} ({recall['low']:.4f} to {recall['high']:.4f})", f"{ndcg['value']:.4f}"]
        lines.append("| " + " | ".join([source, correction, *figures, *slices, f"{minutes:.1f}"]) + " |")
    return "\n".join(lines)


def figure(found: dict[str, dict[str, dict[str, dict[str, float]]]]) -> None:
    """Draw recall by cell with its interval, and by popularity slice."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    fig, axes = plt.subplots(1, 4, figsize=(11, 3.6), sharey=True, width_ratios=[1.6, 1, 1, 1], layout="constrained")
    cells = list(found)
    places = {cell: len(cells) - number - 0.6 * (number // 4) for number, cell in enumerate(cells)}
    for axis, name in zip(axes, ("all", "head", "torso", "tail"), strict=True):
        for cell, place in places.items():
            entry = found[cell]
            value = entry["metrics"]["recall@20"] if name == "all" else entry["slices"][name]
            colour = COLOURS[cell.split(" / ")[0]]
            axis.barh(place, value["value"], 0.72, color=colour, alpha=0.45 if "alpha 0" in cell else 0.9)
            axis.plot([value["low"], value["high"]], [place, place], color="#222222", linewidth=1)
        axis.set_title("Recall@20" if name == "all" else f"relevant items of the {name}", fontsize=9)
        axis.set_yticks(list(places.values()), list(places))
    fig.savefig(HERE / "figure.svg", metadata={"Date": None})


def main() -> None:
    """Write both."""
    found = json.loads((HERE / "results.json").read_text())
    readme = HERE / "README.md"
    text = readme.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    readme.write_text(f"{before}\n{table(found)}\n{after}")
    figure(found)


if __name__ == "__main__":
    main()
