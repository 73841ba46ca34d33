"""Which questions a split asks, and what they may know."""

from collections.abc import Callable

import numpy as np
import pytest

from hatchway.data.engagements import Engagements, Part
from hatchway.errors import DataError, UsageError
from hatchway.evaluation.cases import Cases, cases_for

TRAIN, VALIDATION, TEST = Part.TRAIN, Part.VALIDATION, Part.TEST


def relevant(cases: Cases) -> list[list[int]]:
    """Write the relevant items case by case."""
    return [part.tolist() for part in np.split(cases.relevant_items, cases.relevant_offsets[1:-1])]


def excluded(cases: Cases) -> list[list[int]]:
    """Write the excluded items case by case."""
    return [part.tolist() for part in np.split(cases.excluded_items, cases.excluded_offsets[1:-1])]


LEAVE_ONE_OUT = [
    [(5, TRAIN, 1.0), (6, TRAIN, 0.0), (7, VALIDATION, 1.0), (8, TEST, 1.0), (9, TEST, 0.0)],
    [(1, TRAIN, 1.0), (2, TRAIN, 1.0)],  # too short: all training
    [(3, TRAIN, 1.0), (4, VALIDATION, 1.0), (3, TEST, 1.0)],  # comes back to an item
]


def test_a_test_case_knows_training_and_validation(log_of: Callable[..., Engagements]) -> None:
    """It asks with all earlier rows, its right answer is the test item, and what was seen is no candidate."""
    log = log_of(LEAVE_ONE_OUT)
    cases = cases_for(log, TEST, grain="buyer", exclude_seen=True)
    assert cases.buyers.tolist() == [0, 2]
    assert relevant(cases) == [[8], [3]]
    assert excluded(cases) == [[5, 6, 7], [4]]  # of the last buyer, 3 was seen and is right: a relevant item stays
    assert cases.query_items.tolist() == [7, 4]
    assert cases.history_length.tolist() == [3, 2]
    contexts = cases.contexts(log, 0, 2, history_length=2)
    assert contexts.history.tolist() == [6, 7, 3, 4]
    assert contexts.history_offsets.tolist() == [0, 2, 4]


def test_a_validation_case_knows_training_only(log_of: Callable[..., Engagements]) -> None:
    """Nothing of validation or test is known to it."""
    cases = cases_for(log_of(LEAVE_ONE_OUT), VALIDATION, grain="buyer", exclude_seen=True)
    assert relevant(cases) == [[7], [4]]
    assert excluded(cases) == [[5, 6], [3]]
    assert cases.query_items.tolist() == [6, 3]
    assert cases.history_length.tolist() == [2, 1]


def test_candidates_that_were_seen_can_be_kept(log_of: Callable[..., Engagements]) -> None:
    """Then only the listing being looked at is left out, and not even that where it is switched off."""
    log = log_of(LEAVE_ONE_OUT)
    assert excluded(cases_for(log, TEST, grain="buyer", exclude_seen=False)) == [[7], [4]]
    bare = cases_for(log, TEST, grain="buyer", exclude_seen=False, exclude_query_item=False)
    assert excluded(bare) == [[], []]


def test_all_positives_of_a_given_part_are_one_answer(log_of: Callable[..., Engagements]) -> None:
    """Repeats count once; the query looks at the last item before the part; and a buyer without a past asks, too."""
    log = log_of(
        [
            [(1, TRAIN, 1.0), (2, TRAIN, 1.0), (9, TEST, 1.0), (4, TEST, 1.0), (9, TEST, 1.0)],
            [(3, TEST, 1.0), (5, TEST, 1.0)],
        ],
        texts=["", "", "lamp", "desk", "lamp", "chair", "chair"],
    )
    cases = cases_for(log, TEST, grain="buyer", exclude_seen=True)
    assert relevant(cases) == [[4, 9], [3, 5]]
    assert excluded(cases) == [[1, 2], []]
    assert cases.query_items.tolist() == [2, -1]
    assert cases.texts is not None
    assert cases.texts.tolist() == ["", ""]  # several positives have no one text


def test_every_positive_row_is_a_case_of_its_own_moment(log_of: Callable[..., Engagements]) -> None:
    """Under a global split a row knows what came before it, test rows included; a row of weight 0 asks nothing."""
    log = log_of(
        [[(1, TRAIN, 1.0), (2, TEST, 1.0), (3, TEST, 0.0), (1, TEST, 1.0)], [(4, TRAIN, 1.0)]],
        texts=["", "sofa", "", "lamp", ""],
    )
    cases = cases_for(log, TEST, grain="row", exclude_seen=True)
    assert cases.buyers.tolist() == [0, 0]
    assert relevant(cases) == [[2], [1]]
    assert excluded(cases) == [[1], [2, 3]]
    assert cases.history_length.tolist() == [1, 3]
    assert cases.query_items.tolist() == [1, 3]
    contexts = cases.contexts(log, 1, 2, history_length=2)
    assert contexts.history.tolist() == [2, 3]
    assert contexts.texts is not None
    assert contexts.texts.tolist() == ["lamp"]


def test_parts_that_ask_nothing_are_refused(log_of: Callable[..., Engagements]) -> None:
    """Training has no past, and a part without positives would have no mean."""
    log = log_of([[(1, TRAIN, 1.0), (2, TEST, 0.0)]])
    with pytest.raises(DataError, match="test part of the split holds no positive"):
        cases_for(log, TEST, grain="buyer", exclude_seen=True)
    with pytest.raises(UsageError, match="validation or test"):
        cases_for(log, TRAIN, grain="buyer", exclude_seen=True)


def test_cases_that_are_drawn_are_cases_as_they_were(log_of: Callable[..., Engagements]) -> None:
    """Some of many, in their order, each with its own items; over many draws each as often as any other."""
    log = log_of([[(buyer % 7, TRAIN, 1.0), (20 + buyer, TEST, 1.0), (50, TEST, 1.0)] for buyer in range(30)])
    every = cases_for(log, TEST, grain="buyer", exclude_seen=True)
    own = {buyer: (mine, out) for buyer, mine, out in zip(every.buyers, relevant(every), excluded(every), strict=True)}
    drawn_of = np.zeros(30, np.int64)
    for seed in range(400):
        some = every.drawn(6, np.random.default_rng(seed))
        assert len(some) == len(np.unique(some.buyers)) == 6
        assert some.buyers.tolist() == sorted(some.buyers)
        for buyer, mine, out in zip(some.buyers, relevant(some), excluded(some), strict=True):
            assert own[buyer] == (mine, out)
        drawn_of[some.buyers] += 1
    expected = 400 * 6 / 30
    chi_square = ((drawn_of - expected) ** 2 / (expected * (1 - 6 / 30))).sum()
    assert chi_square < 66  # 29 degrees of freedom, p = 1e-4
    assert every.drawn(30, np.random.default_rng(1)) is every
