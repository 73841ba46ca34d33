"""Copies of a row's positive among its columns, taken together with the positive before the softmax.

With x_p the positive's logit and x_p + δ_k those of its K copies, the positive's share of the row is unchanged when one
term of logit x_p + G stands for all of them, G = ln(1 + Σ_k exp(δ_k)), and G is added to the loss:

    ln[exp(x_p) + Σ_k exp(x_p + δ_k) + rest] − x_p  =  {ln[exp(x_p + G) + rest] − (x_p + G)} + G

Late in a training a positive and its copies have nearly all of a row. Apart from each other one pulls the query as hard
as the others push, and in float32 what is left of the gradient is lost in the difference. δ is a product with the
*difference* of two vectors, which is mostly 0 (it is not where a copy comes from a queue, or through dropout).
"""

from typing import Any, cast

import torch
from torch import Tensor

from hatchway.losses.once import once_differentiable
from hatchway.negatives.ledger import Ledger

_NUMBERS_AT_ONCE = 2**20
"""Small catalogues have many more copies than rows; their vectors are looked up so many numbers at a time."""


class _Leads(torch.autograd.Function):
    """``query[rows] · (columns[places] − positive[rows])``, [K], with the memory of a part of it."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, positive: Tensor, columns: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(query, positive, columns, rows, places)
        leads = query.new_empty(len(rows))
        for part in _parts(query, rows):
            difference = columns[places[part]] - positive[rows[part]]
            leads[part] = (query[rows[part]] * difference).sum(1)
        return leads

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, positive, columns, rows, places = ctx.saved_tensors
        with torch.no_grad():
            grads = [torch.zeros_like(x) for x in (query, positive, columns)]
            for part in _parts(query, rows):
                at, to, factor = rows[part], places[part], gradient[part, None]
                pull = factor * query[at]
                grads[0].index_add_(0, at, factor * (columns[to] - positive[at]))
                grads[1].index_add_(0, at, pull, alpha=-1)
                grads[2].index_add_(0, to, pull)
        inputs = (gradient, query, positive, columns)
        refusing = (
            once_differentiable(grad, "sampled_softmax", *inputs) if needed else None
            for grad, needed in zip(grads, ctx.needs_input_grad, strict=False)
        )
        return *refusing, None, None


def _parts(query: Tensor, rows: Tensor) -> list[slice]:
    step = max(1, _NUMBERS_AT_ONCE // max(query.shape[1], 1))
    return [slice(begin, begin + step) for begin in range(0, len(rows), step)]


def own_copies(ledger: Ledger) -> Tensor:
    """[B, H] bool: own columns that stand and hold the row's positive."""
    return ledger.own_stands & (ledger.own_items == ledger.positives[:, None])


def gain_of_copies(
    scaled: Tensor, positive: Tensor, columns: Tensor, own: Tensor | None, ledger: Ledger, alpha: float
) -> Tensor | None:
    """Return G, [B]: by how much a row's positive and its copies together are above the positive; None without copies.

    Args:
        scaled: [B, d] float32 query vectors, divided by the temperature.
        positive: [B, d] float32.
        columns: [C, d] float32.
        own: [B, H, d], or None.
        ledger: knows where the copies are; shared ones are corrected as the positive is.
        alpha: weight of the correction.
    """
    rows, leads = ledger.copy_rows, None
    if len(rows):
        leads = cast(
            "Tensor",
            _Leads.apply(scaled, positive, columns, rows, ledger.copy_columns),  # type: ignore[no-untyped-call]
        )
    copies = own_copies(ledger)
    if own is not None and bool(copies.any()):
        own_rows, places = copies.nonzero(as_tuple=True)
        above = ((own[own_rows, places].float() - positive[own_rows]) * scaled[own_rows]).sum(1)
        counts = ledger.own_log_count[own_rows, places] - ledger.positive_log_count[own_rows]
        above = above - alpha * counts + ledger.own_log_weight[own_rows, places]
        rows = torch.cat([rows, own_rows])
        leads = above if leads is None else torch.cat([leads, above])
    if leads is None:
        return None
    with torch.no_grad():
        top = leads.new_zeros(len(scaled)).scatter_reduce_(0, rows, leads, "amax")
    return top + (torch.exp(-top).index_add(0, rows, torch.exp(leads - top[rows]))).log()
