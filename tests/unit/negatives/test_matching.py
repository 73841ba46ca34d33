"""The join by sorting, the join by hashing, and the comparison of everything with everything agree."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hatchway import compiled
from hatchway.negatives import matching
from hatchway.negatives.matching import compiled_join, each_pair_once, matching_columns, plain_join

JOINS = [plain_join, compiled_join] if compiled.available() else [plain_join]
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


@pytest.mark.parametrize("way", [True, False] if compiled.available() else [False])
@pytest.mark.parametrize(
    ("number", "rows", "columns"), [(0, 1, 1), (1, 1, 1), (500, 1, 90), (500, 40, 3), (900, 300, 300)]
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
