"""The pages of the experiments on simulated markets say what their results say."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.ledger import draw_ledger

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
        assert script(name).table(found) in page
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


def script(folder: str) -> ModuleType:
    """Load the script of an experiment, which is no part of the package."""
    if str(EXPERIMENTS) not in sys.path:
        sys.path.insert(0, str(EXPERIMENTS))
    spec = importlib.util.spec_from_file_location(f"script_{folder}", EXPERIMENTS / folder / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("distinct", [False, True])
def test_everything_as_a_source_is_the_exact_softmax(distinct: bool) -> None:
    """What is trained "in full" has the loss and the gradients of the tiled one over what was on offer."""
    generator = torch.Generator().manual_seed(3)
    living = torch.rand(200, generator=generator) < 0.7
    on_offer = living.nonzero()[:, 0]
    places = torch.randint(len(on_offer), (16,), generator=generator)
    query, items = torch.randn(16, 8, generator=generator), torch.randn(200, 8, generator=generator)
    source = script("sampled_against_full").Everything(living)
    ledger = draw_ledger(on_offer[places], [source], generator, "uncorrected", distinct=distinct)
    found, exact = items.clone().requires_grad_(), items.clone().requires_grad_()
    mine = sampled_softmax(query, found[on_offer[places]], found[ledger.items], ledger, temperature=0.5)
    theirs = full_softmax(query, exact[on_offer], places, temperature=0.5)
    mine.backward()
    theirs.backward()
    assert torch.allclose(mine, theirs, rtol=1e-5)
    assert found.grad is not None
    assert exact.grad is not None
    assert torch.allclose(found.grad, exact.grad, atol=1e-5)
