"""Training with a frequency that is learned on the way: updated once a step, in the checkpoint, resumed to the bit."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hatchway.data.engagements import Part, training_counts
from hatchway.data.log import Log
from hatchway.errors import SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.settings import NegativesSettings
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import epoch_batches
from hatchway.training.checkpoint import checkpoints
from hatchway.training.loop import train
from hatchway.training.settings import TrainingSettings
from hatchway.training.sources import negatives_of
from hatchway.training.step import batch_loss

SETTINGS = TrainingSettings(epochs=2, batch=32, checkpoint_steps=5, table_rate=0.3)
KINDS: dict[str, dict[str, object]] = {
    "streaming": {"frequency": "streaming", "streaming": {"window": 20}},
    "hashed streaming": {"frequency": "streaming", "streaming": {"buckets": 64, "hashes": 3}, "queue": 50},
    "unique per batch": {"frequency": "streaming", "streaming": {"meaning": "unique-per-batch"}, "distinct": True},
    "count-min": {"frequency": "count-min", "count_min": {"half_life": 500}, "positive": "yi"},
}


class KilledError(Exception):
    """Stands for a kill signal in mid-run."""


def run(log: Log, folder: Path, kind: str, *, resume: bool = False) -> TwoTower:
    """Train a fresh factorisation."""
    folder.mkdir(exist_ok=True)
    model = build_model(log.catalogue, len(log.buyers), ModelSettings(kind="factorisation", dimension=8), seed=3)
    negatives = NegativesSettings.parse({"uniform": 16, "queue_warmup": 3, **KINDS[kind]})
    train(model, log, folder, settings=SETTINGS, negatives=negatives, seed=3, resume=resume)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_resumed_is_the_same_to_the_bit(
    log: Log, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two checkpoints: the step in which it was killed had already been counted, and is not counted twice."""
    whole = run(log, tmp_path / "whole", kind)
    steps, real = 0, batch_loss

    def dying(*arguments: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps > 13:
            raise KilledError
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("hatchway.training.loop.batch_loss", dying)
    with pytest.raises(KilledError):
        run(log, tmp_path / "killed", kind)
    monkeypatch.setattr("hatchway.training.loop.batch_loss", real)
    resumed = run(log, tmp_path / "killed", kind, resume=True)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    files = [checkpoints(tmp_path / name / "checkpoints")[-1] / "state.safetensors" for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert any(name.startswith("frequency.") for name in load_file(files[0]))


@pytest.mark.parametrize("kind", ["streaming", "count-min"])
def test_after_an_epoch_the_ledger_is_near_that_of_the_exact_counts(log: Log, kind: str) -> None:
    """The learned shares of an epoch are the counts; a ledger of theirs differs by little from the exact one."""
    positives = log.engagements.positives(Part.TRAIN)
    settings = NegativesSettings.parse({"uniform": 16, "frequency": KINDS[kind]["frequency"]})
    learned = negatives_of(settings, log, seed=3, dimension=8)
    exact = negatives_of(NegativesSettings(uniform=16), log, seed=3, dimension=8)
    assert exact.learned is None
    for batch in epoch_batches(log.engagements, positives, batch=32, history=1, mask_days=0, seed=3, epoch=0):
        learned.learn(batch)
        ledgers = [source.ledger(batch, 0, 0) for source in (learned, exact)]
        exact.learn(batch)
    assert torch.equal(ledgers[0].items, ledgers[1].items)
    assert torch.allclose(ledgers[0].log_count, ledgers[1].log_count, atol=0.05)
    assert learned.learned is not None
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    every = torch.arange(len(counts))
    seen = counts > 0
    assert torch.allclose(
        learned.learned.whole_batch(every, 1)[seen], ExactCounts(counts).whole_batch(every, 1)[seen], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"streaming": {"window": 5}}, "set frequency = 'streaming'"),
        ({"count_min": {"hashes": 5}, "frequency": "streaming"}, "set frequency = 'count-min'"),
        ({"frequency": "streaming", "streaming": {"meaning": "unique-per-batch"}}, "set distinct = true"),
        ({"frequency": "stream"}, "'exact', 'streaming' or 'count-min'"),
        ({"frequency": "streaming", "streaming": {"windw": 5}}, "did you mean 'window'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, object], remedy: str) -> None:
    """The message says which setting has to change."""
    with pytest.raises(SettingsError, match=remedy):
        NegativesSettings.parse(wrong)
