"""The figure of a claim: what was measured, variant by variant, with the interval over seeds."""

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from trials import Cells, over_seeds

COLOURS, FAINT = ("#3f7d58", "#b5622e", "#4a6fa5"), "#cfcbc0"


Groups = Mapping[str, Mapping[str, float | str]]
"""Lines of a figure by their name: which variants are on each, and what stands for each on the axis."""


def by_variant(
    measures: Mapping[str, str], axis: str = "", groups: Groups | None = None, against: str | None = None
) -> Callable[[Cells, Path], None]:
    """Return a function that draws one panel a measure, with the variants side by side.

    Every seed is a faint line, so that one sees whether the seeds agree; the mean has its 95 % interval.

    Args:
        measures: what stands over each panel, by measure.
        axis: what tells the variants apart.
        groups: the lines to be drawn, where it is not one through all variants.
        against: a variant whose measures are taken from those of the others, seed by seed; markets differ from one
            another by more than variants do. Measures that it does not have are drawn as they are.
    """

    def draw(cells: Cells, target: Path) -> None:
        mpl.rcParams.update(
            {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
        )
        fig, axes = plt.subplots(
            1, len(measures), figsize=(3.3 * len(measures), 3.2), layout="constrained", squeeze=False
        )
        for panel, (measure, title) in zip(axes[0], measures.items(), strict=True):
            for colour, (name, members) in zip(
                COLOURS, (groups or {"": _at_their_values(cells)}).items(), strict=False
            ):
                known = {one: at for one, at in members.items() if all(measure in cell for cell in cells[one])}
                if known:
                    line(panel, _apart(cells, measure, against), measure, known, colour, name)
            if against is not None and all(measure in cell for cell in cells[against]):
                panel.axhline(0, color="#888888", linewidth=0.7, zorder=0)
            panel.set_title(title, fontsize=9)
            panel.set_xlabel(axis)
            panel.margins(x=0.08)
        if groups and len(groups) > 1:
            axes[0][0].legend(frameon=False, fontsize=8)
        fig.savefig(target, metadata={"Date": None})
        plt.close(fig)

    return draw


def _apart(cells: Cells, measure: str, against: str | None) -> Cells:
    """Take one variant's measure from that of all, seed by seed; as they are where there is nothing to take."""
    if against is None or not all(measure in cell for cell in cells[against]):
        return cells
    return {
        name: [{measure: cell[measure] - base[measure]} for cell, base in zip(mine, cells[against], strict=True)]
        for name, mine in cells.items()
        if all(measure in cell for cell in mine)
    }


def _at_their_values(cells: Cells) -> dict[str, float | str]:
    """Place variants that are named by numbers at those numbers, others side by side."""
    try:
        return {name: float(name) for name in cells}
    except ValueError:
        return {name: name for name in cells}


def line(
    panel: Axes,
    cells: Cells,
    measure: str,
    members: Mapping[str, float | str],
    colour: str,
    label: str,
    *,
    faint: bool = True,
) -> None:
    """Draw the seeds and the means of one line.

    Args:
        panel: where.
        cells: what was measured.
        measure: what is drawn.
        members: the variants on the line, and what stands for each on the axis.
        colour: of the means.
        label: of the line.
        faint: whether every seed is drawn as well.
    """
    values = np.array([[cell[measure] for cell in cells[name]] for name in members])
    places = list(members.values())
    if faint:
        panel.plot(places, values, color=FAINT, linewidth=0.7, zorder=1)
    found = np.array([over_seeds(row) for row in values])
    around = np.abs(found[:, 1:].T - found[:, 0])
    panel.errorbar(
        places, found[:, 0], around, fmt="o", color=colour, markersize=4, capsize=2, linewidth=1, label=label, zorder=2
    )
    if isinstance(places[0], str):
        long = max(map(len, map(str, places))) > 6
        panel.tick_params(axis="x", rotation=30 if long else 0)
        if long:
            plt.setp(panel.get_xticklabels(), ha="right")
    else:
        panel.set_xticks([place for place in places if isinstance(place, float)], [f"{place:g}" for place in places])
