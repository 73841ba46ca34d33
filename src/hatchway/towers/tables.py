"""Tables of vectors with sparse gradients, and what is done with the vectors that are looked up in them."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def table(rows: int, width: int, scale: float) -> nn.Embedding:
    """Make a [rows, width] table, normal with standard deviation ``scale``, whose gradient lists touched rows only.

    The numbers come from PyTorch's global stream, as those of every layer do; whoever builds a model sets it aside with
    ``torch.random.fork_rng`` and a seed of its own (:func:`hatchway.towers.build.build_model` does).
    """
    embedding = nn.Embedding(rows, width, sparse=True, _weight=torch.empty(rows, width))
    nn.init.normal_(embedding.weight, std=scale)
    return embedding


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
    return functional.embedding_bag(
        indices,
        embedding.weight,
        offsets,
        mode="mean" if mean else "sum",
        sparse=True,
        per_sample_weights=weights,
        include_last_offset=True,
    )


def scale_rows(vectors: Tensor) -> Tensor:
    """Scale every row to length 1; a zero row stays zero."""
    return functional.normalize(vectors, dim=1)
