"""The curve of the training effectiveness over the number of negatives, as a picture."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hatchway.artefacts.atomic import replacing_file
from hatchway.errors import SettingsError
from hatchway.how_many.estimator import Ratio

_INK, _SOFT, _LINE = "#22262b", "#6b727a", "#e3e6e9"
_VALUE, _GOOD, _BAD, _EASY = "#1f5f8b", "#2f8f5b", "#c2503a", "#9aa1a9"


def write_picture(answer: Ratio, path: Path) -> None:
    """Draw the effectiveness and the shares of good, bad and easy samples over K; the same answer gives the same bytes.

    Args:
        answer: what :func:`~hatchway.how_many.estimator.ratio` said.
        path: where; ``.svg`` or ``.png``.

    Raises:
        SettingsError: the name ends in something else.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png"):
        raise SettingsError(f"{path}: a plot is an .svg or a .png, by its name")
    with mpl.rc_context({"svg.hashsalt": "hatchway", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7.6, 5.4), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        _effectiveness(above, answer)
        _shares(below, answer)
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        with replacing_file(path) as partial:
            figure.savefig(partial, format=kind, dpi=160, metadata=metadata)


def _effectiveness(axes: Axes, answer: Ratio) -> None:
    """Draw v with K*, the range that is as good, and the limit of ever more negatives."""
    by_k, limit = answer.by_k, 1 - answer.weight
    axes.axvspan(answer.k_low, answer.k_high, color=_VALUE, alpha=0.10, linewidth=0)
    axes.axhline(limit, color=_SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.plot(by_k.k, by_k.value, color=_VALUE, linewidth=2)
    axes.plot(
        [answer.k], [answer.effectiveness], "o", color=_VALUE, markersize=7, markeredgecolor="white", clip_on=False
    )
    low, high = min(float(by_k.value.min()), limit), max(float(by_k.value.max()), limit)
    axes.set_ylim(low - 0.08 * (high - low), high + 0.30 * (high - low))
    left = answer.k <= answer.bound**0.5
    axes.annotate(
        f"K = {answer.k:,}" + ("" if not answer.bounded else ", bounded"),
        (answer.k, answer.effectiveness),
        xytext=(8 if left else -8, 12),
        textcoords="offset points",
        ha="left" if left else "right",
        fontsize=11,
        fontweight="bold",
        color=_INK,
    )
    axes.annotate(
        f"1 − λ = {limit:.2g}",
        (1 if not left else answer.bound, limit),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if not left else "right",
        va="bottom",
        fontsize=9,
        color=_SOFT,
    )
    axes.set_title(
        f"Training effectiveness of K negatives a positive: AUC {answer.auc:.3g}, mean {answer.mean:.3g}, "
        f"λ {answer.weight:g}\n",
        loc="left",
        fontsize=11,
        color=_INK,
    )
    axes.text(
        0,
        1.02,
        f"shaded: K from {answer.k_low:,} to {answer.k_high:,}, within 1 % of the best; average over a {answer.curve} "
        f"curve of {answer.points} point{'s' if answer.points != 1 else ''}",
        transform=axes.transAxes,
        fontsize=9,
        color=_SOFT,
    )
    axes.set_ylabel("v", fontsize=10, color=_INK, rotation=0, labelpad=10)
    _dress(axes, answer.bound)


def _shares(axes: Axes, answer: Ratio) -> None:
    """Draw the shares of good, bad and easy samples, named at the right end of each."""
    by_k = answer.by_k
    lines = (("easy", by_k.easy, _EASY), ("good", by_k.good, _GOOD), ("bad", by_k.bad, _BAD))
    places: list[float] = []
    for name, share, colour in sorted(lines, key=lambda line: float(line[1][-1])):
        axes.plot(by_k.k, share, color=colour, linewidth=1.8)
        places.append(max(float(share[-1]), places[-1] + 0.11 if places else 0.0))
        axes.annotate(
            name,
            (1, places[-1]),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=colour,
            annotation_clip=False,
        )
    axes.axvline(answer.k, color=_SOFT, linewidth=0.9, linestyle=(0, (3, 3)))
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    axes.set_title("Shares of the samples", loc="left", fontsize=10, color=_INK)
    axes.set_xlabel("K, negatives a positive", fontsize=9.5, color=_INK)
    _dress(axes, answer.bound)


def _dress(axes: Axes, bound: int) -> None:
    """Give a panel its logarithmic axis, whose ticks are 1, 2, 5, 10, …, and a quiet frame."""
    axes.set_xscale("log")
    axes.set_xlim(1, bound)
    ticks = [factor * 10**power for power in range(7) for factor in (1, 2, 5) if factor * 10**power <= bound]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:,.0f}"))
    axes.tick_params(colors=_SOFT, labelcolor=_INK, labelsize=9, length=0)
    axes.grid(axis="y", color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_LINE)
