"""A training step on one of several ranks, as its own process: python rank_process.py RANK RANKS RENDEZVOUS OUT.

Rank r takes its rows of the one batch that :func:`the_batch` makes, and writes its ledger, loss and gradients to
OUT/r.pt. With RANKS 1 it is a single process with the whole batch, without a process group.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hatchway.data.row_table import RowTable
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger, with_masked
from hatchway.negatives.mined import Mined
from hatchway.negatives.ranks import global_batch, states_of_ranks
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

ITEMS, BUYERS, WIDTH, STEPS = 12, 9, 6, 3
SIZES = {1: (8,), 2: (5, 3)}
"""How the eight rows of a step are divided: unevenly, as the last batch of an epoch is."""


@dataclass(frozen=True)
class Rows:
    """Eight rows: buyers, positives, engagement rows and what each buyer is known for."""

    buyers: Tensor
    positives: Tensor
    rows: Tensor
    known: Tensor

    def of(self, part: slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.buyers[part], self.positives[part], self.rows[part], self.known[part])


def the_batch(step: int) -> Rows:
    """Make the batch of a step; the same in every process."""
    generator = torch_stream(7, "ranks", step)

    def draw(most: int, *shape: int) -> Tensor:
        return torch.randint(most, shape, generator=generator)

    return Rows(draw(BUYERS, 8), draw(5, 8), torch.arange(8), draw(ITEMS, 8, 2))


class Towers(nn.Module):
    """A vector for every buyer and item, and a matrix in the way."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch_stream(7, "weights")
        self.buyers = nn.Parameter(torch.randn(BUYERS, WIDTH, generator=generator))
        self.items = nn.Parameter(torch.randn(ITEMS, WIDTH, generator=generator))
        self.matrix = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH)

    def forward(self, buyers: Tensor, *items: Tensor) -> tuple[Tensor, ...]:
        """Return the buyers' vectors and those of each lot of items."""
        return self.buyers[buyers] @ self.matrix, *(self.items[rows] for rows in items)


def counted() -> list[str]:
    """Have every collective that the product calls noted; those of DistributedDataParallel are not among them."""
    calls: list[str] = []

    def noting(name: str, call: Any) -> Any:
        def noted(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return call(*arguments, **named)

        return noted

    for name in ("all_gather", "all_reduce"):
        setattr(dist, name, noting(name, getattr(dist, name)))
    return calls


def main() -> None:
    """Take three steps."""
    calls = counted()
    rank, ranks, rendezvous, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    torch.set_num_threads(1)
    towers: nn.Module = Towers()
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=ranks)
        towers = DistributedDataParallel(towers)
    settings = StreamingSettings(window=4, buckets=16, hashes=2)
    frequency, alone = (StreamingFrequency(settings, ITEMS, 3) for _ in range(2))
    mined = Mined(RowTable.from_offsets(np.arange(0, 17, 2), np.arange(16) % ITEMS), most=2)
    found: list[dict[str, Any]] = []
    begin = sum(SIZES[ranks][:rank])
    for step in range(STEPS):
        calls.clear()
        mine = the_batch(step).of(slice(begin, begin + SIZES[ranks][rank]))
        batch = global_batch(mine.positives)
        frequency.update(batch.positives)
        alone.update(mine.positives)
        ledger = draw_ledger(
            mine.positives,
            [InBatch(frequency), Uniform(ITEMS, 4)],
            torch_stream(7, "negatives", step),
            "count",
            own=[mined],
            rows=mine.rows,
            gathered=batch.positives,
            first=batch.first,
        )
        known = engaged_columns(ledger, mine.known.flatten(), torch.arange(len(mine.buyers) + 1) * 2)
        ledger = with_masked(ledger, known)
        masked = ledger.masked
        towers.zero_grad()
        query, positive, drawn, own = towers(
            mine.buyers, mine.positives, ledger.items[len(batch.positives) :], ledger.own_items.clamp(min=0)
        )
        columns = torch.cat([batch.vectors(positive), drawn])
        losses = sampled_softmax(query, positive, columns, ledger, own=own, temperature=0.5, reduction="none")
        (batch.share * losses.mean()).backward()
        found.append(
            {
                "positives": batch.positives,
                "items": ledger.items,
                "log_count": ledger.log_count,
                "positive_log_count": ledger.positive_log_count,
                "masked": torch.stack([masked.rows + begin, masked.columns, masked.reasons.long()]),
                "copies": torch.stack([ledger.copy_rows + begin, ledger.copy_columns]),
                "own_masked": ledger.own_masked,
                "collectives": list(calls),
                "losses": losses.detach(),
                "gradients": [weight.grad.clone() for weight in towers.parameters() if weight.grad is not None],
                "frequency": {name: tensor.clone() for name, tensor in frequency.state().items()},
            }
        )
    parts = []
    for state in states_of_ranks(alone.state()):
        parts.append(StreamingFrequency(settings, ITEMS, 3))
        parts[-1].load_state(state)
    parts[0].merge(parts[1:])
    torch.save({"steps": found, "merged": parts[0].chances(torch.arange(ITEMS))}, out / f"{rank}.pt")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
