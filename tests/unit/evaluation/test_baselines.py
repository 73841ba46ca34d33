"""Popularity and random, from training alone."""

from collections.abc import Callable

import numpy as np
import pytest

from hatchway.data.engagements import Engagements, Part, training_counts
from hatchway.evaluation.baselines import baseline_ranks
from hatchway.evaluation.cases import cases_for
from hatchway.evaluation.metrics import recall


def test_counts_are_of_training_positives(log_of: Callable[..., Engagements]) -> None:
    """Neither validation nor test nor a row of weight 0 is counted, a heavy weight counts once, a repeat twice."""
    log = log_of(
        [
            [(0, Part.TRAIN, 1.0), (0, Part.TRAIN, 5.0), (1, Part.TRAIN, 0.0), (2, Part.VALIDATION, 1.0)],
            [(3, Part.TRAIN, 1.0), (3, Part.TEST, 1.0)],
        ]
    )
    assert training_counts(log, 5).tolist() == [2, 0, 0, 1, 0]


def test_popularity_and_random_on_a_small_log(log_of: Callable[..., Engagements]) -> None:
    """The right item is the second most popular candidate; at random it is one of three."""
    log = log_of(
        [
            [(0, Part.TRAIN, 1.0), (2, Part.TEST, 1.0)],
            [(0, Part.TRAIN, 1.0), (1, Part.TRAIN, 1.0), (2, Part.TRAIN, 1.0)],
            [(1, Part.TRAIN, 1.0)],
        ]
    )
    cases = cases_for(log, Part.TEST, grain="buyer", exclude_seen=True)
    counts = training_counts(log, 4)
    assert counts.tolist() == [2, 2, 1, 0]
    popularity, random = (baseline_ranks(name, cases, counts) for name in ("popularity", "random"))
    assert (popularity.better.tolist(), popularity.tied.tolist()) == ([1], [1])
    assert recall(random, 2) == pytest.approx([2 / 3])
    assert np.array_equal(random.tied, [3])
