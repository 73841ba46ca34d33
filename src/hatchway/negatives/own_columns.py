"""Columns that a row has for itself: laid side by side, and masked where they would stand for something twice."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.negatives.sources import OwnSource, Reason


@dataclass(frozen=True)
class OwnDraw:
    """What one source gave the rows.

    Attributes:
        source: the source.
        items: [B, H] int64 item rows, −1 where a row has fewer than H.
    """

    source: OwnSource
    items: Tensor


@dataclass(frozen=True)
class OwnColumns:
    """All own columns of a batch, [B, H] with the sources side by side.

    Attributes:
        items: [B, H] int64, −1 where absent.
        on_purpose: [H] bool, whether the column is there on purpose.
        sources: [B, H] int8.
        log_weight: [B, H] float32.
    """

    items: Tensor
    on_purpose: Tensor
    sources: Tensor
    log_weight: Tensor


def side_by_side(draws: Sequence[OwnDraw], positives: Tensor) -> OwnColumns:
    """Put the sources' columns side by side.

    Raises:
        DataError: a source gave columns for another number of rows.
    """
    for draw in draws:
        if draw.items.ndim != 2 or len(draw.items) != len(positives):
            raise DataError(
                f"{draw.source.source.name.lower()} gave own columns of shape {tuple(draw.items.shape)}; allowed: "
                f"[B, H] with B = {len(positives)} rows"
            )
    empty = positives.new_empty(len(positives), 0)
    purpose = [torch.full((d.items.shape[1],), d.source.on_purpose, device=positives.device) for d in draws]
    return OwnColumns(
        items=torch.cat([empty, *(draw.items for draw in draws)], 1),
        on_purpose=torch.cat([empty.new_empty(0, dtype=torch.bool), *purpose]),
        sources=torch.cat(
            [empty.to(torch.int8), *(torch.full_like(d.items, d.source.source, dtype=torch.int8) for d in draws)], 1
        ),
        log_weight=torch.cat(
            [empty.float(), *(torch.full_like(d.items, d.source.log_weight, dtype=torch.float32) for d in draws)], 1
        ),
    )


def own_reasons(own: OwnColumns, positives: Tensor, *, copies_stay: bool) -> Tensor:
    """Say which own columns may not stand, and why.

    Masked are copies of the row's positive (one that is there on purpose always, one that was drawn unless
    ``copies_stay``), and every further column of an item that the row has on purpose, drawn or on purpose again.

    Returns:
        [B, H] int8, a :class:`~hatchway.negatives.sources.Reason` each, 0 for none.
    """
    reasons = torch.zeros_like(own.sources)
    present = own.items >= 0
    copy = present & (own.items == positives[:, None])
    reasons[copy & (own.on_purpose | (not copies_stay))] = Reason.SAME_ITEM
    for column in torch.nonzero(own.on_purpose)[:, 0].tolist():
        mine = own.items[:, column : column + 1]
        again = (own.items == mine) & present & (reasons == 0) & (reasons[:, column : column + 1] == 0)
        # The first of several on purpose stays, so that one does.
        again[:, : column + 1] &= ~own.on_purpose[: column + 1]
        reasons[again] = Reason.OWN
    return reasons


def repeated(own: OwnColumns, shared: Tensor) -> Tensor:
    """Mark drawn columns whose item stands in a shared column or in an earlier drawn one of the row, [B, H] bool.

    For de-duplicated columns only: elsewhere every copy counts, and the expected count knows it.
    """
    drawn = torch.where(own.on_purpose, -1, own.items)
    ordered, order = torch.sort(drawn, dim=1, stable=True)
    again = torch.zeros_like(ordered, dtype=torch.bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    back = torch.empty_like(again).scatter_(1, order, again)
    return (drawn >= 0) & (back | torch.isin(drawn, shared))
