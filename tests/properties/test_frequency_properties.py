"""What every frequency has to hold, whatever the stream: bounds, sums, absence against counts, bags, and resuming."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from hatchway.frequency.absence import log_absent
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.independent import floor_of
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.frequency.running import RunningCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings

ITEMS = 12
STREAMS = st.lists(st.lists(st.integers(0, ITEMS - 1), max_size=8), min_size=1, max_size=12)
EVERY = torch.arange(ITEMS)


def learned() -> list[LearnedFrequency]:
    """Return one of each kind."""
    return [
        StreamingFrequency(StreamingSettings(window=5), ITEMS, 1, use_compiled=False),
        StreamingFrequency(StreamingSettings(window=5, buckets=7, hashes=2), ITEMS, 1, use_compiled=False),
        StreamingFrequency(StreamingSettings(initial=20.0, open_gaps=False), ITEMS, 1, use_compiled=False),
        CountMin(CountMinSettings(buckets=5, half_life=10), ITEMS, 1),
        RunningCounts(ITEMS),
    ]


def rows(batch: list[int]) -> torch.Tensor:
    """Return item rows."""
    return torch.tensor(batch, dtype=torch.int64)


@given(STREAMS)
def test_estimates_are_chances_and_never_below_the_floor(batches: list[list[int]]) -> None:
    """Between the floor of what was seen and 1, for every item, and absence follows from them."""
    seen = sum(map(len, batches))
    for frequency in learned():
        for batch in batches:
            frequency.update(rows(batch))
        chances = frequency.whole_batch(EVERY, 1)
        assert float(chances.min()) >= floor_of(ITEMS, seen) * (1 - 1e-12)
        assert float(chances.max()) <= 1
        absent = frequency.log_absent_whole_batch(EVERY, 5)
        assert bool((absent <= 0).all())
        assert bool((-torch.expm1(absent) <= 5 * chances + 1e-12).all())


@given(STREAMS)
def test_until_windows_are_full_an_estimate_is_the_share_of_what_was_seen(batches: list[list[int]]) -> None:
    """With a window that nothing fills and a cell for every item, gaps say what counts say."""
    gaps, counts = StreamingFrequency(StreamingSettings(window=200), ITEMS, 1), RunningCounts(ITEMS)
    for batch in batches:
        gaps.update(rows(batch))
        counts.update(rows(batch))
    assert torch.allclose(gaps.chances(EVERY), counts.chances(EVERY), rtol=1e-12)


@given(STREAMS)
def test_collisions_only_raise_estimates(batches: list[list[int]]) -> None:
    """In few cells, an estimate is at least the one in a cell of its own while windows are not full."""
    own = StreamingFrequency(StreamingSettings(window=200), ITEMS, 1)
    few = StreamingFrequency(StreamingSettings(window=200, buckets=4, hashes=2), ITEMS, 1)
    for batch in batches:
        own.update(rows(batch))
        few.update(rows(batch))
    assert bool((few.chances(EVERY) >= own.chances(EVERY) * (1 - 1e-12)).all())


@given(st.lists(st.integers(0, 6), min_size=2, max_size=8), st.integers(1, 20))
def test_exact_absence_is_a_chance_and_agrees_with_whole_numbers(counts: list[int], batch: int) -> None:
    """Against quotients of binomial coefficients, up to batches larger than the log."""
    total = sum(counts)
    found = ExactCounts(torch.tensor(counts)).log_absent_whole_batch(torch.arange(len(counts)), batch).exp().tolist()
    for count, chance in zip(counts, found, strict=True):
        draws = min(batch, total)
        assert math.isclose(chance, math.comb(total - count, draws) / math.comb(total, draws), abs_tol=1e-13)


@given(st.integers(1, 60), st.data())
def test_more_draws_or_more_copies_make_absence_less_likely(population: int, data: st.DataObject) -> None:
    """Monotone in both."""
    draws = data.draw(st.integers(0, population - 1))
    counts = torch.arange(population + 1)
    less, more = log_absent(counts, population, draws), log_absent(counts, population, draws + 1)
    assert bool((more <= less + 1e-12).all())
    assert bool((less[1:] <= less[:-1] + 1e-12).all())
