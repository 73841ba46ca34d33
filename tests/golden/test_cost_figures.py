"""The worked figures of the text on negative sampling: 20 million listings, 64 numbers, 4,096 positives, 1,000 + 2."""

from collections.abc import Callable
from typing import Any

import pytest

from hatchway.cost import Workload, cost_of, in_words

HATCHWAY = Workload(catalogue=20_000_000, dimension=64, batch=4096, uniform=1000, hard=2)


def two_digits(value: float) -> float:
    """Round to two significant digits, as the text does."""
    return float(f"{value:.2g}")


@pytest.mark.parametrize(
    ("figure", "exact", "written"),
    [
        ("full_example", 1_280_000_000, "1.28 billion"),
        ("full_batch", 5_242_880_000_000, "5.24 trillion"),
        ("in_batch", 1_073_741_824, "1.07 billion"),
        ("with_shared", 1_335_885_824, "1.34 billion"),
        ("with_hard", 1_336_410_112, "1.34 billion"),
        ("with_hard_shared", 3_483_369_472, "3.48 billion"),
    ],
)
def test_multiply_adds(figure: str, exact: int, written: str) -> None:
    """Every count of multiply-adds is exact, and reads as it is written in the text."""
    count = getattr(cost_of(HATCHWAY), figure)
    assert count == exact
    assert in_words(count) == written


def test_times_cheaper() -> None:
    """In-batch is about 4,900 times cheaper than the full softmax, with the shared set about 3,900 times."""
    cost = cost_of(HATCHWAY)
    assert two_digits(cost.cheaper(cost.in_batch)) == 4900
    assert two_digits(cost.cheaper(cost.with_shared)) == 3900


def test_negatives_per_positive() -> None:
    """4,095 in-batch, 5,095 easy, about 2,500 easy ones to a hard one, 9,192 more passes or 2.2 times the positives."""
    cost = cost_of(HATCHWAY)
    assert cost.in_batch_negatives == 4095
    assert cost.easy_negatives == 5095
    assert cost.easy_per_hard == 2547.5
    assert two_digits(2547.5) == 2500
    assert cost.extra_item_passes == 9192
    assert two_digits(cost.extra_item_passes_ratio) == 2.2


def test_the_hard_columns_add_half_a_million() -> None:
    """Two columns of a row's own add 4,096 · 2 · 64 multiply-adds, not 0.01 % of the rest times the batch."""
    cost = cost_of(HATCHWAY)
    assert cost.with_hard - cost.with_shared == 524_288


def test_the_command_prints_whole_integers(hatchway: Callable[..., Any]) -> None:
    """``hatchway cost --json`` gives the same figures, the large ones as integers without an exponent."""
    ended = hatchway(
        "cost", "--catalogue", 20000000, "--dim", 64, "--batch", 4096, "--uniform", 1000, "--hard", 2, "--json"
    )
    assert ended.code == 0
    assert '"full_softmax_per_batch": 5242880000000,' in ended.out
    assert '"full_softmax_per_example": 1280000000,' in ended.out
    assert ended.json["easy_negatives_per_positive"] == 5095
    assert ended.json["extra_item_passes"] == 9192


def test_the_command_writes_them_for_people(hatchway: Callable[..., Any]) -> None:
    """The text of ``hatchway cost``, whose defaults are the text's setting, has the figures in words."""
    out = hatchway("cost").out
    for figure in ("1.28 billion", "5.24 trillion", "1.07 billion", "1.34 billion", "5,095", "9,192 (2.2×"):
        assert figure in out
