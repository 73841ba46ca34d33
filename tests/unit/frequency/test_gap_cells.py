"""Cells of gaps: hand-computed means, Yi et al.'s recursion, and what 1 / B comes to at known chances."""

import math

import pytest
import torch

from hatchway.frequency import gaps
from hatchway.randomness import stream


def mean_of(cells: torch.Tensor, cell: int = 0) -> float:
    """Return B of a cell."""
    flat = cells.view(-1, 2)
    votes = int(flat[cell, 0]) & gaps.MOST_VOTES
    return float(flat.view(torch.float64)[cell, 1] / votes)


def at(*cells: int) -> torch.Tensor:
    """Return cell numbers or copies."""
    return torch.tensor(cells)


def test_the_first_gaps_weigh_the_same_and_then_a_window() -> None:
    """Gaps 10, 20 and 6 with a window of two: 10, 15, and then half of 15 and 6."""
    cells = gaps.untouched(1, 1)
    flat = cells.view(-1, 2)
    gaps.record(flat, at(0), at(1), 10, most=1)
    assert mean_of(cells) == 10
    gaps.record(flat, at(0), at(1), 30, most=1)
    assert mean_of(cells) == 15
    gaps.record(flat, at(0), at(1), 36, most=1)
    assert mean_of(cells) == pytest.approx((15 + 6) / 2)


def test_an_initial_mean_fades_by_alpha_an_occurrence() -> None:
    """B = 100 and alpha = 1/4: gaps of 8 and 4 give 77 and then 58.75, by the published recursion."""
    cells = gaps.untouched(1, 1, votes=3, mean=100.0)
    gaps.record(cells.view(-1, 2), at(0), at(1), 8, most=3)
    assert mean_of(cells) == pytest.approx(0.75 * 100 + 0.25 * 8)
    gaps.record(cells.view(-1, 2), at(0), at(1), 12, most=3)
    assert mean_of(cells) == pytest.approx(0.75 * 77 + 0.25 * 4)


def test_copies_that_come_together_share_their_gap() -> None:
    """Four copies after a gap of 12 are four gaps of 3: no matter when it is read, and beside what was known."""
    cells = gaps.untouched(1, 1)
    gaps.record(cells.view(-1, 2), at(0), at(4), 12, most=99)
    assert mean_of(cells) == 3
    gaps.record(cells.view(-1, 2), at(0), at(2), 20, most=99)
    assert mean_of(cells) == pytest.approx((4 * 3 + 2 * 4) / 6)


def test_the_open_gap_belongs_to_the_time_in_which_the_votes_were_cast() -> None:
    """Two occurrences in 20; 9 later two in 29, and 40 later two in 60; as published always two in 20."""
    cells = gaps.untouched(1, 1)
    for clock in (10, 20):
        gaps.record(cells.view(-1, 2), at(0), at(1), clock, most=99)
    for now in (20, 29, 60):
        assert float(gaps.chances(cells, now, open_gaps=True)) == pytest.approx(2 / now)
        assert float(gaps.chances(cells, now, open_gaps=False)) == pytest.approx(1 / 10)


def test_collisions_only_shorten_gaps_so_the_longest_is_read() -> None:
    """Of three cells of an item, one shared with a frequent item, the largest mean; an untouched one proves absence."""
    cells = gaps.untouched(3, 1)
    gaps.record(cells.view(-1, 2), at(0, 1), at(1, 1), 50, most=99)
    gaps.record(cells.view(-1, 2), at(0), at(3), 100, most=99)
    assert float(gaps.chances(cells[:2].view(1, 2, 2), 100, open_gaps=False)) == pytest.approx(1 / 50)
    assert float(gaps.chances(cells.view(1, 3, 2), 100, open_gaps=True)) == 0


