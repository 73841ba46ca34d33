"""Exact search by tensor operations alone, on any device: the plain path beside the compiled loops.

From each tile a few more than k are taken by their quick scores and scored exactly. Where the bound on the error cannot
rule out all that was left behind, everything that it does not rule out is taken: detected, and repaired.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.index.error_bounds import thresholds
from hatchway.index.exact_loops import NOWHERE
from hatchway.index.protocol import Float32, Int64

_TILES_AT_ONCE = 16
_SPARE = 128
"""How many more than k are taken from a tile at first."""

_SCORED_AT_ONCE = 1 << 24
"""Numbers gathered together to be scored exactly, in float64."""


@dataclass(frozen=True)
class Searched:
    """What is searched.

    Attributes:
        vectors: [M, d] float32.
        entering: [M, d], the same as they enter the product.
        tile: positions for which there is one bound on the error.
    """

    vectors: Tensor
    entering: Tensor
    tile: int


@torch.inference_mode()
def best_of_block(
    searched: Searched,
    queries: Tensor,
    entered: Tensor,
    bounds: npt.NDArray[np.float64],
    kept: int,
    out: Tensor | None,
) -> tuple[Float32, Int64]:
    """Return the [b, kept] best scores and their positions, -inf and ``NOWHERE`` where there is none.

    Args:
        searched: the M vectors.
        queries: [b, d] float32.
        entered: [b, d], the same as they enter the product.
        bounds: [b, tiles] of their error.
        kept: how many each query gets.
        out: [M] bool, positions that must not be returned; None for none.
    """
    device = queries.device
    best = torch.full((len(queries), kept), -torch.inf, device=device)
    places = torch.full((len(queries), kept), int(NOWHERE), device=device)
    step = _TILES_AT_ONCE * searched.tile
    for first in range(0, len(searched.vectors), step):
        end = min(first + step, len(searched.vectors))
        vectors = searched.vectors[first:end]
        quick = (entered @ searched.entering[first:end].T).float()
        open_ = torch.ones(end - first, dtype=torch.bool, device=device) if out is None else ~out[first:end]
        quick[:, ~open_] = -torch.inf
        taken = min(kept + _SPARE, end - first)
        highest, columns = quick.topk(taken, dim=1)
        before = best, places
        best, places = _with(best, places, vectors, queries, columns, first, open_)
        if taken == end - first:
            continue
        bound = bounds[:, first // searched.tile : -(-end // searched.tile)].max(axis=1)
        least = torch.from_numpy(thresholds(best[:, -1].cpu().numpy(), bound)).to(device)
        for query in torch.nonzero(~(highest[:, -1] < least))[:, 0].tolist():
            one = slice(query, query + 1)
            possible = (~(quick[query] < least[query]) & open_).nonzero()[:, 0]
            state = before[0][one], before[1][one]
            for part in possible.split(step):
                state = _with(*state, vectors, queries[one], part[None], first, open_)
            best[one], places[one] = state
    return best.cpu().numpy(), places.cpu().numpy()


def _with(
    best: Tensor, places: Tensor, vectors: Tensor, queries: Tensor, columns: Tensor, first: int, open_: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the best scores and positions of those there were and of [b, c] columns of a tile, in order."""
    scores = torch.empty(columns.shape, device=queries.device)
    step = max(1, _SCORED_AT_ONCE // max(1, columns.shape[1] * vectors.shape[1]))
    for begin in range(0, len(columns), step):
        block = slice(begin, begin + step)
        products = vectors[columns[block]].double() * queries[block, None].double()
        scores[block] = products.sum(dim=2).float()
    there = open_[columns]
    scores = torch.cat([best, scores.masked_fill(~there, -torch.inf)], dim=1)
    positions = torch.cat([places, (columns + first).masked_fill(~there, int(NOWHERE))], dim=1)
    order = positions.argsort(dim=1, stable=True)
    order = order.gather(1, scores.gather(1, order).argsort(dim=1, descending=True, stable=True))[:, : best.shape[1]]
    return scores.gather(1, order), positions.gather(1, order)
