"""One step: vectors of a batch and its negatives, the ledger, the masks, the loss."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from hatchway.errors import SettingsError
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.how_many.schedule import k_at, share_at
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.ledger import Ledger, draw_ledger, with_masked, with_own_masked
from hatchway.negatives.queue import Queue
from hatchway.negatives.scheduled import own_at_share, shared_at_share
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import OwnSource, Reason, SharedSource, Source
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns, engaged_own
from hatchway.screening.screen import Screen
from hatchway.towers.two_tower import TwoTower
from hatchway.training.batches import Batch


@dataclass(frozen=True)
class Negatives:
    """The sources of a run and how their columns are corrected and masked.

    Attributes:
        settings: the correction and the masks.
        seed: the run's seed.
        shared: the shared sources, in-batch first, the queue last.
        own: the sources of the rows' own columns.
        queue: the one among ``shared``, if any.
        rank: which of several processes this is; each draws its own.
        steps: of the whole run; a schedule needs it.
        learned: the frequency that the sources ask, where it is learned from the batches.
        screen: what is a hidden positive beside which positive; shared and own columns of every source are screened.
        mined_from: the step from which mined columns are used; the steps before are a warm-up without them.
    """

    settings: NegativesSettings
    seed: int
    shared: Sequence[SharedSource]
    own: Sequence[OwnSource] = ()
    queue: Queue | None = None
    rank: int = 0
    steps: int = 0
    learned: LearnedFrequency | None = None
    screen: Screen = field(default_factory=Screen)
    mined_from: int = 0

    def __post_init__(self) -> None:
        """Refuse a schedule over a run of no length."""
        if self.settings.schedule is not None and self.steps < 1:
            raise SettingsError(f"a schedule of negatives over {self.steps} steps; say how many the whole run has")

    @property
    def bounds_information(self) -> bool:
        """Whether ln(K + 1) − loss bounds the mutual information: one score for all, nothing there on purpose or stale.

        See :func:`~hatchway.how_many.schedule.information_bound`.
        """
        one_score = not self.settings.alpha or self.settings.positive == "yi"
        random = not any(source.on_purpose for source in self.own) and self.queue is None
        return one_score and random and not self.settings.distinct

    def learn(self, batch: Batch) -> None:
        """Let the frequency see a batch: once a step, before its ledger is written."""
        if self.learned is not None:
            self.learned.update(batch.positives)

    def k_at(self, step: int) -> float | None:
        """Return where the schedule stands, None where there is none."""
        return None if self.settings.schedule is None else k_at(self.settings.schedule, step, self.steps)

    def ledger(self, batch: Batch, epoch: int, step: int) -> Ledger:
        """Draw and account for the negatives of one step; the draws are a function of (seed, epoch, step, rank)."""
        shared, own = self.shared, self.own
        if step < self.mined_from:
            own = [source for source in own if source.source is not Source.MINED]
        if self.settings.schedule is not None:
            share = share_at(self.settings.schedule, step, self.steps)
            shared, own = shared_at_share(shared, share), own_at_share(own, share)
        if self.queue is not None:
            self.queue.begin_epoch(epoch)
        drawn = draw_ledger(
            batch.positives,
            shared,
            torch_stream(self.seed, "negatives", epoch, step, self.rank),
            # Without a correction there is nothing to switch: copies of the positive are masked, as they should be.
            self.settings.positive if self.settings.alpha else "uncorrected",
            own=own,
            rows=torch.from_numpy(batch.rows),
            distinct=self.settings.distinct,
        )
        return self.screened(drawn, batch)

    def screened(self, drawn: Ledger, batch: Batch) -> Ledger:
        """Mask what may not stand for a row, whichever source it is from; the first reason that holds is told.

        First what the row's buyer engaged with, then what the screen finds: seller, photo, title.
        """
        ledger = drawn
        own = drawn.own_items.shape[1] > 0
        if len(batch.known_items):
            ledger = with_masked(ledger, engaged_columns(drawn, batch.known_items, batch.known_offsets))
            if own:
                found = engaged_own(drawn, batch.known_items, batch.known_offsets)
                ledger = with_own_masked(ledger, found, Reason.ENGAGED)
        if self.screen.reasons:
            ledger = with_masked(ledger, self.screen.coordinates(drawn.positives, drawn.items))
        if self.screen.reasons and own:
            reasons = self.screen.own(drawn.positives, drawn.own_items)
            for reason in self.screen.reasons:
                ledger = with_own_masked(ledger, reasons == int(reason), reason)
        return ledger


def batch_loss(
    model: TwoTower,
    loss: SampledSoftmax,
    batch: Batch,
    ledger: Ledger,
    hidden: Tensor | None,
    queue: Queue | None = None,
) -> Tensor:
    """Return the mean loss of a batch, and put its positives into the queue afterwards.

    Args:
        model: the two towers.
        loss: the loss with its temperature and alpha.
        batch: the positives.
        ledger: their columns.
        hidden: [B + C + B·H, 1 + K] bool, what the item tower leaves out, or None.
        queue: whose vectors the ledger's queue columns have.
    """
    positive, columns, own = _vectors(model, ledger, hidden, queue)
    result: Tensor = loss(model.query(batch.contexts), positive, columns, ledger, batch.weight, own)
    if queue is not None:
        queue.enqueue(batch.positives, positive)
    return result


def _vectors(
    model: TwoTower, ledger: Ledger, hidden: Tensor | None, queue: Queue | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the vectors of the positives, the shared columns and the own columns, from one pass of the item tower."""
    batch = len(ledger.positives)
    from_queue = ledger.sources == Source.QUEUE
    embedded = ledger.items[~from_queue]
    if not ledger.distinct and not ledger.own_items.shape[1]:
        # In-batch columns are the positives' own vectors.
        rows = embedded if ledger.carried else torch.cat([ledger.positives, embedded])
        vectors = model.item(rows, None if hidden is None else hidden[: len(rows)])
        positive, columns, own = vectors[:batch], vectors if ledger.carried else vectors[batch:], None
    else:
        # Items that stand in several places pass the tower once.
        stands = ledger.own_stands
        wanted = torch.cat([ledger.positives, embedded, ledger.own_items[stands]])
        rows, places = torch.unique(wanted, return_inverse=True)
        vectors = model.item(rows, None if hidden is None else hidden[: len(rows)])
        # A look-up's way back is a sum by row, which is much faster than that of plain indexing.
        each = nn.functional.embedding(places, vectors)
        positive, columns, standing = each.split([batch, len(embedded), len(places) - batch - len(embedded)])
        own = vectors.new_zeros(*stands.shape, vectors.shape[1])
        own = own.index_put(torch.nonzero(stands, as_tuple=True), standing)
    if queue is not None and len(embedded) < len(ledger.items):
        columns = torch.cat([columns, queue.vectors_at(ledger.places[from_queue])])
    return positive, columns, own
