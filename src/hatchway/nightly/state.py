"""What a night leaves to the next: the model with its optimisers, the items and buyers it knows, the frequencies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import polars as pl
import safetensors
import safetensors.torch
from torch import Tensor

from hatchway.artefacts.atomic import replacing_folder, settle
from hatchway.artefacts.manifest import (
    Manifest,
    describe_parts,
    digest,
    read_manifest,
    verify_parts,
    write_manifest,
)
from hatchway.data.buyers import Buyers
from hatchway.data.engagements import Int64
from hatchway.errors import ArtefactError
from hatchway.towers.features import FeatureReading
from hatchway.towers.settings import ModelSettings
from hatchway.training.checkpoint import save_tensors

_REMEDY = "go back to an earlier night: hatchway rollback NIGHTS"


class StateManifest(Manifest):
    """What the state of a night says of itself.

    Attributes:
        day: the day since 1970 that the night was of.
        trained_until: Unix seconds; positives before it have been trained on.
        sketched_until: Unix seconds; positives before it are in the sketch.
        model: what the model is made of.
        asked: what the recipe asked for, before what the log has nothing for was switched off; None in states that were
            written before this was kept.
        reading: how it reads item columns.
        event_columns, catalogue_columns: the store's, with their types, by name.
        missing: share of offered items without a usable value, by column that the model reads.
    """

    format: Literal["hatchway-night-state"] = "hatchway-night-state"
    version: Literal[1] = 1
    day: int
    trained_until: int
    sketched_until: int
    model: ModelSettings
    reading: FeatureReading
    event_columns: dict[str, str]
    catalogue_columns: dict[str, str]
    missing: dict[str, float]
    asked: ModelSettings | None = None


@dataclass(frozen=True, eq=False)
class NightState:
    """The state of a night, checked against its manifest; see :meth:`open`."""

    path: Path
    manifest: StateManifest

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a state, hashing every part.

        Raises:
            ArtefactError: there is none, or a part is missing, cut short or changed.
        """
        settle(path)
        manifest = read_manifest(path, StateManifest, _REMEDY)
        verify_parts(path, manifest, _REMEDY)
        return cls(path, manifest)

    @property
    def digest(self) -> str:
        """One sha256 in hex that identifies the state."""
        return digest(self.manifest)

    def catalogue(self) -> pl.DataFrame:
        """Return the items that the night knew, in the order of their rows."""
        return pl.read_parquet(self.path / "catalogue.parquet", glob=False)

    def rows_of_buyers(self, buyers: Buyers) -> Int64:
        """Return the rows that buyers had in that night, [len(buyers)] int64, -1 for those it did not know."""
        return Buyers(pl.read_parquet(self.path / "buyers.parquet", glob=False)["buyer"]).rows(buyers.ids)

    def weights(self) -> dict[str, Tensor]:
        """Return the model's tensors by name."""
        return _tensors(self.path / "weights.safetensors")

    def optimisers(self) -> dict[str, Tensor]:
        """Return the tensors of ``state.safetensors`` of the last checkpoint."""
        return _tensors(self.path / "optimisers.safetensors")

    def sketch(self) -> dict[str, Tensor]:
        """Return the frequencies' tensors; none where counts are made anew every night."""
        return _tensors(self.path / "sketch.safetensors")


def write_state(
    target: Path,
    manifest: StateManifest,
    checkpoint: Path,
    catalogue: pl.DataFrame,
    buyers: Buyers,
    sketch: dict[str, Tensor],
) -> NightState:
    """Write the state of a night, whole or not at all.

    Args:
        target: the folder.
        manifest: everything but the parts.
        checkpoint: the run's last checkpoint.
        catalogue: the items in the order of their rows.
        buyers: the buyers.
        sketch: the frequencies' tensors.
    """
    with replacing_folder(target) as folder:
        for name, source in (("weights", "weights"), ("optimisers", "state")):
            (folder / f"{name}.safetensors").write_bytes((checkpoint / f"{source}.safetensors").read_bytes())
        catalogue.write_parquet(folder / "catalogue.parquet", compression="zstd", statistics=False)
        buyers.ids.alias("buyer").to_frame().write_parquet(folder / "buyers.parquet", compression="zstd")
        save_tensors(sketch, folder / "sketch.safetensors", target)
        whole = manifest.model_copy(update={"parts": describe_parts(folder)})
        write_manifest(folder, whole)
    return NightState(target, whole)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise ArtefactError(f"{path} cannot be read ({error}); {_REMEDY}") from None
