"""Do mined negatives alone lose to random ones, and do a few of them beside many easy ones win?

Usage: python experiments/mined_beside_easy/run.py [--short] [--work FOLDER]

Mined negatives come from the index of a model of the day before, alone from ranks 21 to 100. Where a source stands
alone, there is no correction, so that every column counts alike. ``easy`` is in-batch and uniform, corrected: it stands
for the whole catalogue, and a mined column beside it counts as one item.

Then the ratio. Every positive has one mined column (ranks 21 to 100) and ``r`` easy ones, r = 1 to 2,500, where easy is
uniform and nothing else: in-batch columns would be 511 at least. Up to 10 each row draws its own; from 100 on the rows
of a batch share them, as the text counts them (4,095 + 1,000 of a batch, against 2). The easy ones stand for the whole
catalogue at every ratio. A mined column counts as much as an easy one (``as easy``: N / r items), or as one item of the
catalogue (``as one``: r / N of that). Each ratio is tried without the mined column as well, since more easy ones help
by themselves.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from trial_figures import COLOURS, line, plt  # noqa: E402
from trials import (  # noqa: E402
    Cells,
    Claim,
    Condition,
    K,
    Market,
    Recipe,
    Scale,
    asked_of,
    difference,
    mining,
    mixed,
    over_seeds,
    try_claim,
)

from hatchway.training.run_folder import RunFolder  # noqa: E402

ALONE = ("2 random a row", "2 mined")

RATIOS, OWN_UP_TO = (1, 10, 100, 2_500), 10
"""Easy columns a row for one mined, and up to how many a row draws its own."""

KINDS = ("none", "as easy", "as one")
"""No mined column, or what it counts as."""


def ratio_name(ratio: int, kind: str) -> str:
    """Return the name of a variant."""
    return f"{ratio:,} easy" if kind == "none" else f"{ratio:,}:1 {kind}"


def beside(scale: Scale, ratio: int, kind: str) -> Recipe:
    """Return the recipe with so many easy columns a row, and a mined one that counts as ``kind`` says."""
    own = ratio <= OWN_UP_TO
    easy = {"in_batch": False, "uniform": 0 if own else ratio, "per_row": ratio if own else 0}
    if kind == "none":
        return Recipe(easy | {"mined": 0})
    weight = scale.market.listings / ratio if kind == "as easy" else 1.0
    asked = {"first_rank": scale.hard[0], "last_rank": scale.hard[1], "cap": 1, "warm_up_epochs": 1.0}
    return Recipe(easy | {"mined": 1, "mined_weight": weight}, mining=asked, mines=True)


def recipes(scale: Scale) -> Mapping[str, Recipe]:
    """Return the variants: random ones alone, mined ones alone, a few beside many."""
    nothing = {"in_batch": False, "uniform": 0, "mined": 0, "alpha": 0.0}
    found = {"2 random a row": Recipe(nothing | {"per_row": 2})}
    found["2 mined"] = mining(scale.hard, uniform=0, in_batch=False, alpha=0.0, warm_up=0.0)
    found["easy"] = Recipe(mixed(scale))
    top = scale.window[0] - 1
    for first, last in ((1, top // 5), (1, top), scale.window):
        found[f"easy, 2 of {first}–{last}"] = mining((first, last), uniform=scale.uniform)
    found |= {ratio_name(ratio, kind): beside(scale, ratio, kind) for kind in KINDS for ratio in ratios(scale)}
    return found


def ratios(scale: Scale) -> Sequence[int]:
    """Return the ratios that a catalogue allows: no more easy columns than half of it."""
    return [ratio for ratio in RATIOS if ratio <= scale.market.listings / 2]


def title_match(market: Market, run: RunFolder) -> dict[str, float]:
    """Return which share of the words of the looked-at title the first 20 on offer have, and of other words of its."""
    asked = asked_of(market, run)
    contexts = asked.contexts
    scores = asked.scorer.scores(contexts).clone()
    scores[:, torch.from_numpy(~asked.on_offer)] = -torch.inf
    looked_at = asked.cases.query_items[: len(scores)].astype(np.int64)
    rows = np.flatnonzero(looked_at >= 0)
    scores[rows, looked_at[rows]] = -torch.inf
    top = scores[rows].topk(K, dim=1).indices.numpy()
    words = [set(title.lower().split()) for title in asked.log.catalogue.frame["title"]]
    found = [
        np.mean([len(words[query] & words[item]) for item in row]) / max(len(words[query]), 1)
        for query, row in zip(looked_at[rows], top, strict=True)
    ]
    return {"title_match": float(np.mean(found))}


def cells(scale: Scale, seeds: Sequence[int], work: Path) -> Cells:
    """Measure each variant; the words of titles where a source stands alone."""
    found: Cells = {name: [] for name in recipes(scale)}
    for seed in seeds:
        market = Market(scale, seed, work)
        for name, recipe in recipes(scale).items():
            found[name].append(market.measures(recipe, title_match if name in ALONE else None))
            print(f"seed {seed}, {name}: recall {found[name][-1]['recall']:.4f}", flush=True)
    return found


def conditions(cells: Cells) -> Sequence[Condition]:
    """Return what decides."""
    few = list(cells)[5]
    return [
        Condition(
            "recall, 2 mined alone less easy ones alone, is below 0",
            difference(cells, "2 mined", "easy", "recall"),
            above=False,
        ),
        Condition(
            "recall, 2 mined alone less 2 random a row alone, is below 0",
            difference(cells, "2 mined", "2 random a row", "recall"),
            above=False,
        ),
        Condition(
            "words of the looked-at title that a row has, 2 mined alone less 2 random a row alone, below 0",
            difference(cells, "2 mined", "2 random a row", "title_match"),
            above=False,
        ),
        Condition(f"recall, {few} less easy alone, above 0", difference(cells, few, "easy", "recall")),
        Condition(f"right order within a kind, {few} less easy alone, above 0", difference(cells, few, "easy", "fine")),
        *of_ratios(cells),
    ]


def of_ratios(cells: Cells) -> Sequence[Condition]:
    """Return what decides of the ratios: what mined columns bring at the largest, saturation, the weight."""
    tried = [ratio for ratio in RATIOS if ratio_name(ratio, "none") in cells]
    if not tried:
        return []
    many = tried[-1]
    full, alone = ratio_name(many, "as easy"), ratio_name(many, "none")
    found = [
        Condition(f"recall, {full} less {alone} alone, above 0", difference(cells, full, alone, "recall")),
        Condition(
            f"right order within a kind, {full} less {alone} alone, above 0", difference(cells, full, alone, "fine")
        ),
        Condition(
            "recall with a mined one as easy, 100:1 less 10:1, above 0",
            difference(cells, ratio_name(100, "as easy"), ratio_name(10, "as easy"), "recall"),
        ),
    ]
    if many > 100:
        rises = [[cell["recall"] for cell in cells[ratio_name(ratio, "as easy")]] for ratio in (10, 100, many)]
        later = [(second - first) - (third - second) for first, second, third in zip(*rises, strict=True)]
        says = f"saturation: recall gained from 10:1 to 100:1 less that from 100:1 to {many:,}:1, above 0"
        found.append(Condition(says, over_seeds(later)))
    return found + [
        Condition(
            f"down-weighted: recall, {ratio_name(ratio, 'as one')} less as easy, above 0",
            difference(cells, ratio_name(ratio, "as one"), ratio_name(ratio, "as easy"), "recall"),
        )
        for ratio in sorted({1, 100, many})
    ]


def draw(cells: Cells, target: Path) -> None:
    """Draw the sources above, and below them recall and fine distinctions by ratio."""
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "hatchway", "axes.spines.top": False, "axes.spines.right": False}
    )
    ratios = [ratio for ratio in RATIOS if ratio_name(ratio, "none") in cells]
    sources = [name for name in cells if name not in {ratio_name(r, kind) for r in ratios for kind in KINDS}]
    fig, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    titles = {"recall": "recall@20", "fine": "right order within a kind"}
    for column, (measure, title) in enumerate(titles.items()):
        line(axes[0][column], cells, measure, {name: name for name in sources}, COLOURS[0], "")
        for colour, kind, shift in zip(COLOURS, KINDS, (0.93, 1.0, 1.075), strict=True):
            places = {ratio_name(ratio, kind): ratio * shift for ratio in ratios}
            says = "easy ones alone" if kind == "none" else f"and one mined, {kind}"
            line(axes[1][column], cells, measure, places, colour, says, faint=False)
        axes[0][column].set_title(title, fontsize=9)
        axes[1][column].set_xscale("log")
        axes[1][column].set_xticks(ratios, [f"{ratio:,}:1" for ratio in ratios])
        axes[1][column].minorticks_off()
        axes[1][column].set_xlabel("easy columns a row to one mined")
    axes[1][0].legend(frameon=False, fontsize=8)
    fig.savefig(target, metadata={"Date": None})
    plt.close(fig)


CLAIM = Claim(
    number=7,
    folder=HERE,
    says="Mined negatives alone lose to random ones; a few beside many easy ones win",
    recipes=recipes,
    conditions=conditions,
    shown=("recall", "recall_head", "recall_tail", "recall_new", "fine", "title_match", "same_kind", "liked"),
    headline=3,
    figure=draw,
)

if __name__ == "__main__":
    try_claim(CLAIM, cells)
