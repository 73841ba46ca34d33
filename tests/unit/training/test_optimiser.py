"""Row-wise Adagrad against its formula written out, and that it touches nothing else."""

import copy
import gc

import pytest
import torch
from torch import nn

from hatchway import compiled
from hatchway.towers.lookups import LookedUp
from hatchway.towers.tables import Table, bag, table
from hatchway.training import row_updates
from hatchway.training.optimiser import RowWiseAdagrad
from hatchway.training.row_updates import RowRule, summed_rows, update_rows


def lookups(embedding: nn.Embedding, rows: list[int], factors: list[float]) -> None:
    """Leave gradients of ``factor * row`` in the table."""
    (embedding(torch.tensor(rows)) * torch.tensor(factors)[:, None]).sum().backward()


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
    """Rows 5, 2, 5 give rows 2 and 5, with 5's gradients summed, and 2 again from a bag with factors."""
    alone = LookedUp(torch.tensor([5, 2, 5]), torch.tensor([[1.0], [10.0], [2.0]]))
    bags = LookedUp(torch.tensor([2, 0]), torch.tensor([[7.0], [9.0]]), torch.tensor([1, 0]), torch.tensor([0.5, 3.0]))
    rows, values = summed_rows([alone, bags])
    assert rows.tolist() == [0, 2, 5]
    assert values[:, 0].tolist() == [21.0, 14.5, 3.0]


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


def grown(way: bool, threads: int, patch: pytest.MonkeyPatch, rule: RowRule) -> list[torch.Tensor]:
    """Return a table and its state after three updates from look-ups and bags, many rows in common."""
    patch.setattr(row_updates, "suits", lambda *_: way)
    generator = torch.Generator().manual_seed(7)
    weights = torch.randn(9_000, 12, generator=generator)
    square, updates = torch.zeros(9_000), torch.zeros(9_000) if rule.decay < 1 else None
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    for _ in range(3):
        rows = torch.randint(9_000, (8_000,), generator=generator)
        rows[::3] %= 50
        alone = LookedUp(rows[:2_000], torch.randn(2_000, 12, generator=generator))
        places = torch.randint(300, (6_000,), generator=generator).sort().values
        factors = torch.rand(6_000, generator=generator)
        bags = LookedUp(rows[2_000:], torch.randn(300, 12, generator=generator), places, factors)
        update_rows(weights, square, updates, [alone, bags], rule)
    torch.set_num_threads(before)
    return [weights, square, *([] if updates is None else [updates])]


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
@pytest.mark.parametrize("rule", [RowRule(0.1, 1.0, 0.0, 1e-8), RowRule(0.1, 0.9, 0.1, 1e-8)])
def test_compiled_and_plain_updates_agree(rule: RowRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the digits of float32; and one thread and two to the last bit."""
    plain = grown(False, 1, monkeypatch, rule)
    one = grown(True, 1, monkeypatch, rule)
    two = grown(True, 2, monkeypatch, rule)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(plain, one, strict=True))


def shared_look_ups(embedding: nn.Embedding, factors: torch.Tensor) -> torch.Tensor:
    """Use a table as towers do: rows in any shape, bags with factors, sums and means, an empty bag."""
    rows, offsets = torch.tensor([3, 1, 3, 0, 2, 2]), torch.tensor([0, 2, 2, 6])
    parts = (
        embedding(torch.tensor([[1, 4], [1, 1]])).flatten(0, 1),
        bag(embedding, rows, offsets, weights=factors),
        bag(embedding, rows, offsets),
        bag(embedding, rows, offsets, mean=True),
    )
    return torch.stack([(part.sin() * (k + 1)).sum() for k, part in enumerate(parts)]).sum()


@pytest.mark.parametrize("way", [True, False] if compiled.available() else [False])
def test_an_owned_table_has_autograds_gradients(way: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the owner sums to what autograd makes of the same look-ups, for the table and for the factors."""
    monkeypatch.setattr("hatchway.towers.lookups.suits", lambda *_: way)
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    mine = Table(6, 3, sparse=True, _weight=weights.clone())
    plain = nn.Embedding(6, 3, sparse=True, _weight=weights.clone())
    optimiser = RowWiseAdagrad([mine], 0.1)
    factors = [torch.linspace(0.5, 1.5, 6).requires_grad_() for _ in range(2)]
    values = [shared_look_ups(*pair) for pair in zip((mine, plain), factors, strict=True)]
    assert torch.equal(*(value.detach() for value in values))
    for value in values:
        value.backward()
    assert mine.weight.grad is None
    assert plain.weight.grad is not None
    rows, summed = summed_rows(optimiser._looked_up(mine.weight))
    found = torch.zeros(6, 3).index_copy_(0, rows, summed)
    assert torch.allclose(found, plain.weight.grad.to_dense(), rtol=1e-6, atol=1e-6)
    assert factors[0].grad is not None
    assert factors[1].grad is not None
    assert torch.allclose(factors[0].grad, factors[1].grad, rtol=1e-5, atol=1e-6)


def test_gradients_add_up_until_they_are_cleared() -> None:
    """Two backward passes count twice; after zero_grad a step moves nothing."""
    mine = Table(2, 1, sparse=True, _weight=torch.zeros(2, 1))
    optimiser = RowWiseAdagrad([mine], 1.0, epsilon=0.0)
    lookups(mine, [1], [1.0])
    lookups(mine, [1], [2.0])
    optimiser.step()
    assert optimiser.state[mine.weight]["square"].tolist() == [0.0, 9.0]
    optimiser.zero_grad()
    optimiser.step()
    assert mine.weight[:, 0].tolist() == [0.0, -1.0]


def test_a_table_without_owner_is_a_plain_one() -> None:
    """Gradients are in ``weight.grad`` before an optimiser took over, for a copy, and once the optimiser is no more."""
    with torch.random.fork_rng(devices=[]):
        mine = table(3, 2, 0.1)
    lookups(mine, [1], [1.0])
    assert mine.weight.grad is not None
    mine.weight.grad = None
    optimiser = RowWiseAdagrad([mine], 0.1)
    other = copy.deepcopy(mine)
    for embedding, kept in ((mine, False), (other, True)):
        lookups(embedding, [1], [1.0])
        assert (embedding.weight.grad is not None) == kept
    del optimiser
    gc.collect()
    lookups(mine, [1], [1.0])
    assert mine.weight.grad is not None
