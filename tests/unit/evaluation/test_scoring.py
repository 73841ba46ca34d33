"""Two towers as a scorer."""

import numpy as np
import torch
from torch import Tensor, nn

from hatchway.data.contexts import Contexts
from hatchway.evaluation.scoring import TowerScorer


class Factors(nn.Module):
    """Plain factors of buyers and items, with dropout that would disturb every score if it were left on."""

    def __init__(self, buyers: Tensor, items: Tensor) -> None:
        super().__init__()
        self.buyers = nn.Parameter(buyers)
        self.items = nn.Parameter(items)
        self.dropout = nn.Dropout(0.5)
        self.frozen = nn.Dropout(0.5).eval()

    def query(self, contexts: Contexts) -> Tensor:
        """Look the buyers up."""
        vectors: Tensor = self.dropout(self.buyers[torch.from_numpy(contexts.buyers.astype(np.int64))])
        return vectors

    def item(self, rows: Tensor) -> Tensor:
        """Look the items up."""
        vectors: Tensor = self.dropout(self.items[rows])
        return vectors


def ask(buyers: list[int]) -> Contexts:
    """Ask for buyers without a past."""
    count = len(buyers)
    none = np.zeros(0, np.int32)
    return Contexts(np.array(buyers, np.int32), np.full(count, -1, np.int32), none, np.zeros(count + 1, np.int64))


def test_scores_are_raw_dot_products() -> None:
    """Neither normalised nor disturbed by dropout, without a gradient, and every part's mode is put back."""
    model = Factors(torch.tensor([[1.0, 2.0], [0.0, -1.0]]), torch.tensor([[3.0, 4.0], [0.5, 0.0], [-1.0, 1.0]]))
    scores = TowerScorer(model, item_count=3, history_length=0).scores(ask([1, 0]))
    assert scores.tolist() == [[-4.0, 0.0, -1.0], [11.0, 0.5, 1.0]]
    assert not scores.requires_grad
    assert model.dropout.training
    assert not model.frozen.training


def test_equal_vectors_have_equal_scores() -> None:
    """Also where a matrix product alone would sum the columns at its edge in another order."""
    generator = torch.Generator().manual_seed(3)
    vector = torch.randn(64, generator=generator)
    queries = torch.randn(50, 64, generator=generator)
    for count in range(1, 40):
        scores = TowerScorer(Factors(queries, vector.expand(count, 64)), count, 0).scores(ask(list(range(50))))
        assert scores.shape == (50, count)
        assert bool((scores == scores[:, :1]).all())


def test_copies_among_others_keep_their_places() -> None:
    """Only some vectors are equal; every score is still that of the item's own vector, and -0 is 0."""
    items = torch.tensor([[1.0, 0.0], [2.0, 5.0], [1.0, -0.0], [3.0, 1.0], [2.0, 5.0]])
    scores = TowerScorer(Factors(torch.tensor([[1.0, 10.0]]), items), 5, 0).scores(ask([0]))
    assert scores.tolist() == [[1.0, 52.0, 1.0, 13.0, 52.0]]
