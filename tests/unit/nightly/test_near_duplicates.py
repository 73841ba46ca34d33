"""The slice of cases in which the listing looked at and the right one look the same."""

import numpy as np

from hatchway.evaluation.cases import Cases
from hatchway.nightly.making import near_duplicates
from hatchway.screening.screen import Screen
from hatchway.screening.similar import SimilarItems

ALONE = SimilarItems(np.zeros(7, np.int64), np.zeros(0, np.int32))
FIRST_PAIR = SimilarItems(np.array([0, 1, 2, 2, 2, 2, 2]), np.array([1, 0], np.int32))
"""Of six items the first two look alike."""


def cases(query_items: list[int], relevant: list[list[int]]) -> Cases:
    """Ask on the pages of listings (-1 for none), each with its right answers."""
    count, none = len(query_items), np.zeros(0, np.int32)
    return Cases(
        buyers=np.arange(count, dtype=np.int32),
        query_items=np.array(query_items, np.int32),
        history_begin=np.zeros(count, np.int64),
        history_end=np.zeros(count, np.int64),
        texts=None,
        relevant_offsets=np.cumsum([0, *map(len, relevant)]),
        relevant_items=np.array([item for items in relevant for item in items], np.int32),
        excluded_offsets=np.zeros(count + 1, np.int64),
        excluded_items=none,
    )


def test_each_right_answer_that_looks_like_the_listing_looked_at_is_chosen() -> None:
    """By photo and by title; not by seller, not without a listing, not the listing itself, not what is like others."""
    asked = cases([0, 0, -1, 2, 4, 0], [[1], [2], [1], [3], [4], [1, 5]])
    sellers = np.array([1, 2, 3, 3, 4, 5])
    for screen, chosen in (
        (Screen(photos=FIRST_PAIR), [True, False, False, False, False, True, False]),
        (Screen(titles=FIRST_PAIR), [True, False, False, False, False, True, False]),
        (Screen(sellers=sellers, photos=FIRST_PAIR), [True, False, False, False, False, True, False]),
        (Screen(photos=ALONE, titles=FIRST_PAIR), [True, False, False, False, False, True, False]),
        (Screen(photos=ALONE), [False] * 7),
    ):
        (piece,) = near_duplicates(asked, screen)
        assert (piece.kind, piece.name) == ("alike", "near-duplicates")
        assert piece.chosen.tolist() == chosen, screen.reasons


def test_without_a_reason_there_is_no_slice() -> None:
    """Where nothing says what looks alike, the gate is not asked about it."""
    for screen in (Screen(), Screen(sellers=np.array([1, 1]))):
        assert near_duplicates(cases([0], [[1]]), screen) == []
