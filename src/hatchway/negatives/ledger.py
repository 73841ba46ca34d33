"""The ledger: for each column of a batch's softmax, which item, from which source, and how many copies were expected.

Everything rests on one number, **n(j): the expected number of copies of item j among a row's columns, given the row**.
Sources add up, so with B rows, U uniform draws from N items, K draws for each row by itself with chances p, and q(j)
the chance that another row's positive is j

    n(j) = (B − 1)·q(j) + U/N + K·p(j),    for every j that is not the row's positive.

A column's logit is ``score / temperature − alpha·ln n(j)``. With alpha = 1 the expected sum of exp(logit) over the
columns is the sum of exp(score / temperature) over all unmasked items with n > 0: each item stands for itself, however
often it was drawn. An item that no source can draw (n = 0) is in neither sum.

Columns that a row has *on purpose* (mined for it, shown to its buyer) are unique within the row, so n = 1 and there is
nothing to correct; copies of them among the row's other columns are masked, or the item would count twice.

De-duplicated columns hold each item once; the chance of being in at all, 1 − Π(1 − chance by source), is then the
expected number of copies.

The positive itself is where published methods disagree; see :data:`~hatchway.negatives.counting.PositiveCorrection`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import Tensor

from hatchway.errors import DataError, SettingsError
from hatchway.negatives.counting import Counting, PositiveCorrection
from hatchway.negatives.matching import each_pair_once, matching_columns, merged_coordinates
from hatchway.negatives.own_columns import OwnDraw, own_reasons, repeated, side_by_side
from hatchway.negatives.sources import OwnSource, Reason, SharedSource, Source

__all__ = [
    "Ledger",
    "Masked",
    "PositiveCorrection",
    "account",
    "draw_ledger",
    "first_of_each",
    "with_masked",
    "with_own_masked",
]


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
        return _by_name(self.reasons)


@dataclass(frozen=True)
class Ledger:
    """What the loss needs to know of a batch's columns (B rows, C shared columns, H own columns a row).

    Attributes:
        positives: [B] int64 item row of each row's positive.
        items: [C] int64 item row of each shared column.
        sources: [C] int8, a :class:`~hatchway.negatives.sources.Source` each.
        log_count: [C] float32, ln n of the column's item for rows whose positive is another item.
        positive_log_count: [B] float32, ln n of the row's own positive: 0 under ``uncorrected``.
        masked: shared candidates that count for nothing in a row.
        copy_rows, copy_columns: [K] int64, sorted by row: unmasked columns that hold a copy of the row's positive and
            are corrected by ``positive_log_count``, as that is (``count``, and ``yi``, where it is ``log_count`` too).
        own_items: [B, H] int64 item row of each own column, −1 where a row has fewer than H. H may be 0.
        own_sources: [B, H] int8.
        own_log_count: [B, H] float32, ln n: 0 for columns that are there on purpose.
        own_log_weight: [B, H] float32, ln of a weight, added to the logit whatever alpha is.
        own_masked: [B, H] int8, a :class:`~hatchway.negatives.sources.Reason`, 0 for none.
        distinct: whether the shared columns are de-duplicated.
        first: the column that carries row 0's positive, where the in-batch columns do so in order.
        places: [C] int64, where each column stood among its source's own draws.
    """

    positives: Tensor
    items: Tensor
    sources: Tensor
    log_count: Tensor
    positive_log_count: Tensor
    masked: Masked
    copy_rows: Tensor
    copy_columns: Tensor
    own_items: Tensor
    own_sources: Tensor
    own_log_count: Tensor
    own_log_weight: Tensor
    own_masked: Tensor
    distinct: bool
    first: int
    places: Tensor

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

    @property
    def carried(self) -> bool:
        """Whether column ``first + i`` is row i's positive, for every row i."""
        place = self.first + len(self.positives)
        return not self.distinct and place <= len(self.items) and int(self.sources[place - 1]) == Source.IN_BATCH

    @property
    def own_stands(self) -> Tensor:
        """[B, H] bool: own columns that are there and not masked."""
        return (self.own_items >= 0) & (self.own_masked == 0)

    @property
    def rows_without_negatives(self) -> Tensor:
        """[B] bool: rows whose every candidate is masked; their loss and its gradient are 0."""
        gone = torch.bincount(self.masked.rows, minlength=len(self.positives)) == len(self.items)
        return gone & ~self.own_stands.any(1)

    def masked_counts(self) -> dict[str, int]:
        """Return how many candidates, shared and own, are masked for each reason, by its lower-case name."""
        return _by_name(torch.cat([self.masked.reasons, self.own_masked[self.own_masked > 0]]))


