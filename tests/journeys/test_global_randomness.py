"""A whole run neither reads nor leaves a trace in anybody's global random state."""

import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from hatchway.config import RunSettings
from hatchway.data.importers import TableSettings, import_table
from hatchway.job import evaluate_run, index_run, train_run

SETTINGS = RunSettings.parse(
    {
        "model": {
            "dimension": 8,
            "text_buckets": 64,
            "item": {"texts": ["title"], "hidden": 8},
            "context": {"hidden": 8},
        },
        "training": {"epochs": 2, "batch": 32},
        "negatives": {"uniform": 20},
    }
)


def states() -> tuple[object, ...]:
    """Return the global states of Python, NumPy and PyTorch."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002 - the global state is what this is about
    return random.getstate(), (np.asarray(keys).tobytes(), *rest), bytes(torch.random.get_rng_state().numpy())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log of 40 buyers with four saves each of 25 items with titles."""
    folder = tmp_path_factory.mktemp("table")
    rows = [
        f"b{buyer},{(buyer * 7 + step * 5) % 25},save,{1_700_000_000 + step * 60}"
        for step in range(4)
        for buyer in range(40)
    ]
    (folder / "log.csv").write_text("buyer,item,event,time\n" + "\n".join(rows), encoding="utf-8")
    (folder / "items.csv").write_text(
        "item,title\n" + "\n".join(f"{item},thing {item}" for item in range(25)), encoding="utf-8"
    )
    return folder


def test_a_run_and_global_state_do_not_know_each_other(table: Path, tmp_path: Path) -> None:
    """Two runs under different global seeds have equal weights, and leave the global states as they found them."""
    weights = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = states()
        out = tmp_path / str(seed)
        store = import_table(table / "log.csv", out / "store", TableSettings(catalogue=table / "items.csv"))
        run = train_run(store, out / "run", SETTINGS)
        evaluate_run(run)
        index_run(run)
        assert states() == before
        weights.append(safetensors.torch.load_file(run.model_folder / "weights.safetensors"))
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name
