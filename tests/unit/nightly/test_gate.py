"""What the gate lets pass and what it does not, at its edges."""

import pytest

from hatchway.index.build import IndexFacts
from hatchway.nightly.comparison import Compared
from hatchway.nightly.gate import judge
from hatchway.nightly.settings import GateSettings

SETTINGS = GateSettings(most_loss=0.1, fewest_cases=50, most_shift=0.2, least_recall=0.9)
SAME = {"head": 0.5, "torso": 0.3, "tail": 0.2, "new": 0.0}


def index(recall: float | None = 0.95, vectors: int = 10) -> IndexFacts:
    """Say what an index is."""
    facts = {"kind": "flat", "vectors": vectors, "dimension": 4, "cells": 0, "probes": 0}
    return IndexFacts.model_validate(facts | {"recall": recall, "recall_at": 5, "recall_queries": 8})


def piece(high: float | None, kind: str = "all", cases: int = 50) -> Compared:
    """Compare an old figure of 0.5 with a new one."""
    low = None if high is None else high - 0.1
    return Compared(kind=kind, name="all", cases=cases, old=0.5, new=0.4, low=low, high=high)


def stopped(*compared: Compared, facts: IndexFacts | None = None, head: float = 0.5, offered: int = 10) -> list[str]:
    """Name what was not let pass."""
    shares = (SAME, SAME | {"head": head})
    return [
        verdict.name for verdict in judge(facts or index(), offered, compared, shares, SETTINGS) if not verdict.passed
    ]


@pytest.mark.parametrize(
    ("high", "passes"),
    [(0.01, True), (-0.049, True), (-0.05, True), (-0.051, False)],
)
def test_a_loss_is_refused_where_its_whole_interval_is_beyond_what_is_allowed(high: float, passes: bool) -> None:
    """A tenth of 0.5 may be lost: the interval has to lie below -0.05 altogether."""
    assert stopped(piece(high)) == ([] if passes else ["recall@20"])


def test_few_cases_and_reported_slices_decide_nothing() -> None:
    """49 cases are too few, without an interval nothing is known, and histories are for reading."""
    assert stopped(piece(-0.4, cases=49), piece(None), piece(-0.4, kind="history")) == []
    assert stopped(piece(-0.4, kind="popularity")) == ["recall@20 popularity all"]
    assert stopped(piece(-0.4, kind="alike")) == ["recall@20 alike all"]


@pytest.mark.parametrize(
    ("low", "high", "cases", "word", "said"),
    [
        (-0.2, -0.06, 50, "refused", "a loss beyond the interval"),
        (-0.06, 0.04, 50, "not refused (undecided)", "these cases do not decide"),
        (-0.05, 0.04, 50, "passed", "not worse"),
        (0.01, 0.04, 50, "passed", "better"),
        (-0.05, 0.04, 49, "not refused (undecided)", "over 49 cases: too few"),
        (-0.05, 0.04, 1, "not refused (undecided)", "over 1 case: too few"),
    ],
)
def test_what_the_cases_do_not_decide_has_not_passed(low: float, high: float, cases: int, word: str, said: str) -> None:
    """A tenth of 0.5 may be lost: where the interval holds losses beyond that, and others, nobody knows."""
    compared = Compared(kind="all", name="all", cases=cases, old=0.5, new=0.5, low=low, high=high)
    verdict = next(each for each in judge(index(), 10, [compared], None, SETTINGS) if each.name == "recall@20")
    assert verdict.word == word
    assert said in verdict.said


def test_head_and_tail_may_move_so_far() -> None:
    """Either way."""
    assert stopped(head=0.69) == stopped(head=0.31) == []
    assert stopped(head=0.71) == stopped(head=0.29) == ["head against tail"]


def test_a_broken_index_is_refused() -> None:
    """It finds too little, or lacks a listing; where nothing could be measured it is whole or not."""
    assert stopped(facts=index(recall=0.89)) == ["index recall"]
    assert stopped(facts=index(vectors=9)) == ["index whole"]
    assert stopped(facts=index(recall=None, vectors=0), offered=0) == []
