"""The mean gap between an item's occurrences, kept in cells: Yi et al. 2019, Algorithms 2 and 3, as pure functions.

As published, a cell holds A, the clock of the last occurrence, and B, the mean gap, and an occurrence after a gap g
moves the mean by ``B <- (1 - rate) B + rate g``. With w = 1/rate - 1 this is ``B <- (w B + g) / (w + 1)``: g is one
vote against w votes for what was known. Here a cell holds the sum S of the gaps and the number of votes W; B = S / W:

    if W > w:  S <- S w / W,  W <- w        what is known has w votes at most,
    S <- S + g,  W <- W + m                 and m copies that come together after a gap g are m votes for it.

So m copies after a gap g are m gaps of g / m. With g measured in positives drawn, 1 / B is then right for the chance
per draw however many copies a batch holds, since the mean gap is the time divided by the occurrences. One vote for all
m copies would give the chance of being in a batch, and one gap of g followed by m - 1 gaps of 0 a mean that depends on
whether it is read before or after them.

A cell is two 64-bit numbers beside each other: ``A * 2^20 + W`` (int64) and S (the bits of a float64). A cell whose A
is 0 has never been touched: clocks begin at 1.
"""

import numpy as np
import torch
from torch import Tensor

VOTES = 20
"""Bits of a cell's first number that count its votes."""

MOST_VOTES = 2**VOTES - 1
LONGEST_CLOCK = 2 ** (63 - VOTES)


def untouched(buckets: int, hashes: int, votes: int = 0, mean: float = 0.0) -> Tensor:
    """Return cells that nothing fell into, [buckets, hashes, 2] int64.

    Args:
        buckets: H.
        hashes: arrays of H buckets.
        votes: 0 lets the first gaps of a cell speak for themselves: they weigh the same until they are w. With w votes
            for ``mean`` that value fades by (1 - rate) an occurrence, as published.
        mean: what those votes are for.
    """
    # NumPy asks the system for large pages; random accesses to many small ones would wait for the page table.
    cells = torch.from_numpy(np.zeros((buckets, hashes, 2), np.int64))
    cells[..., 0] = votes
    cells.view(torch.float64)[..., 1] = votes * mean
    return cells


def record(cells: Tensor, at: Tensor, copies: Tensor, clock: int | Tensor, most: int) -> None:
    """Let occurrences into their cells, in place.

    Args:
        cells: [n, 2] int64.
        at: [M] int64, the cells that something fell into, each once.
        copies: [M] int64, how many votes each gets.
        clock: now, or [M] where cells have clocks of their own; later than the clock in any of the cells.
        most: w = 1 / rate - 1.
    """
    stamps, sums = cells[:, 0], cells.view(torch.float64)[:, 1]
    stamp = stamps[at]
    votes = stamp & MOST_VOTES
    known = sums[at]
    weight = votes.to(torch.float64)
    # A number divided by a tensor would be computed as the number times 1 / tensor, and differ in the last bit.
    known = torch.where(votes > most, known * (torch.full_like(weight, most) / weight), known)
    sums[at] = known + (clock - (stamp >> VOTES))
    stamps[at] = (clock << VOTES) + (votes.clamp(max=most) + copies)


def chances(found: Tensor, clock: int, *, open_gaps: bool) -> Tensor:
    """Read 1 / (mean gap) of items from their cells, one a hash: the smallest, for collisions only shorten gaps.

    Args:
        found: [M, hashes, 2] int64, the items' cells.
        clock: now.
        open_gaps: add the gap since the last occurrence to the sum: W / (S + gap). Until an item's window is full, that
            is its share of everything that has been seen, and later it falls as time passes without the item. Otherwise
            an item that is engaged with no more keeps its last estimate forever, as published.

    Returns:
        [M] float64, a chance for each unit of the clock; 0 for an item that has never been seen (one cell that nothing
        fell into proves it).
    """
    stamp, known = found[..., 0], found.view(torch.float64)[..., 1]
    if open_gaps:
        known = known + (clock - (stamp >> VOTES))
    return torch.where(stamp > MOST_VOTES, (stamp & MOST_VOTES) / known, 0.0).amin(1)