def draw_ledger(
    positives: Tensor,
    sources: Sequence[SharedSource],
    generator: torch.Generator,
    correction: PositiveCorrection,
    *,
    own: Sequence[OwnSource] = (),
    rows: Tensor | None = None,
    distinct: bool = False,
    gathered: Tensor | None = None,
    first: int = 0,
) -> Ledger:
    """Draw every source's columns and account for them together.

    Masked are the columns that carry a row's own positive, under ``uncorrected`` the other copies of it as well, and
    copies of what the row has on purpose; what else may not stand as a negative, :mod:`hatchway.screening` says.

    Args:
        positives: [B] int64 item rows.
        sources: the shared sources; their expected counts add up.
        generator: where the draws come from.
        correction: the positive's switch.
        own: the sources of the rows' own columns.
        rows: [B] int64 engagement rows, which some own sources look up.
        distinct: keep the first column of every item and no other.
        gathered: [G] int64 positives of all ranks, in the order of the ranks, where every rank sees all ranks' in-batch
            columns. The batch is then G rows. None: the batch is ``positives``.
        first: where this rank's rows begin in ``gathered``.

    Raises:
        DataError: the positives are no list of item rows, a column's expected count is 0, or ``gathered`` does not hold
            ``positives`` at ``first``.
        SettingsError: the in-batch source is not the first, or ``correction`` is none of the three.
    """
    if any(source.source is Source.IN_BATCH for source in sources[1:]):
        raise SettingsError("the in-batch source must come first: its columns are then the first B, one for each row")
    if positives.ndim != 1 or positives.is_floating_point():
        raise DataError(
            f"positives have shape {tuple(positives.shape)} and dtype {positives.dtype}; allowed: [B] int64 item rows"
        )
    everyone = positives if gathered is None else gathered
    if not torch.equal(everyone[first : first + len(positives)], positives):
        raise DataError(
            f"the {len(everyone)} gathered positives do not hold this rank's {len(positives)} from place {first} on; "
            "gather in the order of the ranks, and give the place where this rank's rows begin"
        )
    drawn = [source.draw(everyone, generator) for source in sources]
    own_draws = [OwnDraw(source, source.draw(positives, rows, generator)) for source in own]
    empty = positives.new_empty(0)
    items = torch.cat([empty, *drawn])
    kinds = torch.cat(
        [
            empty.to(torch.int8),
            *(torch.full_like(d, s.source, dtype=torch.int8) for s, d in zip(sources, drawn, strict=True)),
        ]
    )
    places = torch.cat([empty, *(torch.arange(len(d), device=d.device) for d in drawn)])
    if distinct:
        kept = first_of_each(items)
        items, kinds, places = items[kept], kinds[kept], places[kept]
    made = account(
        positives,
        items,
        kinds,
        sources,
        correction,
        own=own_draws,
        distinct=distinct,
        global_batch=len(everyone),
        first=first,
    )
    return replace(made, places=places)


def account(
    positives: Tensor,
    items: Tensor,
    kinds: Tensor,
    sources: Sequence[SharedSource],
    correction: PositiveCorrection,
    *,
    own: Sequence[OwnDraw] = (),
    distinct: bool = False,
    global_batch: int | None = None,
    first: int = 0,
) -> Ledger:
    """Write the ledger of columns that have been drawn; see :func:`draw_ledger`.

    Args:
        positives: [B] int64 item rows.
        items: [C] int64 item rows of the columns, source after source.
        kinds: [C] int8 :class:`~hatchway.negatives.sources.Source` of each column.
        sources: the sources that drew them.
        correction: the positive's switch.
        own: what the sources of own columns gave the rows.
        distinct: the columns are de-duplicated: each item stands once.
        global_batch: the number of rows whose positives are in-batch columns; B where None.
        first: the in-batch column that carries row 0's positive.

    Raises:
        DataError: a column's expected count is 0.
        SettingsError: ``correction`` is none of the three.
    """
    if correction not in (allowed := get_args(PositiveCorrection)):
        raise SettingsError(f"positive is {correction!r}; allowed: {', '.join(allowed)}")
    batch = len(positives) if global_batch is None else global_batch
    counting = Counting(sources, own, batch, correction, distinct)
    rows, columns = matching_columns(items, positives)
    in_batch = kinds == Source.IN_BATCH
    carrier = in_batch[columns] & (distinct | (rows + first == columns))
    copies_stay = correction != "uncorrected" and not distinct
    count = counting.of_columns(items)
    # A batch of one has no other rows: its only in-batch column is its own positive, masked whatever is written here.
    if batch == 1:
        count = torch.where((count == 0) & in_batch, 1.0, count)
    positive_count = counting.of_positives(positives)
    gone = carrier if copies_stay else torch.ones_like(carrier)
    stay = ~gone
    reasons = torch.where(carrier, int(Reason.POSITIVE), int(Reason.SAME_ITEM)).to(torch.int8)
    masked = Masked(rows[gone], columns[gone], reasons[gone])

    laid = side_by_side(own, positives)
    own_log_count = torch.zeros_like(laid.log_weight)
    own_masked = own_reasons(laid, positives, copies_stay=copies_stay)
    if laid.items.shape[1]:
        if distinct:
            own_masked[repeated(laid, items) & (own_masked == 0)] = Reason.REPEAT
        if not bool(laid.on_purpose.all()):
            drawn = ~laid.on_purpose
            own_count = counting.of_columns(laid.items[:, drawn].clamp(min=0))
            if correction == "count":
                own_count = torch.where(laid.items[:, drawn] == positives[:, None], positive_count[:, None], own_count)
            # An absent column has no count; what is written there is read by nobody, but must be a number.
            own_log_count[:, drawn] = torch.where(laid.items[:, drawn] < 0, 1.0, own_count).log().float()
        on_purpose = laid.on_purpose & (own_masked == 0) & (laid.items >= 0)
        owners, own_places = torch.nonzero(on_purpose, as_tuple=True)
        own_rows, own_columns = matching_columns(items, laid.items[owners, own_places], owners)
        reason = torch.full_like(own_rows, Reason.OWN, dtype=torch.int8)
        masked = _joined(masked, Masked(own_rows, own_columns, reason))
    return Ledger(
        positives=positives,
        items=items,
        sources=kinds,
        log_count=count.log().float(),
        positive_log_count=positive_count.log().float(),
        masked=masked,
        copy_rows=rows[stay],
        copy_columns=columns[stay],
        own_items=laid.items,
        own_sources=laid.sources,
        own_log_count=own_log_count,
        own_log_weight=laid.log_weight,
        own_masked=own_masked,
        distinct=distinct,
        first=first,
        places=torch.arange(len(items), device=items.device),
    )


