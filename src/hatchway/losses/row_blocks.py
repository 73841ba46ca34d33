"""The kernel of the sampled softmax: a few rows at a time, so that no [B, C] matrix ever exists.

Each block of rows multiplies against all columns into one reused buffer, turns the logits into probabilities there, and
multiplies back into the gradients before the next block overwrites it. Masked candidates are −inf inside the block, so
nothing is subtracted afterwards and nothing can cancel, however much of a row is masked. On a CPU every thread takes
blocks of its own.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from hatchway.compiled import at_once, parts_of
from hatchway.errors import SettingsError
from hatchway.losses import matrix_unit_rows, tiled_rows
from hatchway.losses.block_rows import Adjustments, Rows, joined
from hatchway.losses.matrix_unit_rows import MatrixUnitRows
from hatchway.losses.once import once_differentiable
from hatchway.losses.softmax_rows import exponentials
from hatchway.losses.tiled_rows import TiledRows

Products = Literal["float32", "bf16"]
"""How matrix products are made of float32 numbers: as they are, or rounded to bf16 and summed in float32, which is
quicker on processors that multiply bf16, and makes no difference on others.

A rounded logit is off by some 2^-9 of |q|·|v| / temperature over the root of d: gradients are within .6 % for vectors
of length 1 and temperatures from about .05 on, and within 3 % at .01."""

_LEAST_ROWS, _MOST_ROWS = 32, 128
"""All columns are packed anew for every product, which more rows share; beyond this many they bring nothing."""

_BUFFER_BYTES = 24 * 2**20
"""Blocks of many columns have fewer rows, so that the blocks of all threads together stay within this."""


@dataclass(frozen=True)
class _Gradients:
    """Of the weighted sum of losses, to what the kernel was given."""

    query: Tensor
    columns: Tensor
    extra: Tensor


def _rows_per_block(columns: int) -> int:
    at_once = _BUFFER_BYTES // torch.get_num_threads()
    return max(_LEAST_ROWS, min(_MOST_ROWS, at_once // (4 * max(columns, 1))))


@contextmanager
def _multiplying(products: Products) -> Iterator[None]:
    """Set PyTorch's switches for float32 products, which are global, for the moment."""
    if products == "float32":
        yield
        return
    backends: Any = torch.backends
    switches = [(backends.mkldnn.matmul, "bf16"), (backends.cuda.matmul, "tf32")]
    before = [switch.fp32_precision for switch, _ in switches]
    try:
        for switch, value in switches:
            switch.fp32_precision = value
        yield
    finally:
        for (switch, _), value in zip(switches, before, strict=True):
            switch.fp32_precision = value


class _WholeRows:
    """The work on blocks of rows with PyTorch's products; as :class:`TiledRows`."""

    def __init__(self, query: Tensor, columns: Tensor, bias: Tensor, threads: int, *, gradients: bool) -> None:
        self.rows = self.grain = _rows_per_block(len(columns))
        self._query, self._columns, self._bias = query, columns, bias
        self._buffers = query.new_empty(threads, min(self.rows, len(query)), len(columns))
        if gradients:
            self._grad_query = torch.empty_like(query)
            self._grad_columns = [torch.zeros_like(columns) for _ in range(threads)]

    def work(self, thread: int, begin: int, end: int, rows: Rows, adjustments: Adjustments) -> None:
        starts = range(begin, end, self.rows)
        bounds = adjustments.before(torch.tensor([*starts, end], device="cpu").to(rows.own.device))
        for start, (low, high) in zip(starts, itertools.pairwise(bounds), strict=True):
            stop = min(start + self.rows, end)
            query, own = self._query[start:stop], rows.own[start:stop]
            coordinates = (
                adjustments.rows[low:high] - start,
                adjustments.columns[low:high],
                adjustments.values[low:high],
            )
            shares = self._buffers[thread, : stop - start]
            torch.mm(query, self._columns.T, out=shares)
            others, rows.peak[start:stop] = exponentials(shares, own, self._bias, *coordinates)
            rows.others[start:stop] = others
            if rows.weight is not None:
                factor = torch.div(rows.weight[start:stop], others + own[:, 0], out=rows.scale[start:stop])[:, None]
                torch.mm(shares, self._columns, out=self._grad_query[start:stop]).mul_(factor)
                self._grad_columns[thread].addmm_(shares.T, query * factor)

    def made(self) -> tuple[Tensor, Tensor]:
        return self._grad_query, joined(self._grad_columns)


