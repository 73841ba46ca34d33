"""One set of cells from the cells that several ranks filled with positives of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hatchway.frequency.gaps import MOST_VOTES, VOTES


def merged_cells(parts: Sequence[tuple[Tensor, int]], most: int, *, together: bool, open_gaps: bool) -> Tensor:
    """Merge cells of equal settings and salts.

    Args:
        parts: each rank's cells [H, hashes, 2] int64, and its clock.
        most: w = 1 / rate - 1.
        together: True where the ranks' batches of a step form one batch, and the clock counts batches: the chance of
            being in it is ``1 - prod(1 - p)``, and the clocks are equal. False where the ranks' streams lie beside each
            other, and the clock counts positives: chances are averaged by how much each rank has seen.
        open_gaps: as in :func:`~hatchway.frequency.gaps.chances`.

    Returns:
        [H, hashes, 2] int64, for the ranks' common clock, or for the sum of their clocks.
    """
    total = parts[0][1] if together else sum(clock for _, clock in parts)
    shape = parts[0][0].shape[:2]
    absent = torch.ones(shape, dtype=torch.float64)
    chance, since = torch.zeros_like(absent), torch.full_like(absent, torch.inf)
    votes = torch.zeros(shape, dtype=torch.int64)
    for cells, clock in parts:
        stamp, known = cells[..., 0].cpu(), cells.view(torch.float64)[..., 1].cpu()
        seen, cast = stamp > MOST_VOTES, stamp & MOST_VOTES
        since_own = clock - (stamp >> VOTES)
        own = torch.where(seen, cast / (known + since_own if open_gaps else known), 0.0)
        absent *= 1 - own.clamp(max=1.0)
        chance += own * (1.0 if together else clock / max(total, 1))
        votes += torch.where(seen, cast, 0)
        ago = since_own * (1.0 if together else total / max(clock, 1))
        since = torch.minimum(since, torch.where(seen, ago, torch.inf))
    seen = since < torch.inf
    chance = 1 - absent if together else chance
    votes = votes.clamp(max=max(most, 1))
    last = (total - torch.where(seen, since, 0.0)).round().to(torch.int64).clamp(min=1)
    sums = votes / torch.where(seen, chance, 1.0)
    if open_gaps:  # what is read is votes / (sum + open gap), and has to be the merged chance
        sums = (sums - (total - last)).clamp(min=0.0)
    result = parts[0][0].cpu().clone()
    result[..., 0] = torch.where(seen, (last << VOTES) + votes, result[..., 0])
    held = result.view(torch.float64)[..., 1]
    held.copy_(torch.where(seen, sums, held))
    return result.to(parts[0][0].device)
