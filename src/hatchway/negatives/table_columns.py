"""Own columns from a table: for each row a few of the items that its list holds, there on purpose."""

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from hatchway.data.row_table import RowTable
from hatchway.errors import DataError, SettingsError
from hatchway.how_many.schedule import negatives_of_rows
from hatchway.negatives.sources import Source


class TableColumns:
    """At most ``most`` items of a row's list; every choice of so many is equally likely.

    Where ``most`` is not whole, a row takes the whole number below it, or with the chance of its fraction one more.

    The columns are there on purpose: n = 1, nothing to correct.

    Args:
        table: the lists, by engagement row.
        most: how many of a row's items become columns at most, not necessarily whole.
        source: the name of the source.
        weight: above 0: a column counts as so many columns; 1 for one.

    Raises:
        SettingsError: ``most`` is negative or no number, or the weight is not above 0.
    """

    on_purpose = True

    def __init__(self, table: RowTable, most: float, source: Source, weight: float = 1.0) -> None:
        if not 0 <= most < math.inf:
            raise SettingsError(f"{most} {source.name.lower()} columns a row; allowed: 0 or more")
        if not 0 < weight < math.inf:
            raise SettingsError(
                f"the weight of {source.name.lower()} columns is {weight}; allowed: above 0, 1 for none"
            )
        self.table = table
        self.most = most
        self.source = source
        self.log_weight = math.log(weight)

    def resized(self, most: float) -> "TableColumns":
        """Return as good a source with another number of columns; the table and what was made of it are shared."""
        other = TableColumns(self.table, most, self.source)
        other.log_weight = self.log_weight
        other._lists = self._lists
        return other

    @cached_property
    def _lists(self) -> tuple[Tensor, Tensor, Tensor, int]:
        table = self.table
        # Memory that may not be written to is copied: PyTorch knows no such tensors.
        begin, lengths = (torch.from_numpy(np.require(part, np.int64, "W")) for part in (table.begin, table.lengths))
        items = torch.from_numpy(np.require(table.items, np.int32, "W"))
        return begin, lengths, items, int(lengths.max()) if len(lengths) else 0

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:
        """Look up the rows' lists and choose; see :class:`~hatchway.negatives.sources.OwnSource`.

        Raises:
            DataError: there are no engagement rows to look up, or the table has no such row.
        """
        if rows is None or len(rows) != len(positives):
            raise DataError(
                f"{self.source.name.lower()} negatives are looked up by engagement row: give rows, one for each of the "
                f"{len(positives)} positives"
            )
        rows = rows.cpu()  # where the table lies
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(self.table):
            stranger = int(rows.min()) if int(rows.min()) < 0 else int(rows.max())
            raise DataError(
                f"engagement row {stranger} is not in the table of {self.source.name.lower()} negatives, which "
                f"has {len(self.table)} rows; make it from the log that is trained on"
            )
        begin, lengths, items, longest = self._lists
        if not self.most or not len(items):
            return positives.new_empty(len(positives), 0)
        each: int | Tensor = min(
            math.ceil(self.most), longest
        )  # columns that no row could fill would cost all the same
        if math.ceil(self.most) != self.most:
            each = negatives_of_rows(self.most, len(rows), generator).cpu().clamp(max=longest)
        places = choose_places(lengths[rows], each, generator)
        chosen = items[(begin[rows, None] + places).clamp(min=0, max=len(items) - 1)].long()
        return torch.where(places < 0, -1, chosen).to(positives.device)

    def expected(self, items: Tensor) -> Tensor:
        """0: nothing is drawn at random."""
        return torch.zeros(items.shape, dtype=torch.float64, device=items.device)

    def log_absent(self, items: Tensor) -> Tensor:
        """0: nothing is drawn at random."""
        return self.expected(items)


def choose_places(lengths: Tensor, most: int | Tensor, generator: torch.Generator) -> Tensor:
    """Choose at most ``most`` places of each list, without replacement, each choice equally likely.

    Floyd's algorithm on all lists at once: as many steps as places are chosen, however long the lists are
    (Bentley and Floyd 1987).

    Args:
        lengths: [B] int64 length of each list, on the CPU.
        most: H, or [B] int64, each list's own, whose largest is H.
        generator: where the choice comes from.

    Returns:
        [B, H] int64 places within each list, −1 where the list is shorter than H.
    """
    widest = most if isinstance(most, int) else int(most.max()) if len(most) else 0
    chosen = torch.full((len(lengths), widest), -1, dtype=torch.int64)
    wanted = torch.minimum(lengths, torch.as_tensor(most))
    for step in range(widest):
        # The place that comes into reach with this step; a place that was chosen before is replaced by it.
        newest = lengths - wanted + step
        drawn = torch.rand(len(lengths), generator=generator, dtype=torch.float64, device=generator.device).cpu()
        any_place = (drawn * (newest + 1)).long()
        again = (chosen[:, :step] == any_place[:, None]).any(1)
        chosen[:, step] = torch.where(step < wanted, torch.where(again, newest, any_place), -1)
    return chosen
