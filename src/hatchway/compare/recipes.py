"""Four ways to choose negatives: the mix, and what one gives up with each of the simpler ways."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """One way to choose negatives, as changes to the settings of a run.

    Attributes:
        name: in a word or two.
        about: what it draws from, in a sentence.
        negatives: what it says of ``[negatives]``.
        mining: what it says of ``[mining]``.
        mines: whether an earlier model is asked.
    """

    name: str
    about: str
    negatives: Mapping[str, Any]
    mining: Mapping[str, Any]
    mines: bool


def four_recipes(uniform: int, window: tuple[int, int]) -> tuple[Recipe, ...]:
    """Return the four recipes; all else is the same in them.

    Args:
        uniform: shared uniform draws of the mix.
        window: first and last rank that the mix mines from; the hardest are taken from as many ranks from 1 on.
    """
    first, last = window
    nothing = MappingProxyType({"in_batch": False, "uniform": 0, "popularity": 0, "impressions": 0, "mined": 0})
    return (
        Recipe(
            "mix",
            f"in-batch, {uniform} uniform and 2 mined from ranks {first} to {last}, corrected",
            nothing | {"in_batch": True, "uniform": uniform, "mined": 2},
            {"first_rank": first, "last_rank": last, "cap": 2},
            mines=True,
        ),
        Recipe("in-batch", "the other rows' positives alone, corrected", nothing | {"in_batch": True}, {}, mines=False),
        Recipe(
            "impressions",
            "what was shown with the row and not engaged with, up to 10 a row",
            nothing | {"impressions": 10},
            {},
            mines=False,
        ),
        Recipe(
            "hardest",
            f"2 mined from ranks 1 to {last - first + 1}, and nothing else",
            nothing | {"mined": 2},
            {"first_rank": 1, "last_rank": last - first + 1, "cap": 2, "warm_up_epochs": 0.0},
            mines=True,
        ),
    )
