"""The index of the experiments, the page of knobs and every claim's page are what the results say."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hatchway.config import RunSettings

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
CLAIMS = [
    path.parent
    for path in sorted(EXPERIMENTS.glob("*/results.json"))
    if isinstance(found := json.loads(path.read_text("utf-8")), dict) and "claim" in found
]


def load(path: Path) -> ModuleType:
    """Load a script of the experiments, which are no part of the package."""
    if str(EXPERIMENTS) not in sys.path:
        sys.path.insert(0, str(EXPERIMENTS))
    spec = importlib.util.spec_from_file_location(f"experiment_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_what_the_results_say() -> None:
    """Whoever runs an experiment anew, or adds one, runs experiments/index.py as well."""
    module = load(EXPERIMENTS / "index.py")
    assert module.index() == module.INDEX.read_text("utf-8")
    assert module.knobs() == module.KNOBS_PAGE.read_text("utf-8")


@pytest.mark.parametrize("folder", CLAIMS, ids=lambda folder: folder.name)
def test_a_verdict_follows_from_what_was_measured(folder: Path) -> None:
    """The conditions of the script, on the measures of every seed, give the verdict and the page's table."""
    trials, claim = load(EXPERIMENTS / "trials.py"), load(folder / "run.py").CLAIM
    results: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    conditions = list(claim.conditions(results["cells"]))
    assert (results["claim"], results["says"]) == (claim.number, claim.says)
    said = [(c["says"], c["bound"], c["above"], c["holds"]) for c in results["conditions"]]
    assert [(c.says, c.bound, c.above, c.holds) for c in conditions] == said
    figures = [number for condition in conditions for number in condition.figure]
    assert figures == pytest.approx([number for c in results["conditions"] for number in c["figure"]])
    assert results["verdict"] == trials.verdict(conditions)
    assert len(results["seeds"]) >= 5
    page = (folder / "README.md").read_text("utf-8")
    assert f"{trials.BEGIN}\n{trials.table(claim, results['cells'], conditions)}\n{trials.END}" in page
    assert (folder / "figure.svg").is_file()


def test_a_sentence_of_the_knobs_follows_its_condition() -> None:
    """What is said depends on what became of the condition, and its figure stands behind it."""
    module = load(EXPERIMENTS / "index.py")
    said = module.Said("some_claim", "recall, more", "more is better", "more is worse", "more is no better")
    turned = {"says": "recall, more less few, above 0", "figure": [-0.2, -0.31, -0.1], "holds": "no"}
    link = "(../experiments/some_claim/README.md)"
    written = module._said(said, {"some_claim": {"conditions": [turned]}})
    assert written == f"more is worse [-0.200 (-0.310 to -0.100)]{link}"
    kept = turned | {"figure": [0.2, 0.1, 0.31], "holds": "yes"}
    assert (
        module._said(said, {"some_claim": {"conditions": [kept]}}) == f"more is better [0.200 (0.100 to 0.310)]{link}"
    )
    assert module._said(said, {}) == ""
    with pytest.raises(SystemExit, match="no condition"):
        module._said(said, {"some_claim": {"conditions": []}})


def test_what_public_data_say_follows_from_what_was_measured() -> None:
    """The verdicts, the tables of the page and the table of the index are those of the committed measures."""
    module, index = load(EXPERIMENTS / "public_data" / "run.py"), load(EXPERIMENTS / "index.py")
    folder = EXPERIMENTS / "public_data"
    results: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    found = module.results_of(results["cells"])
    figures = [group.pop("figures") for group in map(_figures_apart, found)]
    said = [group.pop("figures") for group in map(_figures_apart, results["groups"])]
    assert [number for group in figures for number in group] == pytest.approx(
        [number for group in said for number in group]
    )
    assert [group["conditions"] for group in found] == [group["conditions"] for group in results["groups"]]
    assert [group["verdict"] for group in found] == [group["verdict"] for group in results["groups"]]
    assert min(len(seeds) for seeds in results["seeds"].values()) >= module.FEWEST
    page = (folder / "README.md").read_text("utf-8")
    assert module.written(page, results["cells"]) == page
    assert (folder / "figure.svg").is_file()
    assert index.public_table.public_section(EXPERIMENTS, {}).splitlines()[0] in index.INDEX.read_text("utf-8")


def _figures_apart(group: dict[str, Any]) -> dict[str, Any]:
    """Take the figures out of the conditions, to be compared within rounding."""
    apart = [number for condition in group["conditions"] for number in condition["figure"]]
    rest = [{name: value for name, value in one.items() if name != "figure"} for one in group["conditions"]]
    return group | {"conditions": rest, "figures": apart}


def test_public_data_that_say_the_opposite_turn_the_verdict() -> None:
    """With alpha 0 and alpha 1 exchanged, what held of the correction does not."""
    module = load(EXPERIMENTS / "public_data" / "run.py")
    results: dict[str, Any] = json.loads((EXPERIMENTS / "public_data" / "results.json").read_text("utf-8"))
    cells = results["cells"]["Beauty"]
    turned = cells | {"alpha 0": cells["alpha 1"], "alpha 1": cells["alpha 0"]}
    opposite = {"yes": "no", "no": "yes", "undecided": "undecided"}
    holds = [condition.holds for condition in module.of_correction(cells)]
    assert [condition.holds for condition in module.of_correction(turned)] == [opposite[one] for one in holds]


def test_the_defaults_are_those_of_the_package() -> None:
    """docs/decisions/defaults.md names each setting with the value that it has where nobody sets it."""
    text = (EXPERIMENTS.parent / "docs" / "decisions" / "defaults.md").read_text("utf-8")
    found = re.findall(
        r"`([a-z_]+\.[a-z_]+)` ([\w.,]+?)[,:]? ", "\n".join(re.findall(r"^## (.+)$", text, re.MULTILINE))
    )
    settings = RunSettings().model_dump()
    assert len(found) >= 10
    for name, said in found:
        table, key = name.split(".")
        value = settings[table][key]
        wanted = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else float(value)
        assert (float(said.replace(",", "")) if isinstance(wanted, float) else said) == wanted, name