@pytest.mark.parametrize(
    ("chance", "window", "steps"), [(1e-2, 100, 600), (1e-3, 100, 600), (1e-4, 100, 1_200), (1e-5, 20, 3_000)]
)
def test_one_over_the_mean_is_the_chance_per_draw(chance: float, window: int, steps: int) -> None:
    """Batches of 4,096 with binomial copies, two hundred cells: the mean estimate is within 2 % of q.

    An item with 41 expected copies a batch and one with .04 alike; the estimates vary by sqrt(alpha / 2).
    """
    draw, batch, cells = stream(3, str(chance)), 4096, gaps.untouched(200, 1)
    flat, read = cells.view(-1, 2), []
    for step in range(1, steps):
        copies = torch.from_numpy(draw.binomial(batch, chance, 200))
        hit = copies.nonzero()[:, 0]
        if len(hit):
            gaps.record(flat, hit, copies[hit], step * batch, most=window - 1)
        if step > steps / 2 and step % 50 == 0:
            read.append(gaps.chances(cells, step * batch, open_gaps=True))
    found = torch.stack(read) / chance
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    assert float(found.log().std()) == pytest.approx(math.sqrt(1 / window / 2), rel=0.25)


def test_one_gap_for_all_copies_would_be_the_chance_of_being_in_a_batch() -> None:
    """With q = .001 and B = 4,096 the counted mean says 4.10 copies; one vote a batch says .983, as 1 - (1 - q)^B."""
    draw, cells = stream(4, "saturation"), gaps.untouched(2, 200)
    flat = cells.view(-1, 2)
    copies = torch.from_numpy(draw.binomial(4096, 1e-3, (800, 200)))
    for step, row in enumerate(copies, 1):
        hit = row.nonzero()[:, 0]
        gaps.record(flat, hit, row[hit], step, most=99)
        gaps.record(flat, hit + 200, torch.ones_like(hit), step, most=99)
    found = gaps.chances(flat.view(400, 1, 2), 800, open_gaps=False)
    assert float(found[:200].mean()) == pytest.approx(4.096, rel=0.02)
    assert float(found[200:].mean()) == pytest.approx(1 - (1 - 1e-3) ** 4096, rel=0.005)


def test_the_bias_is_that_of_the_recursion_and_not_the_printed_one() -> None:
    """E[B_t] - delta = (1 - alpha)^t (B_0 - delta), which Proposition 4.1 of Yi et al. prints otherwise.

    Gaps of mean 50, B_0 = 100, alpha = .01, t = 200: 6.6990 above 50 by the recursion and 6.6313 as printed; the mean
    over 4,000 cells tells them apart. The second moment is within the bound, read with delta where "delta - alpha"
    stands in print.
    """
    alpha, delta, start, steps, many = 0.01, 50.0, 100.0, 200, 4_000
    recursion = (1 - alpha) ** steps * (start - delta)
    printed = (1 - alpha) ** steps * start - (1 - alpha) ** (steps - 1) * delta
    assert (round(recursion, 4), round(printed, 4)) == (6.6990, 6.6313)
    gap = torch.from_numpy(stream(6, "gaps").integers(40, 60, (steps, many), endpoint=True))
    cells = gaps.untouched(many, 1, votes=99, mean=start)
    flat, everywhere, clocks = cells.view(-1, 2), torch.arange(many), torch.zeros(many, dtype=torch.int64)
    one = torch.ones(many, dtype=torch.int64)
    for row in gap:
        clocks += row
        gaps.record(flat, everywhere, one, clocks, most=99)
    means = flat.view(torch.float64)[:, 1] / (flat[:, 0] & gaps.MOST_VOTES)
    error = float(means.std()) / math.sqrt(many)
    assert float(means.mean()) - delta == pytest.approx(recursion, abs=3 * error)
    assert abs(float(means.mean()) - delta - printed) > 5 * error
    bound = (1 - alpha) ** (2 * steps) * (start - delta) ** 2 + alpha * float(gap.double().var())
    assert float(((means - delta) ** 2).mean()) < bound
