"""Exact search: every query against every vector, in tiles, so that no [Q, N] matrix is ever whole in memory.

Products are quick and slightly wrong: in bf16 where the processor multiplies that, in float32 elsewhere. They only rule
out, by a bound on their error (:mod:`~hatchway.index.error_bounds`), what cannot be among the best; the rest is scored
exactly. So the answer is the exact one for any vectors, and the same on every machine: the k highest dot products, in
float64 and rounded once to float32, equal ones by row number. It is the oracle of every other index.
"""

import itertools
import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import at_once, parts_of, suits
from hatchway.index.error_bounds import Lengths, error_bounds, float32_products_are_full, lengths, thresholds
from hatchway.index.exact_loops import NOWHERE, scan, scan_bf16, settle
from hatchway.index.exact_plain import Searched, best_of_block
from hatchway.index.protocol import (
    Float32,
    Int64,
    Mask,
    Neighbours,
    checked_k,
    checked_rows,
    checked_vectors,
    checked_without,
    nothing,
)

Products = Literal["auto", "float32", "bf16"]
"""What quick scores are made of; no answer depends on it. ``auto``: bf16 where the processor multiplies it."""

_QUERIES_AT_ONCE = 256
_TILE = 4096
_FIRST_TILE, _GROWTH = 16, 4
"""All of the first tile is scored exactly, since nothing is known that could rule anything out; so it is small."""

_LARGEST_TILE = 16 * _TILE
_FEWEST_A_THREAD = 16
_COPIED_BELOW = 2
"""Rows to be found that are less than a half of the vectors are copied."""

_SAMPLED = 16
"""Every 16th vector is searched first, to guess the k-th best score; what the guess misses is searched for again."""

_SAMPLED_FROM = 2 * _TILE
"""Fewer vectors than that are not worth a guess."""


