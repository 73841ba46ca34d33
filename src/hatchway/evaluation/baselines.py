"""Rankings that need no model, which every model must beat: by popularity, and at random."""

import numpy as np

from hatchway.data.engagements import Engagements, Int64, Part
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.ranking import rank_by_item
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.settings import BaselineName


def training_counts(engagements: Engagements, item_count: int) -> Int64:
    """Return how many training positives each item has, [N] int64; nothing of validation or test is counted."""
    rows = engagements.positives(Part.TRAIN)
    return np.bincount(engagements.items[rows], minlength=item_count).astype(np.int64)


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
