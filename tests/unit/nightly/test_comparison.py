"""Two models over the same cases, with scores made by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Engagements
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.slices import Slice
from hatchway.nightly.comparison import OfferedScorer, compare, recommended_shares
from hatchway.nightly.settings import GateSettings


class Fixed:
    """Scores items the same for everybody."""

    def __init__(self, scores: list[float]) -> None:
        self.history_length = 0
        self._scores = torch.tensor(scores, dtype=torch.float32)

    def scores(self, contexts: Contexts) -> Tensor:
        """Return one row a context."""
        return self._scores.repeat(len(contexts), 1)


def asked(items: list[int]) -> tuple[Cases, Engagements]:
    """Ask for one item a buyer."""
    count = len(items)
    nothing, rows = np.zeros(count, np.int64), np.arange(count + 1)
    cases = Cases(
        buyers=np.arange(count, dtype=np.int32),
        query_items=np.full(count, -1, np.int32),
        history_begin=nothing,
        history_end=nothing,
        texts=None,
        relevant_offsets=rows,
        relevant_items=np.array(items, np.int32),
        excluded_offsets=np.zeros(count + 1, np.int64),
        excluded_items=np.zeros(0, np.int32),
    )
    empty = np.zeros(0, np.int32)
    log = Engagements(
        offsets=np.zeros(count + 1, np.int64),
        buyers=empty,
        items=empty,
        parts=np.zeros(0, np.int8),
        weights=np.zeros(0, np.float32),
        query_items=empty,
        times=None,
        context_end=np.zeros(0, np.int64),
    )
    return cases, log


def test_means_differences_and_slices() -> None:
    """Items 0 and 1 in the first two places before, 1 and 2 after: of 0, 1, 2, 2 the old finds two, the new three."""
    cases, log = asked([0, 1, 2, 2])
    old, new = Fixed([6, 5, 4, 3, 2, 1]), Fixed([1, 5, 6, 3, 2, 4])
    late = Slice("popularity", "tail", "item 2", np.array([False, False, True, True]))
    none = Slice("popularity", "new", "no item", np.zeros(4, np.bool_))
    whole, tail = compare((old, new), cases, log, [late, none], GateSettings(k=2, resamples=400), seed=1)
    assert (whole.name, whole.cases, whole.old, whole.new) == ("all", 4, 0.5, 0.75)
    assert (tail.name, tail.cases, tail.old, tail.new, tail.low, tail.high) == ("tail", 2, 0.0, 1.0, 1.0, 1.0)
    assert whole.low is not None
    assert whole.low < 0 < (whole.high or 0.0)


def test_more_slices_that_decide_make_wider_intervals() -> None:
    """The level holds for all of them together; a slice that is reported only changes nothing."""
    cases, log = asked([0, 1, 2, 3] * 10)
    old, new = Fixed([6, 5, 4, 3, 2, 1]), Fixed([1, 5, 6, 3, 2, 4])
    some = Slice("popularity", "head", "half", np.arange(40) % 2 == 0)
    told = replace(some, kind="history")

    def width(*slices: Slice) -> float:
        whole = compare((old, new), cases, log, slices, GateSettings(k=2, resamples=2000, level=0.8), seed=1)[0]
        assert whole.low is not None
        assert whole.high is not None
        return whole.high - whole.low

    assert width(some, some, some) > width()
    assert width(told, told, told) == width()


def test_what_is_not_on_offer_is_no_candidate() -> None:
    """The best item is gone, so the second stands first."""
    cases, log = asked([1, 1])
    scorer = OfferedScorer(Fixed([6, 5, 4, 3, 2, 1]), np.array([False, True, True, True, True, True]))
    found = compare((Fixed([6, 5, 4, 3, 2, 1]), scorer), cases, log, [], GateSettings(k=1), seed=1)
    assert (found[0].old, found[0].new) == (0.0, 1.0)


def test_places_are_shared_between_head_and_tail() -> None:
    """Counts 6, 3, 1, 1, 1, 0: with thirds item 0 is head, 1 torso, 2 to 4 tail, 5 new; the first three places."""
    cases, log = asked([0, 0])
    counts = np.array([6, 3, 1, 1, 1, 0])
    shares = recommended_shares(Fixed([6, 5, 0, 0, 0, 4]), cases, log, counts, (1 / 3, 1 / 3), 3, 512)
    assert shares == pytest.approx({"head": 1 / 3, "torso": 1 / 3, "tail": 0, "new": 1 / 3})
