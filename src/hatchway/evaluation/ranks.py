"""Where the relevant items stand, as counts: how many candidates score higher, how many the same.

Two counts say everything that a metric needs, and they say it without deciding a tie: an item with ``better``
candidates above it and ``tied`` candidates at its score (itself among them) stands somewhere in the positions
``better + 1 .. better + tied``, each equally likely under a random order within the tie.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64
from hatchway.errors import DataError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TieGroups:
    """The G runs of equal score that hold a relevant item, case by case, best first.

    Attributes:
        case: [G] int64 the case of each run.
        better: [G] int64 candidates above the run.
        size: [G] int64 candidates in the run.
        relevant: [G] int64 relevant items in the run.
        before: [G] int64 relevant items above the run.
        first: [Q] int64 the first run of each case.
    """

    case: Int64
    better: Int64
    size: Int64
    relevant: Int64
    before: Int64
    first: Int64


@dataclass(frozen=True, eq=False)
class Ranks:
    """The standing of R relevant items in the rankings of Q cases.

    Attributes:
        offsets: [Q + 1] int64; case i's relevant items are ``offsets[i]:offsets[i + 1]``, at least one.
        better: [R] int64 candidates that score higher.
        tied: [R] int64 candidates of the same score, the item itself among them.
        depth: the counts are exact for items with ``better < depth``; the others have ``better = depth, tied = 1`` and
            stand too deep for any cut-off up to ``depth``. None: all are exact.

    Raises:
        DataError: a case has no relevant item, so that no metric is defined for it.
    """

    offsets: Int64
    better: Int64
    tied: Int64
    depth: int | None = None

    def __post_init__(self) -> None:
        empty = np.flatnonzero(np.diff(self.offsets) < 1)
        if len(empty):
            raise DataError(f"case {empty[0]} has no relevant item; leave cases without one out, no metric is defined")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def relevant(self) -> Int64:
        """How many relevant items each case has, [Q] int64."""
        return np.diff(self.offsets)

    @cached_property
    def cases(self) -> Int64:
        """The case of each relevant item, [R] int64."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.relevant)

    @cached_property
    def groups(self) -> TieGroups:
        """The runs of equal score."""
        order = np.lexsort((self.better, self.cases))
        case, better = self.cases[order], self.better[order]
        new = np.ones(len(order), bool)
        new[1:] = (case[1:] != case[:-1]) | (better[1:] != better[:-1])
        start = np.flatnonzero(new)
        case, better = case[start], better[start]
        return TieGroups(
            case=case,
            better=better,
            size=self.tied[order][start],
            relevant=np.diff(start, append=len(order)),
            before=start - self.offsets[case],
            first=np.searchsorted(case, np.arange(len(self))),
        )

    def only(self, chosen: npt.NDArray[np.bool_]) -> tuple["Ranks", Int64]:
        """Keep some of the relevant items, at the ranks they have among all candidates.

        Args:
            chosen: [R] bool.

        Returns:
            The ranks of the chosen items in the cases that have any, and the [Q'] int64 numbers of those cases.
        """
        counts = np.bincount(self.cases[chosen], minlength=len(self))
        kept = np.flatnonzero(counts)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[kept])])
        return Ranks(offsets, self.better[chosen], self.tied[chosen], self.depth), kept

    def at_mean(self) -> "Ranks":
        """Put every item of a tie at the tie's mean position, at the later one where that is a half.

        Nothing is tied then, and several relevant items of one tie stand at the same position.
        """
        return Ranks(self.offsets, self.better + self.tied // 2, np.ones_like(self.tied), self.depth)

    def tied_share(self) -> float:
        """Return the share of the relevant items (down to ``depth``) whose score another candidate has as well.

        It is near 0 for a healthy model, near 1 for a collapsed one, and NaN where no item stands above ``depth``.
        """
        exact = self.better < (np.iinfo(np.int64).max if self.depth is None else self.depth)
        return float((self.tied[exact] > 1).mean()) if exact.any() else float("nan")
