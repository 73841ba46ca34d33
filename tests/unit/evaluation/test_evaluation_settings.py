"""Settings that contradict themselves are refused with the value that does."""

import pytest

from hatchway.errors import SettingsError
from hatchway.evaluation.settings import EvaluationSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": [10, 5]}, r"k = \[10, 5\] must ascend"),
        ({"k": []}, "k needs at least one"),
        ({"k": [0]}, "greater than 0"),
        ({"history_edges": [1, 1]}, "must ascend without repeats"),
        ({"head_share": 0.6, "torso_share": 0.5}, "add up to more than 1"),
        ({"baselines": ["random", "random"]}, "names one twice"),
        ({"resample": 10}, "did you mean 'resamples'"),
    ],
)
def test_contradictions_are_refused(values: dict[str, object], message: str) -> None:
    """Each message has what was received or the nearest valid key."""
    with pytest.raises(SettingsError, match=message):
        EvaluationSettings.parse(values)
