"""The last step: the bundle and the state take their places, and nobody sees them until the pointer moves."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch

from hatchway.nightly.making import BUNDLE, RUN, SKETCH
from hatchway.nightly.material import Material
from hatchway.nightly.state import StateManifest, write_state
from hatchway.training.checkpoint import checkpoints


def publish(material: Material, night: Path, work: Path, shape: Mapping[str, Mapping[str, str]]) -> None:
    """Move the bundle to its place and write the state; the night's record and the pointer come after.

    It may be cut short anywhere and done again.

    Args:
        material: what the night worked with.
        night: the night's folder.
        work: where the steps left their files.
        shape: the columns of the store with their types.
    """
    frame = material.catalogue.frame
    offered = frame.filter(material.offered)
    manifest = StateManifest(
        parts=(),
        day=material.day,
        trained_until=material.cutoff,
        sketched_until=material.cutoff,
        model=material.model_settings,
        asked=material.recipe.model,
        reading=material.reading,
        event_columns=dict(shape["events"]),
        catalogue_columns=dict(shape["catalogue"]),
        missing={
            name: offered[name].null_count() / max(len(offered), 1) if name in frame.columns else 1.0
            for name in material.model_settings.item.columns
        },
    )
    last = checkpoints(work / RUN / "checkpoints")[-1]
    sketch = safetensors.torch.load_file(work / SKETCH)
    write_state(night / "state", manifest, last, frame, material.log.buyers, sketch)
    aside = work / f"{BUNDLE}.old"
    if aside.exists():  # of an attempt that was killed two lines below
        shutil.rmtree(aside)
    if (night / BUNDLE).exists():  # of a night that was withdrawn, or killed just after
        (night / BUNDLE).rename(aside)
    (work / BUNDLE).rename(night / BUNDLE)
