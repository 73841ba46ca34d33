"""A small shop for the examples: listings with titles, and who looked at which listing before saving which.

Not one of Hatchway's; in its place stands whatever you have.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hatchway.randomness import stream

KINDS = ("table", "chair", "sofa", "lamp", "shelf", "desk", "mirror", "bench")
MATERIALS = ("oak", "pine", "steel", "glass", "rattan")
COLOURS = ("green", "white", "black", "red", "blue", "grey")


@dataclass(frozen=True)
class Shop:
    """Pairs of (looked at, then saved) over a catalogue of 240 listings.

    Attributes:
        titles: the listings' titles; a listing's row is its place in here.
        words: [240, 3] int64, the titles as numbers of words.
        looked_at, saved: [T] int64 listing rows of the training pairs.
        test_looked_at, test_saved: the same of pairs to test with.
    """

    titles: list[str]
    words: Tensor
    looked_at: Tensor
    saved: Tensor
    test_looked_at: Tensor
    test_saved: Tensor

    @property
    def counts(self) -> Tensor:
        """[240] int64, how often each listing is a positive of the training pairs."""
        return torch.bincount(self.saved, minlength=len(self.titles))

    def recall(self, scores: Tensor, k: int = 10) -> float:
        """Return how often the saved listing is among the k best of a row, the one looked at left out.

        Args:
            scores: [test pairs, 240].
            k: how many are shown.
        """
        scores = scores.scatter(1, self.test_looked_at[:, None], -torch.inf)
        return float((scores.topk(k, dim=1).indices == self.test_saved[:, None]).any(1).double().mean())


def small_shop(pairs: int = 6000) -> Shop:
    """Draw a shop whose buyers mostly save what is of the kind that they looked at, and mostly what is popular."""
    draw = stream(1, "small shop")
    codes = np.indices((len(KINDS), len(MATERIALS), len(COLOURS))).reshape(3, -1).T
    popularity = 1 / (1 + draw.permutation(len(codes)))
    both = np.zeros((pairs + 500, 2), dtype=np.int64)
    both[:, 0] = draw.choice(len(codes), len(both), p=popularity / popularity.sum())
    of_a_kind = codes[:, None, 0] == codes[None, :, 0]
    weights = popularity * np.where(of_a_kind, 1.0, 0.02) * (1 - np.eye(len(codes)))
    below = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
    both[:, 1] = (draw.random(len(both))[:, None] > below[both[:, 0]]).sum(1).clip(max=len(codes) - 1)
    rows = torch.from_numpy(both)
    return Shop(
        titles=[f"{MATERIALS[m]} {KINDS[k]} {COLOURS[c]}" for k, m, c in codes],
        words=torch.from_numpy(codes) + torch.tensor([0, len(KINDS), len(KINDS) + len(MATERIALS)]),
        looked_at=rows[:pairs, 0],
        saved=rows[:pairs, 1],
        test_looked_at=rows[pairs:, 0],
        test_saved=rows[pairs:, 1],
    )
