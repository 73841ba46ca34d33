"""``hatchway ratio`` and ``hatchway.ratio`` from the outside."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hatchway as package

DOCUMENT = Path(__file__).parents[2] / "docs" / "ratio.md"


@pytest.mark.parametrize(("option", "value", "k"), [("--auc", ".75", 4), ("--auc", ".95", 18), ("--mean", "2.4", 20)])
def test_json(option: str, value: str, k: int, hatchway: Callable[..., Any]) -> None:
    """One object with the estimate, its range and whether it is bounded; nothing on stderr."""
    ended = hatchway("ratio", option, value, "--json")
    assert (ended.code, ended.err) == (0, "")
    found = ended.json
    assert found["k"] == k
    assert found["k_low"] <= k <= found["k_high"]
    assert found["bounded"] is False
    assert "reason" not in found
    assert {"auc", "mean", "effectiveness"} <= found.keys()
    assert found[option.removeprefix("--")] == float(value)


def test_text(hatchway: Callable[..., Any]) -> None:
    """The answer in words, and the curve at some K, among them K* and the ends of its range."""
    ended = hatchway("ratio", "--auc", "0.75")
    assert ended.out.startswith("4 negatives a positive; 3 to 7 are within 1 % of its effectiveness, 0.1361\n")
    rows = [line.split() for line in ended.out.splitlines()]
    assert {"1", "3", "4", "7", "1,000"} <= {row[0] for row in rows if len(row) == 7}


def test_the_whole_curve(hatchway: Callable[..., Any]) -> None:
    """With --curve every K to the bound, in text and in JSON."""
    found = hatchway("ratio", "--mean", 1, "--bound", 12, "--curve", "--json").json
    assert [row["k"] for row in found["by_k"]] == list(range(1, 13))
    assert max(found["by_k"], key=lambda row: float(row["effectiveness"]))["k"] == found["k"] == 4
    text = hatchway("ratio", "--mean", 1, "--bound", 12, "--curve").out
    rows = [line.split() for line in text.splitlines()]
    assert [row[0] for row in rows if len(row) == 7] == [str(k) for k in range(1, 13)]


def test_low_auc(hatchway: Callable[..., Any]) -> None:
    """No finite optimum: bounded, with the reason in both forms."""
    found = hatchway("ratio", "--auc", "0.53", "--json").json
    assert found["bounded"] is True
    assert "no finite optimum" in found["reason"]
    assert "bounded: no finite optimum" in hatchway("ratio", "--auc", "0.53").out


@pytest.mark.parametrize("value", ["0.5", "0.2", "1", "1.0", "1.3", "-1", "nan", "inf"])
def test_invalid_aucs(value: str, hatchway: Callable[..., Any]) -> None:
    """Exit code 2, the reason on stderr, nothing on stdout."""
    ended = hatchway("ratio", "--auc", value, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert "above .5 and below 1 is needed" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to estimate from"),
        (["--auc", "0.7", "--mean", "1"], "twice"),
        (["--auc", "many"], "--auc"),
        (["--auc", "0.7", "--lambda", "2"], "from 0 to 1"),
        (["--auc", "0.7", "--bound", "1"], "from 2 to"),
        (["--auc", "0.7", "--plot", "curve.pdf"], ".svg or a .png"),
        (["--run", "nowhere"], "not a run"),
        (["--measured", "nowhere.csv"], "No such file"),
        (["--run", "a", "--measured", "b"], "give one of them"),
    ],
)
def test_usage(arguments: list[str], said: str, hatchway: Callable[..., Any]) -> None:
    """Every mistake ends with 2 and is named."""
    ended = hatchway("ratio", *arguments)
    assert ended.code == 2
    assert said in ended.err


def test_a_measured_curve_and_a_plot(tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """A CSV of AUCs instead of the simulated curve, drawn."""
    file = tmp_path / "aucs.csv"
    file.write_text("epoch,training,validation\n0,0.5,0.5\n1,0.7,0.68\n2,0.76,0.73\n3,0.9,0.7\n")
    found = hatchway("ratio", "--measured", file, "--plot", tmp_path / "k.svg", "--json").json
    assert (found["auc"], found["curve"], found["points"]) == (0.76, "measured", 3)
    assert f"K = {found['k']}" in (tmp_path / "k.svg").read_text("utf-8")
    assert hatchway("ratio", "--measured", file, "--auc", "0.9", "--json").json["auc"] == 0.9


def test_a_runs_curve(tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """The AUCs that a run wrote down; a run that wrote none is told what it lacks."""
    points = [(0, 0.5, 0.5), (20, 0.8, 0.78), (40, 0.85, 0.8)]
    lines = [{"step": step, "auc": {"training": one, "validation": other}} for step, one, other in points]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = hatchway("ratio", "--run", tmp_path, "--json").json
    assert (found["auc"], found["points"]) == (0.85, 3)
    (tmp_path / "log.jsonl").write_text('{"step": 20, "loss": 1.0}\n')
    ended = hatchway("ratio", "--run", tmp_path)
    assert ended.code == 2
    assert "training.auc_pairs" in ended.err


def test_from_python() -> None:
    """The same from the front door."""
    answer = package.ratio(auc=0.75)
    assert isinstance(answer, package.Ratio)
    assert (answer.k, answer.bounded) == (4, False)
    assert json.loads(answer.model_dump_json())["mean"] == pytest.approx(0.9539, abs=1e-4)


def test_it_answers_without_torch() -> None:
    """The estimate needs neither PyTorch nor Polars, so that the command answers at once."""
    code = (
        "import sys, hatchway; hatchway.ratio(auc=0.75); print(*{'torch', 'polars', 'matplotlib'} & sys.modules.keys())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""


def test_the_document_says_what_the_estimate_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row of the table in docs/ratio.md is what is estimated, and its Python example runs."""
    text = DOCUMENT.read_text("utf-8")
    rows = re.findall(r"^\| (\.\d+) \| ([\d.]+) \| (\d+) \| (\d+)–(\d+) \| (\.\d+) \|$", text, re.MULTILINE)
    assert len(rows) == 9
    for auc, mean, k, low, high, value in rows:
        answer = package.ratio(auc=float(auc)) if auc in (".75", ".95") else package.ratio(mean=float(mean))
        assert (answer.auc, answer.mean) == pytest.approx((float(auc), float(mean)), abs=5e-4)
        assert (answer.k, answer.k_low, answer.k_high) == (int(k), int(low), int(high))
        assert answer.effectiveness == pytest.approx(float(value), abs=5.1e-5)
    (recipe,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    schedule = package.RunSettings.parse(tomllib.loads(recipe)).negatives.schedule
    assert schedule is not None
    assert (schedule.k, schedule.shape, schedule.turning_point) == (20, "adaptive", 0.1)
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, str(DOCUMENT), "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("4 3 7\n")
