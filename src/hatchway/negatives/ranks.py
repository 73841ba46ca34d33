"""One batch over several processes: every rank's rows meet the positives of all ranks as in-batch columns.

Each rank encodes its own rows, and the vectors of the positives travel, with their gradients back. With B rows on all
ranks together, rank r's columns are the B gathered positives, in the order of the ranks, and whatever it draws besides;
B is what the ledger counts with. As in a single process that has the whole batch::

    batch = global_batch(positives)
    ledger = draw_ledger(positives, sources, stream, "uncorrected", gathered=batch.positives, first=batch.first)
    columns = torch.cat([batch.vectors(positive), items(ledger.items[len(batch.positives) :])])
    loss = batch.share * sampled_softmax(query, positive, columns, ledger)  # then backward, in DistributedDataParallel

Without a process group there is one rank, and all of this changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from hatchway.errors import DataError

Group = dist.ProcessGroup | None


@dataclass(frozen=True)
class GlobalBatch:
    """The rows of all ranks, seen from one of them.

    Attributes:
        positives: [G] int64 item rows of all ranks' positives, in the order of the ranks.
        sizes: how many rows each rank has.
        rank: which of them this one is.
        group: the processes; None for all of them.
    """

    positives: Tensor
    sizes: tuple[int, ...]
    rank: int
    group: Group = None

    @property
    def first(self) -> int:
        """Where this rank's rows begin among all."""
        return sum(self.sizes[: self.rank])

    @property
    def share(self) -> float:
        """What a rank's mean loss is multiplied by, so that the *mean* of the ranks' gradients is that of all rows.

        Ranks · rows of this rank / rows of all: 1 where all ranks have as many rows. Wrappers that train one model on
        several devices average the ranks' gradients, whatever the ranks' batches are.
        """
        return len(self.sizes) * self.sizes[self.rank] / sum(self.sizes)

    def vectors(self, mine: Tensor) -> Tensor:
        """Return the vectors of all ranks' rows, in the order of the ranks, from which gradients find their way back.

        A rank's vectors receive the sum of the gradients that all ranks have for them. Every rank must call this in
        the same order, and go backward through it, or the others wait.

        Args:
            mine: [B, d] vectors of this rank's rows.

        Returns:
            [G, d].

        Raises:
            DataError: there is not one vector for each of this rank's rows.
        """
        if mine.ndim != 2 or len(mine) != self.sizes[self.rank]:
            raise DataError(
                f"vectors have shape {tuple(mine.shape)}; expected [B, d], one for each of this rank's "
                f"{self.sizes[self.rank]} positives"
            )
        gathered: Tensor = _Vectors.apply(mine, self)  # type: ignore[no-untyped-call]
        return gathered


def global_batch(positives: Tensor, group: Group = None) -> GlobalBatch:
    """Gather the positives of all ranks, which may have different numbers of rows.

    Args:
        positives: [B] int64 item rows of this rank.
        group: the processes that share a batch; None for all of them.
    """
    if not _together():
        return GlobalBatch(positives, (len(positives),), 0, group)
    number = torch.tensor([len(positives)], device=positives.device)
    numbers = [torch.empty_like(number) for _ in range(dist.get_world_size(group))]
    dist.all_gather(numbers, number, group=group)
    sizes = tuple(int(one) for one in numbers)
    return GlobalBatch(_gathered(positives, sizes, group), sizes, dist.get_rank(group), group)


def states_of_ranks(state: Mapping[str, Tensor], group: Group = None) -> list[dict[str, Tensor]]:
    """Gather what every rank has learned, in the order of the ranks; for ranks that learned from other positives.

    A learned frequency's :meth:`~hatchway.frequency.protocol.LearnedFrequency.load_state` takes each of them, and its
    ``merge`` all of them together. Ranks that train together need none of this: they let ``update`` see the positives
    of the :class:`GlobalBatch`, and hold the same state.

    Args:
        state: from ``state()``, with the same names, shapes and dtypes on every rank.
        group: the processes; None for all of them.
    """
    if not _together():
        return [dict(state)]
    states: list[dict[str, Tensor]] = [{} for _ in range(dist.get_world_size(group))]
    for name in sorted(state):
        parts = [torch.empty_like(state[name]) for _ in states]
        dist.all_gather(parts, state[name].contiguous(), group=group)
        for found, part in zip(states, parts, strict=True):
            found[name] = part
    return states


class _Vectors(torch.autograd.Function):
    """All ranks' vectors; on the way back, the sum of all ranks' gradients for this rank's."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, batch: GlobalBatch) -> Tensor:
        """Gather."""
        ctx.batch = batch
        return _gathered(mine, batch.sizes, batch.group) if _together() else mine.view_as(mine)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Add up what the ranks have, and take this rank's part."""
        batch: GlobalBatch = ctx.batch
        total = gradients[0]
        if _together():
            total = total.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(total, group=batch.group)
        return total[batch.first : batch.first + batch.sizes[batch.rank]], None


def _together() -> bool:
    """Whether this process is one of a group."""
    return dist.is_available() and dist.is_initialized()


def _gathered(mine: Tensor, sizes: tuple[int, ...], group: Group) -> Tensor:
    """Return all ranks' rows one after another; every rank sends as many as the largest has."""
    sent = mine.new_zeros(max(sizes), *mine.shape[1:])
    sent[: len(mine)] = mine.detach()
    parts = [torch.empty_like(sent) for _ in sizes]
    dist.all_gather(parts, sent, group=group)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
