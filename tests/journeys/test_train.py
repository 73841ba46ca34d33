"""``hatchway train`` from the outside: killed with signal 9 and resumed, refused where it must be, its outputs used."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hatchway.data.store import write_store
from hatchway.errors import ArtefactError
from hatchway.randomness import stream
from hatchway.training.run_folder import RunFolder

RECIPE = """
seed = 4
[model]
dimension = 16
text_buckets = 256
[model.item]
categories = ["category"]
[negatives]
uniform = 50
[training]
epochs = 12
batch = 64
checkpoint_steps = 10
validate_epochs = 4
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a store of string ids and a recipe."""
    folder = tmp_path_factory.mktemp("train")
    rng = stream(1, "journey")
    buyers = np.repeat(np.arange(300), 8)
    items = (rng.integers(0, 50, len(buyers)) + 50 * (buyers % 2)).astype(str)
    events = pl.DataFrame(
        {
            "buyer": [f"b{b}" for b in buyers],
            "item": [f"i-{i}" for i in items],
            "event": ["message"] * len(buyers),
            "time": 1_760_000_000 + np.arange(len(buyers)) * 600,
        }
    )
    catalogue = pl.DataFrame(
        {"item": [f"i-{i}" for i in range(100)], "category": ["wood"] * 50 + ["metal"] * 50, "title": ["thing"] * 100}
    )
    write_store(folder / "store", events.lazy(), catalogue)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


def command(*arguments: object) -> list[str]:
    """Spell the program as a process of its own."""
    return [sys.executable, "-m", "hatchway.cli.main", *map(str, arguments)]


def test_killed_with_signal_9_and_resumed_gives_the_same_bytes(place: Path) -> None:
    """Kill the process after its third checkpoint; the resumed run's weights are those of one that was never killed."""
    train = ("train", place / "store", "--recipe", place / "recipe.toml", "--quiet")
    subprocess.run(command(*train, "--out", place / "whole"), check=True)
    killed = subprocess.Popen(command(*train, "--out", place / "killed"))
    wait_for(lambda: len(list((place / "killed" / "checkpoints").glob("step-*/state.json"))) >= 2, killed)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (place / "killed" / "model").exists(), "a killed run leaves no half-written model"
    refused = subprocess.run(command("evaluate", place / "killed"), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    # As that message says it: the run's own settings are those of the recipe.
    subprocess.run(command("train", place / "store", "--out", place / "killed", "--resume"), check=True)
    for name in ("weights.safetensors", "model.json"):
        assert (place / "killed/model" / name).read_bytes() == (place / "whole/model" / name).read_bytes(), name


def wait_for(done: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    """Wait until something is there; fail when the process ends before."""
    deadline = time.monotonic() + 120
    while not done():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupted_run_says_how_it_is_continued(place: Path) -> None:
    """Ctrl-C ends it with 130 and the command, which is the run's whether or not its settings are said again."""
    out = place / "interrupted"
    train = command("train", place / "store", "--recipe", place / "recipe.toml", "--set", "training.epochs=500")
    begun = subprocess.Popen([*train, "--out", str(out)], stderr=subprocess.PIPE)
    wait_for(lambda: bool(list((out / "checkpoints").glob("step-*/state.json"))), begun)
    begun.send_signal(signal.SIGINT)
    said = begun.communicate()[1].decode()
    assert begun.returncode == 130
    assert f"continue with: hatchway train {place / 'store'} --out {out} --resume" in said


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    """Train once."""
    out = place / "run"
    subprocess.run(
        command("train", place / "store", "--recipe", place / "recipe.toml", "--out", out, "--quiet"), check=True
    )
    return out


def test_the_run_learns_and_is_evaluated(run: Path, hatchway: Callable[..., Any]) -> None:
    """Recall is far above popularity's, and the figures lie in the run folder as well."""
    ended = hatchway("evaluate", run, "--json")
    assert ended.code == 0
    found = ended.json
    assert (
        found["metrics"]["recall@20"]["value"] > 1.5 * found["baselines"]["popularity"]["metrics"]["recall@20"]["value"]
    )
    assert json.loads((run / "evaluation.json").read_text()) == found


def test_recommend_answers_with_external_ids_of_the_same_kind(run: Path, hatchway: Callable[..., Any]) -> None:
    """Wood is like wood; the item itself is not in its own row."""
    assert hatchway("index", run, "--quiet").code == 0
    ended = hatchway("recommend", run, "--item", "i-3", "--k", "10", "--json")
    assert ended.code == 0
    rows = [entry["item"] for entry in ended.json["results"]]
    assert len(rows) == 10
    assert "i-3" not in rows
    assert sum(int(item.removeprefix("i-")) < 50 for item in rows) >= 9


def test_a_finished_run_is_not_overwritten(place: Path, run: Path, hatchway: Callable[..., Any]) -> None:
    """Without --resume it is refused; with it the run is left as it is; with other settings it is refused."""
    before = (run / "model" / "weights.safetensors").read_bytes()
    recipe = ("--recipe", place / "recipe.toml")
    again = hatchway("train", place / "store", *recipe, "--out", run)
    assert (again.code, "holds a run already" in again.err) == (2, True)
    assert hatchway("train", place / "store", *recipe, "--out", run, "--resume").code == 0
    other = hatchway("train", place / "store", *recipe, "--set", "seed=5", "--out", run, "--resume")
    assert (other.code, "holds another run: seed was 4 and is now 5." in other.err) == (2, True)
    assert (run / "model" / "weights.safetensors").read_bytes() == before


def test_the_written_settings_repeat_the_run(place: Path, run: Path, hatchway: Callable[..., Any]) -> None:
    """``settings.toml`` is a complete recipe: training by it gives the same weights."""
    out = place / "again"
    assert hatchway("train", place / "store", "--recipe", run / "settings.toml", "--out", out, "--quiet").code == 0
    assert (out / "model/weights.safetensors").read_bytes() == (run / "model/weights.safetensors").read_bytes()


def test_a_part_of_the_store_that_changed_is_noticed(
    place: Path, run: Path, tmp_path: Path, hatchway: Callable[..., Any]
) -> None:
    """The manifest is as it was, but the items stand in another order: every vector would be another item's."""
    shutil.copytree(run, tmp_path / "runs" / run.name)
    shutil.copytree(place / "store", tmp_path / "store")
    moved = tmp_path / "runs" / run.name
    record = json.loads((moved / "run.json").read_text())
    record["store"] = "../../store"
    (moved / "run.json").write_text(json.dumps(record))
    assert hatchway("index", moved, "--quiet").code == 0
    catalogue = pl.read_parquet(tmp_path / "store" / "catalogue.parquet")
    catalogue.reverse().write_parquet(tmp_path / "store" / "catalogue.parquet")
    for command in ("evaluate", "index"):
        ended = hatchway(command, moved, "--quiet")
        assert (ended.code, "is not the file that was written" in ended.err) == (3, True)


def test_a_damaged_model_record_is_named(run: Path, tmp_path: Path) -> None:
    """The message names the file, and what makes a good one."""
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "model" / "model.json").write_text("{")
    with pytest.raises(ArtefactError, match=r"model\.json is damaged"):
        RunFolder.open(tmp_path / "run").model_record()


def test_a_run_is_not_written_into_a_store(place: Path, tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """The next import would replace both."""
    shutil.copytree(place / "store", tmp_path / "store")
    ended = hatchway("train", tmp_path / "store", "--out", tmp_path / "store")
    assert (ended.code, "is a store" in ended.err) == (2, True)
    assert not (tmp_path / "store" / "run.json").exists()


def test_a_store_that_changed_since_is_refused(
    place: Path, run: Path, tmp_path: Path, hatchway: Callable[..., Any]
) -> None:
    """Item rows would mean other items."""
    shutil.copytree(run, tmp_path / "run")
    write_store(
        tmp_path / "other",
        pl.DataFrame({"buyer": ["a"], "item": ["b"], "event": ["save"], "time": [1_760_000_000]}).lazy(),
        None,
    )
    record = json.loads((tmp_path / "run/run.json").read_text())
    (tmp_path / "run/run.json").write_text(json.dumps({**record, "store": "../other"}))
    ended = hatchway("evaluate", tmp_path / "run")
    assert (ended.code, "has changed since" in ended.err) == (3, True)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("training.epoch=3", "did you mean 'epochs'"),
        ("negatives.uniform=-5", "greater than or equal to 0"),
        ("negatives.positive=maybe", "'uncorrected', 'count' or 'yi'"),
        ("training.temperature=0", "greater than 0"),
        ("split.protocol=given", "split"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    place: Path, tmp_path: Path, assignment: str, message: str, hatchway: Callable[..., Any]
) -> None:
    """Exit 2, the remedy on stderr, and no run folder."""
    ended = hatchway("train", place / "store", "--out", tmp_path / "out", "--set", assignment)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "out").exists()


def test_a_flipped_bit_of_the_model_is_not_evaluated(run: Path, hatchway: Callable[..., Any]) -> None:
    """It would be a model like any other, only worse."""
    path = run / "model" / "weights.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    try:
        ended = hatchway("evaluate", run)
    finally:
        path.write_bytes(whole)
    assert (ended.code, "weights.safetensors is not the file that was written; train again" in ended.err) == (3, True)
