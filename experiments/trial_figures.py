"""The figure of a claim: what was measured, variant by variant, with the interval over seeds."""

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt
from trials import Cells, over_seeds

COLOUR, FAINT = "#3f7d58", "#b9b4a8"


def by_variant(measures: Mapping[str, str], axis: str = "") -> Callable[[Cells, Path], None]:
    """Return a function that draws one panel a measure, with the variants side by side.

    Every seed is a faint line, so that one sees whether the seeds agree; the mean has its 95 % interval.

    Args:
        measures: what stands over each panel, by measure.
        axis: what tells the variants apart.
    """

    def draw(cells: Cells, target: Path) -> None:
        mpl.rcParams.update(
            {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
        )
        fig, axes = plt.subplots(
            1, len(measures), figsize=(3.3 * len(measures), 3.2), layout="constrained", squeeze=False
        )
        for panel, (measure, title) in zip(axes[0], measures.items(), strict=True):
            names = [name for name in cells if all(measure in cell for cell in cells[name])]
            values = np.array([[cell[measure] for cell in cells[name]] for name in names])
            at = np.arange(len(names))
            panel.plot(at, values, color=FAINT, linewidth=0.7)
            found = np.array([over_seeds(row) for row in values])
            around = np.abs(found[:, 1:].T - found[:, 0])
            panel.errorbar(at, found[:, 0], around, fmt="o", color=COLOUR, markersize=4, capsize=2, linewidth=1)
            long = max(map(len, names)) > 6
            panel.set_xticks(at, names, rotation=30 if long else 0, ha="right" if long else "center")
            panel.set_title(title, fontsize=9)
            panel.set_xlabel(axis)
            panel.margins(x=0.08)
        fig.savefig(target, metadata={"Date": None})
        plt.close(fig)

    return draw
