"""The kernel of the sampled softmax: a few rows at a time, so that no [B, C] matrix ever exists.

Each block of rows multiplies against all columns into one reused buffer, turns the logits into probabilities there, and
multiplies back into the gradients before the next block overwrites it. Masked candidates are −inf inside the block, so
nothing is subtracted afterwards and nothing can cancel, however much of a row is masked.
"""

from typing import Any, cast

import torch
from torch import Tensor

_BLOCK_BYTES = 6 * 2**20
"""A block of logits should stay in the second-level caches; more rows than that fetch it from memory thrice."""


class Adjustments:
    """Sparse additions to the logits: coordinates sorted by row, each (row, column) at most once.

    Attributes:
        rows: [M] int64, ascending.
        columns: [M] int64.
        values: [M] float, −inf to mask.
    """

    def __init__(self, rows: Tensor, columns: Tensor, values: Tensor) -> None:
        self.rows = rows
        self.columns = columns
        self.values = values

    def bounds(self, starts: Tensor) -> list[int]:
        """Return where the coordinates of each block begin, given the blocks' first rows."""
        return torch.searchsorted(self.rows, starts).tolist()


def _rows_per_block(columns: int, rows: int) -> int:
    return max(1, min(rows, max(16, min(256, _BLOCK_BYTES // (4 * max(columns, 1))))))


def _run(
    query: Tensor, columns: Tensor, bias: Tensor, adjustments: Adjustments, extra: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Compute the losses and, where ``weight`` is given, the gradients of ``(weight * loss).sum()``."""
    rows, shared = query.shape[0], columns.shape[0]
    step = _rows_per_block(shared, rows)
    starts = list(range(0, rows, step))
    bounds = adjustments.bounds(torch.tensor([*starts, rows], device=query.device))
    buffer = query.new_empty(step, shared)
    loss = query.new_empty(rows)
    if weight is not None:
        grad_query, grad_columns, grad_extra = (torch.zeros_like(x) for x in (query, columns, extra))
    for block, start in enumerate(starts):
        end = min(start + step, rows)
        own, q = extra[start:end], query[start:end]
        logits = buffer[: end - start]
        torch.addmm(bias, q, columns.T, out=logits)
        low, high = bounds[block], bounds[block + 1]
        if high > low:
            at = (adjustments.rows[low:high] - start, adjustments.columns[low:high])
            logits.index_put_(at, logits[at] + adjustments.values[low:high])
        peak = own.amax(1)
        if shared:
            peak = torch.maximum(peak, logits.amax(1))
        logits.sub_(peak[:, None]).exp_()
        own_share = torch.exp(own - peak[:, None])
        total = logits.sum(1) + own_share.sum(1)
        loss[start:end] = total.log() + peak - own[:, 0]
        if weight is None:
            continue
        scale = weight[start:end] / total
        grad_query[start:end] = torch.mm(logits, columns).mul_(scale[:, None])
        grad_columns.addmm_(logits.T, q * scale[:, None])
        grad_extra[start:end] = own_share * scale[:, None]
        grad_extra[start:end, 0] -= weight[start:end]
    return (loss, grad_query, grad_columns, grad_extra) if weight is not None else (loss, None, None, None)


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
    ) -> tuple[Tensor, Tensor]:
        """Return the weighted sum and the rows' losses; with weights the gradients are made on the way."""
        known = weight is not None and any(ctx.needs_input_grad[:3])
        loss, *grads = _run(query, columns, bias, adjustments, extra, weight if known else None)
        ctx.known, ctx.adjustments = known, adjustments
        ctx.save_for_backward(*(cast("list[Tensor]", grads) if known else [query, columns, extra, bias]))
        if weight is None:
            return loss.new_zeros(()), loss
        ctx.mark_non_differentiable(loss)
        return torch.dot(loss, weight), loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_sum: Tensor, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients made on the way forward, or make them now that each row's weight is known."""
        if ctx.known:
            query, columns, extra = (grad * grad_sum for grad in ctx.saved_tensors)
        else:
            query, columns, extra, bias = ctx.saved_tensors
            with torch.autocast(query.device.type, enabled=False):  # float32 here as on the way forward
                _, query, columns, extra = _run(query, columns, bias, ctx.adjustments, extra, grad_loss.contiguous())
        return query, columns, extra, None, None, None


def row_block_losses(
    query: Tensor,
    columns: Tensor,
    extra: Tensor,
    bias: Tensor,
    adjustments: Adjustments,
    weight: Tensor | None,
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
    """
    return cast("tuple[Tensor, Tensor]", _RowBlocks.apply(query, columns, extra, bias, adjustments, weight))  # type: ignore[no-untyped-call]
