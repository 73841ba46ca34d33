"""The compiled alias table and its draws are those of the plain way, to the last bit."""

import numpy as np
import pytest
import torch

from hatchway import compiled
from hatchway.negatives import alias

pytestmark = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


@pytest.mark.parametrize("number", [1, 2, 7, 1_000, 50_000])
@pytest.mark.parametrize("law", ["alike", "zipf", "zeros", "one", "random", "ties"])
def test_tables_and_draws_are_the_same(number: int, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All alike, popular first, some impossible, one alone, any order; giver and taker used up at the same time."""
    random = np.random.Generator(np.random.PCG64(number))
    weights = {
        "alike": np.ones(number),
        "zipf": 1 / np.arange(1.0, number + 1),
        "zeros": np.where(np.arange(number) % 3 == 0, random.random(number) + 0.1, 0.0),
        "one": np.eye(1, number, number // 2)[0],
        "random": random.random(number) ** 4,
        "ties": np.where(np.arange(number) % 2 == 0, 1.0, 3.0),
    }[law]
    places = torch.from_numpy(random.random(2_000))
    places[0] = 0.0
    tables, draws = [], []
    for way in (True, False):
        monkeypatch.setattr(alias, "available", lambda way=way: way)
        monkeypatch.setattr(alias, "suits", lambda *_, way=way: way)
        tables.append(alias.build_alias(weights))
        draws.append(alias.draw_alias(torch.from_numpy(tables[-1]), places))
    assert np.array_equal(tables[0], tables[1])
    assert torch.equal(draws[0], draws[1])
    assert np.allclose(alias.chances_of(tables[0]), weights / weights.sum(), rtol=1e-6, atol=1e-9)
