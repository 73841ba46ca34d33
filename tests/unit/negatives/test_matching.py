"""The join by sorting, the join by hashing, and the comparison of everything with everything agree."""

import functools
from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from hatchway import compiled
from hatchway.negatives import matching
from hatchway.negatives.matching import (
    compiled_join,
    compiled_pairs,
    each_pair_once,
    matching_columns,
    plain_join,
    plain_pairs,
)

JOINS = [plain_join, compiled_join] if compiled.available() else [plain_join]
PAIRS: Mapping[str, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]] = {"plain": plain_pairs} | (
    {f"compiled, {at_once} at once": functools.partial(compiled_pairs, at_once=at_once) for at_once in (1, 50, 2**16)}
    if compiled.available()
    else {}
)
SHAPES = [
    (0, 3, 5, 9),
    (5, 0, 5, 9),
    (7, 3, 0, 9),
    (1, 1, 1, 1),
    (40, 30, 200, 60),
    (9, 400, 300, 20),
    (300, 3, 900, 2**40),
]
SIZES = [(0, 0), (0, 3), (3, 0), (1, 1), (5, 900), (900, 5), (300, 2000)]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("columns", "keys"), SIZES)
@pytest.mark.parametrize("catalogue", [3, 500, 2**40])
def test_joins_are_the_dense_comparison(
    join: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], columns: int, keys: int, catalogue: int
) -> None:
    """The same pairs in the same order: keys ascending, columns ascending within a key; few items and huge ids too."""
    generator = torch.Generator().manual_seed(columns * 10_000 + keys)
    items = torch.randint(catalogue, (columns,), generator=generator)
    wanted = torch.randint(catalogue, (keys,), generator=generator)
    wanted[: min(keys, columns) // 2] = items[: min(keys, columns) // 2]
    expected = torch.nonzero(wanted[:, None] == items)
    which, found = join(items, wanted)
    assert torch.equal(torch.stack([which, found], 1), expected)


@pytest.mark.parametrize("join", JOINS)
def test_items_that_share_a_flag_are_told_apart(join: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
    """Items 7 and 7 + 2^20 share a flag of the plain join's filter; only equal ones match."""
    which, found = join(torch.tensor([7]), torch.tensor([7 + 2**20, 7, 7 + 2**21]))
    assert (which.tolist(), found.tolist()) == ([1], [0])


def test_rows_of_the_keys_are_given_back() -> None:
    """Keys 0 and 2 belong to rows 4 and 6; a view with gaps between its elements is as good as an array."""
    items = torch.tensor([[5, 0], [8, 0], [5, 0]])[:, 0]
    rows, found = matching_columns(items, torch.tensor([5, 6, 8]), torch.tensor([4, 4, 6]))
    assert (rows.tolist(), found.tolist()) == ([4, 4, 6], [0, 2, 1])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("rows", "most", "columns", "catalogue"), SHAPES)
def test_pairs_are_the_dense_comparison_row_by_row(
    name: str, rows: int, most: int, columns: int, catalogue: int
) -> None:
    """Rows of any length, empty ones among them, with items twice; few rows at a time or all together."""
    generator = torch.Generator().manual_seed(rows + 10 * most)
    items = torch.randint(catalogue, (columns,), generator=generator)
    lengths = torch.randint(most + 1, (rows,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    keys = torch.randint(catalogue, (int(offsets[-1]),), generator=generator)
    wanted = torch.zeros(rows, columns, dtype=torch.bool)
    for row in range(rows):
        wanted[row] = (keys[offsets[row] : offsets[row + 1], None] == items).any(0)
    assert torch.equal(torch.stack(PAIRS[name](items, keys, offsets), 1), torch.nonzero(wanted))


@pytest.mark.parametrize("way", [True, False] if compiled.available() else [False])
@pytest.mark.parametrize(
    ("number", "rows", "columns"), [(0, 1, 1), (1, 1, 1), (500, 1, 90), (500, 40, 3), (900, 300, 300), (3000, 2, 9000)]
)
def test_each_pair_is_kept_once_where_it_stood_first(
    way: bool, number: int, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dictionary would: the first place of each pair, sorted by pair; rows with few and with many columns."""
    monkeypatch.setattr(matching, "suits", lambda *_: way)
    generator = torch.Generator().manual_seed(number + rows)
    pairs = [torch.randint(most, (number,), generator=generator) for most in (rows, columns)]
    first: dict[tuple[int, int], int] = {}
    for place, pair in enumerate(zip(*(part.tolist() for part in pairs), strict=True)):
        first.setdefault(pair, place)
    assert each_pair_once(*pairs).tolist() == [first[pair] for pair in sorted(first)]


@pytest.mark.parametrize("way", [True, False] if compiled.available() else [False])
def test_lists_one_after_another_are_joined(way: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What masks are made of: a few pairs a row, then many, each list in order; a pair in both is the first one's."""
    monkeypatch.setattr(matching, "suits", lambda *_: way)
    few, many = torch.tensor([[0, 500], [2, 3]]), torch.cartesian_prod(torch.arange(3), torch.arange(0, 900, 3))
    rows, columns = torch.cat([few, many]).T
    places = [*range(2, 302), *range(302, 602), *range(602, 902)]
    places.insert(167, 0)  # 500 stands between 498, the 167th, and 501
    places[places.index(603)] = 1  # (2, 3) is the first list's
    assert each_pair_once(rows, columns).tolist() == places
