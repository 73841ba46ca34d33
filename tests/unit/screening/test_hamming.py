"""Near hashes, found part by part, against all against all; equal, crowded and clustered hashes."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from hatchway.errors import DataError, SettingsError
from hatchway.screening import hamming
from hatchway.screening.hamming import NearPairs, UInt64, allowed_changes, near_pairs


@pytest.fixture(name="near", params=["compiled", "plain"])
def _near(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., NearPairs]:
    """Return the search with and without compiled loops."""
    if request.param == "plain":
        monkeypatch.setattr(hamming, "available", lambda: False)
    return near_pairs


def hashes(size: int, seed: int = 1) -> UInt64:
    """Return random hashes, a third of which are another one with up to ten bits turned."""
    random = np.random.default_rng(seed)
    found = random.integers(2**64, size=size, dtype=np.uint64)
    for row in range(size // 3):
        turned = random.choice(64, size=int(random.integers(11)), replace=False)
        found[-row - 1] = found[row] ^ np.bitwise_or.reduce(
            np.uint64(1) << turned.astype(np.uint64), initial=np.uint64(0)
        )
    return found


def slow(queries: UInt64, known: UInt64, radius: int) -> list[list[int]]:
    """Compare all with all."""
    return np.argwhere(np.bitwise_count(queries[:, None] ^ known[None]) <= radius).tolist()


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 5, 8, 11, 16])
def test_all_that_are_near_are_found(near: Callable[..., NearPairs], radius: int) -> None:
    """Every pair, once, in order; in one array and between two of other sizes."""
    known = hashes(700)
    for queries in (known, hashes(260, seed=2), known[:130] ^ np.uint64(0b1011)):
        found = near(queries, known, radius, 1000)
        assert np.stack([found.first, found.second], 1).tolist() == slow(queries, known, radius)
        assert not found.crowded.any()


def test_a_placeholder_shared_by_a_million_makes_no_pairs(near: Callable[..., NearPairs]) -> None:
    """Equal hashes are looked up once; whoever is near too many is crowded, and the others are found all the same."""
    same = np.full(1_000_000, 0x123456789ABCDEF0, np.uint64)
    known = np.concatenate([hashes(60), same, np.array([0x123456789ABCDEF1], np.uint64)])
    found = near(known, known, 4, 200)
    assert found.crowded[60:].all()
    assert not found.crowded[:60].any()
    assert np.stack([found.first, found.second], 1).tolist() == slow(known[:60], known[:60], 4)


def test_a_crowd_is_counted_with_copies_and_at_the_limit() -> None:
    """Ten copies and one neighbour: eleven are near each of them, itself included."""
    known = np.array([7] * 10 + [5], np.uint64)
    for most, crowded in ((11, False), (10, True)):
        found = near_pairs(known, known, 1, most)
        assert found.crowded.all() == found.crowded.any() == crowded
        assert len(found.first) == (0 if crowded else 121)


def test_a_thick_cluster_is_given_up_quickly(near: Callable[..., NearPairs]) -> None:
    """Twenty thousand different hashes around one, every two of them near: 200 million pairs that nobody wants."""
    around = [sum(1 << bit for bit in turned) for turned in combinations(range(64), 3)][:20_000]
    found = near(np.array(around, np.uint64), np.array(around, np.uint64), 8, 50)
    assert found.crowded.all()
    assert len(found.first) == 0


def test_nothing_is_near_nothing(near: Callable[..., NearPairs]) -> None:
    """Empty arrays on either side."""
    nothing = np.empty(0, np.uint64)
    for queries, known in ((nothing, hashes(5)), (hashes(5), nothing), (nothing, nothing)):
        found = near(queries, known, 8, 10)
        assert len(found.first) == len(found.second) == 0
        assert len(found.crowded) == len(queries)


@pytest.mark.parametrize("number", [1, 1000, 1_000_000, 20_000_000])
@pytest.mark.parametrize("radius", range(17))
def test_the_parts_leave_no_pair_out(number: int, radius: int) -> None:
    """The pigeonhole: as many differing bits as each part may just not have are together above the radius."""
    parts = allowed_changes(number, radius)
    assert sum(bits for bits, _ in parts) == 64
    assert sum(changes + 1 for _, changes in parts) == radius + 1
    assert all(bits <= 24 for bits, _ in parts)


def test_what_cannot_be_searched_is_refused() -> None:
    """Signed integers would be other numbers."""
    with pytest.raises(DataError, match="hashes of type int64"):
        near_pairs(np.zeros(3, np.int64), hashes(3), 3, 10)
    for radius, most in ((17, 1), (-1, 1), (3, 0)):
        with pytest.raises(SettingsError, match=f"radius = {radius}, most = {most}"):
            near_pairs(hashes(3), hashes(3), radius, most)
