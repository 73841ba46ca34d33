"""Row-wise Adagrad against its formula written out, and that it touches nothing else."""

import pytest
import torch
from torch import nn

from hatchway.training.optimiser import RowWiseAdagrad, summed_rows


def lookups(table: nn.Embedding, rows: list[int], factors: list[float]) -> None:
    """Leave gradients of ``factor * row`` in the table."""
    (table(torch.tensor(rows)) * torch.tensor(factors)[:, None]).sum().backward()


def test_two_steps_by_hand() -> None:
    """Row 1 is looked up twice (gradient 1 + 3 = 4), then once (3): it moves by 4/√16 and 3/√(16 + 9)."""
    table = nn.Embedding(3, 2, sparse=True, _weight=torch.zeros(3, 2))
    optimiser = RowWiseAdagrad([table.weight], 0.5, epsilon=0.0)
    lookups(table, [1, 1], [1.0, 3.0])
    optimiser.step()
    assert table.weight[1].tolist() == pytest.approx([-0.5, -0.5])
    optimiser.zero_grad()
    lookups(table, [1], [3.0])
    optimiser.step()
    assert table.weight[1].tolist() == pytest.approx([-0.5 - 0.5 * 3 / 5] * 2)
    assert table.weight[[0, 2]].abs().sum() == 0


def test_one_number_of_state_a_row() -> None:
    """State is a sixty-fourth of the table at 64 dimensions."""
    table = nn.Embedding(1_000, 64, sparse=True)
    optimiser = RowWiseAdagrad([table.weight], 0.1)
    lookups(table, [7], [1.0])
    optimiser.step()
    state = sum(t.numel() for t in optimiser.state[table.weight].values())
    assert state * 64 == table.weight.numel()


def test_forgetting_row_has_the_corrected_mean_square() -> None:
    """With decay 0.9 the first step's scale is the gradient's own size, as in RMSprop with bias correction."""
    table = nn.Embedding(2, 2, sparse=True, _weight=torch.zeros(2, 2))
    optimiser = RowWiseAdagrad([table.weight], 0.5, decay=0.9, epsilon=0.0)
    lookups(table, [0], [7.0])
    optimiser.step()
    assert table.weight[0].tolist() == pytest.approx([-0.5, -0.5])


def test_summed_rows_are_unique_and_ascending() -> None:
    """Rows 5, 2, 5 give rows 2 and 5, with 5's gradients summed."""
    table = nn.Embedding(6, 1, sparse=True)
    lookups(table, [5, 2, 5], [1.0, 10.0, 2.0])
    assert table.weight.grad is not None
    rows, values = summed_rows(table.weight.grad)
    assert rows.tolist() == [2, 5]
    assert values[:, 0].tolist() == [10.0, 3.0]


def test_a_closure_is_refused() -> None:
    """It would be ignored otherwise."""
    with pytest.raises(TypeError, match="no closure"):
        RowWiseAdagrad([nn.Embedding(2, 2, sparse=True).weight], 0.1).step(lambda: 0.0)


def test_shrinking_takes_a_share_of_touched_rows_only() -> None:
    """Weight decay apart from the gradient: 1 − 0.5·0.1·1 − 0.5 for the touched row; the other stays."""
    table = nn.Embedding(2, 1, sparse=True, _weight=torch.ones(2, 1))
    optimiser = RowWiseAdagrad([table.weight], 0.5, shrink=0.1, epsilon=0.0)
    lookups(table, [1], [3.0])
    optimiser.step()
    assert table.weight[:, 0].tolist() == pytest.approx([1.0, 1 - 0.05 - 0.5])
