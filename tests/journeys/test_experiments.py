"""The pages of the experiments on simulated markets say what their results say."""

import json
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("name", ["hidden_positives", "four_recipes"])
def test_the_tables_are_those_of_the_results(name: str) -> None:
    """Every mean of the results stands in the page's table."""
    page = (EXPERIMENTS / name / "README.md").read_text(encoding="utf-8")
    found = json.loads((EXPERIMENTS / name / "results.json").read_text(encoding="utf-8"))
    if name == "four_recipes":
        figures = [figure["value"] for piece in found["slices"] for figure in piece["figures"].values()]
        assert len(figures) == 4 * len(found["slices"])
        assert all(f"{figure:.4f} (" in page for figure in figures)
    else:
        first = next(iter(found["windows"].values()))["stages"]
        assert all(f"{100 * stage['wrong'][0]:.2f} % (" in page for stage in first.values())


def test_the_verdicts_on_the_filter_follow_from_its_intervals() -> None:
    """Each bound is called held only where the whole interval is on its right side."""
    found = json.loads((EXPERIMENTS / "hidden_positives" / "results.json").read_text(encoding="utf-8"))
    bounds = {
        "relists": (0.10, 1),
        "without": (0.05, 1),
        "with it": (0.01, -1),
        "at most 5 %": (0.05, -1),
        "at least 1.9": (1.9, 1),
    }
    assert len(found["verdicts"]) == len(bounds)
    for name, verdict in found["verdicts"].items():
        bound, side = next(value for begin, value in bounds.items() if name.startswith(begin))
        _, low, high = (side * figure for figure in verdict["measured"])
        low, high = sorted((low, high))
        expected = "yes" if low >= side * bound else "no" if high < side * bound else "undecided"
        assert verdict["holds"] == expected, name


def test_the_package_carries_the_larger_comparison() -> None:
    """``hatchway demo`` shows what the experiment found, and says how it was made."""
    from hatchway.compare.stored import stored_comparison  # noqa: PLC0415

    stored = stored_comparison()
    assert stored is not None
    found = json.loads((EXPERIMENTS / "four_recipes" / "results.json").read_text(encoding="utf-8"))
    assert (stored.seeds, stored.about, stored.command) == (found["seeds"], found["about"], found["command"])
    assert [piece.name for piece in stored.slices] == [piece["name"] for piece in found["slices"]]
    assert stored.slices[0].figures["mix"].value == found["slices"][0]["figures"]["mix"]["value"]
    assert (EXPERIMENTS.parent / stored.command.split()[1]).is_file()
