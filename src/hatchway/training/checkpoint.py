"""Checkpoints: everything that the next step depends on, written whole or not at all, never unpickled."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pydantic
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hatchway.artefacts.atomic import replacing_folder
from hatchway.artefacts.manifest import sha256_of
from hatchway.errors import ArtefactError

VERSION = 1
_TENSORS = ("weights.safetensors", "state.safetensors")


@dataclass(frozen=True)
class Progressed:
    """Where a run stands, besides its tensors.

    Attributes:
        step: steps done.
        best_score: the best validation so far, or None.
        first_losses: the losses of the first steps, which divergence is measured against.
        recent_losses: the losses of the last steps.
        history: the validations so far, one mapping each with ``step`` and the scores.
    """

    step: int = 0
    best_score: float | None = None
    first_losses: tuple[float, ...] = ()
    recent_losses: tuple[float, ...] = ()
    history: tuple[dict[str, float], ...] = ()


class Carried(Protocol):
    """What a run carries from step to step besides weights and optimisers: a queue, running counts."""

    def state(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on."""
        ...

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put a state back.

        Raises:
            ArtefactError: it is the state of something else.
        """
        ...


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    loss: nn.Module,
    optimisers: dict[str, Optimizer],
    at: Progressed,
    keep: int,
    carried: Mapping[str, Carried] = MappingProxyType({}),
) -> Path:
    """Write a checkpoint and remove all but the newest ``keep``.

    Random streams need no saving: each is a function of the seed and the step.

    Args:
        folder: the run's ``checkpoints`` folder.
        model: the module whose parameters are trained.
        loss: the loss, which may have parameters of its own.
        optimisers: by name.
        at: where the run stands.
        keep: checkpoints to keep, this one among them.
        carried: what else the next step depends on, by name.

    Returns:
        The checkpoint's folder, ``step-00000500``.
    """
    target = folder / _name(at.step)
    with replacing_folder(target) as partial:
        save_tensors(model.state_dict(), partial / "weights.safetensors", target)
        state = loss.state_dict(prefix="loss.") | _optimiser_tensors(optimisers)
        state |= {f"{name}.{key}": tensor for name, held in carried.items() for key, tensor in held.state().items()}
        save_tensors(state, partial / "state.safetensors", target)
        about = {"version": VERSION, "sha256": {name: sha256_of(partial / name) for name in _TENSORS}, **vars(at)}
        (partial / "state.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return target


def checkpoints(folder: Path) -> list[Path]:
    """List the whole checkpoints in ``folder``, oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / "state.json").is_file())


def load_checkpoint(
    path: Path,
    model: nn.Module,
    loss: nn.Module,
    optimisers: dict[str, Optimizer],
    carried: Mapping[str, Carried] = MappingProxyType({}),
) -> Progressed:
    """Put a checkpoint's tensors back and return where the run stood.

    Raises:
        ArtefactError: the checkpoint is cut short or changed, of another version, or of another model.
    """
    try:
        about: Any = json.loads((path / "state.json").read_text(encoding="utf-8"))
        weights, state = (safetensors.torch.load_file(path / name) for name in _TENSORS)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ArtefactError(
            f"{path}: cannot be read ({error}); remove the folder to resume from the one before"
        ) from None
    if not isinstance(about, dict) or about.pop("version", None) != VERSION:
        raise ArtefactError(f"{path}: is of another format version; this Hatchway reads version {VERSION}")
    written = about.pop("sha256", None)
    for name in _TENSORS if isinstance(written, dict) else ():
        if sha256_of(path / name) != written.get(name):
            raise ArtefactError(
                f"{path / name} is not the file that was written; remove {path} to resume from the one before"
            )
    try:
        model.load_state_dict(weights)
        loss.load_state_dict({k.removeprefix("loss."): v for k, v in state.items() if k.startswith("loss.")})
    except RuntimeError as error:
        raise ArtefactError(f"{path}: is of another model than the settings describe ({error})") from None
    try:
        restore_optimisers(optimisers, state)
        for name, held in carried.items():
            held.load_state({k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")})
        at = pydantic.TypeAdapter(Progressed).validate_python(about)
    except pydantic.ValidationError as error:
        raise ArtefactError(f"{path / 'state.json'}: is damaged ({error.errors()[0]['msg']})") from None
    except (ValueError, KeyError, ArtefactError) as error:
        raise ArtefactError(f"{path / 'state.safetensors'}: is no state of this run ({error})") from None
    if path.name != _name(at.step):
        raise ArtefactError(f"{path / 'state.json'}: is damaged (it is of step {at.step}, the folder is {path.name})")
    return at


def _name(step: int) -> str:
    return f"step-{step:08d}"


def save_tensors(tensors: dict[str, Tensor], path: Path, target: Path) -> None:
    """Write tensors to a file.

    Args:
        tensors: by name.
        path: the file.
        target: what the file will be a part of, for the message.

    Raises:
        ArtefactError: it cannot be written, say because the disk is full.
    """
    whole: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        here = tensor.detach().contiguous()
        # A table that two towers share is written under both names: the format knows no shared memory.
        whole[name] = here.clone() if here.numel() and here.data_ptr() in places else here
        places.add(here.data_ptr())
    try:
        safetensors.torch.save_file(whole, path)
    except safetensors.SafetensorError as error:  # its way to say what the system refused
        raise ArtefactError(f"{target}: cannot be written ({error}); mend that, then continue with --resume") from None


def _optimiser_tensors(optimisers: dict[str, Optimizer]) -> dict[str, Tensor]:
    """Flatten the per-parameter state to names such as ``tables.0.square``."""
    return {
        f"{name}.{number}.{key}": torch.as_tensor(value)
        for name, optimiser in optimisers.items()
        for number, state in optimiser.state_dict()["state"].items()
        for key, value in state.items()
    }


def restore_optimisers(optimisers: dict[str, Optimizer], tensors: dict[str, Tensor]) -> None:
    """Put the optimisers' own tensors back; what has other names is passed over.

    Raises:
        ValueError: there is nothing for one of them, or what is there is of other parameters.
    """
    for name, optimiser in optimisers.items():
        state: dict[int, dict[str, Tensor]] = {}
        for flat, tensor in tensors.items():
            owner, _, rest = flat.partition(".")
            if owner == name:
                number, _, key = rest.partition(".")
                state.setdefault(int(number), {})[key] = tensor
        if not state:
            raise ValueError(f"there is none of {name}")
        parameters: list[Tensor] = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        for place, values in state.items():
            if place >= len(parameters):
                raise ValueError(f"{name} has no parameter {place}")
            rows = parameters[place].shape[:1]
            if any(value.ndim and value.shape[:1] != rows for value in values.values()):
                raise ValueError(f"{name}.{place} is of another table or layer")
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
