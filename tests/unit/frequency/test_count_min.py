"""The count-min sketch: fading counts and total, the excess of rare items, and conservative updates."""

import pytest
import torch

from hatchway.errors import DataError
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.randomness import stream

ZIPF = 1 / torch.arange(1, 20_001).double()
ZIPF = ZIPF / ZIPF.sum()


def zipf(*path: str | int, size: int = 4_096) -> torch.Tensor:
    """Draw a batch by Zipf's law, rare items last."""
    return torch.from_numpy(stream(1, *path).choice(len(ZIPF), size, p=ZIPF.numpy()))


def test_counts_and_total_fade_together() -> None:
    """Four of eight, one half-life ago, and none since: (4/2) of (8/2 + 8)."""
    sketch = CountMin(CountMinSettings(half_life=8), 10, 1)
    sketch.update(torch.tensor([0, 0, 0, 0, 1, 2, 3, 4]))
    assert float(sketch.chances(torch.tensor([0]))) == pytest.approx(0.5)
    sketch.update(torch.tensor([1, 2, 3, 4, 5, 6, 7, 8]))
    assert sketch.total == pytest.approx(12)
    assert float(sketch.chances(torch.tensor([0]))) == pytest.approx(2 / 12)


@pytest.mark.parametrize("half_life", [None, 20_000.0])
def test_rare_items_keep_their_share_however_long_it_runs(half_life: float | None) -> None:
    """In a roomy sketch every item seen has its exact faded share, early and late.

    If the counts faded and the total did not, the late shares of the forgetting sketch would be a ninth of it.
    """
    sketch = CountMin(CountMinSettings(half_life=half_life, buckets=2**17), len(ZIPF), 1)
    counts, fading = torch.zeros(len(ZIPF), dtype=torch.float64), 0.5 ** (4_096 / half_life) if half_life else 1.0
    for step in range(60):
        batch = zipf("tail", step)
        sketch.update(batch)
        counts = counts * fading + torch.bincount(batch, minlength=len(ZIPF))
        if step in (9, 59):
            often = counts > 0.5  # fewer is less than the floor of items that were never seen
            assert int(often[10_000:].sum()) > 500
            wanted = (counts / counts.sum())[often]
            right = torch.isclose(sketch.chances(often.nonzero()[:, 0]), wanted, rtol=1e-9)
            assert float(right.double().mean()) > 0.995  # a few share all of their buckets
    assert sketch.total == pytest.approx(float(counts.sum()))
    assert half_life is None or sketch.total < 60 * 4_096 / 7


def test_never_below_the_truth_and_conservative_updates_lower_the_excess() -> None:
    """In a sketch much smaller than the catalogue every estimate is at least the count; the tail's excess falls."""
    counts = torch.zeros(len(ZIPF), dtype=torch.int64)
    small = {flag: CountMin(CountMinSettings(buckets=2_000, conservative=flag), len(ZIPF), 1) for flag in (True, False)}
    for step in range(20):
        batch = zipf("excess", step)
        counts += torch.bincount(batch, minlength=len(ZIPF))
        for sketch in small.values():
            sketch.update(batch)
    truth = counts.double() / counts.sum()
    found = {flag: sketch.chances(torch.arange(len(ZIPF))) for flag, sketch in small.items()}
    assert all(bool((estimate >= truth - 1e-12).all()) for estimate in found.values())
    excess = {flag: float((estimate - truth)[10_000:].mean()) for flag, estimate in found.items()}
    assert excess[True] < 0.7 * excess[False]
    assert excess[False] < 1 / 2_000  # the sketch's own bound, a hash's mean
    assert torch.allclose(found[True][:20], truth[:20], rtol=0.05)


def test_the_scale_is_renewed_before_it_vanishes() -> None:
    """Forgetting within a few positives for a long time neither overflows nor loses the last ones."""
    sketch = CountMin(CountMinSettings(half_life=1), 10, 1)
    for step in range(800):
        sketch.update(torch.tensor([step % 2]))
    assert sketch.chances(torch.tensor([1, 0])).tolist() == pytest.approx([2 / 3, 1 / 3])


def test_inputs_that_are_no_item_rows_are_refused() -> None:
    """Floats."""
    with pytest.raises(DataError, match="int64 item rows"):
        CountMin(CountMinSettings(), 10, 1).update(torch.zeros(3))
