"""Costs of small workloads, counted by hand."""

import pytest

from hatchway.cost import Workload, cost_of, in_words
from hatchway.errors import SettingsError


def test_a_batch_counted_by_hand() -> None:
    """Three rows, two shared and one own column, five items of two numbers: every count can be drawn on paper."""
    cost = cost_of(Workload(catalogue=5, dimension=2, batch=3, uniform=2, hard=1))
    assert (cost.full_example, cost.full_batch) == (10, 30)
    assert (cost.in_batch, cost.with_shared, cost.with_hard) == (18, 30, 36)
    assert cost.with_hard_shared == 3 * 8 * 2
    assert (cost.in_batch_negatives, cost.easy_negatives, cost.easy_per_hard) == (2, 4, 4.0)
    assert (cost.extra_item_passes, cost.extra_item_passes_ratio) == (5, 5 / 3)
    assert (cost.logit_bytes, cost.full_logit_bytes) == (72, 60)
    assert cost.cheaper(cost.with_hard) == 30 / 36


def test_no_hard_negatives_have_no_ratio() -> None:
    """Without hard negatives the ratio is absent instead of infinite."""
    assert cost_of(Workload(hard=0)).easy_per_hard is None


def test_a_batch_of_none_is_refused() -> None:
    """The error names the setting, the value and what is allowed."""
    with pytest.raises(SettingsError, match=r"batch = 0: .*greater than or equal to 1"):
        Workload.parse({"batch": 0})


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0"), (999, "999"), (1000, "1.00 thousand"), (10**15, "1.00 quadrillion")]
)
def test_counts_in_words(count: int, words: str) -> None:
    """The borders between the words."""
    assert in_words(count) == words
