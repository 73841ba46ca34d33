"""The loop: it learns, it resumes to the bit, and it stops when the loss does."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from hatchway.artefacts.alone import alone_in
from hatchway.data.contexts import contexts_of
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.errors import ArtefactError, DataError, DivergedError, UsageError
from hatchway.negatives.settings import NegativesSettings
from hatchway.towers.build import build_model
from hatchway.towers.settings import ContextSettings, ItemSettings, ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import epoch_batches
from hatchway.training.checkpoint import checkpoints
from hatchway.training.loop import Trained, Validation, train
from hatchway.training.settings import TrainingSettings
from hatchway.training.step import batch_loss

MODELS = {
    "context": ModelSettings(
        dimension=8,
        text_buckets=64,
        item=ItemSettings(categories=("category",), numbers=("price",), texts=("title",)),
        context=ContextSettings(history=4),
    ),
    "factorisation": ModelSettings(kind="factorisation", dimension=8),
    "one table": ModelSettings(dimension=8, context=ContextSettings(text=False, history=4, vectors="item", hidden=0)),
}
SETTINGS = TrainingSettings(epochs=4, batch=32, checkpoint_steps=5, keep_checkpoints=2, table_rate=0.3)
NEGATIVES = NegativesSettings(uniform=16)


class KilledError(Exception):
    """Stands for a kill signal in mid-run."""


def run(log: Log, folder: Path, kind: str, **options: object) -> tuple[TwoTower, Trained]:
    """Train a fresh model of a kind."""
    folder.mkdir(exist_ok=True)
    model = build_model(log.catalogue, len(log.buyers), MODELS[kind], seed=3)
    settings = options.pop("settings", SETTINGS)
    trained = train(model, log, folder, settings=settings, negatives=NEGATIVES, seed=3, **options)  # type: ignore[arg-type]
    return model, trained


def same_taste(model: TwoTower, log: Log) -> float:
    """Return the share of validation rows whose best item is of the buyer's own half."""
    rows = log.engagements.positives(Part.VALIDATION)
    with torch.no_grad():
        scores = model.query(contexts_of(log.engagements, rows, 4)) @ model.item(torch.arange(len(log.catalogue))).T
    best = scores.argmax(1)
    buyers = torch.tensor([int(b) for b in log.buyers.external(log.engagements.buyers[rows])])
    items = torch.tensor([int(i) for i in log.catalogue.external(best.numpy())])
    return float(((items >= 20) == (buyers % 2 == 1)).float().mean())


