"""The exact softmax over the whole catalogue, tile by tile: what every sampled loss approximates.

    loss_i = −[s_ip − ln Σ_j exp(s_ij)],    s = q·v / temperature,  j over all items that are not masked for row i

The [B, N] matrix never exists. A first pass over tiles of rows and items keeps each row's largest score but for its
positive's, and the sum of the others' exponentials: beside a positive that has nearly all of the row they would be lost
in a sum with it. The way back computes each tile again, turns it into probabilities, and multiplies it into the two
gradients. Memory is that of the vectors, their gradients and one tile; time is four products of B·N·d, so a catalogue
of a million items and a batch of thousands take seconds a step on a CPU. With float64 vectors all of it is float64: the
audit of a sampled loss.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.losses.checks import Reduction, check_shape, check_temperature, check_weight, reduced
from hatchway.losses.once import once_differentiable
from hatchway.losses.temperature import Tempered

_TILE = (512, 2048)
"""Rows and items of a tile: 4 MiB of float32, which stay in a CPU's caches between the products."""


@dataclass(frozen=True)
class Tiles:
    """How a [B, N] matrix of scores is cut, and which of its entries are special.

    Attributes:
        rows: B.
        items: N.
        tile: rows and items of a tile.
        positives: [B] int64 item of each row's positive.
        masked: [M] int64, ``row * N + item`` of the masked entries in the order of the tiles.
        bounds: where the masked entries of each tile begin, and the end.
    """

    rows: int
    items: int
    tile: tuple[int, int]
    positives: Tensor
    masked: Tensor
    bounds: list[int]

    @classmethod
    def cut(cls, positives: Tensor, items: int, masked: tuple[Tensor, Tensor] | None, tile: tuple[int, int]) -> "Tiles":
        """Sort the masked entries into tiles; a row's own positive is not masked."""
        rows = len(positives)
        across = -(-rows // tile[0])
        number = across * -(-items // tile[1])
        if masked is None or not len(masked[0]):
            return cls(rows, items, tile, positives, positives.new_empty(0), [0] * (number + 1))
        kept = masked[1] != positives[masked[0]]
        row, item = masked[0][kept], masked[1][kept]
        order = item.div(tile[1], rounding_mode="floor") * across + row.div(tile[0], rounding_mode="floor")
        order, indices = torch.sort(order)
        bounds = torch.searchsorted(order, torch.arange(number + 1, device=order.device)).tolist()
        return cls(rows, items, tile, positives, (row * items + item)[indices], bounds)

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
        """Yield for each tile its rows, its items, and where in it the masked entries and the positives lie.

        The items are the outer loop. Places are indices of the flattened tile; those of the positives have one for
        each row of the tile, −1 where the row's positive is in another tile.
        """
        number = 0
        for first in range(0, self.items, self.tile[1]):
            items = slice(first, min(first + self.tile[1], self.items))
            for start in range(0, self.rows, self.tile[0]):
                rows = slice(start, min(start + self.tile[0], self.rows))
                width = items.stop - first
                entries = self.masked[self.bounds[number] : self.bounds[number + 1]]
                masked = (entries // self.items - start) * width + entries % self.items - first
                at = self.positives[rows] - first
                within = (at >= 0) & (at < width)
                places = torch.arange(len(at), device=at.device) * width + at
                yield rows, items, masked, torch.where(within, places, -1)
                number += 1


class _FullSoftmax(torch.autograd.Function):
    """The rows' losses, [B]."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, items: Tensor, tiles: Tiles) -> Tensor:
        """Keep the running largest score and the sum of exponentials of each row."""
        peak = query.new_full((tiles.rows,), -torch.inf)
        total = query.new_zeros(tiles.rows)
        positive = query.new_zeros(tiles.rows)
        buffer = query.new_empty(min(tiles.tile[0], tiles.rows) * min(tiles.tile[1], tiles.items))
        for rows, part, masked, places in tiles:
            scores = _scores(query[rows], items[part], masked, buffer)
            # Taken from the tile, so that a row of nothing but its positive has a loss of exactly 0.
            found = places >= 0
            positive[rows] = torch.where(found, scores.view(-1)[places.clamp(min=0)], positive[rows])
            scores.view(-1)[places[found]] = -torch.inf
            higher = torch.maximum(peak[rows], scores.amax(1))
            # A row that has been masked all along keeps −inf; its sum is 0, and −inf − −inf would make it NaN.
            shift = torch.where(torch.isinf(higher), 0.0, higher)
            total[rows] = total[rows] * torch.exp(peak[rows] - shift) + scores.sub_(shift[:, None]).exp_().sum(1)
            peak[rows] = higher
        losses = torch.logaddexp(total.log() + (peak - positive), torch.zeros_like(positive))
        losses += positive - positive  # NaN where the positive's score is no number
        # A row's normaliser is base + rest: in one float32 a score of ten thousand leaves no room for the rest.
        base = torch.maximum(peak, positive)
        rest = (total * torch.exp(peak - base) + torch.exp(positive - base)).log()
        ctx.tiles = tiles
        ctx.save_for_backward(query, items, losses, base, rest)
        return losses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile again and multiply its probabilities, less 1 at the positive, into the gradients."""
        query, items, *kept = ctx.saved_tensors
        with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
            by_query, by_items = _gradients(query, items, kept, gradients[0], ctx.tiles)
        inputs = (gradients[0], query, items)
        name = "full_softmax"
        return (
            once_differentiable(by_query, name, *inputs) if ctx.needs_input_grad[0] else None,
            once_differentiable(by_items, name, *inputs) if ctx.needs_input_grad[1] else None,
            None,
        )


def _scores(query: Tensor, items: Tensor, masked: Tensor, buffer: Tensor) -> Tensor:
    """Return the scores of a tile, [b, n] in the buffer, −inf where masked."""
    scores = buffer[: len(query) * len(items)].view(len(query), len(items))
    torch.mm(query, items.to(query.dtype).T, out=scores)
    scores.view(-1)[masked] = -torch.inf
    return scores


def _gradients(
    query: Tensor, items: Tensor, kept: Sequence[Tensor], gradient: Tensor, tiles: Tiles
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``(gradient * losses).sum()`` to the queries and to the items."""
    by_query = torch.zeros_like(query)
    by_items = torch.zeros(items.shape, dtype=query.dtype, device=items.device)
    weighed = query * gradient[:, None]
    losses, base, rest = kept
    excess = torch.expm1(-losses)
    buffer = query.new_empty(min(tiles.tile[0], tiles.rows) * min(tiles.tile[1], tiles.items))
    for rows, part, masked, places in tiles:
        vectors = items[part].to(query.dtype)
        share = _scores(query[rows], vectors, masked, buffer).sub_(base[rows, None]).sub_(rest[rows, None])
        found = places >= 0
        # The positive's share less 1, from the loss: near convergence it is all that is left, and must not be a
        # difference of two numbers that are alike.
        share.exp_().view(-1)[places[found]] = excess[rows][found]
        by_query[rows].addmm_(share, vectors)
        by_items[part].addmm_(share.T, weighed[rows])
    return by_query.mul_(gradient[:, None]), by_items.to(items.dtype)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # loops over tiles; a compiled step breaks its graph here
def full_softmax(
    query: Tensor,
    items: Tensor,
    positives: Tensor,
    *,
    temperature: Tensor | float = 1.0,
    masked: tuple[Tensor, Tensor] | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    tile: tuple[int, int] = _TILE,
) -> Tensor:
    """Cross-entropy of each row's positive against the whole catalogue.

    Args:
        query: [B, d] query vectors.
        items: [N, d] item vectors of the whole catalogue, in the order of the item rows.
        positives: [B] int64 item rows.
        temperature: divides every score; a number, or a scalar tensor that is learned.
        masked: coordinates ([M] int64 rows of the batch, [M] int64 item rows) of items that count for nothing in a
            row, in any order and with repeats as may be. A row's own positive among them is not masked.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).
        tile: rows and items that are scored at a time.

    Returns:
        A scalar, or [B]. Computed in float64 where the queries are, else in float32. A row whose every other item is
        masked has loss 0 and no gradient. A second differentiation is refused.

    Raises:
        DataError: shapes disagree, an item row is not in the catalogue, or the weights do not sum to more than 0.
        SettingsError: the temperature is not above 0.

    >>> import math, torch
    >>> loss = full_softmax(torch.zeros(2, 3), torch.zeros(7, 3), torch.tensor([4, 6]))
    >>> bool(torch.isclose(loss, torch.tensor(math.log(7))))
    True
    """
    check_temperature(temperature)
    _check(query, items, positives, masked, tile)
    check_weight(weight, len(query))
    with torch.autocast(query.device.type, enabled=False):
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        scaled = (query.to(dtype) / temperature).to(dtype)  # a temperature may be of float64
        tiles = Tiles.cut(positives, len(items), masked, tile)
        losses: Tensor = _FullSoftmax.apply(scaled, items, tiles)  # type: ignore[no-untyped-call]
        return reduced(losses, weight, reduction)


class FullSoftmax(Tempered):
    """:func:`full_softmax` with its temperature kept, and learned if wished.

    Args:
        temperature: the fixed or the initial temperature.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    def forward(
        self,
        query: Tensor,
        items: Tensor,
        positives: Tensor,
        *,
        masked: tuple[Tensor, Tensor] | None = None,
        weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the mean loss, a scalar; or, with ``reduction="none"``, that of every row, [B], weighted."""
        loss: Tensor = full_softmax(
            query, items, positives, temperature=self.temperature, masked=masked, weight=weight, reduction=reduction
        )
        return loss


def _check(
    query: Tensor, items: Tensor, positives: Tensor, masked: tuple[Tensor, Tensor] | None, tile: tuple[int, int]
) -> None:
    if query.dim() != 2 or items.dim() != 2 or query.shape[1] != items.shape[1]:
        raise DataError(
            f"query has shape {tuple(query.shape)} and items {tuple(items.shape)}; allowed: [B, d] and [N, d]"
        )
    if min(tile) < 1:
        raise DataError(f"tile is {tile}; allowed: rows and items of 1 or more")
    check_shape("positives", positives, (len(query),), "one item row for each query")
    indices = [("positives", positives, len(items))]
    if masked is not None:
        check_shape("masked[1]", masked[1], tuple(masked[0].shape), "masked is ([M] rows, [M] item rows)")
        indices += [("masked[0]", masked[0], len(query)), ("masked[1]", masked[1], len(items))]
    for name, index, end in indices:
        if index.dtype != torch.int64 or index.dim() != 1:
            raise DataError(f"{name} is {index.dtype} of shape {tuple(index.shape)}; allowed: one dimension of int64")
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < end:
            raise DataError(f"{name} is from {int(index.min())} to {int(index.max())}; allowed: from 0 to {end - 1}")
