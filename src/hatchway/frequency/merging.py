"""One set of cells from the cells that several ranks filled with positives of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hatchway.frequency.gaps import MOST_VOTES, VOTES


def merged_cells(parts: Sequence[tuple[Tensor, int]], most: int, *, together: bool) -> Tensor:
    """Merge cells of equal settings and salts.

    A rank's own chance is votes by time: by the whole time that it has looked on, as long as its window is not full,
    and by the time that the window reaches back after that.

    Args:
        parts: each rank's cells [H, hashes, 2] int64, and its clock.
        most: w = 1 / rate - 1.
        together: True where the ranks' batches of a step form one batch, and the clock counts batches: the chance of
            being in it is ``1 - prod(1 - p)``, and the clocks are equal. False where the ranks' streams lie beside each
            other, and the clock counts positives: chances are averaged by how much each rank has seen.

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
        own = torch.where(seen, cast / torch.where(cast < most, float(max(clock, 1)), known), 0.0)
        absent *= 1 - own.clamp(max=1.0)
        chance += own * (1.0 if together else clock / max(total, 1))
        votes += torch.where(seen, cast, 0)
        ago = (clock - (stamp >> VOTES)) * (1.0 if together else total / max(clock, 1))
        since = torch.minimum(since, torch.where(seen, ago, torch.inf))
    seen = since < torch.inf
    chance = 1 - absent if together else chance
    votes = votes.clamp(max=max(most, 1))
    result = parts[0][0].cpu().clone()
    last = (total - torch.where(seen, since, 0.0)).round().to(torch.int64).clamp(min=1)
    result[..., 0] = torch.where(seen, (last << VOTES) + votes, result[..., 0])
    sums = result.view(torch.float64)[..., 1]
    sums.copy_(torch.where(seen, votes / torch.where(seen, chance, 1.0), sums))
    return result.to(parts[0][0].device)
