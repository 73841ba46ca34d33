"""Expired items answer 0, whatever was learned of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.frequency.item_rows import of_items
from hatchway.frequency.protocol import Frequency


@dataclass(frozen=True)
class LivingOnly:
    """A frequency under the mask of one catalogue snapshot: what is not on offer is expected nowhere.

    For batches whose positives are living items only. A positive that has expired but is still trained on has to keep
    its count: do not wrap then.

    Attributes:
        frequency: what was learned.
        living: [N] bool, the items on offer; N is the snapshot's number of items.
    """

    frequency: Frequency
    living: Tensor

    def __post_init__(self) -> None:
        """Refuse a mask that is no mask."""
        if self.living.dtype != torch.bool or self.living.ndim != 1:
            raise DataError(
                f"living has shape {tuple(self.living.shape)} and dtype {self.living.dtype}; "
                "allowed: one flag an item, [N] bool"
            )

    def _masked(self, items: Tensor, answers: Tensor) -> Tensor:
        return torch.where(of_items(self.living, items), answers, 0.0)

    def others(self, items: Tensor, batch: int) -> Tensor:
        """See :class:`~hatchway.frequency.protocol.Frequency`; 0 for an expired item."""
        return self._masked(items, self.frequency.others(items, batch))

    def others_of_positive(self, items: Tensor, batch: int) -> Tensor:
        """See :class:`~hatchway.frequency.protocol.Frequency`; 0 for an expired item."""
        return self._masked(items, self.frequency.others_of_positive(items, batch))

    def whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """See :class:`~hatchway.frequency.protocol.Frequency`; 0 for an expired item."""
        return self._masked(items, self.frequency.whole_batch(items, batch))

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """See :class:`~hatchway.frequency.protocol.Frequency`; an expired item is certain to be absent."""
        return self._masked(items, self.frequency.log_absent_others(items, batch))

    def log_absent_whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """See :class:`~hatchway.frequency.protocol.Frequency`; an expired item is certain to be absent."""
        return self._masked(items, self.frequency.log_absent_whole_batch(items, batch))
