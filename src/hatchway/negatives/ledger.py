"""The ledger: for each column of a batch's softmax, which item, from which source, and how many copies were expected.

Everything rests on one number, **n(j): the expected number of copies of item j among a row's columns, given the row**.
Shared sources add up, so with B rows, U uniform draws from N items and q(j) the chance that another row's positive is j

    n(j) = (B − 1)·q(j) + U/N,    for every j that is not the row's positive.

A column's logit is ``score / temperature − alpha·ln n(j)``. With alpha = 1 the expected sum of exp(logit) over the
columns is the sum of exp(score / temperature) over all unmasked items with n > 0: each item stands for itself, however
often it was drawn. An item that no source can draw (n = 0) is in neither sum.

The positive itself is where published methods disagree; see :data:`PositiveCorrection`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from hatchway.errors import DataError, SettingsError
from hatchway.negatives.sources import Reason, SharedSource, Source

PositiveCorrection = Literal["uncorrected", "count", "yi"]
"""What happens to the row's positive p, and to copies of it among the columns.

``uncorrected``: p enters once with its raw logit; copies are masked. The columns stand for the normaliser *without* p
    (Yang et al. 2020, eq. 5, with the count restored; same gradient as Khrylchenko et al. 2025).
``count``: copies stay, and p and its copies share n(p) = 1 + n_shared(p), the expected count given the row. The columns
    and p together stand for the *whole* normaliser, for every row.
``yi``: as published by Yi et al. 2019, p is corrected like any column, with n(p) = B·q(p) + U/N. The whole normaliser
    too, but only on average over positives drawn with chance q; row by row a popular p weighs too little, a rare one
    too much.
"""


@dataclass(frozen=True)
class Masked:
    """Sparse (row, column, reason) coordinates, sorted by row and column, each pair once.

    Attributes:
        rows: [M] int64.
        columns: [M] int64.
        reasons: [M] int8, a :class:`~hatchway.negatives.sources.Reason` each.
    """

    rows: Tensor
    columns: Tensor
    reasons: Tensor

    def counts(self) -> dict[str, int]:
        """Return how many coordinates carry each reason, by its lower-case name; absent reasons are left out."""
        found, numbers = self.reasons.unique(return_counts=True)
        return {Reason(int(reason)).name.lower(): int(number) for reason, number in zip(found, numbers, strict=True)}


@dataclass(frozen=True)
class Ledger:
    """What the loss needs to know of a batch's columns (B rows, C shared columns).

    Attributes:
        positives: [B] int64 item row of each row's positive.
        items: [C] int64 item row of each column.
        sources: [C] int8, a :class:`~hatchway.negatives.sources.Source` each.
        log_count: [C] float32, ln n of the column's item for rows whose positive is another item.
        positive_log_count: [B] float32, ln n of the row's own positive: 0 under ``uncorrected``.
        masked: candidates that count for nothing in a row.
        copy_rows, copy_columns: [K] int64, sorted by row: unmasked columns that hold a copy of the row's positive and
            are corrected by ``positive_log_count`` instead of ``log_count`` (``count`` only).
    """

    positives: Tensor
    items: Tensor
    sources: Tensor
    log_count: Tensor
    positive_log_count: Tensor
    masked: Masked
    copy_rows: Tensor
    copy_columns: Tensor

    def __post_init__(self) -> None:
        """Refuse columns and positives that the ledger's own account says cannot be there."""
        if not bool(torch.isfinite(self.log_count).all()):
            column = int((~torch.isfinite(self.log_count)).nonzero()[0, 0])
            raise DataError(
                f"column {column} holds item row {int(self.items[column])}, whose expected count is 0: it was drawn "
                "although no source could draw it. Are the counts those of the positives that are being trained on?"
            )
        if not bool(torch.isfinite(self.positive_log_count).all()):
            row = int((~torch.isfinite(self.positive_log_count)).nonzero()[0, 0])
            raise DataError(
                f"row {row} has the positive item row {int(self.positives[row])}, whose expected count is 0: no source "
                "could draw it, so it cannot be corrected. Are the counts those of the positives that are trained on?"
            )


def draw_ledger(
    positives: Tensor,
    sources: Sequence[SharedSource],
    generator: torch.Generator,
    correction: PositiveCorrection,
) -> Ledger:
    """Draw every source's columns and account for them together.

    Masked are the columns that carry a row's own positive, and under ``uncorrected`` the other copies of it as well;
    what else may not stand as a negative is for :mod:`hatchway.screening` to say.

    Args:
        positives: [B] int64 item rows.
        sources: the shared sources; their expected counts add up.
        generator: where the draws come from.
        correction: the positive's switch.

    Raises:
        DataError: a column's expected count is 0.
        SettingsError: the in-batch source is not the first, or ``correction`` is none of the three.
    """
    if any(source.source is Source.IN_BATCH for source in sources[1:]):
        raise SettingsError("the in-batch source must come first: its columns are then the first B, one for each row")
    drawn = [source.draw(positives, generator) for source in sources]
    empty = positives.new_empty(0)
    items = torch.cat([empty, *drawn])
    kinds = torch.cat(
        [
            empty.to(torch.int8),
            *(torch.full_like(d, s.source, dtype=torch.int8) for s, d in zip(sources, drawn, strict=True)),
        ]
    )
    return account(positives, items, kinds, sources, correction)


