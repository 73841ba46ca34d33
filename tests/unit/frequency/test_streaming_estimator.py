"""The streaming estimator: its two meanings, its floor, hashes, merging, refusals, and the compiled loops beside it."""

import math
from itertools import pairwise

import pytest
import torch

from hatchway.compiled import available
from hatchway.errors import DataError, SettingsError
from hatchway.frequency.hashing import buckets_of, salts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.randomness import stream


def test_the_meanings_differ_where_an_item_has_copies() -> None:
    """Item 0 twice in every batch of four: half of all draws, in every batch. Item 1 once in every second batch."""
    batches = [torch.tensor([0, 2, 0, 3]), torch.tensor([0, 1, 4, 0])] * 150
    counted = StreamingFrequency(StreamingSettings(), 10, 1)
    present = StreamingFrequency(StreamingSettings(meaning="unique-per-batch"), 10, 1)
    for batch in batches:
        counted.update(batch)
        present.update(batch)
    items = torch.tensor([0, 1])
    assert counted.chances(items).tolist() == pytest.approx([0.5, 0.125])
    assert counted.whole_batch(items, 4).tolist() == pytest.approx([2, 0.5])
    assert present.chances_in_batch(items).tolist() == pytest.approx([1, 0.5])
    # Absent from both of two batches' worth of rows: (1 - 1/2)^2. An item in every batch is never absent.
    assert present.log_absent_whole_batch(items, 8).exp().tolist() == pytest.approx([0, 0.25])
    assert present.log_absent_others(items, 1).tolist() == [0, 0]
    assert present.log_absent_others(torch.tensor([1]), 5).exp().tolist() == pytest.approx([0.5])


def test_a_question_that_the_meaning_cannot_answer_names_the_remedy() -> None:
    """Counts of a saturated chance, and a chance of any batch size from chances per draw."""
    present = StreamingFrequency(StreamingSettings(meaning="unique-per-batch"), 10, 1)
    for question in (present.others, present.others_of_positive, present.whole_batch):
        with pytest.raises(SettingsError, match="every-occurrence"):
            question(torch.tensor([0]), 4)
    with pytest.raises(SettingsError, match="log_absent_whole_batch"):
        StreamingFrequency(StreamingSettings(), 10, 1).chances_in_batch(torch.tensor([0]))


def test_what_was_never_seen_has_the_stated_floor() -> None:
    """An even share at first, then half an occurrence over all that was seen; an initial value never shows."""
    for initial in (None, 100.0):
        frequency = StreamingFrequency(StreamingSettings(initial=initial), 1_000, 1)
        assert frequency.chances(torch.tensor([7])).tolist() == [1e-3]
        for _ in range(200):
            frequency.update(torch.arange(100))
        assert frequency.chances(torch.tensor([700])).tolist() == [1 / 40_000]
        assert float(frequency.chances(torch.tensor([7]))) == pytest.approx(0.01, rel=0.02)
    present = StreamingFrequency(StreamingSettings(meaning="unique-per-batch"), 1_000, 1)
    for _ in range(200):
        present.update(torch.arange(100))
    assert present.chances_in_batch(torch.tensor([700])).tolist() == pytest.approx([1 - (1 - 1 / 40_000) ** 100])


def test_an_item_seen_once_is_above_the_floor() -> None:
    """Its estimate is one occurrence over all that was seen, whenever it came."""
    for when in (0, 17, 99):
        frequency = StreamingFrequency(StreamingSettings(), 100_000, 1)
        for step in range(100):
            frequency.update(torch.tensor([5 if step == when else 1, 2, 3, 4]))
        estimate = float(frequency.chances(torch.tensor([5]))) * 400
        assert estimate == pytest.approx(1)


def test_an_item_that_is_engaged_with_no_more_fades() -> None:
    """With open gaps an estimate falls as time passes without the item; as published it stays where it was."""
    fading = StreamingFrequency(StreamingSettings(window=10), 100, 1)
    staying = StreamingFrequency(StreamingSettings(window=10, open_gaps=False), 100, 1)
    for step in range(2_000):
        batch = torch.tensor([1 if step < 100 else 2, 3])
        fading.update(batch)
        staying.update(batch)
    assert float(staying.chances(torch.tensor([1]))) == pytest.approx(0.5)
    assert float(fading.chances(torch.tensor([1]))) == pytest.approx(10 / (10 * 2 + 3_800), rel=1e-3)


