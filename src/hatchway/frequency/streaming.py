"""How often each item is drawn, learned from the stream of positives: Yi et al. 2019, with its two meanings named."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import numpy as np
import pydantic
import torch
from torch import Tensor

from hatchway.compiled import available
from hatchway.errors import DataError, SettingsError
from hatchway.frequency import gaps
from hatchway.frequency.cell_loops import Array, read_loop, record_loop
from hatchway.frequency.hashing import MOST_BUCKETS, buckets_of, salts
from hatchway.frequency.independent import IndependentRows, floor_of, log_absent_draws
from hatchway.frequency.merging import merged_cells
from hatchway.frequency.restoring import restored
from hatchway.settings import Settings

Meaning = Literal["every-occurrence", "unique-per-batch"]
"""What the estimate is of.

``every-occurrence``: every copy counts and the clock runs in positives. 1 / (mean gap) is the chance that one
    positive is the item; times B it is the expected number of copies in a batch, which is what columns that keep every
    copy need.
``unique-per-batch``: an item counts once a batch and the clock runs in batches. 1 / (mean gap) is the chance of being
    in a batch at all. It saturates at 1 (an item with 4.1 expected copies is in 98 % of the batches), so it is right
    only for columns that are de-duplicated.
"""

_MOST_BATCH = gaps.MOST_VOTES // 2
_ON_CPU = torch.device("cpu")


class StreamingSettings(Settings):
    """How the estimator of Yi et al. is built.

    Attributes:
        meaning: what is estimated; see :data:`Meaning`.
        window: occurrences of an item that its estimate looks back on; 1 / window is the paper's alpha. A larger window
            is steadier, a smaller one adapts faster.
        buckets: None gives every item of the catalogue a cell of its own, 16 bytes; nothing is hashed and nothing
            collides. A number is H, the cells a hash, for item rows without end.
        hashes: with ``buckets``, arrays of H cells each. An item's estimate is the smallest of them, since items that
            share a cell shorten its gaps.
        initial: the mean gap (in units of the meaning's clock) that every cell begins with, as published; it fades by
            (1 - alpha) an occurrence. None lets an item's first gaps weigh the same until they fill the window.
        open_gaps: let the gap since an item's last occurrence count. Until its window is full an item's estimate is
            then its share of everything seen, and later it falls as time passes without the item; otherwise it stays.
    """

    meaning: Meaning = "every-occurrence"
    window: int = pydantic.Field(default=100, ge=1, le=_MOST_BATCH)
    buckets: int | None = pydantic.Field(default=None, ge=1, le=MOST_BUCKETS)
    hashes: int = pydantic.Field(default=2, ge=1, le=16)
    initial: float | None = pydantic.Field(default=None, gt=0)
    open_gaps: bool = True


class StreamingFrequency(IndependentRows):
    """The mean gap between an item's occurrences, in a cell an item or in hashed cells, and what follows from it.

    An item that has never been seen answers :func:`~hatchway.frequency.independent.floor_of`, a stated function of the
    catalogue and of how much has been seen, and no estimate is below it. An item is known by its row number in one
    catalogue snapshot.

    Args:
        settings: the estimator's settings.
        catalogue: N, the number of items.
        seed: the run's seed; the salts of the hashes come from it.
        device: where the cells lie.
        use_compiled: use the loops that numba compiles: True, False, or None for wherever numba is installed and the
            cells lie on the CPU. The numbers are the same.
    """

    def __init__(
        self,
        settings: StreamingSettings,
        catalogue: int,
        seed: int,
        *,
        device: torch.device = _ON_CPU,
        use_compiled: bool | None = None,
    ) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self._most, self._once = settings.window - 1, settings.meaning == "unique-per-batch"
        self._salts = salts(seed, settings.hashes if settings.buckets else 0).to(device)
        self._batches = 0
        self._positives = 0
        on_cpu = device.type == "cpu"
        self._compiled = on_cpu and available() if use_compiled is None else use_compiled
        self._views: tuple[Array, Array]
        self._hold(self._untouched(settings.buckets or catalogue).to(device))

    @property
    def positives(self) -> int:
        """How many positives have been seen."""
        return self._positives

    @property
    def batches(self) -> int:
        """How many batches have been seen."""
        return self._batches

    @property
    def _clock(self) -> int:
        return self._batches if self._once else self._positives

    def update(self, positives: Tensor) -> None:
        """Take in one batch; see :class:`~hatchway.frequency.protocol.LearnedFrequency`.

        Raises:
            DataError: the item rows are not whole numbers, or more than a batch can hold.
        """
        self._record(positives, read=False)

    def observe(self, positives: Tensor) -> Tensor:
        """Take in one batch and return, in the same pass, what its meaning estimates for each of its positives.

        Returns:
            [B] float64: :meth:`chances` or :meth:`chances_in_batch` of ``positives``, after the update.
        """
        return self._record(positives, read=True)

    def chances(self, items: Tensor) -> Tensor:
        """Return the chance that one positive is the item.

        Args:
            items: [M] int64 item rows.

        Returns:
            [M] float64, at least the floor and at most 1.

        Raises:
            SettingsError: the meaning is ``unique-per-batch``, from which no count can be had once it saturates.
        """
        if self._once:
            raise SettingsError(
                "frequency.meaning = 'unique-per-batch' estimates the chance of being in a batch at all, which says "
                "nothing of the number of copies; set 'every-occurrence', or de-duplicate the columns"
            )
        return self._read(items)

    def chances_in_batch(self, items: Tensor) -> Tensor:
        """Return the chance that a batch of the size seen so far holds the item at all, [M] float64.

        Raises:
            SettingsError: the meaning is ``every-occurrence``; ``log_absent_whole_batch`` then says it for any size.
        """
        if not self._once:
            raise SettingsError(
                "frequency.meaning = 'every-occurrence' estimates chances per draw; ask log_absent_whole_batch, or set "
                "'unique-per-batch'"
            )
        return self._read(items)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """``(B - 1) ln(1 - q(j))``; see :class:`~hatchway.frequency.protocol.Frequency`.

        ``unique-per-batch`` answers for the batch size that it has seen, and scales the logarithm to other sizes.
        """
        return self._log_absent(items, batch - 1)

    def log_absent_whole_batch(self, items: Tensor, batch: int) -> Tensor:
        """``B ln(1 - q(j))``; see :meth:`log_absent_others`."""
        return self._log_absent(items, batch)

    def grow(self, catalogue: int) -> None:
        """Go over to a larger catalogue: estimates stay, since items are known by their rows; the floor follows N.

        Raises:
            DataError: the catalogue would shrink.
        """
        if catalogue < self.catalogue:
            raise DataError(
                f"a catalogue of {self.catalogue:,} items cannot shrink to {catalogue:,}; rows never vanish"
            )
        if catalogue != self.catalogue:
            self._hold(self._cells_for(catalogue))
        self.catalogue = catalogue

    def merge(self, others: Sequence[Self]) -> None:
        """Take in what other ranks learned, each from positives of its own, and let the result speak for all of them.

        ``every-occurrence``: the streams are laid beside each other. The result estimates the chance per draw over all
        ranks, each weighing as much as it has seen.
        ``unique-per-batch``: the batches of a step are laid together. The result estimates the chance of being in that
        global batch, ``1 - prod(1 - p)``; all ranks must have seen as many batches.

        Merging is for the end of separate streams. Ranks that train together feed every rank the gathered positives
        instead: then all hold the same state, and nothing is to merge.

        Raises:
            SettingsError: the others have other settings or salts, or have seen another number of batches.
        """
        for other in others:
            if other.settings != self.settings or not torch.equal(other._salts, self._salts):  # noqa: SLF001
                raise SettingsError(
                    "estimators with different settings or seeds have different cells; they cannot merge"
                )
        if self._once and any(other.batches != self.batches for other in others):
            raise SettingsError(
                "with 'unique-per-batch' the ranks' batches are laid together, step by step: all must have seen as many"
            )
        self.grow(max(part.catalogue for part in (self, *others)))
        parts = [(part._cells_for(self.catalogue), part._clock) for part in (self, *others)]  # noqa: SLF001
        self._cells.copy_(merged_cells(parts, self._most, together=self._once, open_gaps=self.settings.open_gaps))
        self._positives += sum(other.positives for other in others)
        self._batches += 0 if self._once else sum(other.batches for other in others)

    def state(self) -> dict[str, Tensor]:
        """Return the cells, the salts and the clocks; see :class:`~hatchway.frequency.protocol.LearnedFrequency`."""
        clocks = torch.tensor([self._batches, self._positives, self.catalogue])
        return {"cells": self._cells, "salts": self._salts, "clocks": clocks}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state` returned; see :class:`~hatchway.frequency.protocol.LearnedFrequency`.

        Raises:
            ArtefactError: the state is of other settings.
        """
        found = restored(
            state, {"cells": self._cells, "salts": self._salts, "clocks": torch.zeros(3, dtype=torch.int64)}
        )
        self._cells.copy_(found["cells"])
        self._salts.copy_(found["salts"])
        self._batches, self._positives, self.catalogue = (int(number) for number in found["clocks"])

    def _record(self, positives: Tensor, *, read: bool) -> Tensor:
        """Take in a batch and return the chances of its positives; none if they are not read."""
        size = positives.numel()
        if positives.dtype is not torch.int64 or positives.ndim != 1 or size > _MOST_BATCH:
            raise DataError(
                f"positives have shape {tuple(positives.shape)} and dtype {positives.dtype}; allowed: [B] int64 item "
                f"rows, at most {_MOST_BATCH:,} at a time"
            )
        once, most = self._once, self._most
        batches, seen = self._batches + 1, self._positives + size
        clock, floor = batches if once else seen, self._floor(batches, seen)
        if self._compiled:
            chances = np.empty(size if read else 0)
            if not record_loop(*self._views, positives.cpu().numpy(), clock, most, once, floor, chances):
                raise self._outside(positives)
            found = torch.from_numpy(chances)
        else:
            places = self._places(positives.to(self._cells.device))
            at, copies = places.reshape(-1).unique(return_counts=True)
            gaps.record(self._flat, at, torch.ones_like(copies) if once else copies, clock, most)
            wanted = self._flat[places if read else places[:0]]
            found = gaps.chances(wanted, clock, open_gaps=False).clamp(min=floor, max=1.0)
        self._batches, self._positives = batches, seen
        return found if positives.is_cpu else found.to(positives.device)

    def _read(self, items: Tensor) -> Tensor:
        clock, floor = self._batches if self._once else self._positives, self._floor(self._batches, self._positives)
        if not self._compiled:
            places = self._places(items.to(self._cells.device))
            found = gaps.chances(self._flat[places], clock, open_gaps=self.settings.open_gaps)
            return found.clamp(min=floor, max=1.0).to(items.device)
        out = torch.empty(len(items), dtype=torch.float64)
        if not read_loop(*self._views, items.cpu().numpy(), clock, self.settings.open_gaps, floor, out.numpy()):
            raise self._outside(items)
        return out.to(items.device)

    def _floor(self, batches: int, seen: int) -> float:
        """Return what an item that was never seen answers."""
        floor = floor_of(self.catalogue, seen)
        if not self._once or floor == 1.0:
            return floor
        return -math.expm1(seen / max(batches, 1) * math.log1p(-floor))

    def _hold(self, cells: Tensor) -> None:
        """Keep the cells, and the views of them that are needed at every step."""
        self._cells, self._flat = cells, cells.view(-1, 2)
        if self._compiled:
            self._views = (cells.view(-1).numpy(), self._salts.numpy())

    def _cells_for(self, catalogue: int) -> Tensor:
        if self.settings.buckets or catalogue == self.catalogue:
            return self._cells
        return torch.cat([self._cells, self._untouched(catalogue - self.catalogue).to(self._cells.device)])

    def _untouched(self, buckets: int) -> Tensor:
        known = (0, 0.0) if self.settings.initial is None else (self._most, self.settings.initial)
        return gaps.untouched(buckets, max(len(self._salts), 1), *known)

    def _places(self, items: Tensor) -> Tensor:
        """Return the flat numbers of the items' cells, [M, hashes]."""
        hashes = len(self._salts)
        if hashes:
            offsets = torch.arange(hashes, device=items.device)
            return buckets_of(items, self._salts, len(self._cells)).T * hashes + offsets
        if len(items) and (int(items.min()) < 0 or int(items.max()) >= len(self._cells)):
            raise self._outside(items)
        return items[:, None]

    def _outside(self, items: Tensor) -> DataError:
        wrong = items[(items < 0) | (items >= self.catalogue)]
        return DataError(
            f"item row {int(wrong[0])} is not in the catalogue of {self.catalogue:,} items; "
            "grow() takes a larger catalogue"
        )

    @property
    def _mean_batch(self) -> float:
        return self._positives / self._batches if self._batches else 1.0

    def _log_absent(self, items: Tensor, draws: int) -> Tensor:
        if self._once:
            return log_absent_draws(self.chances_in_batch(items), draws / self._mean_batch)
        return log_absent_draws(self.chances(items), draws)
