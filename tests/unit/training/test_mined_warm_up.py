"""The warm-up: mined columns do nothing before their step, and everything that they do after it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.negatives.settings import NegativesSettings
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.training.loop import train
from hatchway.training.settings import TrainingSettings

MODEL = ModelSettings(kind="factorisation", dimension=8)
SETTINGS = TrainingSettings(epochs=3, batch=32, checkpoint_steps=1, keep_checkpoints=100, table_rate=0.3, select="last")
SOURCES = {
    "mined beside all": NegativesSettings(uniform=8, per_row=2, impressions=1, mined=2),
    "scheduled": NegativesSettings.model_validate({"uniform": 8, "schedule": {"k": 8}}),
}


def hard(log: Log) -> RowTable:
    """Give every row two items of its buyer's own half of the catalogue."""
    items = (log.engagements.items[:, None] + np.array([1, 2])) % (len(log.catalogue) // 2)
    items += (log.engagements.items >= len(log.catalogue) // 2)[:, None] * (len(log.catalogue) // 2)
    return RowTable.from_offsets(np.arange(0, items.size + 1, 2), items.reshape(-1))


def run(log: Log, folder: Path, settings: NegativesSettings, mined: RowTable | None, mined_from: int) -> None:
    """Train a fresh model, a checkpoint at every step."""
    model = build_model(log.catalogue, len(log.buyers), MODEL, seed=3)
    folder.mkdir()
    train(model, log, folder, settings=SETTINGS, negatives=settings, seed=3, mined=mined, mined_from=mined_from)


@pytest.mark.parametrize("name", SOURCES)
def test_until_its_step_the_run_is_that_without_mined_items(log: Log, tmp_path: Path, name: str) -> None:
    """To the bit in every step before, and in none after: the eleventh step is the first that sees them."""
    run(log, tmp_path / "without", SOURCES[name], None, 0)
    run(log, tmp_path / "with", SOURCES[name], hard(log), 10)
    steps = 3 * -(-len(log.engagements.positives(Part.TRAIN)) // 32)
    for step in range(1, steps + 1):
        one, other = (
            load_file(tmp_path / part / "checkpoints" / f"step-{step:08d}" / "weights.safetensors")
            for part in ("without", "with")
        )
        assert all(torch.equal(one[key], other[key]) for key in one) is (step <= 10), step


def test_the_log_shows_them_from_there_on(log: Log, tmp_path: Path) -> None:
    """The lines of ``log.jsonl`` count mined columns from their step on: none in the first twenty."""
    run(log, tmp_path / "with", NegativesSettings(uniform=8), hard(log), 20)
    lines = [line for line in (tmp_path / "with" / "log.jsonl").read_text().splitlines() if '"columns"' in line]
    assert '"mined"' not in lines[0]
    assert all('"mined": 2.0' in line for line in lines[1:])
    assert len(lines) > 1
