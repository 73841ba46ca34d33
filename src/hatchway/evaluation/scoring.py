"""Whatever can be asked for the score of every item: the seam between evaluation and models."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from hatchway.data.contexts import Contexts

_ITEM_BLOCK = 65_536
"""Items embedded at once: bounds the item tower's working memory, whatever the catalogue."""


class Scorer(Protocol):
    """Scores the whole catalogue for a block of query contexts.

    Attributes:
        history_length: how many of the last engagements the contexts shall hold.
    """

    history_length: int

    def scores(self, contexts: Contexts) -> Tensor:
        """Return [B, N] float32 scores, one row a context, one column an item row; -inf is allowed, NaN is not.

        The tensor is used until the next call only, so a scorer may fill the same buffer again.
        """
        ...


class Towers(Protocol):
    """What scoring needs of a two-tower model: a ``torch.nn.Module`` with these two methods."""

    def query(self, contexts: Contexts) -> Tensor:
        """Return the [B, d] vectors of the contexts."""
        ...

    def item(self, rows: Tensor) -> Tensor:
        """Return the [M, d] vectors of the items."""
        ...

    def modules(self) -> Iterator[nn.Module]:
        """List the model and all its parts."""
        ...


class TowerScorer:
    """Scores by the raw dot product of a model's two towers; item vectors are computed once, when it is made.

    Items whose vectors are equal to the last bit get scores that are, too. A matrix product alone does not promise that
    (the columns at the edge of a block may be summed in another order), and the ties of a collapsed model, or of new
    items without features, would be broken by rounding.

    Args:
        towers: the model.
        item_count: N; item rows are ``0 .. N-1``.
        history_length: how many of the last engagements the query tower is given.
        device: where the model lives.
    """

    def __init__(
        self, towers: Towers, item_count: int, history_length: int, device: torch.device | str = "cpu"
    ) -> None:
        self.history_length = history_length
        self._towers = towers
        with _answering(towers):
            blocks = torch.split(torch.arange(item_count, device=device), _ITEM_BLOCK)
            vectors = torch.cat([towers.item(block) for block in blocks])
            self._vectors, self._copy_of = _distinct(vectors)
        self._buffer = torch.empty(0, device=self._vectors.device)

    def scores(self, contexts: Contexts) -> Tensor:
        """Return the [B, N] dot products of the contexts with every item."""
        with _answering(self._towers):
            queries = self._towers.query(contexts)
            if len(self._buffer) < len(queries):
                self._buffer = queries.new_empty(len(queries), len(self._vectors))
            # Into the same memory every time: fresh pages for each block cost as much as the product itself.
            scores = torch.mm(queries, self._vectors.T, out=self._buffer[: len(queries)])
            return scores if self._copy_of is None else scores.index_select(1, self._copy_of)


@contextmanager
def _answering(towers: Towers) -> Iterator[None]:
    """Run the towers without gradients and in evaluation mode, and put every part back into the mode it was in."""
    modes = [(module, module.training) for module in towers.modules()]
    for module, _ in modes:
        module.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _distinct(vectors: Tensor) -> tuple[Tensor, Tensor | None]:
    """Split [N, d] vectors into the distinct ones and, where some are equal, the [N] number of each item's own."""
    keys = torch.cat([_keys(block) for block in torch.split(vectors, _ITEM_BLOCK)])
    distinct, copy_of = torch.unique(keys, return_inverse=True)
    if len(distinct) == len(vectors):
        return vectors, None
    own = torch.empty_like(distinct).scatter_(0, copy_of, torch.arange(len(vectors), device=vectors.device))
    if bool((vectors[own][copy_of] == vectors).all()):
        return vectors[own], copy_of
    # Two different vectors share a key, once in 2^64 pairs.
    distinct, copy_of = torch.unique(vectors, dim=0, return_inverse=True)
    return distinct, copy_of


def _keys(vectors: Tensor) -> Tensor:
    """Return [M] int64 keys of [M, d] vectors: the bits times fixed odd numbers, summed modulo 2^64.

    Equal vectors have equal keys (adding 0.0 makes -0.0 and 0.0 one).
    """
    bits = (vectors.float() + 0.0).contiguous().view(torch.int32).long()
    factors = torch.randint(2**62, (bits.shape[1],), generator=torch.Generator().manual_seed(0), dtype=torch.int64)
    return (bits * (2 * factors + 1).to(bits.device)).sum(dim=1)