@pytest.mark.parametrize("kind", MODELS)
def test_it_learns_the_two_tastes(log: Log, tmp_path: Path, kind: str) -> None:
    """After training nearly every buyer's best item is of his own half; before, about half are."""
    untrained = build_model(log.catalogue, len(log.buyers), MODELS[kind], seed=3).eval()
    model, trained = run(log, tmp_path, kind, settings=SETTINGS.model_copy(update={"epochs": 12}))
    if kind != "one table":  # whose query is the looked-at item's own vector from the start
        assert same_taste(untrained, log) < 0.8
    assert same_taste(model, log) > 0.95
    assert trained.steps == 12 * 12


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("killed_after", [7, 15, 30])
def test_killed_and_resumed_is_the_same_to_the_bit(
    log: Log, tmp_path: Path, kind: str, killed_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, drawn negatives (in the log of columns) and curves are those of a run that was never killed."""
    whole, _ = run(log, tmp_path / "whole", kind, validation=Validation(accuracy(log), "taste"))
    steps = 0
    real = batch_loss

    def dying(*arguments: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps > killed_after:
            raise KilledError
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("hatchway.training.loop.batch_loss", dying)
    with pytest.raises(KilledError):
        run(log, tmp_path / "killed", kind, validation=Validation(accuracy(log), "taste"))
    monkeypatch.setattr("hatchway.training.loop.batch_loss", real)
    resumed, trained = run(log, tmp_path / "killed", kind, validation=Validation(accuracy(log), "taste"), resume=True)
    assert trained.steps == 48
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    lines = [strip(tmp_path / name / "log.jsonl") for name in ("whole", "killed")]
    assert lines[0] == lines[1]
    files = [(checkpoints(tmp_path / name / "checkpoints")[-1] / "state.safetensors") for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()


def accuracy(log: Log) -> Callable[[TwoTower], Mapping[str, float]]:
    """Judge a model by the two tastes."""

    def judge(model: TwoTower) -> Mapping[str, float]:
        return {"taste": same_taste(model, log)}

    return judge


def strip(path: Path) -> list[dict[str, object]]:
    """Read a log without what the clock says."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    # The window of the first line after a resume is shorter, so its means are of fewer steps.
    return [{k: v for k, v in line.items() if k in {"step", "validation", "rates"}} for line in lines]


def test_the_best_weights_are_kept(log: Log, tmp_path: Path) -> None:
    """Where the first validation is the best, the model ends with the weights of that step."""
    falling = iter([0.9, 0.5, 0.4, 0.3])
    validation = Validation(lambda _: {"score": next(falling)}, "score")
    _, trained = run(log, tmp_path, "factorisation", validation=validation)
    assert trained.chosen_step == 12
    assert [entry["step"] for entry in trained.history] == [12, 24, 36, 48]


def test_only_the_newest_checkpoints_are_kept(log: Log, tmp_path: Path) -> None:
    """Every five steps and at the end, two of them kept."""
    run(log, tmp_path, "factorisation")
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["step-00000045", "step-00000048"]


def test_nan_stops_with_step_ids_and_checkpoint(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the step and the last good checkpoint, and the batch's external ids lie in a file."""
    real = batch_loss
    steps = 0

    def poisoned(*arguments: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        return real(*arguments) * (float("nan") if steps == 12 else 1.0)  # type: ignore[arg-type]

    monkeypatch.setattr("hatchway.training.loop.batch_loss", poisoned)
    with pytest.raises(DivergedError, match=r"nan at step 12.*last good checkpoint is .*step-00000010"):
        run(log, tmp_path, "factorisation")
    listed = json.loads((tmp_path / "diverged.json").read_text())
    assert listed["step"] == 12
    assert len(listed["buyers"]) == len(listed["items"]) == 8
    assert set(listed["items"]) <= set(range(40))


def test_a_loss_that_runs_away_stops_the_run(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty steps at a hundred times the first loss are no training."""
    real = batch_loss
    steps = 0

    def growing(*arguments: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        return real(*arguments) * (100.0 if steps > 20 else 1.0)  # type: ignore[arg-type]

    monkeypatch.setattr("hatchway.training.loop.batch_loss", growing)
    with pytest.raises(DivergedError, match=r"mean of 20 steps"):
        run(log, tmp_path, "factorisation")


def test_weights_that_are_no_numbers_are_not_saved(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite gradient behind a finite loss: the checkpoint before it stays the last one."""
    steps = 0

    def overflowing(model: TwoTower, *arguments: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        loss = batch_loss(model, *arguments)  # type: ignore[arg-type]
        assert model.item_tower.own is not None
        return loss + (torch.sqrt((model.item_tower.own(torch.tensor([0])) * 0).sum()) if steps == 7 else 0.0)

    monkeypatch.setattr("hatchway.training.loop.batch_loss", overflowing)
    with pytest.raises(
        DivergedError, match=r"own.weight holds NaN.*step-00000005|the loss is nan at step 8.*step-00000005"
    ):
        run(log, tmp_path, "factorisation")
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["step-00000005"]


def test_a_cut_checkpoint_is_named(log: Log, tmp_path: Path) -> None:
    """A checkpoint that was cut short by a full disk is not resumed from, and says which it is."""
    run(log, tmp_path, "factorisation")
    weights = checkpoints(tmp_path / "checkpoints")[-1] / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ArtefactError, match="step-00000048"):
        run(log, tmp_path, "factorisation", resume=True)


@pytest.mark.parametrize("name", ["weights.safetensors", "state.safetensors"])
def test_a_flipped_bit_is_not_resumed_from(log: Log, tmp_path: Path, name: str) -> None:
    """It would be a number like any other: the run would go on, and end with other weights."""
    run(log, tmp_path, "factorisation")
    path = checkpoints(tmp_path / "checkpoints")[-1] / name
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ArtefactError, match=f"step-00000048/{name} is not the file that was written; remove .* before"):
        run(log, tmp_path, "factorisation", resume=True)


def test_a_disk_that_is_full_is_said(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the checkpoint and the cause, nothing half-written is left, and the run can be resumed."""
    with monkeypatch.context() as full:

        def refuse(*_: object) -> None:
            raise SafetensorError("No space left on device (os error 28)")

        full.setattr("safetensors.torch.save_file", refuse)
        with pytest.raises(ArtefactError, match=r"step-00000005: cannot be written \(No space left"):
            run(log, tmp_path, "factorisation")
    assert not list((tmp_path / "checkpoints").iterdir())
    run(log, tmp_path, "factorisation", resume=True)


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}", '{"version": 1, "step": "x"}', '{"version": 1, "step": 5}'])
def test_a_damaged_state_is_named(log: Log, tmp_path: Path, text: str) -> None:
    """Whatever stands in state.json, what is wrong is said with the folder's name."""
    run(log, tmp_path, "factorisation")
    (checkpoints(tmp_path / "checkpoints")[-1] / "state.json").write_text(text)
    with pytest.raises(ArtefactError, match="step-00000048"):
        run(log, tmp_path, "factorisation", resume=True)


def test_state_of_other_tables_is_refused(log: Log, tmp_path: Path) -> None:
    """An accumulator of three rows belongs to another table; resuming with it would fail, or do something else."""
    run(log, tmp_path, "factorisation")
    path = checkpoints(tmp_path / "checkpoints")[-1] / "state.safetensors"
    about = json.loads(path.with_name("state.json").read_text())
    path.with_name("state.json").write_text(json.dumps(about | {"sha256": None}))  # else it is known to be another file
    whole = load_file(path)
    cut = {name: value[:3] if value.ndim else value for name, value in whole.items()}
    none = {name: value for name, value in whole.items() if not name.startswith("tables")}
    for tensors in (cut, none, {**whole, "tables.x.square": torch.ones(1)}):
        save_file(tensors, path)
        with pytest.raises(ArtefactError, match=r"state\.safetensors"):
            run(log, tmp_path, "factorisation", resume=True)


def test_a_cut_line_of_the_log_is_dropped(log: Log, tmp_path: Path) -> None:
    """A full disk may cut a line where it still ends with a brace; that must not keep a run from being resumed."""
    run(log, tmp_path, "factorisation")
    path = tmp_path / "log.jsonl"
    whole = path.read_text(encoding="utf-8")
    path.write_bytes(whole.encode() + b'\xff\n[1]\n{"step": 48, "loss": 1.0, "rates": {"tables": 0.1}')
    run(log, tmp_path, "factorisation", resume=True)
    assert path.read_text(encoding="utf-8") == whole


def test_best_weights_that_are_gone_are_missed(log: Log, tmp_path: Path) -> None:
    """The run says what is not there, instead of failing over it."""
    judge = Validation(lambda _: {"ndcg@20": 0.5}, "ndcg@20")
    run(log, tmp_path, "factorisation", validation=judge)
    shutil.rmtree(tmp_path / "best")
    with pytest.raises(ArtefactError, match="best"):
        run(log, tmp_path, "factorisation", validation=judge, resume=True)


def test_two_trainings_in_one_folder_are_refused(log: Log, tmp_path: Path) -> None:
    """The second would write into the checkpoints of the first, and end with a mixture of both."""
    with alone_in(tmp_path, "trained"), pytest.raises(UsageError, match="is being trained by another process"):
        run(log, tmp_path, "factorisation")
    assert not (tmp_path / "checkpoints").exists()
    run(log, tmp_path, "factorisation")


def test_nothing_to_train_on_is_said(log: Log, tmp_path: Path) -> None:
    """A log whose training part is empty is refused."""
    nothing = replace(log, engagements=replace(log.engagements, weights=log.engagements.weights * 0))
    with pytest.raises(DataError, match="no positive is left"):
        run(nothing, tmp_path, "factorisation")


def test_every_positive_comes_once_an_epoch_and_orders_differ(log: Log) -> None:
    """An epoch is a permutation; the next is another one; a resumed one continues in the middle."""
    positives = log.engagements.positives(Part.TRAIN)

    def rows(epoch: int, first: int = 0) -> list[int]:
        batches = epoch_batches(
            log.engagements, positives, batch=32, history=2, mask_days=30, seed=1, epoch=epoch, first_step=first
        )
        return [int(row) for batch in batches for row in batch.rows]

    assert sorted(rows(0)) == positives.tolist()
    assert rows(0) != rows(1)
    assert rows(0)[64:] == rows(0, first=2)


def test_nothing_of_validation_or_test_is_trained_on(log: Log) -> None:
    """Positives, histories and known items of every training batch hold training rows only."""
    engagements = log.engagements
    held_out = engagements.parts != Part.TRAIN
    for batch in epoch_batches(
        engagements, engagements.positives(Part.TRAIN), batch=64, history=50, mask_days=1e6, seed=1, epoch=0
    ):
        assert not held_out[batch.rows].any()
        for row, place in enumerate(batch.rows):
            buyer = engagements.buyers[place]
            own = slice(engagements.offsets[buyer], engagements.offsets[buyer + 1])
            before = engagements.items[own][engagements.parts[own] == Part.TRAIN]
            begin, end = batch.contexts.history_offsets[row : row + 2]
            assert set(batch.contexts.history[begin:end]) <= set(before)
            begin, end = batch.known_offsets[row : row + 2].tolist()
            assert set(batch.known_items[begin:end].tolist()) <= set(before.tolist())
