"""Whether the mix is the best of the four recipes, by the rule of the claims, from what ``four_recipes`` left.

The four recipes were measured before the claims had a script in common, so their results have a form of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trials import Condition, verdict

FOLDER, SAYS = (
    "four_recipes",
    "Of the text's four recipes the mix is the best: tomorrow's positives, every slice, true tastes",
)


def conditions(results: Mapping[str, Any]) -> Sequence[Condition]:
    """Return what has to be true: each other recipe is below the mix, slice by slice and in what buyers truly like."""
    pieces = [(f"{results['metric']}, {piece['name']}", piece) for piece in results["slices"]]
    pieces.append(("truly liked among the first 20", results["liked"]))
    return [
        Condition(f"{name}: {recipe} less mix, below 0", (figure["value"], figure["low"], figure["high"]), above=False)
        for name, piece in pieces
        for recipe, figure in piece["differences"].items()
    ]


def line(results: Mapping[str, Any]) -> str:
    """Return the verdict in a sentence.

    >>> figure = {"value": -0.2, "low": -0.3, "high": -0.1}
    >>> piece = {"name": "all", "differences": {"in-batch": figure}}
    >>> line({"metric": "recall@20", "slices": [piece], "liked": {"differences": {"in-batch": figure}}})
    '**Holds.** Of 2 comparisons with the mix, 2 have it above the other recipe, 0 below, and 0 are undecided.'
    """
    found = conditions(results)
    said = [condition.holds for condition in found]
    above, below, open_ = (said.count(each) for each in ("yes", "no", "undecided"))
    return (
        f"**{verdict(found).capitalize()}.** Of {len(said)} comparisons with the mix, {above} have it above the other "
        f"recipe, {below} below, and {open_} are undecided."
    )