def test_more_hashes_spoil_fewer_estimates() -> None:
    """A thousand items in 5,000 cells in all: the estimates' excess falls from one hash to two to four."""
    excess = []
    for hashes in (1, 2, 4):
        settings = StreamingSettings(hashes=hashes, buckets=5_000 // hashes, window=50)
        frequency = StreamingFrequency(settings, 1_000, 3)
        draw = stream(1, "zipf")
        shares = 1 / torch.arange(1, 1_001).double()
        shares /= shares.sum()
        for _ in range(400):
            frequency.update(torch.from_numpy(draw.choice(1_000, 512, p=shares.numpy())))
        excess.append(float((frequency.chances(torch.arange(1_000)) - shares).clamp(min=0).sum()))
    assert all(more > less for more, less in pairwise(excess))


def test_larger_rates_adapt_faster_and_vary_more() -> None:
    """After a switch of shares a window of 10 is close sooner than one of 200, and later varies more."""
    soon, late = {}, {}
    for window in (10, 200):
        frequency = StreamingFrequency(StreamingSettings(window=window), 20, 3)
        draw, item, found = stream(2, "switch"), torch.tensor([0]), []
        for step in range(900):
            rate = 0.02 if step < 300 else 0.2
            frequency.update(torch.from_numpy((draw.random(64) >= rate).astype("int64") * draw.integers(1, 20, 64)))
            found.append(float(frequency.chances(item)))
        soon[window] = abs(found[310] - 0.2)
        late[window] = float(torch.tensor(found[600:]).std())
    assert soon[10] < 0.5 * soon[200]
    assert late[10] > 2 * late[200]


@pytest.mark.parametrize("meaning", ["every-occurrence", "unique-per-batch"])
@pytest.mark.parametrize("initial", [None, 50.0])
@pytest.mark.parametrize("open_gaps", [True, False])
@pytest.mark.parametrize("buckets", [None, 300])
def test_compiled_loops_give_the_same_bits(
    meaning: str, initial: float | None, open_gaps: bool, buckets: int | None
) -> None:
    """Cells, reads and the reads of ``observe``, over batches with copies, collisions and of several sizes."""
    pytest.importorskip("numba")
    settings = StreamingSettings.parse(
        {"meaning": meaning, "initial": initial, "open_gaps": open_gaps, "hashes": 3, "buckets": buckets, "window": 7}
    )
    quick, plain = (StreamingFrequency(settings, 500, 1, use_compiled=flag) for flag in (True, False))
    draw, every = stream(1, "same"), torch.arange(500)
    for size in [1, 0, 200, 1_000] * 15:
        batch = torch.from_numpy((draw.random(size) ** 4 * 450).astype("int64"))
        assert torch.equal(quick.observe(batch), plain.observe(batch))
    assert torch.equal(quick.state()["cells"], plain.state()["cells"])
    assert torch.equal(quick.log_absent_whole_batch(every, 9), plain.log_absent_whole_batch(every, 9))


def test_observing_is_updating_and_then_reading() -> None:
    """One pass, the same numbers."""
    one, two = (StreamingFrequency(StreamingSettings(), 50, 1) for _ in range(2))
    for step in range(10):
        batch = torch.from_numpy(stream(1, step).integers(0, 50, 64))
        two.update(batch)
        assert torch.equal(one.observe(batch), two.chances(batch))


def test_ranks_that_see_parts_of_every_batch_merge_to_the_global_batch() -> None:
    """Unique per batch: in half of either rank's batches, independently, is in three quarters of the global ones."""
    ranks = [StreamingFrequency(StreamingSettings(meaning="unique-per-batch"), 10, 1) for _ in range(2)]
    for step in range(400):
        ranks[0].update(torch.tensor([0 if step % 2 else 1, 2]))
        ranks[1].update(torch.tensor([0 if step % 4 < 2 else 3, 2]))
    ranks[0].merge(ranks[1:])
    found = ranks[0].chances_in_batch(torch.tensor([0, 1, 2, 9]))
    assert found.tolist() == pytest.approx([0.75, 0.5, 1, 1 - (1 - 1 / 3200) ** 4], rel=0.02)
    ranks[1].update(torch.tensor([1]))
    with pytest.raises(SettingsError, match="as many"):
        ranks[1].merge(ranks[:1])


def test_a_rank_that_never_saw_an_item_thins_it_out() -> None:
    """Seen three times in 100 positives of one rank and never in 300 of the other: three in 400."""
    ranks = [StreamingFrequency(StreamingSettings(), 10, 1) for _ in range(2)]
    for step in range(100):
        ranks[0].update(torch.tensor([5 if step in {20, 50, 70} else 1]))
        ranks[1].update(torch.tensor([1, 2, 1]))
    ranks[0].merge(ranks[1:])
    assert float(ranks[0].chances(torch.tensor([5]))) == pytest.approx(3 / 400)
    assert ranks[0].positives == 400


def test_hashes_spread_evenly_and_know_nothing_of_each_other() -> None:
    """Successive rows fill 1,000 buckets as independent draws would; pairs of hashes as well."""
    bucket = buckets_of(torch.arange(200_000), salts(3, 2), 1_000)
    assert 0 <= int(bucket.min()) <= int(bucket.max()) < 1_000
    for which in (bucket[0], bucket[1], (bucket[0] // 32) * 32 + bucket[1] // 32):
        counts = torch.bincount(which)
        counts = counts[counts > 0].double()
        if len(counts) == 1_000:
            statistic = float(((counts - 200) ** 2 / 200).sum())
            assert abs(statistic - 999) < 5 * math.sqrt(2 * 999)
    assert not torch.equal(salts(3, 2), salts(4, 2))
    assert buckets_of(torch.arange(9), salts(3, 1), 1).tolist() == [[0] * 9]


def test_inputs_that_are_no_item_rows_are_refused() -> None:
    """Floats and tables; an estimator is left as it was."""
    frequency = StreamingFrequency(StreamingSettings(), 10, 1)
    for wrong in (torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64)):
        with pytest.raises(DataError, match="int64 item"):
            frequency.update(wrong)
    for use_compiled in (True, False) if available() else (False,):
        frequency = StreamingFrequency(StreamingSettings(), 10, 1, use_compiled=use_compiled)
        for row in (10, -1, 2**40):
            with pytest.raises(DataError, match=f"item row {row} is not in the catalogue of 10"):
                frequency.update(torch.tensor([3, row]))
            with pytest.raises(DataError, match=f"item row {row} "):
                frequency.chances(torch.tensor([3, row]))
        assert frequency.positives == 0
        assert frequency.chances(torch.tensor([3])).tolist() == [0.1]
    with pytest.raises(SettingsError, match="did you mean 'window'"):
        StreamingSettings.parse({"windw": 3})
