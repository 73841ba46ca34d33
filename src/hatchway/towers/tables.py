"""Tables of vectors with sparse gradients, and what is done with the vectors that are looked up in them."""

import weakref
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hatchway.towers.lookups import LookedUp, LookUp, LookUpBags


class Seen(list[LookedUp]):
    """The look-ups of a table whose gradients have arrived; a list that can be referred to weakly."""


class Table(nn.Embedding):
    """A table whose gradient lists touched rows only.

    By itself it is an ``nn.Embedding(sparse=True)``, whose gradients autograd collects in ``weight.grad`` for any
    optimiser. :class:`hatchway.training.optimiser.RowWiseAdagrad` takes a table over: gradients then go to the
    optimiser by a shorter way and ``weight.grad`` stays None, until the optimiser is no more.
    """

    _owner: weakref.ref[Seen] | None = None

    def owned_by(self, seen: Seen) -> None:
        """From now on leave gradients in ``seen``, as long as somebody keeps it."""
        self._owner = weakref.ref(seen)

    @property
    def seen(self) -> Seen | None:
        """Where gradients are left; None for ``weight.grad``."""
        return None if self._owner is None or not torch.is_grad_enabled() else self._owner()

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  the name that nn.Embedding gave it
        """Look up vectors: [...] int64 rows to [..., width]."""
        seen = self.seen
        if seen is None:
            return super().forward(input)
        return cast("Tensor", LookUp.apply(self.weight, input, seen))  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy is nobody's until an optimiser takes it over."""
        super().__setstate__({key: value for key, value in state.items() if key != "_owner"})  # type: ignore[no-untyped-call]


def table(rows: int, width: int, scale: float) -> Table:
    """Make a [rows, width] table, normal with standard deviation ``scale``.

    The numbers come from PyTorch's global stream, as those of every layer do; whoever builds a model sets it aside with
    ``torch.random.fork_rng`` and a seed of its own (:func:`hatchway.towers.build.build_model` does).
    """
    embedding = Table(rows, width, sparse=True, _weight=empty_rows(rows, width))
    nn.init.normal_(embedding.weight, std=scale)
    return embedding


def empty_rows(rows: int, width: int) -> Tensor:
    """Return an uninitialised [rows, width] float32 tensor on the default device.

    On the CPU NumPy asks the system for large pages, PyTorch does not; with small ones a look-up in a table of
    gigabytes waits for the page's address as long as for the row.
    """
    if torch.get_default_device().type != "cpu":
        return torch.empty(rows, width)
    return torch.from_numpy(np.empty((rows, width), np.float32))


def bag(
    embedding: nn.Embedding, indices: Tensor, offsets: Tensor, *, mean: bool = False, weights: Tensor | None = None
) -> Tensor:
    """Sum (or average) the vectors of each bag.

    Args:
        embedding: the table.
        indices: [H] int64 rows, one bag after another.
        offsets: [B + 1] int64, where each bag begins.
        mean: average instead of summing; an empty bag is 0 either way.
        weights: [H] factors, for sums only.

    Returns:
        [B, width].
    """
    seen = embedding.seen if isinstance(embedding, Table) else None
    if seen is None:
        return functional.embedding_bag(
            indices,
            embedding.weight,
            offsets,
            mode="mean" if mean else "sum",
            sparse=True,
            per_sample_weights=weights,
            include_last_offset=True,
        )
    if mean:
        lengths = offsets.diff()
        weights = torch.repeat_interleave(1.0 / lengths.clamp(min=1), lengths)
    return cast("Tensor", LookUpBags.apply(embedding.weight, indices, offsets, weights, seen))  # type: ignore[no-untyped-call]


def scale_rows(vectors: Tensor) -> Tensor:
    """Scale every row to length 1; a zero row stays zero."""
    return functional.normalize(vectors, dim=1)