def account(
    positives: Tensor, items: Tensor, kinds: Tensor, sources: Sequence[SharedSource], correction: PositiveCorrection
) -> Ledger:
    """Write the ledger of columns that have been drawn; see :func:`draw_ledger`.

    Args:
        positives: [B] int64 item rows.
        items: [C] int64 item rows of the columns, source after source.
        kinds: [C] int8 :class:`~hatchway.negatives.sources.Source` of each column.
        sources: the sources that drew them.
        correction: the positive's switch.

    Raises:
        DataError: a column's expected count is 0.
        SettingsError: ``correction`` is none of the three.
    """
    if correction not in (allowed := get_args(PositiveCorrection)):
        raise SettingsError(f"positive is {correction!r}; allowed: {', '.join(allowed)}")
    batch = len(positives)
    zero = torch.zeros((), dtype=torch.float64, device=positives.device)
    rows, columns = matching_columns(items, positives)
    carries = carries_positives(kinds, batch)
    carrier = (rows == columns) & carries[columns]
    if correction == "yi":
        count = sum((s.expected_on_average(items, batch) for s in sources), zero.expand(len(items)))
        of_positive = sum((s.expected_on_average(positives, batch) for s in sources), zero.expand(batch))
        gone = carrier
    else:
        count = sum((s.expected_others(items, batch) for s in sources), zero.expand(len(items)))
        of_positive = sum((s.expected_of_positive(positives, batch) for s in sources), zero.expand(batch)) + 1
        gone = carrier if correction == "count" else torch.ones_like(carrier)
    # A batch of one has no other rows: its only in-batch column is its own positive, masked whatever is written here.
    if batch == 1:
        count = torch.where((count == 0) & carries, 1.0, count)
    stay = ~gone if correction == "count" else torch.zeros_like(gone)
    reasons = torch.where(carrier, int(Reason.POSITIVE), int(Reason.SAME_ITEM)).to(torch.int8)
    return Ledger(
        positives=positives,
        items=items,
        sources=kinds,
        log_count=count.log().float(),
        positive_log_count=torch.zeros(batch, device=positives.device)
        if correction == "uncorrected"
        else of_positive.log().float(),
        masked=Masked(rows[gone], columns[gone], reasons[gone]),
        copy_rows=rows[stay],
        copy_columns=columns[stay],
    )


def carries_positives(kinds: Tensor, batch: int) -> Tensor:
    """Return [C] bool: the first B columns, if they are the in-batch ones (column c is then row c's positive)."""
    first = torch.zeros(len(kinds), dtype=torch.bool, device=kinds.device)
    first[:batch] = kinds[:batch] == Source.IN_BATCH
    return first


def matching_columns(items: Tensor, keys: Tensor, key_rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Find every column that holds a wanted item: a join of [C] columns with [K] keys, without a [K, C] comparison.

    Args:
        items: [C] int64 item of each column.
        keys: [K] int64 wanted items.
        key_rows: [K] int64 ascending, the row that each key belongs to; None means key k belongs to row k.

    Returns:
        rows: [M] int64, ascending.
        columns: [M] int64, ascending within a key.
    """
    ordered, order = torch.sort(items, stable=True)
    low = torch.searchsorted(ordered, keys)
    high = torch.searchsorted(ordered, keys, right=True)
    found = high - low
    which = torch.repeat_interleave(torch.arange(len(keys), device=keys.device), found)
    first = torch.repeat_interleave(low - (found.cumsum(0) - found), found)
    columns = order[first + torch.arange(len(which), device=keys.device)]
    return (which if key_rows is None else key_rows[which]), columns


def with_masked(ledger: Ledger, masked: Masked) -> Ledger:
    """Return the ledger with more candidates masked; where a pair has a reason already, the first reason stays.

    A copy of the row's own positive is never masked by this: whether it stays is the correction's to say.
    """
    columns = len(ledger.items)
    own = ledger.items[masked.columns] == ledger.positives[masked.rows]
    rows = torch.cat([ledger.masked.rows, masked.rows[~own]])
    cols = torch.cat([ledger.masked.columns, masked.columns[~own]])
    reasons = torch.cat([ledger.masked.reasons, masked.reasons[~own]])
    key, order = torch.sort(rows * columns + cols, stable=True)
    fresh = torch.ones_like(key, dtype=torch.bool)
    fresh[1:] = key[1:] != key[:-1]
    kept = order[fresh]
    return replace(ledger, masked=Masked(rows[kept], cols[kept], reasons[kept]))
