"""A run on disk: what was run, on which store, and the model that came of it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pydantic
import safetensors.torch

from hatchway.artefacts.alone import alone_in
from hatchway.artefacts.atomic import replacing_folder, settle, write_text
from hatchway.artefacts.manifest import is_not, sha256_of, what_lies_at
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import Store, is_store
from hatchway.errors import ArtefactError, DataError, UsageError
from hatchway.settings import Settings
from hatchway.towers.build import build_model
from hatchway.towers.features import FeatureReading
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.checkpoint import save_tensors

VERSION = 1

BUNDLE = "bundle"
"""Where a run keeps its bundle."""


class RunRecord(Settings):
    """What ``run.json`` says: enough to build the same log and the same model again.

    Attributes:
        version: of this format.
        store: where the store lies, relative to the run folder.
        store_digest: which store it was.
        seed: the run's seed.
        positives, split, model: the settings that shaped the log and the model.
        settings: all settings of the run, as they were.
        versions: of the libraries that decide the bits.
        notes: what was said about the log.
        mine_from, mine_judge: the earlier models that negatives were mined with, relative to the run folder.
    """

    version: int = VERSION
    store: str
    store_digest: str
    seed: int
    positives: PositivesSettings
    split: SplitSettings
    model: ModelSettings
    settings: dict[str, Any]
    versions: dict[str, str]
    notes: tuple[str, ...]
    mine_from: str | None = None
    mine_judge: str | None = None


class ModelRecord(Settings):
    """What ``model/model.json`` says of the weights beside it.

    Attributes:
        version: of this format.
        items, buyers: rows of the tables.
        model: what the model is made of.
        reading: how item columns are read.
        step: the training step that the weights are of.
        validation: the validations of the run, oldest first.
        loss: mean training loss of the last steps.
        weights_sha256: of the file of weights, filled in when it is written.
    """

    version: int = VERSION
    items: int
    buyers: int
    model: ModelSettings
    reading: FeatureReading
    step: int
    validation: tuple[dict[str, float], ...]
    loss: float
    weights_sha256: str = ""


@dataclass(frozen=True)
class RunFolder:
    """An opened run folder; see :meth:`open`."""

    path: Path
    record: RunRecord

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a run folder.

        Raises:
            DataError: there is no run at ``path``.
            ArtefactError: its record cannot be read.
        """
        path = Path(path)
        if not (path / "run.json").is_file():
            what = what_lies_at(path)
            remedy = {
                "a store": f"train on it first: hatchway train {path} --out RUN",
                "a bundle": "name the run that it was made of",
                "nothing": f"make one with: hatchway train STORE --out {path}",
            }.get(what, "make one with: hatchway train STORE --out RUN")
            raise DataError(f"{is_not('a run', path)}; {remedy}")
        try:
            return cls(path, RunRecord.model_validate_json((path / "run.json").read_bytes()))
        except pydantic.ValidationError as error:
            raise ArtefactError(
                f"{path / 'run.json'} is damaged or of another version of Hatchway ({error.error_count()} faults, the "
                f"first: {error.errors()[0]['msg']}); train again"
            ) from None

    @classmethod
    def create(cls, path: Path, record: RunRecord) -> Self:
        """Write the record of a new run, before anything is trained.

        Raises:
            UsageError: another process has just begun one there, or a store lies there.
        """
        if is_store(path):
            raise UsageError(f"{path} is a store, and an import would replace the run with it; name another folder")
        with alone_in(path, "trained"):
            if (path / "run.json").exists():
                raise UsageError(
                    f"{path} holds a run already, begun by another process just now; choose another folder"
                )
            write_text(path / "run.json", record.model_dump_json(indent=1) + "\n")
        return cls(path, record)

    def store(self) -> Store:
        """Open the store that the run was trained on, hashing its parts: the model knows items by their row numbers.

        Raises:
            DataError: the store is gone.
            ArtefactError: the store, or a part of it, has changed since.
        """
        store = Store.open(self.path / self.record.store)
        if store.digest != self.record.store_digest:
            raise ArtefactError(
                f"the store {store.path} has changed since {self.path} was trained (digest {store.digest[:12]} "
                f"instead of {self.record.store_digest[:12]}); item rows may mean other items now: train again"
            )
        store.verify()
        return store

    def log(self) -> Log:
        """Build the run's log from its store again."""
        return build_log(self.store(), self.record.positives, self.record.split, self.record.seed)

    @property
    def model_folder(self) -> Path:
        """Where the finished model lies."""
        return self.path / "model"

    def is_finished(self) -> bool:
        """Whether a model has been written."""
        settle(self.model_folder)
        return (self.model_folder / "model.json").is_file()

    def model_record(self) -> ModelRecord:
        """Read what is known of the finished model.

        Raises:
            DataError: the run is not finished.
            ArtefactError: the record cannot be read.
        """
        if not self.is_finished():
            raise DataError(
                f"{self.path} has no finished model; continue it with: hatchway train STORE --out {self.path} --resume"
            )
        path = self.model_folder / "model.json"
        try:
            return ModelRecord.model_validate_json(path.read_bytes())
        except pydantic.ValidationError as error:
            raise ArtefactError(
                f"{path} is damaged or of another version of Hatchway ({error.errors()[0]['msg']}); remove "
                f"{self.model_folder} and finish the run again: hatchway train STORE --out {self.path} --resume"
            ) from None

    def load_model(self, log: Log) -> TwoTower:
        """Return the trained model, in evaluation mode.

        Args:
            log: the run's log, from :meth:`log`.

        Raises:
            DataError: the run is not finished.
            ArtefactError: the weights are cut short, changed, or of another model.
        """
        about = self.model_record()
        path = self.model_folder / "weights.safetensors"
        model = build_model(log.catalogue, about.buyers, about.model, self.record.seed, about.reading)
        try:
            model.load_state_dict(safetensors.torch.load_file(path))
            changed = about.weights_sha256 and sha256_of(path) != about.weights_sha256
        except (OSError, RuntimeError, safetensors.SafetensorError) as error:
            raise ArtefactError(f"{path}: cannot be used ({error}); train again") from None
        if changed:
            raise ArtefactError(f"{path} is not the file that was written; train again")
        return model.eval()

    def save_model(self, model: TwoTower, record: ModelRecord) -> None:
        """Write the finished model, whole or not at all."""
        with replacing_folder(self.model_folder) as partial:
            save_tensors(model.state_dict(), partial / "weights.safetensors", self.model_folder)
            whole = record.model_copy(update={"weights_sha256": sha256_of(partial / "weights.safetensors")})
            (partial / "model.json").write_text(whole.model_dump_json(indent=1) + "\n", encoding="utf-8")


def relative_to_run(store: Path, run: Path) -> str:
    """Return the store's path as seen from the run folder, so that the two can be moved together."""
    return Path(os.path.relpath(os.path.realpath(store), os.path.realpath(run))).as_posix()