def first_of_each(items: Tensor) -> Tensor:
    """Return the places of every item's first column, ascending.

    >>> first_of_each(torch.tensor([7, 5, 7, 9, 5])).tolist()
    [0, 1, 3]
    """
    ordered, order = torch.sort(items, stable=True)
    fresh = torch.ones_like(ordered, dtype=torch.bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return order[fresh].sort().values


def with_masked(ledger: Ledger, masked: Masked) -> Ledger:
    """Return the ledger with more candidates masked; where a pair has a reason already, the first reason stays.

    A copy of the row's own positive is never masked by this: whether it stays is the correction's to say.

    Raises:
        DataError: a coordinate is not one of the ledger's, or there are not as many of each kind.
    """
    if not len(masked.rows) == len(masked.columns) == len(masked.reasons):
        raise DataError(
            f"{len(masked.rows)} rows, {len(masked.columns)} columns and {len(masked.reasons)} reasons are masked; "
            "allowed: one of each for every candidate"
        )
    before = ledger.masked
    parts = before.rows, before.columns, before.reasons, masked.rows, masked.columns, masked.reasons
    if found := merged_coordinates(*parts, ledger.items, ledger.positives):
        return replace(ledger, masked=Masked(*found))
    _check_within("row", masked.rows, len(ledger.positives))
    _check_within("column", masked.columns, len(ledger.items))
    others = ledger.items[masked.columns] != ledger.positives[masked.rows]
    more = Masked(masked.rows[others], masked.columns[others], masked.reasons[others])
    return replace(ledger, masked=_joined(before, more))


def _check_within(name: str, index: Tensor, end: int) -> None:
    """Refuse coordinates of another batch, with which a loop would write where it must not."""
    strangers = index[(index < 0) | (index >= end)]
    if len(strangers):
        raise DataError(
            f"a masked {name} is {int(strangers[0])}; the ledger has {name}s 0 to {end - 1}: masks are those of the "
            "batch that they were found in"
        )


def with_own_masked(ledger: Ledger, where: Tensor, reason: Reason) -> Ledger:
    """Return the ledger with more own columns masked; the first reason stays, and copies of the positive are spared.

    Args:
        ledger: the ledger.
        where: [B, H] bool.
        reason: why.
    """
    fresh = where & ledger.own_stands & (ledger.own_items != ledger.positives[:, None])
    return replace(ledger, own_masked=torch.where(fresh, int(reason), ledger.own_masked).to(torch.int8))


def _joined(first: Masked, more: Masked) -> Masked:
    """Return both, sorted, each pair once; where both have a pair, the first one's reason stays."""
    rows = torch.cat([first.rows, more.rows])
    places = torch.cat([first.columns, more.columns])
    reasons = torch.cat([first.reasons, more.reasons])
    kept = each_pair_once(rows, places)
    return Masked(rows[kept], places[kept], reasons[kept])


def _by_name(reasons: Tensor) -> dict[str, int]:
    found, numbers = reasons.unique(return_counts=True)
    return {Reason(int(reason)).name.lower(): int(number) for reason, number in zip(found, numbers, strict=True)}
