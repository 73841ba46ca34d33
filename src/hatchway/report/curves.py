"""What a run wrote down while it trained, read back, and drawn as SVG that follows the page's colours."""

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from hatchway.errors import ArtefactError

# Matplotlib is told these colours, and they are then replaced by the page's own, which change with light and dark.
_INK, _LINE, _ACCENT = "#010203", "#040506", "#070809"
_PAGE = {_INK: "var(--soft)", _LINE: "var(--line)", _ACCENT: "var(--accent)"}


@dataclass(frozen=True)
class Curve:
    """What was measured on the way, against the step.

    Attributes:
        steps: the steps.
        values: what was measured at each.
        name: what it is.
    """

    steps: tuple[int, ...]
    values: tuple[float, ...]
    name: str


@dataclass(frozen=True)
class TrainingLog:
    """``log.jsonl``, taken apart.

    Attributes:
        lines: the lines of training, oldest first: ``step``, ``loss``, ``columns``, ``masked_share``, ``seconds``, …
        validations: the validations, oldest first: ``step`` and ``validation``.
    """

    lines: tuple[dict[str, Any], ...]
    validations: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> "TrainingLog":
        """Read ``log.jsonl``; a run without one has nothing to show, and a last line cut short is left out.

        Raises:
            ArtefactError: a line is not what a run writes.
        """
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
            lines = [line | {"step": int(line["step"])} for line in lines]
        except (ValueError, KeyError, TypeError):
            raise ArtefactError(f"{path} is damaged: a line of it is no object with a step; train again") from None
        return cls(tuple(x for x in lines if "loss" in x), tuple(x for x in lines if "validation" in x))

    def loss(self) -> Curve:
        """Return the training loss."""
        return Curve(tuple(x["step"] for x in self.lines), tuple(float(x["loss"]) for x in self.lines), "training loss")

    def validation(self, metric: str) -> Curve:
        """Return one validation metric, e.g. ``"ndcg@20"``."""
        known = [x for x in self.validations if x["validation"].get(metric) is not None]
        return Curve(
            tuple(x["step"] for x in known),
            tuple(float(x["validation"][metric]) for x in known),
            f"validation {metric}",
        )


def draw_curves(curves: list[Curve], chosen_step: int | None) -> str:
    """Draw curves side by side as an ``<svg>`` element.

    Args:
        curves: what to draw; those without a point are left out.
        chosen_step: the step whose weights the model has, marked in every panel; None marks nothing.

    Returns:
        The element, whose colours are the page's CSS variables ``--soft``, ``--line`` and ``--accent``; empty where no
        curve has a point. The same curves give the same text.
    """
    curves = [curve for curve in curves if curve.steps]
    if not curves:
        return ""
    with mpl.rc_context({"svg.hashsalt": "hatchway", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(5.0 * len(curves), 2.6), layout="constrained")
        FigureCanvasSVG(figure)
        for axes, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
            _panel(axes, curve, chosen_step)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for told, page in _PAGE.items():
        svg = svg.replace(told, page)
    # The page decides the size and the typeface.
    svg = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
    return re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 var(--face)", svg)


def _panel(axes: Axes, curve: Curve, chosen_step: int | None) -> None:
    """Draw one curve."""
    few = len(curve.steps) < 40
    axes.plot(curve.steps, curve.values, color=_ACCENT, linewidth=1.8, marker="o" if few else None, markersize=3.2)
    if chosen_step is not None and curve.steps[0] <= chosen_step <= curve.steps[-1]:
        axes.axvline(chosen_step, color=_INK, linewidth=0.9, linestyle=(0, (3, 3)))
    axes.set_title(curve.name, loc="left", fontsize=10, color=_INK)
    axes.set_xlabel("step", fontsize=9, color=_INK)
    axes.tick_params(colors=_INK, labelcolor=_INK, labelsize=8.5, length=0)
    axes.grid(axis="y", color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_LINE)
