"""Bounds on a candidate's score: absolute, and as seen from the positive's."""

import numpy as np
import numpy.typing as npt

from hatchway.training.mining.settings import MiningSettings

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating]


def within_bounds(scores: Floats, positive_scores: Floats, settings: MiningSettings) -> Bools:
    """Say of each candidate whether its score is within the bounds.

    A bound as seen from the positive is a ceiling that is never above the positive: ``positive − margin``, and
    ``positive − share · |positive|``. Where the positive scores above 0 the second is the percentage of the positive's
    score that Moreira et al. 2024 use; below 0 their product would lie *above* the positive and let everything through.
    Under a positive that has no score (NaN) no candidate is within such a bound.

    Args:
        scores: [P] of the candidates.
        positive_scores: [P] of the positives, NaN where it is not known.
        settings: the bounds; those that are None do not bound.

    Returns:
        [P] bool.

    >>> settings = MiningSettings(relative_margin=0.1)
    >>> within_bounds(np.array([0.95, 0.89, -1.05, -1.2]), np.array([1.0, 1.0, -1.0, -1.0]), settings).tolist()
    [False, True, False, True]
    """
    inside = np.ones(scores.shape, np.bool_)
    if settings.min_score is not None:
        inside &= scores >= settings.min_score
    if settings.max_score is not None:
        inside &= scores <= settings.max_score
    if settings.margin is not None:
        inside &= scores <= positive_scores - settings.margin
    if settings.relative_margin is not None:
        inside &= scores <= positive_scores - settings.relative_margin * np.abs(positive_scores)
    return inside
