"""A count-min sketch (Cormode and Muthukrishnan 2005) whose counts fade: how often each item is drawn."""

from collections.abc import Mapping, Sequence
from typing import Self

import pydantic
import torch
from torch import Tensor

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.hashing import MOST_BUCKETS, buckets_of, salts
from hatchway.frequency.independent import IndependentRows, floor_of
from hatchway.frequency.restoring import restored
from hatchway.settings import Settings

_RESCALE_BELOW = 1e-100
_ON_CPU = torch.device("cpu")


class CountMinSettings(Settings):
    """How the sketch is built.

    Attributes:
        buckets: counts a hash, 8 bytes each; None for twice the catalogue, at least 1,024.
        hashes: arrays of counts; an item's estimate is the smallest of its own.
        half_life: positives after which an occurrence weighs half; None never forgets.
        conservative: raise an item's counts only as far as its estimate demands. It lowers the excess of rare items,
            which share their buckets with more frequent ones.
    """

    buckets: int | None = pydantic.Field(default=None, ge=1, le=MOST_BUCKETS)
    hashes: int = pydantic.Field(default=4, ge=1, le=16)
    half_life: float | None = pydantic.Field(default=None, gt=0)
    conservative: bool = True


class CountMin(IndependentRows):
    """Faded counts in hashed buckets, divided by the equally faded total.

    The total fades with the counts: if it did not, every chance would shrink together as time passes. Instead of fading
    every bucket at every step, new occurrences enter with a weight that grows, and one scale is kept for all.

    An estimate is never below the item's true faded share, and never below
    :func:`~hatchway.frequency.independent.floor_of` of the catalogue and the faded total. It is above the true share by
    what shares the item's buckets: on average, 1 / H of the total a hash, of which the smallest counts. For rare items
    that excess is the larger part unless H exceeds the number of items that occur.

    Args:
        settings: the sketch's settings.
        catalogue: N, the number of items.
        seed: the run's seed; the salts of the hashes come from it.
        device: where the counts lie.
    """

    def __init__(
        self, settings: CountMinSettings, catalogue: int, seed: int, *, device: torch.device = _ON_CPU
    ) -> None:
        self.settings = settings
        self.catalogue = catalogue
        buckets = settings.buckets or min(max(2 * catalogue, 1024), MOST_BUCKETS)
        self._salts = salts(seed, settings.hashes).to(device)
        self._counts = torch.zeros(settings.hashes, buckets, dtype=torch.float64, device=device)
        self._scale = 1.0  # a stored count times this is a faded count
        self._total = 0.0  # faded, like the counts once they are scaled

    @property
    def total(self) -> float:
        """The faded number of positives."""
        return self._total

    def update(self, positives: Tensor) -> None:
        """Take in one batch; see :class:`~hatchway.frequency.protocol.LearnedFrequency`."""
        if positives.dtype != torch.int64 or positives.ndim != 1:
            raise DataError(
                f"positives have shape {tuple(positives.shape)} and dtype {positives.dtype}; "
                "allowed: [B] int64 item rows"
            )
        faded = 0.5 ** (len(positives) / self.settings.half_life) if self.settings.half_life else 1.0
        self._scale *= faded
        self._total = self._total * faded + len(positives)
        if self._scale < _RESCALE_BELOW:
            self._counts *= self._scale
            self._scale = 1.0
        items, copies = positives.to(self._counts.device).unique(return_counts=True)
        places = buckets_of(items, self._salts, self._counts.shape[1])
        added = copies.to(torch.float64) / self._scale
        if self.settings.conservative:
            wanted = self._counts.gather(1, places).amin(0) + added
            self._counts.scatter_reduce_(1, places, wanted.expand_as(places), "amax")
        else:
            self._counts.scatter_add_(1, places, added.expand_as(places))

    def chances(self, items: Tensor) -> Tensor:
        """Return the chance that one positive is the item.

        Args:
            items: [M] int64 item rows.

        Returns:
            [M] float64, at least the floor and at most 1.
        """
        places = buckets_of(items.to(self._counts.device), self._salts, self._counts.shape[1])
        counts = self._counts.gather(1, places).amin(0) * self._scale
        floor = floor_of(self.catalogue, int(self._total))
        return (counts / max(self._total, 1.0)).clamp(min=floor, max=1.0).to(items.device)

    def grow(self, catalogue: int) -> None:
        """Go over to a larger catalogue: estimates stay, the floor follows N.

        Raises:
            DataError: the catalogue would shrink.
        """
        if catalogue < self.catalogue:
            raise DataError(
                f"a catalogue of {self.catalogue:,} items cannot shrink to {catalogue:,}; rows never vanish"
            )
        self.catalogue = catalogue

    def merge(self, others: Sequence[Self]) -> None:
        """Add the counts of other ranks, each learned from positives of its own.

        The result is a sketch of all the positives, and still never below the truth. Everything weighs by its faded
        count, so each rank's last positives count as the most recent.

        Raises:
            SettingsError: the others have other settings or salts.
        """
        for other in others:
            if other.settings != self.settings or not torch.equal(other._salts, self._salts):  # noqa: SLF001
                raise SettingsError(
                    "sketches with different settings or seeds have different buckets; they cannot merge"
                )
        self._counts *= self._scale
        self._scale = 1.0
        for other in others:
            self._counts += other._counts * other._scale  # noqa: SLF001
            self._total += other.total
            self.catalogue = max(self.catalogue, other.catalogue)

    def state(self) -> dict[str, Tensor]:
        """Return counts, salts, scale, total and N; see :class:`~hatchway.frequency.protocol.LearnedFrequency`."""
        numbers = torch.tensor([self._scale, self._total, float(self.catalogue)], dtype=torch.float64)
        return {"counts": self._counts, "salts": self._salts, "numbers": numbers}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state` returned; see :class:`~hatchway.frequency.protocol.LearnedFrequency`.

        Raises:
            ArtefactError: the state is of other settings.
        """
        found = restored(state, self.state())
        self._counts.copy_(found["counts"])
        self._salts.copy_(found["salts"])
        self._scale, self._total, catalogue = found["numbers"].tolist()
        self.catalogue = int(catalogue)
