"""Every frequency that is learned through one suite: a known stream, whole state, growth, merging, refusals."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from hatchway.errors import ArtefactError, DataError, SettingsError
from hatchway.frequency.count_min import CountMin, CountMinSettings
from hatchway.frequency.living import LivingOnly
from hatchway.frequency.protocol import LearnedFrequency
from hatchway.frequency.running import RunningCounts
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.randomness import stream

ITEMS, NEVER, BATCH = 40, 4, 64
SHARES = torch.cat([torch.arange(ITEMS - NEVER, 0, -1).double() ** 2, torch.zeros(NEVER)])
SHARES = SHARES / SHARES.sum()
EVERY = torch.arange(ITEMS)

LEARNED: dict[str, Callable[[int], LearnedFrequency]] = {
    "streaming": lambda seed: StreamingFrequency(StreamingSettings(), ITEMS, seed, use_compiled=False),
    "streaming, compiled": lambda seed: StreamingFrequency(StreamingSettings(), ITEMS, seed, use_compiled=True),
    "streaming, one hash as published": lambda seed: StreamingFrequency(
        StreamingSettings(buckets=1024, hashes=1, initial=100.0, open_gaps=False), ITEMS, seed, use_compiled=False
    ),
    "streaming, hashed": lambda seed: StreamingFrequency(
        StreamingSettings(buckets=2048, hashes=3), ITEMS, seed, use_compiled=False
    ),
    "count-min": lambda seed: CountMin(CountMinSettings(), ITEMS, seed),
    "count-min that forgets": lambda seed: CountMin(
        CountMinSettings(half_life=30_000, conservative=False), ITEMS, seed
    ),
    "running counts": lambda _: RunningCounts(ITEMS),
}
NEEDS_NUMBA = {"streaming, compiled"}


def learned(name: str, seed: int = 7) -> LearnedFrequency:
    """Make a frequency, or skip where numba is not installed."""
    if name in NEEDS_NUMBA:
        pytest.importorskip("numba")
    return LEARNED[name](seed)


def batches(count: int, *path: str | int) -> list[torch.Tensor]:
    """Draw batches of independent positives."""
    draw = stream(5, *path)
    return [torch.from_numpy(draw.choice(ITEMS, BATCH, p=SHARES.numpy())) for _ in range(count)]


@pytest.mark.parametrize("name", LEARNED)
def test_a_stream_of_known_shares_is_learned(name: str) -> None:
    """Estimates, averaged over the later batches, are the shares but for sampling; unseen items have the floor."""
    frequency = learned(name)
    read = []
    for number, batch in enumerate(batches(800)):
        frequency.update(batch)
        if number >= 400 and number % 4 == 0:
            read.append(frequency.whole_batch(EVERY, BATCH))
    mean = torch.stack(read).mean(0) / BATCH
    # An initial value fades by 1 % an occurrence, so that rare items still remember it.
    learnt = SHARES.gt(0.01 if "published" in name else 0)
    error = 5 * (SHARES / (400 * BATCH)).sqrt() + 0.02 * SHARES
    assert torch.all((mean - SHARES).abs()[learnt] < error[learnt])
    never = read[-1][-NEVER:] / BATCH
    fading = 0.5 ** (BATCH / 30_000) if "forgets" in name else 1.0
    seen = sum(BATCH * fading**age for age in range(797))
    assert never.tolist() == pytest.approx([1 / (2 * seen)] * NEVER, rel=1e-4)


@pytest.mark.parametrize("name", LEARNED)
def test_the_answers_agree_with_each_other(name: str) -> None:
    """Counts scale with the rows asked for; absence is that of independent rows; a batch of one has no others."""
    frequency = learned(name)
    for batch in batches(50):
        frequency.update(batch)
    q = frequency.whole_batch(EVERY, 1)
    assert q.dtype == torch.float64
    assert torch.allclose(frequency.others(EVERY, 100), 99 * q)
    assert torch.allclose(frequency.others_of_positive(EVERY, 100), 99 * q)
    assert torch.allclose(frequency.log_absent_others(EVERY, 3).exp(), (1 - q) ** 2)
    assert torch.allclose(frequency.log_absent_whole_batch(EVERY, 3).exp(), (1 - q) ** 3)
    assert frequency.log_absent_others(EVERY, 1).tolist() == [0] * ITEMS
    assert frequency.others(EVERY, 1).tolist() == [0] * ITEMS


@pytest.mark.parametrize("name", LEARNED)
def test_before_anything_is_seen_every_item_has_an_even_share(name: str) -> None:
    """The floor is 1 / N at the start, whatever stands in the arrays."""
    assert learned(name).whole_batch(EVERY, 8).tolist() == pytest.approx([8 / ITEMS] * ITEMS)


@pytest.mark.parametrize("name", LEARNED)
def test_interrupted_anywhere_it_goes_on_to_the_last_bit(name: str, tmp_path: Path) -> None:
    """The state, written as safetensors and read into one with another seed, continues like the first."""
    through = batches(30)
    whole, first = learned(name), learned(name)
    for batch in through:
        whole.update(batch)
    for batch in through[:13]:
        first.update(batch)
    safetensors.torch.save_file(first.state(), tmp_path / "frequency.safetensors")
    second = learned(name, seed=8)
    second.load_state(safetensors.torch.load_file(tmp_path / "frequency.safetensors"))
    for batch in through[13:]:
        second.update(batch)
    assert torch.equal(whole.whole_batch(EVERY, 9), second.whole_batch(EVERY, 9))
    for key, tensor in whole.state().items():
        assert torch.equal(tensor, second.state()[key]), key


@pytest.mark.parametrize("name", LEARNED)
def test_a_state_of_something_else_is_refused(name: str) -> None:
    """A missing tensor and a tensor of another shape are named."""
    frequency = learned(name)
    state = dict(frequency.state())
    key = next(iter(state))
    with pytest.raises(ArtefactError, match=key):
        frequency.load_state({**state, key: torch.zeros(3)})
    del state[key]
    with pytest.raises(ArtefactError, match="needs"):
        frequency.load_state(state)


@pytest.mark.parametrize("name", LEARNED)
def test_a_larger_catalogue_keeps_what_was_learned(name: str) -> None:
    """New rows have the floor of the larger catalogue, old ones their estimates; a catalogue never shrinks."""
    frequency = learned(name)
    seen = torch.cat(batches(5)).unique()
    for batch in batches(5):
        frequency.update(batch)
    before = frequency.whole_batch(seen, 1)
    frequency.grow(ITEMS + 1_000)
    assert torch.equal(frequency.whole_batch(seen, 1), before)
    new = frequency.whole_batch(torch.arange(ITEMS, ITEMS + 1_000), 1)
    # 320 positives in hashed cells: a new item may share all of its cells, but hardly any does.
    assert int((new == 1 / (ITEMS + 1_000)).sum()) >= 950
    with pytest.raises(DataError, match="cannot shrink"):
        frequency.grow(3)


@pytest.mark.parametrize("name", LEARNED)
def test_ranks_with_positives_of_their_own_merge_to_the_whole(name: str) -> None:
    """Three ranks that see three shares of items, one after the other merged, estimate the mean of the shares."""
    ranks = [learned(name) for _ in range(3)]
    for number, rank in enumerate(ranks):
        for batch in batches(200, "rank", number):
            rank.update((batch + 12 * number) % ITEMS)
    ranks[0].merge(ranks[1:])
    truth = sum((SHARES.roll(12 * number) for number in range(3)), torch.zeros(ITEMS)) / 3
    assert torch.allclose(ranks[0].whole_batch(EVERY, 1), truth, rtol=0.35, atol=1e-3)
    assert float(ranks[0].whole_batch(EVERY, 1).sum()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", ["streaming, hashed", "count-min"])
def test_different_hashes_do_not_merge(name: str) -> None:
    """Cells of another seed mean other items."""
    with pytest.raises(SettingsError, match="cannot merge"):
        learned(name).merge([learned(name, seed=8)])


@pytest.mark.parametrize("name", LEARNED)
def test_expired_items_are_expected_nowhere(name: str) -> None:
    """Under a living mask an expired item has no copies and is certainly absent; the others are untouched."""
    frequency = learned(name)
    for batch in batches(5):
        frequency.update(batch)
    living = EVERY % 3 != 0
    masked = LivingOnly(frequency, living)
    for answer in ("others", "others_of_positive", "whole_batch", "log_absent_others", "log_absent_whole_batch"):
        found = getattr(masked, answer)(EVERY, 16)
        assert torch.equal(found[living], getattr(frequency, answer)(EVERY, 16)[living])
        assert not found[~living].any()


@pytest.mark.parametrize("name", LEARNED)
def test_the_order_within_a_batch_does_not_matter(name: str) -> None:
    """A batch is a bag."""
    one, other = learned(name), learned(name)
    for batch in batches(20):
        one.update(batch)
        other.update(batch.flip(0))
    assert torch.equal(one.whole_batch(EVERY, 1), other.whole_batch(EVERY, 1))


def test_a_mask_that_is_none_is_refused() -> None:
    """Numbers are no flags."""
    with pytest.raises(DataError, match="one flag an item"):
        LivingOnly(RunningCounts(3), torch.ones(3))


def test_an_item_that_is_every_positive() -> None:
    """A catalogue of one item: it is in every draw, and never absent."""
    for name in LEARNED:
        frequency = learned(name)
        for _ in range(300):
            frequency.update(torch.zeros(8, dtype=torch.int64))
        assert frequency.whole_batch(torch.tensor([0]), 8).tolist() == pytest.approx([8], rel=1e-4)
        assert float(frequency.log_absent_whole_batch(torch.tensor([0]), 8)) < math.log(1e-6)
