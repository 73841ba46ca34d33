"""Tensors that were saved, held against what the settings describe before any of them is put back."""

from collections.abc import Mapping

from torch import Tensor

from hatchway.errors import ArtefactError


def restored(state: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of ``state`` under the names of ``like``.

    Args:
        state: what was saved.
        like: by name, tensors of the shape and dtype that are needed.

    Raises:
        ArtefactError: a name is missing or too much, or a tensor has another shape or dtype.
    """
    if state.keys() != like.keys():
        raise ArtefactError(f"the saved frequency holds {sorted(state)}; this one needs {sorted(like)}")
    for name, tensor in like.items():
        saved = state[name]
        if saved.shape != tensor.shape or saved.dtype != tensor.dtype:
            raise ArtefactError(
                f"the saved frequency's {name!r} is {tuple(saved.shape)} {saved.dtype}; these settings need "
                f"{tuple(tensor.shape)} {tensor.dtype}. Were the settings changed, or the catalogue?"
            )
    return dict(state)
