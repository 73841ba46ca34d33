"""The larger comparison of the four recipes that the package carries, as experiments/four_recipes made it."""

from pathlib import Path

import pydantic

from hatchway.compare.paired import Standing
from hatchway.evaluation.result import Figure

STORED = Path(__file__).parent / "four_recipes.json"


class _Record(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class StoredSlice(_Record):
    """One slice over all seeds.

    Attributes:
        name: of the slice.
        cases: of all seeds together.
        figures: mean over seeds, with its interval.
        differences: from the first recipe.
        standings: what the differences amount to over seeds.
    """

    name: str
    cases: int
    figures: dict[str, Figure]
    differences: dict[str, Figure]
    standings: dict[str, Standing]


class StoredComparison(_Record):
    """What was compared, and what came out.

    Attributes:
        command: that made it.
        metric: as in ``recall@20``.
        seeds: of the markets and the trainings.
        market: size and rules of each market.
        about: what each recipe is.
        slices: all cases, then the slices.
    """

    command: str
    metric: str
    seeds: list[int]
    market: dict[str, float]
    about: dict[str, str]
    slices: list[StoredSlice]


def stored_comparison(path: Path = STORED) -> StoredComparison | None:
    """Read the comparison that the package carries; None where it carries none."""
    if not path.is_file():
        return None
    return StoredComparison.model_validate_json(path.read_bytes())
