"""What is head, torso, tail and new, and how histories fall into buckets."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hatchway.evaluation.cases import Cases
from hatchway.evaluation.slices import history_slices, popularity_classes, popularity_slices


def test_classes_split_the_training_positives_by_their_share() -> None:
    """Of 100 positives: above the item with 40 lie 0, above that with 30 lie 40, above the tens 70, 80, 90 -> ties."""
    counts = np.array([10, 40, 0, 10, 30, 10])
    assert popularity_classes(counts, 1 / 3, 1 / 3).tolist() == [2, 0, 3, 2, 1, 2]
    # With head and torso at 40 % each: above 30 lie exactly 40 %, which is no longer less than 40 %.
    assert popularity_classes(counts, 0.4, 0.4).tolist() == [1, 0, 3, 1, 1, 1]


def test_items_of_equal_count_are_never_parted() -> None:
    """Where all are equally popular there is only a head, in whatever order they stand."""
    assert popularity_classes(np.full(9, 4), 1 / 3, 1 / 3).tolist() == [0] * 9
    assert popularity_classes(np.zeros(3, int), 1 / 3, 1 / 3).tolist() == [3] * 3


def test_slices_say_what_is_in_them_and_part_the_relevant_items(cases_of: Callable[..., Cases]) -> None:
    """Every relevant item is in one slice; the rule has the number of items and the span of their counts."""
    counts = np.array([10, 40, 0, 10, 30, 10])
    head, torso, tail, new = popularity_slices(cases_of(([0, 1, 2], []), ([4], [])), counts, 1 / 3, 1 / 3)
    assert head.chosen.tolist() == [False, True, False, False]
    assert torso.chosen.tolist() == [False, False, False, True]
    assert tail.chosen.tolist() == [True, False, False, False]
    assert new.chosen.tolist() == [False, False, True, False]
    assert tail.rule == "3 items with 10 training positives"
    assert new.rule == "1 items with 0 training positives"
    only_head = popularity_slices(cases_of(([0], [])), np.array([3, 5]), 1.0, 0.0)
    assert [piece.rule for piece in only_head] == ["2 items with 3 to 5 training positives", *["no item"] * 3]


def test_history_buckets_begin_at_the_edges(cases_of: Callable[..., Cases]) -> None:
    """Lengths 0, 1, 4, 5, 99 with edges 1, 5: the buckets 0, 1-4 and 5+; a case's relevant items go together."""
    cases = cases_of(([0], []), ([0, 1], []), ([0], []), ([0], []), ([0], []))
    cases = replace(cases, history_end=np.array([0, 1, 4, 5, 99]))
    slices = history_slices(cases, (1, 5))
    assert [piece.name for piece in slices] == ["0", "1-4", "5+"]
    assert [np.flatnonzero(piece.chosen).tolist() for piece in slices] == [[0], [1, 2, 3], [4, 5]]
    assert [piece.name for piece in history_slices(cases, (1, 2, 3))] == ["0", "1", "2", "3+"]