def _run(
    query: Tensor,
    columns: Tensor,
    extra: Tensor,
    bias: Tensor,
    adjustments: Adjustments,
    weight: Tensor | None,
    products: Products,
) -> tuple[Tensor, _Gradients | None]:
    """Compute the losses and, where ``weight`` is given, the gradients of ``(weight * loss).sum()``."""
    batch, gradients = len(query), weight is not None
    threads = len(parts_of(batch // _MOST_ROWS, 2)) if query.device.type == "cpu" else 1
    blocks: _WholeRows | TiledRows | MatrixUnitRows
    if matrix_unit_rows.suitable(query, columns, products):
        blocks = MatrixUnitRows(query, columns, bias, threads, gradients=gradients)
    elif tiled_rows.suitable(query, columns, products):
        blocks = TiledRows(query, columns, bias, threads, products, gradients=gradients)
    else:
        blocks = _WholeRows(query, columns, bias, threads, gradients=gradients)
    shares = extra.clone(memory_format=torch.contiguous_format)
    others, peak, scale = (query.new_empty(batch) for _ in range(3))
    rows = Rows(shares, others, peak, weight, scale)
    # Threads get as many rows each, so that they end together; the last block of each may be a small one.
    cuts = [min(batch, -(-batch * thread // threads // blocks.grain) * blocks.grain) for thread in range(threads + 1)]
    at_once(
        lambda thread, begin, end: blocks.work(thread, begin, end, rows, adjustments), list(itertools.pairwise(cuts))
    )
    # Where the positive is the peak, the loss may be far smaller than the logits that it is a difference of.
    loss = torch.where(shares[:, 0] == 1, others.log1p(), (others + shares[:, 0]).log() + peak - extra[:, 0])
    if weight is None:
        return loss, None
    grad_query, grad_columns = blocks.made()
    shares *= scale[:, None]
    shares[:, 0] = -others * scale  # the positive's share less 1, without a difference of two numbers that are alike
    return loss, _Gradients(grad_query, grad_columns, shares)


class _RowBlocks(torch.autograd.Function):
    """``loss[i] = logsumexp(extra[i], query[i]·columns + bias + adjustments) − extra[i, 0]``, summed with weights."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        columns: Tensor,
        extra: Tensor,
        bias: Tensor,
        adjustments: Adjustments,
        weight: Tensor | None,
        products: Products,
    ) -> tuple[Tensor, Tensor]:
        """Return the weighted sum and the rows' losses; with weights the gradients are made on the way."""
        known = weight is not None and any(ctx.needs_input_grad[:3])
        with _multiplying(products):
            loss, made = _run(query, columns, extra, bias, adjustments, weight if known else None, products)
        ctx.adjustments, ctx.products, ctx.made, ctx.known = adjustments, products, made, weight if known else None
        ctx.save_for_backward(query, columns, extra, bias)
        if weight is None:
            return loss.new_zeros(()), loss
        ctx.mark_non_differentiable(loss)
        return torch.dot(loss, weight), loss

    @staticmethod
    def backward(ctx: Any, grad_sum: Tensor, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients made on the way forward, or make them now: a row's weight is known now, or made again.

        Those made on the way are scaled where they are, since a copy would be as large again: there is one use of them.
        """
        query, columns, extra, bias = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        # As on the way forward.
        with torch.no_grad(), torch.autocast(query.device.type, enabled=False), _multiplying(ctx.products):
            if made is None:
                weight = grad_loss.contiguous() if ctx.known is None else ctx.known
                _, made = _run(query, columns, extra, bias, ctx.adjustments, weight, ctx.products)
            grads = list(vars(made).values())
            if ctx.known is not None:
                grads = [grad.mul_(grad_sum) for grad in grads]
        inputs = (grad_sum, grad_loss, query, columns, extra)
        refusing = (
            once_differentiable(grad, "sampled_softmax", *inputs) if needed else None
            for grad, needed in zip(grads, ctx.needs_input_grad, strict=False)
        )
        return *refusing, None, None, None, None


def row_block_losses(
    query: Tensor,
    columns: Tensor,
    extra: Tensor,
    bias: Tensor,
    adjustments: Adjustments,
    weight: Tensor | None,
    products: Products = "float32",
) -> tuple[Tensor, Tensor]:
    """Return (weighted sum of the rows' losses, the rows' losses).

    Args:
        query: [B, d] float32, already divided by the temperature.
        columns: [C, d] float32 vectors of the shared columns.
        extra: [B, 1 + H] float32 logits of the positive (column 0) and of the row's own columns; −inf for absent ones.
        bias: [C] float32, added to every row: −alpha·ln n.
        adjustments: sparse additions, −inf to mask.
        weight: [B] float32. With it the gradient of the weighted sum is computed during the forward pass, and the
            rows' losses are returned detached. Without it the sum is 0 and the rows' losses carry the gradient (at
            the price of computing the logits again in the backward pass).
        products: how the matrix products are made; see :data:`Products`.

    Raises:
        SettingsError: ``products`` is none of the two.
    """
    if products not in (allowed := get_args(Products)):
        raise SettingsError(f"products is {products!r}; allowed: {', '.join(allowed)}")
    return cast(
        "tuple[Tensor, Tensor]",
        _RowBlocks.apply(query, columns, extra, bias, adjustments, weight, products),  # type: ignore[no-untyped-call]
    )
