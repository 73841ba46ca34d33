"""An earlier model of plain arrays: every buyer has a query vector, search is the whole score matrix."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Engagements
from hatchway.index.protocol import Neighbours
from hatchway.randomness import stream
from hatchway.training.mining.mine import Earlier

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


@dataclass
class BuyerQueries:
    """Rows of one buyer ask the same; a buyer whose vector is NaN has none."""

    engagements: Engagements
    buyers: Float32

    def groups(self, rows: Int64) -> Int64:
        """Number the rows by buyer."""
        buyers = self.engagements.buyers[rows].astype(np.int64)
        return np.where(np.isnan(self.buyers[buyers, 0]), -1, buyers)

    def vectors(self, rows: Int64) -> Float32:
        """Look the buyers up."""
        return self.buyers[self.engagements.buyers[rows]]


@dataclass
class WholeMatrix:
    """Exact search that remembers how often it was asked, and for how many queries."""

    vectors: Float32
    asked: list[int] = field(default_factory=list)

    def search(self, queries: Float32, k: int) -> Neighbours:
        """Score everything, sort everything."""
        self.asked.append(len(queries))
        scores = (queries.astype(np.float64) @ self.vectors.T.astype(np.float64)).astype(np.float32)
        order = np.lexsort((np.broadcast_to(np.arange(len(self.vectors)), scores.shape), -scores), axis=-1)[:, :k]
        found = Neighbours(np.full((len(queries), k), -np.inf, np.float32), np.full((len(queries), k), -1, np.int64))
        found.scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
        found.rows[:, : order.shape[1]] = order
        return found


def earlier_model(
    engagements: Engagements, items: int, seed: int = 5, dimension: int = 6
) -> tuple[Earlier, WholeMatrix]:
    """Make a random earlier model that knows the log's items by the same rows."""
    rng = stream(seed, "earlier model")
    buyers = rng.standard_normal((len(engagements.offsets) - 1, dimension)).astype(np.float32)
    index = WholeMatrix(rng.standard_normal((items, dimension)).astype(np.float32))
    every = np.arange(items, dtype=np.int64)
    return Earlier(index.search, index.vectors, every, every, BuyerQueries(engagements, buyers)), index
