"""The figure of what public data say about the claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from trial_figures import COLOURS, FAINT
from trials import Cells, over_seeds

Points = Mapping[str, float]
"""Variants and where they stand on an axis."""


def line(panel: Axes, cells: Cells, measure: str, points: Points, colour: str, label: str) -> None:
    """Draw a measure of variants with its interval over seeds, every seed a faint line behind it."""
    values = np.array([[cell[measure] for cell in cells[name]] for name in points])
    places = list(points.values())
    panel.plot(places, values, color=FAINT, linewidth=0.7, zorder=1)
    found = np.array([over_seeds(row) for row in values])
    around = np.abs(found[:, 1:].T - found[:, 0])
    panel.errorbar(
        places, found[:, 0], around, fmt="o-", color=colour, markersize=4, capsize=2, linewidth=1, label=label
    )


def side_by_side(
    panel: Axes,
    cells: Cells,
    measure: str,
    names: Sequence[str],
    said: Sequence[str],
    colour: str = COLOURS[0],
    label: str = "",
) -> None:
    """Draw a measure of variants beside each other."""
    for place, name in enumerate(names):
        values = [cell[measure] for cell in cells[name]]
        mean, low, high = over_seeds(values)
        panel.plot([place] * len(values), values, ".", color=FAINT, markersize=5, zorder=1)
        panel.errorbar(
            [place],
            [mean],
            [[mean - low], [high - mean]],
            fmt="o",
            color=colour,
            markersize=4,
            capsize=2,
            label="" if place else label,
        )
    panel.set_xticks(range(len(names)), list(said), rotation=30, ha="right")
    panel.margins(x=0.12)


def draw(cells: Mapping[str, Cells], target: Path) -> None:
    """Draw the figure into a file."""
    mpl.rcParams.update({"font.size": 8, "svg.hashsalt": "hatchway"})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    fig, axes = plt.subplots(2, 4, figsize=(13, 6.2), layout="constrained")
    beauty, films, news = cells["Beauty"], cells["ML-1M"], cells["MIND sample"]
    alphas = {f"alpha {alpha:g}": alpha for alpha in (0.0, 0.5, 1.0, 1.5)}
    for colour, (name, mine) in zip(COLOURS, (("Beauty", beauty), ("ML-1M", films)), strict=False):
        line(axes[0][0], mine, "slope", alphas, colour, name)
        line(axes[0][1], mine, "share_head", alphas, colour, f"{name}, head")
        line(axes[0][1], mine, "share_tail", alphas, f"{colour}80", f"{name}, tail")
    axes[0][0].set_title("claim 2: slope of the score on log popularity")
    axes[0][1].set_title("claims 1, 2: head and tail items in a row")
    for panel in axes[0][:2]:
        panel.set_xlabel("alpha, in-batch")
        panel.legend(frameon=False)
    for colour, kind in zip(COLOURS, ("plain", "corrected"), strict=False):
        points = {"power 0": 0.0} | {f"power {beta:g} {kind}": beta for beta in (0.75, 1.0)}
        line(axes[0][2], beauty, "slope", points, colour, kind)
        line(axes[0][3], beauty, "recall_head", points, colour, kind)
    axes[0][2].set_title("claim 3: slope, Beauty")
    axes[0][3].set_title("claim 3: recall@20 of head items, Beauty")
    for panel in axes[0][2:]:
        panel.set_xlabel("power of the frequency of draws")
        panel.legend(frameon=False)
    columns = ("alpha 1", "mixed", "uniform ×2", "batch ×2", "batch ×2, epochs ×2", "epochs ×2")
    side_by_side(
        axes[1][0],
        beauty,
        "recall",
        columns,
        ("in-batch", "+ uniform", "uniform ×2", "batch ×2", "batch ×2,\nepochs ×2", "epochs ×2"),
    )
    axes[1][0].set_title("claim 12: recall@20, Beauty")
    order = cells["ML-1M, ten models"]
    short = ("chance", "@10 of 100", "@20 of 100", "rank", "traded", "likeliest")
    side_by_side(axes[1][1], order, "wrong", list(order), short)
    axes[1][1].set_title("claim 15: pairs of models in the wrong order")
    side_by_side(axes[1][2], films, "recall", ("exact softmax", "mixed", "alpha 1"), ("exact", "mixed", "in-batch"))
    axes[1][2].set_title("claim 16: recall@20, ML-1M")
    kinds = ("easy", "impressions", "random", "easy, impressions", "clicks", "clicks a showing")
    said = ("easy", "impressions", "random", "easy + impr.", "count: clicks", "clicks a showing")
    side_by_side(axes[1][3], news, "auc_shown", kinds, said, COLOURS[1], "AUC on shown")
    side_by_side(axes[1][3], news, "recall", kinds, said, COLOURS[0], "recall@20, all articles")
    axes[1][3].set_title("claim 11: MIND sample")
    axes[1][3].legend(frameon=False)
    fig.savefig(target, metadata={"Date": None})
    plt.close(fig)
