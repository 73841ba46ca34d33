"""A device beside the CPU, for machines that have none: its numbers lie in the CPU's memory, and it is strict.

PyTorch lets a backend be written in Python. This one computes with the CPU's operations and refuses what an accelerator
refuses: operations on tensors of two devices (single numbers apart, and indices, which may lie on the CPU), and giving
its memory to NumPy.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "elsewhere"
_ATEN = torch.ops.aten
_TAKES_INDICES = {_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default, _ATEN._index_put_impl_.default}
_COPIES = {_ATEN.copy_.default, _ATEN._to_copy.default}


class _Module:
    """What PyTorch asks a backend's module for."""

    @staticmethod
    def is_available() -> bool:
        """There is one."""
        return True

    @staticmethod
    def is_initialized() -> bool:
        """From the start."""
        return True

    @staticmethod
    def device_count() -> int:
        """One."""
        return 1

    @staticmethod
    def current_device() -> int:
        """The only one."""
        return 0

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """Nothing here has random states."""

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        """What autocast may use."""
        return [torch.bfloat16]


@functools.cache
def device() -> torch.device:
    """Return the device; it is there for the rest of the process."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    return torch.device(NAME, 0)


class There(Tensor):
    """A tensor on the device; ``raw`` holds its numbers."""

    raw: Tensor

    def __new__(cls, raw: Tensor) -> Self:
        """Return a tensor like ``raw``, elsewhere."""
        made: Self = Tensor._make_wrapper_subclass(
            cls, raw.shape, raw.stride(), raw.storage_offset(), dtype=raw.dtype, device=device()
        )
        made.raw = raw
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch calls it so, and types it otherwise
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute."""
        return _computed(func, args, kwargs or {})

    def tolist(self) -> Any:
        """PyTorch knows no way from a subclass to a list."""
        return self.detach().cpu().tolist()


class _Mode(TorchDispatchMode):
    """Sees what is made."""

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute."""
        return _computed(func, args, kwargs or {})


@contextmanager
def elsewhere() -> Iterator[torch.device]:
    """Return the device; meanwhile tensors can be made there and moved there."""
    # torch.tensor would make a tensor here and move it out of sight.
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        with _Mode():  # type: ignore[no-untyped-call]
            yield device()
    finally:
        torch._C._set_only_lift_cpu_tensors(False)


def _computed(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    there = [one for one in tensors if isinstance(one, There)]
    here = [one for one in tensors if not isinstance(one, There) and one.ndim]
    wanted = kwargs.get("device")
    if there and here and func not in _COPIES and not (func in _TAKES_INDICES and isinstance(args[0], There)):
        raise RuntimeError(f"{func}: tensors on two devices, {NAME} and cpu")
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
        stays = torch.device(wanted).type == NAME
    else:
        stays = isinstance(args[0], There) if func in _COPIES | _TAKES_INDICES else bool(there)
    args, kwargs = tree_map_only(There, lambda one: one.raw, (args, kwargs))
    out = func(*args, **kwargs)
    if not stays:
        return out
    known = {id(one.raw): one for one in there}  # what an operation changes in place, it returns
    return tree_map(lambda one: _wrapped(one, known), out)


def _wrapped(one: Any, known: dict[int, There]) -> Any:
    if not isinstance(one, Tensor):
        return one
    return known[id(one)] if id(one) in known else There(one)
