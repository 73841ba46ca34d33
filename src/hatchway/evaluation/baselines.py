"""Rankings that need no model, which every model must beat: by popularity, and at random."""

import numpy as np

from hatchway.data.engagements import Int64
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.ranking import rank_by_item
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.settings import BaselineName


def baseline_ranks(name: BaselineName, cases: Cases, counts: Int64) -> Ranks:
    """Rank the candidates of every case without a model.

    ``popularity`` ranks by training positives, items of equal count tied. ``random`` ties all items, which gives the
    expected metrics of a random order exactly, without drawing one; it is what a collapsed model scores, too.

    Args:
        name: which baseline.
        cases: the Q cases.
        counts: [N] training positives of each item.
    """
    return rank_by_item(counts if name == "popularity" else np.zeros_like(counts), cases)