class ExactIndex:
    """The vectors themselves, scored one and all.

    Args:
        vectors: [N, d] item vectors; row numbers in answers are rows of this array. Not copied where it is float32 and
            contiguous, which a memory-mapped array may be.
        rows: the row numbers to be found; all where None.
        products: what the quick scores are made of.
        device: where they are made; the vectors are copied to it if it is not the CPU.
        use_compiled: whether the loops may be compiled ones, where numba is installed.

    Raises:
        DataError: a vector is not finite, or a row number is out of range or there twice.
    """

    def __init__(
        self,
        vectors: npt.ArrayLike,
        rows: npt.ArrayLike | None = None,
        *,
        products: Products = "auto",
        device: torch.device | str = "cpu",
        use_compiled: bool = True,
    ) -> None:
        whole = checked_vectors(vectors, "item vectors")
        labels = np.sort(checked_rows(rows, len(whole)))
        self._rows_end, self._count = len(whole), len(labels)
        # Of many rows the others are only kept out; few are copied, so that the others cost no time.
        copied = _COPIED_BELOW * len(labels) < len(whole)
        self._vectors: Float32 = whole[labels] if copied else whole
        self._labels: Int64 | None = labels if copied else None
        self._absent: Mask | None = None
        if not copied and len(labels) < len(whole):
            self._absent = np.ones(len(whole), np.bool_)
            self._absent[labels] = False
        self._device = torch.device(device)
        self._products: Products = products
        if products == "auto":
            self._products = "bf16" if multiplies_bf16(self._device) else "float32"
        self._whole = _tensor_of(self._vectors).to(self._device)
        self._compiling = use_compiled and suits(self._whole)
        self._entering = (
            torch.empty_like(self._whole, dtype=torch.bfloat16) if self._products == "bf16" else self._whole
        )
        self._lengths = self._round()
        self._sample: ExactIndex | None = None
        if self._compiling and self._count >= _SAMPLED_FROM:
            places = np.arange(self._count) if self._absent is None else labels
            self._sample = ExactIndex(self._vectors, places[::_SAMPLED], products=self._products)

    def _round(self) -> Lengths:
        """Round the vectors, where that is done, and measure each tile's longest."""
        starts = range(0, len(self._vectors), _TILE)
        longest = np.empty((2, len(starts)))

        def part(_: int, begin: int, end: int) -> None:
            for tile in range(begin, end):
                block = slice(starts[tile], starts[tile] + _TILE)
                if self._products == "bf16":
                    self._entering[block] = self._whole[block]
                entered, lost = lengths(self._whole[block], self._entering[block])
                longest[:, tile] = float(entered.max()), float(lost.max())

        at_once(part, parts_of(len(starts), 4) if self._device.type == "cpu" else [(0, len(starts))])
        longest *= 1 + 1e-9
        return Lengths(longest[0], longest[1])

    def __len__(self) -> int:
        return self._count

    @property
    def dimension(self) -> int:
        """The numbers in a vector, d."""
        return int(self._vectors.shape[1])

    @property
    def rows_end(self) -> int:
        """N, the rows of the vectors."""
        return self._rows_end

    @property
    def rows(self) -> Int64:
        """The row numbers that can be found, ascending, [len(self)] int64."""
        if self._labels is not None:
            return self._labels
        return np.arange(self._rows_end) if self._absent is None else np.flatnonzero(~self._absent)

    def search(self, queries: npt.ArrayLike, k: int, *, without: Mask | None = None) -> Neighbours:
        """Return the k best rows of each of the [Q, d] queries, as :class:`~hatchway.index.protocol.Index` says."""
        asked = checked_vectors(queries, "queries", self.dimension)
        scores, rows = nothing(len(asked), checked_k(k))
        blocked = self._blocked(checked_without(without, self._rows_end))
        kept = min(k, len(self))
        if kept == 0 or not len(asked):
            return Neighbours(scores, rows)
        work = self._compiled if self._compiling else self._plain

        def part(_: int, begin: int, end: int) -> None:
            for first in range(begin, end, _QUERIES_AT_ONCE):
                block = slice(first, min(first + _QUERIES_AT_ONCE, end))
                best, places = work(asked[block], kept, blocked)
                order = np.lexsort((places, -best), axis=-1)
                places = np.take_along_axis(places, order, axis=1)
                found = np.where(places == NOWHERE, -1, places)
                scores[block, :kept] = np.take_along_axis(best, order, axis=1)
                rows[block, :kept] = found if self._labels is None else np.where(found < 0, -1, self._labels[found])

        at_once(part, parts_of(len(asked), _FEWEST_A_THREAD) if self._compiling else [(0, len(asked))])
        return Neighbours(scores, rows)

    def _blocked(self, without: Mask | None) -> Mask | None:
        """Say which positions must not be returned, [M] bool; None where that is none."""
        if self._labels is not None:
            return None if without is None else without[self._labels]
        if self._absent is None or without is None:
            return self._absent if without is None else without
        return self._absent | without

    def _tiles(self, queries: int, first_tile: int) -> list[tuple[int, int]]:
        """Cut the positions into tiles: the first small, the others growing; fewer queries get wider ones."""
        count, width = len(self._vectors), min(_LARGEST_TILE, _TILE * max(1, _QUERIES_AT_ONCE // queries))
        edges = [0]
        while first_tile < min(width, count):
            edges.append(first_tile)
            first_tile *= _GROWTH
        return list(itertools.pairwise([*edges, *range(width, count, width), count]))

    def _quick(self, queries: Tensor) -> tuple[Tensor, npt.NDArray[np.float64]]:
        """Return the [b, d] queries as they enter the product, and the bounds on its error, [b, tiles of 4,096]."""
        entered = queries.bfloat16() if self._products == "bf16" else queries
        full = self._products == "bf16" or float32_products_are_full()
        return entered, error_bounds(queries, entered, self._lengths, full_precision=full)

    def _compiled(
        self, asked: Float32, kept: int, blocked: Mask | None, *, guessing: bool = True
    ) -> tuple[Float32, Int64]:
        """Return the [b, kept] best scores and their positions, as heaps: the worst first."""
        queries, exact = _tensor_of(asked), asked.astype(np.float64)
        entered, bounds = self._quick(queries)
        guess = self._guess(asked, kept, blocked) if guessing else np.full(len(asked), -np.inf, np.float32)
        tiles = self._tiles(len(asked), max(_FIRST_TILE, 2 * kept) if np.isneginf(guess).any() else _TILE)
        widest = max(end - first for first, end in tiles)
        room = torch.empty(len(asked) * widest, dtype=torch.bfloat16 if self._products == "bf16" else torch.float32)
        columns, ends = np.empty(len(asked) * widest + 1, np.int32), np.empty(len(asked), np.int64)
        best = np.full((len(asked), kept), -np.inf, np.float32)
        places = np.full((len(asked), kept), NOWHERE, np.int64)
        without = np.empty(0, np.bool_) if blocked is None else blocked
        for first, end in tiles:
            tile = room[: len(asked) * (end - first)].view(len(asked), end - first)
            torch.mm(entered, self._entering[first:end].T, out=tile)
            bound = bounds[:, first // _TILE : -(-end // _TILE)].max(axis=1)
            least = thresholds(np.maximum(best[:, 0], guess), bound)
            if self._products == "bf16":
                scan_bf16(tile.view(torch.int16).numpy(), least, columns, ends)
            else:
                scan(tile.numpy(), least, columns, ends)
            settle(self._vectors, exact, without, first, columns, ends, best, places)
        # Everything that reaches the guess was looked at: where k do, they are the best.
        again = np.flatnonzero(best[:, 0] < guess)
        if len(again):
            best[again], places[again] = self._compiled(asked[again], kept, blocked, guessing=False)
        return best, places

    def _guess(self, asked: Float32, kept: int, blocked: Mask | None) -> Float32:
        """Guess a little less than the kept-th best score of each query, from a sample; -inf where there is none."""
        share = kept / _SAMPLED
        rank = int(share + 4 * share**0.5 + 4)  # more than four standard deviations on the safe side
        if self._sample is None or 2 * rank > len(self._sample):
            return np.full(len(asked), -np.inf, np.float32)
        return self._sample.search(asked, rank, without=blocked).scores[:, -1]

    def _plain(self, asked: Float32, kept: int, blocked: Mask | None) -> tuple[Float32, Int64]:
        """Do what :meth:`_compiled` does, by tensor operations on any device."""
        queries = _tensor_of(asked).to(self._device)
        entered, bounds = self._quick(queries)
        out = None if blocked is None else torch.from_numpy(blocked).to(self._device)
        return best_of_block(Searched(self._whole, self._entering, _TILE), queries, entered, bounds, kept, out)


def _tensor_of(vectors: Float32) -> Tensor:
    """Return a tensor of the same memory; PyTorch warns of memory that cannot be written, which nobody does here."""
    if vectors.flags.writeable:
        return torch.from_numpy(vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(vectors)


def multiplies_bf16(device: torch.device) -> bool:
    """Say whether a device multiplies matrices of bf16 faster than of float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16"))


def true_scores(vectors: Float32, queries: Float32, rows: Int64) -> npt.NDArray[np.float64]:
    """Return the [Q, k] dot products, in float64, of each query with its own rows; -inf where the row is -1.

    Args:
        vectors: [N, d] item vectors.
        queries: [Q, d].
        rows: [Q, k] rows of ``vectors``, or -1.
    """
    gathered = vectors[np.maximum(rows, 0)].astype(np.float64)
    scores = np.einsum("qkd,qd->qk", gathered, queries.astype(np.float64))
    return np.where(rows >= 0, scores, -np.inf)
