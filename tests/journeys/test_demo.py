"""``hatchway demo`` in small: everything is there at the end, and a second run gives the same."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchway.cli.demo import RECIPE
from hatchway.compare.runs import Comparison, compare_runs
from hatchway.config import RunSettings, load_recipe
from hatchway.errors import UsageError
from hatchway.evaluation.result import Evaluation
from hatchway.job import evaluate_run
from hatchway.report.page import render_report, write_report
from hatchway.training.run_folder import RunFolder

SMALL = ("--listings", 250, "--buyers", 300, "--days", 5)
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for one demo."""
    return tmp_path_factory.mktemp("there") / "demo"


def test_demo_from_nothing_to_its_pages(
    demo: Path, hatchway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nights, four recipes with intervals and a word each, the mix beside plain rankings, the pages, the service."""
    monkeypatch.setattr("hatchway.training.curves._EVERY", 3)  # a run this small is over before the first line
    ended = hatchway("demo", "--out", demo, *SMALL)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    nights = [line.split()[:2] for line in lines if line.startswith("2026-03-")]
    assert nights == [[f"2026-03-0{day}", "published"] for day in range(1, 6)]
    assert any(line.split() == ["cases", "mix", "in-batch", "impressions", "hardest"] for line in lines)
    assert any(line.split() == ["cases", "model", "popularity", "random"] for line in lines)
    assert f"nights: {demo / 'nights' / 'nights.html'}" in lines
    assert f"report: {demo / 'recipes' / 'mix' / 'report.html'}" in lines
    assert lines[-1].startswith(f"serve:  hatchway serve {demo / 'nights'}")
    assert "2026-03-05" in (demo / "nights" / "nights.html").read_text(encoding="utf-8")

    found = Evaluation.model_validate_json((demo / "recipes" / "mix" / "evaluation.json").read_bytes())
    assert found.value("recall", 20) > found.baselines["popularity"].metrics["recall@20"].value
    assert found.baselines["random"].metrics["recall@20"].value == pytest.approx(20 / 250, abs=0.002)
    compared = Comparison.model_validate_json((demo / "comparison.json").read_bytes())
    whole = compared.slices[0]
    assert whole.figures["mix"].value == pytest.approx(found.value("recall", 20))
    assert set(whole.standings) == {"in-batch", "impressions", "hardest"}
    at = next(number for number, line in enumerate(lines) if line.startswith("recall@20, all"))
    assert len(re.findall(r"0\.\d{4} \[0\.\d{4}, [01]\.\d{4}\]", lines[at])) == 4
    assert lines[at + 1].split() == [whole.standings[name] for name in ("in-batch", "impressions", "hardest")]
    assert any("undecided" in piece.standings.values() for piece in compared.slices)


def test_the_recipes_differ_in_their_negatives_alone(demo: Path) -> None:
    """Each has the columns of its name, and what mines mined with the night before the last day of training."""
    columns = {}
    settings = {}
    for name in ("mix", "in-batch", "impressions", "hardest"):
        run = RunFolder.open(demo / "recipes" / name)
        last = (run.path / "log.jsonl").read_text(encoding="utf-8").splitlines()
        columns[name] = {
            key for line in map(json.loads, last) for key, count in line.get("columns", {}).items() if count
        }
        settings[name] = RunSettings.parse(run.record.settings).model_dump(exclude={"negatives", "mining"})
        mines = name in ("mix", "hardest")
        assert (run.record.mine_from is not None) == mines
        assert not mines or "2026-03-02" in str(run.record.mine_from)
    assert columns == {
        "mix": {"in_batch", "uniform", "mined"},
        "in-batch": {"in_batch"},
        "impressions": {"impressions"},
        "hardest": {"mined"},
    }
    assert all(one == settings["mix"] for one in settings.values())


def test_the_report_is_one_file_with_everything(demo: Path) -> None:
    """Figures, slices, rows with photos, curve, negatives, settings; nothing is loaded from elsewhere."""
    page = (demo / "recipes" / "mix" / "report.html").read_text(encoding="utf-8")
    found = Evaluation.model_validate_json((demo / "recipes" / "mix" / "evaluation.json").read_bytes())
    for name in ("recall@20", "ndcg@20"):
        assert f"{found.metrics[name].value:.4f}" in page
    assert f"{found.metrics['recall@20'].low:.4f}–{found.metrics['recall@20'].high:.4f}" in page
    for heading in ("by slice", "More like this", "Training", "The negatives", "All figures", "What was trained on"):
        assert heading in page
    for part in (
        "in-batch",
        "uniform",
        "the buyer is known to have engaged with it",
        "training.epochs"[9:],
        "popularity",
    ):
        assert part in page
    assert page.count("data:image/jpeg;base64,") >= 8
    assert "<svg" in page
    outside = [
        address
        for address in re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
        if not address.startswith(("data:", "#"))
    ]
    assert outside == []
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


def test_the_same_again(demo: Path, hatchway: Callable[..., Any]) -> None:
    """A second run replaces the first and comes to the same figures; --json says where everything is."""
    before = json.loads((demo / "recipes" / "mix" / "evaluation.json").read_text(encoding="utf-8"))
    compared = json.loads((demo / "comparison.json").read_text(encoding="utf-8"))
    ended = hatchway("demo", "--out", demo, *SMALL, "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["evaluation"] == before
    assert ended.json["comparison"] == compared
    assert Path(ended.json["report"]).is_file()
    assert ended.json["serve"].endswith(f"serve {demo / 'nights'} --photos {demo / 'store'}")


def test_runs_that_were_asked_something_else_are_not_compared(demo: Path) -> None:
    """Another split is another question; both runs are named."""
    mix, other = (RunFolder.open(demo / "recipes" / name) for name in ("mix", "in-batch"))
    split = other.record.split.model_copy(update={"test_days": 3})
    changed = RunFolder(other.path, other.record.model_copy(update={"split": split}))
    with pytest.raises(UsageError, match=r"in-batch .* is of another store, split .* than mix"):
        compare_runs({"mix": mix, "in-batch": changed}, {})


def test_the_report_of_an_evaluated_run(demo: Path, hatchway: Callable[..., Any]) -> None:
    """``hatchway report`` writes the same page again; without rows the page does without them."""
    target = demo / "recipes" / "mix" / "report.html"
    before = target.read_text(encoding="utf-8")
    ended = hatchway("report", demo / "recipes" / "mix")
    assert (ended.code, ended.out.strip()) == (0, f"report: {target}")
    assert target.read_text(encoding="utf-8") == before
    assert "More like this, as the model fills it" not in render_report(RunFolder.open(demo / "recipes" / "mix"))


def test_names_from_the_log_cannot_become_markup(demo: Path) -> None:
    """Titles are other people's text."""
    from hatchway.report.rows import Row, Shown  # noqa: PLC0415

    bad = Shown("1", '<script>alert("x")</script>', "<b>bold</b>", "")
    page = render_report(RunFolder.open(demo / "recipes" / "mix"), (Row(bad, (bad,)),))
    assert "<script>" not in page
    assert "<b>bold" not in page
    assert "&lt;script&gt;" in page


def test_a_run_that_was_not_evaluated(demo: Path, hatchway: Callable[..., Any]) -> None:
    """Exit 2 and the command that evaluates."""
    run = RunFolder.open(demo / "recipes" / "mix")
    (run.path / "evaluation.json").unlink()
    ended = hatchway("report", run.path)
    assert ended.code == 2
    assert f"hatchway evaluate {run.path}" in ended.err
    (run.path / "evaluation.json").write_text('{"format": 1}')
    ended = hatchway("report", run.path)
    assert ended.code == 3
    assert "evaluate again" in ended.err
    evaluate_run(run)
    assert write_report(run).is_file()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """Nothing that no demo wrote is removed or written over."""
    (tmp_path / "thesis.tex").write_text("years of work")
    ended = hatchway("demo", "--out", tmp_path, *SMALL)
    assert ended.code == 2
    assert "thesis.tex" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "thesis.tex").unlink()
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "diary.txt").write_text("dear diary")
    ended = hatchway("demo", "--out", tmp_path, *SMALL)
    assert ended.code == 2
    assert (tmp_path / "recipes" / "diary.txt").read_text() == "dear diary"


def test_the_demos_recipe_is_the_one_in_recipes() -> None:
    """The package carries what recipes/market.toml says."""
    path = REPOSITORY / "recipes" / "market.toml"
    assert load_recipe(path) == RunSettings.parse(RECIPE)
    assert tomllib.loads(path.read_text(encoding="utf-8")) == RECIPE
