"""Lists of similar items: made of pairs, asked by pairs, joined, written and read."""

from pathlib import Path

import numpy as np
import pytest

from hatchway.errors import ArtefactError, DataError
from hatchway.screening.similar import SimilarItems


def some() -> SimilarItems:
    """Return the lists of five items: 0 like 3 and 4, 1 like 3; 2 like none."""
    return SimilarItems.from_pairs(5, np.array([0, 4, 3, 3, 2]), np.array([3, 0, 1, 0, 2]))


def test_pairs_become_symmetric_lists_without_repeats() -> None:
    """Told twice, in both directions and of an item with itself: each pair stands once in either list."""
    assert [some().of(item).tolist() for item in range(5)] == [[3, 4], [3], [], [0, 1], [0]]
    assert some().pairs == 3
    assert some().counts.tolist() == [2, 1, 0, 2, 1]


def test_contains_agrees_with_a_matrix() -> None:
    """Every pair of sixty items, a third of them alike, asked at once; and in another integer type."""
    random = np.random.Generator(np.random.PCG64(3))
    first, second = random.integers(60, size=(2, 700))
    matrix = np.zeros((60, 60), bool)
    matrix[first, second] = matrix[second, first] = True
    np.fill_diagonal(matrix, val=False)
    lists = SimilarItems.from_pairs(60, first, second)
    items, others = np.indices((60, 60)).reshape(2, -1)
    assert (lists.contains(items, others) == matrix.reshape(-1)).all()
    assert (lists.contains(items.astype(np.int32), others.astype(np.int32)) == matrix.reshape(-1)).all()
    one, other = lists.first_of_pairs()
    assert (one < other).all()
    assert len(one) == lists.pairs == matrix.sum() / 2


def test_a_union_holds_what_either_holds() -> None:
    """Pairs of both, once; of another catalogue nothing can be said."""
    both = some().union(SimilarItems.from_pairs(5, np.array([2, 0]), np.array([1, 3])))
    assert [both.of(item).tolist() for item in range(5)] == [[3, 4], [2, 3], [1], [0, 1], [0]]
    with pytest.raises(DataError, match="of 5 and of 6 items"):
        some().union(SimilarItems.none(6))


def test_none_is_like_none() -> None:
    """Lists of unlike items, and of no items at all, answer."""
    assert not SimilarItems.none(3).contains(np.array([0, 1]), np.array([1, 1])).any()
    empty = SimilarItems.none(0)
    assert len(empty) == empty.pairs == 0
    assert empty.contains(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
    assert len(SimilarItems.from_pairs(0, np.empty(0, np.int64), np.empty(0, np.int64))) == 0


def test_written_lists_are_read_back_and_damaged_ones_refused(tmp_path: Path) -> None:
    """Equal lists give equal bytes; half a file is no file."""
    some().write(tmp_path / "a")
    some().write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = SimilarItems.read(tmp_path / "a")
    assert again.offsets.tolist() == some().offsets.tolist()
    assert again.items.tolist() == some().items.tolist()
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:-9])
    for name in ("b", "absent"):
        with pytest.raises(ArtefactError, match="does not hold lists of similar items"):
            SimilarItems.read(tmp_path / name)


@pytest.mark.parametrize(
    ("offsets", "items", "message"),
    [
        ([0, 1], [1], "allowed: 0 to 0"),
        ([0, 2], [0], "do not cut up 1 items"),
        ([0, 2, 1, 2], [0, 1], "do not cut up"),
        ([0, 0, 2], [1, 0], "do not ascend"),
        ([0, 2, 2], [1, 1], "do not ascend, or one comes twice"),
        ([[0]], [], r"allowed: \[N \+ 1\]"),
    ],
)
def test_lists_that_cannot_be_looked_up_are_refused(offsets: list[int], items: list[int], message: str) -> None:
    """Each fault by its name."""
    with pytest.raises(DataError, match=message):
        SimilarItems(np.array(offsets, np.int64), np.array(items, np.int64))


def test_items_outside_are_refused() -> None:
    """A negative row would otherwise be looked up from the end."""
    for wrong in (-1, 5):
        with pytest.raises(DataError, match="allowed: 0 to 4"):
            some().contains(np.array([0]), np.array([wrong]))
        with pytest.raises(DataError, match="allowed: 0 to 4"):
            some().of(wrong)
        with pytest.raises(DataError, match="allowed: 0 to 4"):
            SimilarItems.from_pairs(5, np.array([0]), np.array([wrong]))
