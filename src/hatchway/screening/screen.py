"""The screen: what may not stand as a negative for whom, for every source, with the reason."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.data.contexts import ragged_ranges
from hatchway.data.engagements import Int64
from hatchway.errors import DataError
from hatchway.negatives.ledger import Masked
from hatchway.negatives.matching import matching_columns
from hatchway.negatives.sources import Reason
from hatchway.screening.settings import ScreeningSettings
from hatchway.screening.similar import SimilarItems

Int8 = npt.NDArray[np.int8]

ORDER = (Reason.SELLER, Reason.PHOTO, Reason.TITLE)
"""Where several reasons hold, the first one in this order is told."""


@dataclass(frozen=True, eq=False)
class Screen:
    """What is known of N items that makes one a hidden positive where the other is the positive.

    What a buyer engaged with is not in here: it belongs to a row, not to an item; see
    :mod:`hatchway.screening.engaged`, and :attr:`ScreeningSettings.engaged_days` for how long it counts.

    Attributes:
        settings: what was screened for.
        sellers: [N] int64 number of each item's seller, −1 where unknown; None: the reason is off.
        photos: which photos are near-identical; None: the reason is off.
        titles: which titles say the same; None: the reason is off.
        notes: what was found and what is off, in lines that have been said.

    Raises:
        DataError: the parts are of different numbers of items.
    """

    settings: ScreeningSettings = field(default_factory=ScreeningSettings)
    sellers: Int64 | None = None
    photos: SimilarItems | None = None
    titles: SimilarItems | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts of different catalogues."""
        sizes = {len(part) for part in (self.sellers, self.photos, self.titles) if part is not None}
        if len(sizes) > 1:
            raise DataError(f"the parts of a screen are of {sorted(sizes)} items; all must be of one catalogue")

    @property
    def size(self) -> int | None:
        """N, None where no reason is on."""
        return next((len(part) for part in (self.sellers, self.photos, self.titles) if part is not None), None)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons that are on, in the order in which they are asked."""
        parts = (self.sellers, self.photos, self.titles)
        return tuple(reason for reason, part in zip(ORDER, parts, strict=True) if part is not None)

    def pairs(self, positives: npt.NDArray[np.integer], candidates: npt.NDArray[np.integer]) -> Int8:
        """Say of each pair why the candidate may not stand as a negative beside the positive.

        Args:
            positives: [P] item rows, of any shape.
            candidates: [P] item rows, of the same shape.

        Returns:
            [P] int8: the first :class:`~hatchway.negatives.sources.Reason` that holds, or 0 where it may stand. A
            candidate that is the positive itself is ``SAME_ITEM``, whatever is switched off.

        Raises:
            DataError: the shapes differ, or an item row is not in the catalogue.
        """
        if positives.shape != candidates.shape:
            raise DataError(f"positives of shape {positives.shape}, candidates of {candidates.shape}; give pairs")
        for rows in (positives, candidates):
            if rows.size and self.size is not None and not 0 <= int(rows.min()) <= int(rows.max()) < self.size:
                raise DataError(f"item rows {int(rows.min())} to {int(rows.max())}; allowed: 0 to {self.size - 1}")
        first, second = positives.reshape(-1), candidates.reshape(-1)
        reasons = np.where(first == second, np.int8(Reason.SAME_ITEM), np.int8(0))
        if self.sellers is not None:
            mine = self.sellers[first]
            reasons[(reasons == 0) & (mine >= 0) & (mine == self.sellers[second])] = Reason.SELLER
        for reason, similar in ((Reason.PHOTO, self.photos), (Reason.TITLE, self.titles)):
            if similar is not None:
                reasons[(reasons == 0) & similar.contains(first, second)] = reason
        return reasons.reshape(positives.shape)

    def coordinates(self, positives: Tensor, columns: Tensor) -> Masked:
        """Find the shared columns that may not stand for a row; no [B, C] matrix is built.

        Args:
            positives: [B] int64 item rows.
            columns: [C] int64 item rows of the shared columns.

        Returns:
            Coordinates with their reasons; a pair may come several times, once for each reason that holds, and the
            first is the one to tell: :func:`~hatchway.negatives.ledger.with_masked` keeps it. Copies of the positive
            are not among them.
        """
        rows = [positives.new_empty(0)]
        places = [positives.new_empty(0)]
        reasons = [positives.new_empty(0, dtype=torch.int8)]
        for reason, (mine, where) in self._joins(positives, columns):
            others = columns[where] != positives[mine]
            rows.append(mine[others])
            places.append(where[others])
            reasons.append(torch.full_like(rows[-1], int(reason), dtype=torch.int8))
        return Masked(torch.cat(rows), torch.cat(places), torch.cat(reasons))

    def own(self, positives: Tensor, items: Tensor) -> Tensor:
        """Say which of the rows' own columns may not stand.

        Args:
            positives: [B] int64 item rows.
            items: [B, H] int64 item rows, −1 where a row has fewer than H.

        Returns:
            [B, H] int8 reasons, 0 where a column may stand, is absent or is a copy of the row's positive.
        """
        reasons = torch.zeros_like(items, dtype=torch.int8)
        rows, places = torch.nonzero((items >= 0) & (items != positives[:, None]), as_tuple=True)
        if len(rows):
            told = self.pairs(positives[rows].cpu().numpy(), items[rows, places].cpu().numpy())
            reasons[rows, places] = torch.from_numpy(told).to(reasons.device)
        return reasons

    def _joins(self, positives: Tensor, columns: Tensor) -> Iterator[tuple[Reason, tuple[Tensor, Tensor]]]:
        """Yield for each reason that is on the rows and columns where it holds, rows ascending."""
        if self.sellers is not None:
            sellers = torch.from_numpy(self.sellers).to(columns.device)
            theirs, mine = sellers[columns], sellers[positives]
            known, told = torch.nonzero(theirs >= 0)[:, 0], torch.nonzero(mine >= 0)[:, 0]
            rows, places = matching_columns(theirs[known], mine[told], told)
            yield Reason.SELLER, (rows, known[places])
        asked = positives.cpu().numpy()
        for reason, similar in ((Reason.PHOTO, self.photos), (Reason.TITLE, self.titles)):
            if similar is not None:
                index, offsets = ragged_ranges(similar.offsets[asked], similar.offsets[asked + 1])
                keys = torch.from_numpy(similar.items[index]).to(columns.device)
                of_rows = torch.from_numpy(np.repeat(np.arange(len(asked)), np.diff(offsets))).to(columns.device)
                yield reason, matching_columns(columns, keys, of_rows)
