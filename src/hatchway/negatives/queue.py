"""The memory queue: positives of past steps and their vectors as they were, negatives that cost no tower pass."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hatchway.errors import ArtefactError, DataError, SettingsError
from hatchway.frequency.protocol import Frequency
from hatchway.negatives.sources import Source


class Queue:
    """A ring of the last ``size`` positives and their vectors, without gradient (Wang et al. 2021, CBNS).

    Every past positive is one more draw of the kind that the other rows of the batch are, so with ``filled`` of them
    n(j) = filled · q(j). Those of this epoch and the row's own positive never are the same row of the log (an epoch is
    a shuffle), those of an earlier epoch may be; the count knows how many are which.

    Vectors of old weights are wrong by as much as the weights have moved: use the queue after a warm-up, when they move
    little. Put it after the other sources: where columns are de-duplicated, the newest vector of an item then stays.

    Args:
        frequency: how often each item is a row's positive.
        size: how many positives are kept.
        dimension: d, the length of a vector.
        warmup: steps to wait; until so many have been enqueued nothing is drawn.
        beside_in_batch: whether in-batch columns stand beside it; de-duplicated columns need to know.

    Raises:
        SettingsError: the size or the warm-up is negative.
    """

    source = Source.QUEUE

    def __init__(
        self, frequency: Frequency, size: int, dimension: int, *, warmup: int = 0, beside_in_batch: bool = True
    ) -> None:
        if size < 0 or warmup < 0:
            raise SettingsError(f"a queue of size {size} with a warm-up of {warmup} steps; allowed: 0 or more, both")
        self.frequency = frequency
        self.warmup = warmup
        self.beside_in_batch = beside_in_batch
        self._items = torch.full((size,), -1, dtype=torch.int64)
        self._vectors = torch.zeros(size, dimension)
        self._at = 0
        self._filled = 0
        self._fresh = 0
        self._steps = 0
        self._epoch = 0

    @property
    def filled(self) -> int:
        """How many columns a draw gives: all that is kept, none before the warm-up is over."""
        return self._filled if self._steps >= self.warmup else 0

    @property
    def fresh(self) -> int:
        """How many of them are of this epoch."""
        return min(self._fresh, self.filled)

    def begin_epoch(self, epoch: int) -> None:
        """Say which epoch the next batches are of; what was enqueued in another is then of the past."""
        if epoch != self._epoch:
            self._epoch, self._fresh = epoch, 0

    def enqueue(self, items: Tensor, vectors: Tensor) -> None:
        """Put a batch's positives in, the oldest ones out. To be called after the loss of the batch is computed.

        Args:
            items: [M] int64 item rows.
            vectors: [M, d] their vectors; copied, without gradient.

        Raises:
            DataError: the shapes do not agree.
        """
        if vectors.shape != (len(items), self._vectors.shape[1]):
            raise DataError(
                f"vectors have shape {tuple(vectors.shape)}; allowed: {(len(items), self._vectors.shape[1])}, one for "
                "each item, of the queue's dimension"
            )
        self._steps += 1
        size = len(self._items)
        if not size:
            return
        kept = items[-size:]
        places = (self._at + torch.arange(len(kept))) % size
        self._items[places] = kept.cpu()
        self._vectors[places] = vectors[-size:].detach().to("cpu", torch.float32)
        self._at = (self._at + len(kept)) % size
        self._filled = min(self._filled + len(kept), size)
        self._fresh = min(self._fresh + len(kept), size)

    def draw(self, positives: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002  nothing is drawn
        """Return the items that are kept, newest first."""
        return self._items[self._slots(torch.arange(self.filled))].to(positives.device)

    def vectors_at(self, places: Tensor) -> Tensor:
        """Return the vectors of columns, given their places in a draw (:attr:`Ledger.places`), [M, d] float32."""
        return self._vectors[self._slots(places.cpu())].to(places.device)

    def _slots(self, places: Tensor) -> Tensor:
        """Return where in the ring the columns lie, given their places in a draw."""
        return (self._at - 1 - places) % max(len(self._items), 1)

    def expected_others(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``fresh · c(j)/(T - 1)`` of this epoch, and ``(filled - fresh) · c(j)/T`` of earlier ones."""
        return self.frequency.others(items, self.fresh + 1) + self._of_the_past(items)

    def expected_of_positive(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``fresh · (c(j) - 1)/(T - 1)`` of this epoch, and ``(filled - fresh) · c(j)/T`` of earlier ones."""
        return self.frequency.others_of_positive(items, self.fresh + 1) + self._of_the_past(items)

    def expected_on_average(self, items: Tensor, batch: int) -> Tensor:  # noqa: ARG002
        """``filled · q(j)``."""
        return self.frequency.whole_batch(items, self.filled)

    def log_absent_others(self, items: Tensor, batch: int) -> Tensor:
        """Logarithm of the chance to hold none, given that the in-batch columns hold none if there are any."""
        if not self.beside_in_batch:
            return self.frequency.log_absent_others(items, self.fresh + 1) + self._log_past(items)
        before = self.frequency.log_absent_others(items, batch)
        both = self.frequency.log_absent_others(items, batch + self.fresh)
        return _given(both, before) + self._log_past(items)

    def log_absent_on_average(self, items: Tensor, batch: int) -> Tensor:
        """Logarithm of the chance to hold none, given that the in-batch columns hold none if there are any."""
        before = batch if self.beside_in_batch else 0
        both = self.frequency.log_absent_whole_batch(items, before + self.fresh)
        return _given(both, self.frequency.log_absent_whole_batch(items, before)) + self._log_past(items)

    def _of_the_past(self, items: Tensor) -> Tensor:
        return self.frequency.whole_batch(items, self.filled - self.fresh)

    def _log_past(self, items: Tensor) -> Tensor:
        return self.frequency.log_absent_whole_batch(items, self.filled - self.fresh)

    def state(self) -> dict[str, Tensor]:
        """Return everything that the next draw depends on."""
        counters = [self._at, self._filled, self._fresh, self._steps, self._epoch]
        return {"items": self._items.clone(), "vectors": self._vectors.clone(), "counters": torch.tensor(counters)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put a state back.

        Raises:
            ArtefactError: it is the state of another queue.
        """
        mine = self.state()
        wrong = [name for name in mine if name not in state or state[name].shape != mine[name].shape]
        if wrong:
            raise ArtefactError(
                f"there is no {wrong[0]} of shape {tuple(mine[wrong[0]].shape)} in the queue's state; it is of another"
            )
        self._items.copy_(state["items"])
        self._vectors.copy_(state["vectors"])
        self._at, self._filled, self._fresh, self._steps, self._epoch = (int(c) for c in state["counters"])


def _given(both: Tensor, before: Tensor) -> Tensor:
    """Subtract logarithms; where what is given cannot be, the answer is 0 instead of no number."""
    return torch.where(torch.isinf(before), 0.0, both - before)
