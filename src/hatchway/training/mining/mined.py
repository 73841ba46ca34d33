"""What was mined: for each positive the candidates that were looked at, which of them stand, and why others do not."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pydantic

from hatchway.data.engagements import Float32, Int32, Int64
from hatchway.data.row_table import RowTable
from hatchway.negatives.sources import Reason
from hatchway.training.mining.walk import Int8


class MiningFigures(pydantic.BaseModel):
    """How the mining went.

    Attributes:
        positives: mined for.
        queries: asked of the index: equal ones once.
        unasked: positives whose query the earlier model knows nothing of; nothing was mined for them.
        looked_at: candidates of the windows that were looked at, until enough stood.
        mined: those that stand.
        refused: the others, by reason.
        refused_share: share of those looked at that were refused.
        per_positive: mean of those that stand.
        effective_per_positive: mean number of mined columns that a positive has in a step of training.
        short: positives with fewer than the cap.
        by_number: how many positives have 0, 1, … of them.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    positives: int
    queries: int
    unasked: int
    looked_at: int
    mined: int
    refused: dict[str, int]
    refused_share: float
    per_positive: float
    effective_per_positive: float
    short: int
    by_number: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Mined:
    """What was mined for P positives: M candidates were looked at.

    Attributes:
        rows: [P] int64, ascending engagement rows of the positives.
        offsets: [P + 1] int64; positive i's candidates are ``offsets[i]:offsets[i + 1]``, in the order looked at.
        items: [M] int32 item rows.
        scores: [M] float32, raw dot products with the query of the earlier model.
        ranks: [M] int32, in its raw ranking, counted from 1.
        reasons: [M] int8, a :class:`~hatchway.negatives.sources.Reason`; 0 where the item stands.
        positive_scores: [P] float32 of the positives themselves, NaN where the earlier model does not know them.
        positive_ranks: [P] int32, 0 where the positive is not among the ranks that were asked for.
        asked: [P] bool, whether the earlier model had a query.
        queries: how many queries were asked.
        cap: how many were wanted for each.
    """

    rows: Int64
    offsets: Int64
    items: Int32
    scores: Float32
    ranks: Int32
    reasons: Int8
    positive_scores: Float32
    positive_ranks: Int32
    asked: np.ndarray
    queries: int
    cap: int

    def __len__(self) -> int:
        """P."""
        return len(self.rows)

    @cached_property
    def numbers(self) -> Int64:
        """[P] int64, how many stand for each positive."""
        counted = np.zeros(len(self.reasons) + 1, np.int64)
        np.cumsum(self.reasons == 0, out=counted[1:])
        return np.diff(counted[self.offsets])

    def table(self, engagements: int) -> RowTable:
        """Return the items that stand as a table with a list for every engagement row, as training takes it.

        Args:
            engagements: E, the rows of the log.
        """
        lengths = np.zeros(engagements, np.int64)
        lengths[self.rows] = self.numbers
        offsets = np.zeros(engagements + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return RowTable.from_offsets(offsets, self.items[self.reasons == 0])

    def refused(self) -> Mapping[str, int]:
        """Return how many candidates were refused for each reason, by its lower-case name; absent ones are left out."""
        counts = np.bincount(self.reasons, minlength=1)
        return {Reason(number).name.lower(): int(counts[number]) for number in range(1, len(counts)) if counts[number]}

    def figures(self, columns: float | None = None) -> MiningFigures:
        """Sum the mining up.

        Args:
            columns: how many mined columns a row has at most in training; the cap where None.
        """
        stand, looked_at, positives = int(self.numbers.sum()), len(self.items), max(len(self), 1)
        used = np.minimum(self.numbers, self.cap if columns is None else columns)
        return MiningFigures(
            positives=len(self),
            queries=self.queries,
            unasked=int((~self.asked).sum()),
            looked_at=looked_at,
            mined=stand,
            refused=dict(self.refused()),
            refused_share=(looked_at - stand) / max(looked_at, 1),
            per_positive=stand / positives,
            effective_per_positive=float(used.sum()) / positives,
            short=int((self.numbers < self.cap).sum()),
            by_number=tuple(np.bincount(self.numbers, minlength=self.cap + 1).tolist()),
        )
