"""Own columns from a table: which of a list become columns, and that they are looked up for the right row."""

import numpy as np
import pytest
import torch
from scipy import stats

from hatchway.data.row_table import RowTable
from hatchway.errors import DataError
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.mined import Mined
from hatchway.negatives.sources import Source
from hatchway.negatives.table_columns import TableColumns, choose_places
from hatchway.randomness import torch_stream

TABLE = RowTable.from_offsets(np.array([0, 3, 3, 4, 9]), np.array([7, 8, 9, 5, 0, 1, 2, 3, 4]))


def test_rows_get_their_own_lists_capped_at_two() -> None:
    """Row 0 two of 7, 8, 9; row 1 nothing; row 2 its only one; row 3 two of five, whatever the order asked in."""
    mined = Mined(TABLE)
    found = mined.draw(torch.zeros(4, dtype=torch.int64), torch.tensor([3, 0, 1, 2]), torch_stream(1))
    assert found.shape == (4, 2)
    sets = [{item for item in row if item >= 0} for row in found.tolist()]
    assert sets[0] <= {0, 1, 2, 3, 4}
    assert sets[1] <= {7, 8, 9}
    assert [len(part) for part in sets] == [2, 2, 0, 1]
    assert sets[3] == {5}


def test_a_short_list_is_taken_whole() -> None:
    """Asked for five, the rows get all they have, each item once."""
    found = Impressions(TABLE, 5).draw(torch.zeros(4, dtype=torch.int64), torch.arange(4), torch_stream(1))
    assert [sorted(item for item in row if item >= 0) for row in found.tolist()] == [
        [7, 8, 9],
        [],
        [5],
        [0, 1, 2, 3, 4],
    ]


@pytest.mark.parametrize("most", [10**9, 10**9 + 0.5])
def test_more_than_any_list_has_is_all_of_it_and_costs_no_more(most: float) -> None:
    """The longest list has five; a thousand million columns would fit nowhere, and take years to choose."""
    source = TableColumns(TABLE, most, Source.MINED)
    found = source.draw(torch.zeros(4, dtype=torch.int64), torch.arange(4), torch_stream(1))
    assert found.shape == (4, 5)
    assert [sorted(row) for row in found.tolist()][3] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stranger", [-1, 4])
def test_a_row_that_the_table_does_not_have_is_refused(stranger: int) -> None:
    """Neither a row beyond the last, nor a negative one, which would be looked up from the end."""
    rows = torch.tensor([2, stranger])
    with pytest.raises(DataError, match=f"row {stranger} is not in the table of mined negatives, which has 4 rows"):
        Mined(TABLE).draw(torch.zeros(2, dtype=torch.int64), rows, torch_stream(1))


def test_every_choice_is_equally_likely() -> None:
    """Of five, three: ten sets, each drawn as often (chi-square); never one place twice."""
    places = choose_places(torch.full((30_000,), 5), 3, torch_stream(1)).sort(1).values
    assert bool((places[:, 1:] > places[:, :-1]).all())
    sets, numbers = (places * torch.tensor([100, 10, 1])).sum(1).unique(return_counts=True)
    assert len(sets) == 10
    assert stats.chisquare(numbers.numpy()).pvalue > 1e-4


def test_the_choice_is_a_function_of_the_stream() -> None:
    """The same stream chooses the same, another another."""
    lengths = torch.full((100,), 400)
    first, again, other = (choose_places(lengths, 2, torch_stream(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_sources_and_weights_are_named() -> None:
    """Half a column has the logarithm of a half; both are there on purpose."""
    mined, shown = Mined(TABLE, weight=0.5), Impressions(TABLE, 1)
    assert (mined.source, shown.source) == (Source.MINED, Source.IMPRESSIONS)
    assert mined.log_weight == pytest.approx(-0.6931472)
    assert shown.log_weight == 0
    assert mined.on_purpose
    assert shown.on_purpose


def test_rows_may_share_a_part_of_a_list() -> None:
    """Ranges may overlap: the second row sees the first two of what the first sees."""
    table = RowTable(np.array([0, 0]), np.array([3, 2]), np.array([4, 5, 6], np.int32))
    found = Mined(table, 3).draw(torch.zeros(2, dtype=torch.int64), torch.arange(2), torch_stream(1))
    assert [sorted(item for item in row if item >= 0) for row in found.tolist()] == [[4, 5, 6], [4, 5]]


def test_a_table_of_nonsense_is_refused() -> None:
    """Ranges outside the items, ends before beginnings, negative items."""
    for begin, end, items in (([0], [4], [1, 2, 3]), ([2], [1], [1, 2, 3]), ([-1], [1], [1, 2, 3])):
        with pytest.raises(DataError, match="does not lie within"):
            RowTable(np.array(begin), np.array(end), np.array(items))
    with pytest.raises(DataError, match="never negative"):
        RowTable(np.array([0]), np.array([1]), np.array([-1]))
    with pytest.raises(DataError, match="allowed"):
        RowTable(np.array([0, 1]), np.array([1]), np.array([1]))


def test_memory_that_may_not_be_written_to_will_do() -> None:
    """Arrays out of a data frame often are such."""
    parts = [np.array([0]), np.array([2]), np.array([4, 5])]
    for part in parts:
        part.setflags(write=False)
    found = Mined(RowTable(*parts)).draw(torch.tensor([0]), torch.tensor([0]), torch_stream(1))
    assert sorted(found[0].tolist()) == [4, 5]
