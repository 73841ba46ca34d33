"""What the index is asked, compared with contexts written by hand."""

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.contexts import Contexts
from hatchway.index.queries import Known, Queries
from hatchway.towers.build import build_model
from hatchway.towers.context import ContextTower
from hatchway.towers.settings import ContextSettings, ModelSettings

VECTORS = np.array([[1, 0], [0, 2], [4, 4], [-2, 0]], np.float32)
WIDE = np.tile(VECTORS, (1, 3))  # as wide as the tower's answers


def tower(context: ContextSettings | None = None) -> ContextTower:
    """Build the query side of a model over four items."""
    settings = ModelSettings(dimension=6, context=context or ContextSettings(history=3))
    model = build_model(Catalogue(pl.DataFrame({"item": [1, 2, 3, 4]})), 5, settings, seed=3).eval()
    assert isinstance(model.query_tower, ContextTower)
    return model.query_tower


def asked(side: ContextTower, query_items: list[int], histories: list[list[int]]) -> npt.NDArray[np.float32]:
    """Ask the tower directly."""
    contexts = Contexts(
        buyers=np.full(len(query_items), -1, np.int32),
        query_items=np.array(query_items, np.int32),
        history=np.array([item for history in histories for item in history], np.int32),
        history_offsets=np.cumsum([0, *map(len, histories)]).astype(np.int64),
    )
    with torch.inference_mode():
        answer: npt.NDArray[np.float32] = side(contexts).numpy()
    return answer


def test_without_a_tower_items_ask_for_themselves() -> None:
    """An item's page asks with the item's vector, a buyer with the mean of the recent items' vectors."""
    queries = Queries(VECTORS, None, looked_at_is_engaged=False)
    assert not queries.by_model
    assert queries.similar(np.array([2, 0])).tolist() == [[4, 4], [1, 0]]
    histories = [np.array([0, 1, 2, 3]), np.array([3])]
    assert queries.recommend(histories).tolist() == [[0.75, 1.5], [-2.0, 0.0]]


def test_a_page_is_a_query_item_without_history() -> None:
    """Where the log has views, whoever looks at an item need not have engaged with it."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=False)
    assert queries.by_model
    np.testing.assert_array_equal(queries.similar(np.array([2, 0])), asked(side, [2, 0], [[], []]))


def test_a_page_is_an_engagement_where_the_log_has_no_views() -> None:
    """There the query item always was the last engagement, so the tower is asked in the form that it knows."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=True)
    found = queries.similar(np.array([2, 0]))
    np.testing.assert_array_equal(found, asked(side, [2, 0], [[2], [0]]))
    assert not np.allclose(found, asked(side, [2, 0], [[], []]))


def test_a_tower_of_history_alone_is_told_the_item_as_history() -> None:
    """Without a query item the page could say nothing otherwise, and every item would get one row."""
    side = tower(ContextSettings(query_item=False, history=3))
    found = Queries(WIDE, side, looked_at_is_engaged=False).similar(np.array([2, 0]))
    np.testing.assert_array_equal(found, asked(side, [2, 0], [[2], [0]]))
    assert not np.allclose(found[0], found[1])


def test_a_tower_of_text_alone_leaves_the_answer_to_item_vectors() -> None:
    """It reads neither an item nor a history."""
    side = tower(ContextSettings(query_item=False, history=0, text=True))
    queries = Queries(WIDE, side, looked_at_is_engaged=False)
    assert not queries.by_model
    assert queries.similar(np.array([1])).tolist() == [[0, 2] * 3]


@pytest.mark.parametrize("looked_at_is_engaged", [True, False])
def test_recent_items_are_the_history_and_the_last_is_looked_at(looked_at_is_engaged: bool) -> None:
    """Oldest first; the order is told to the tower, and each buyer is asked about alone."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=looked_at_is_engaged)
    found = queries.recommend([np.array([0, 1, 3]), np.array([3, 1, 0]), np.array([2])])
    np.testing.assert_allclose(found, asked(side, [3, 0, 2], [[0, 1, 3], [3, 1, 0], [2]]), atol=1e-6)
    assert not np.allclose(found[0], found[1])


def known(looked_at: list[int], in_history: list[int]) -> Known:
    """Say which of the four items the tower knows, in which place."""
    return Known(np.isin(np.arange(4), looked_at), np.isin(np.arange(4), in_history))


@pytest.mark.parametrize("looked_at_is_engaged", [True, False])
def test_a_page_that_no_context_held_asks_with_the_items_vector(looked_at_is_engaged: bool) -> None:
    """The tower has a random row for items 1 and 3; with item 0 it is asked as ever, and with 2 as a history."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=looked_at_is_engaged, known=known([0], [0, 2]))
    found = queries.similar(np.array([3, 0, 1, 2]))
    np.testing.assert_array_equal(found[[0, 2]], WIDE[[3, 1]])
    wanted = asked(side, [0, -1], [[0] if looked_at_is_engaged else [], [2]])
    np.testing.assert_allclose(found[[1, 3]], wanted, atol=1e-6)


def test_an_item_that_was_looked_at_only_is_no_history() -> None:
    """Where a page counts as an engagement, too, the tower is told no more than it knows."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=True, known=known([2], [0]))
    np.testing.assert_allclose(queries.similar(np.array([2])), asked(side, [2], [[]]), atol=1e-6)


def test_recent_items_that_no_context_held_are_left_out() -> None:
    """Unless there are no others: then the mean of their vectors, (0, 2) and (-2, 0), asks."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=True, known=known([0, 2], [0, 2]))
    found = queries.recommend([np.array([0, 1, 2, 3]), np.array([1, 3]), np.array([1, 0])])
    np.testing.assert_allclose(found[[0, 2]], asked(side, [2, 0], [[0, 2], [0]]), atol=1e-6)
    assert found[1].tolist() == [-1, 1, -1, 1, -1, 1]


def test_each_place_is_told_of_the_items_that_it_knows() -> None:
    """Item 2 was looked at only and is no history; item 1 was engaged with only, so 2 is what is being looked at."""
    side = tower()
    queries = Queries(WIDE, side, looked_at_is_engaged=False, known=known([2], [0, 1]))
    found = queries.recommend([np.array([0, 2, 1]), np.array([0, 1]), np.array([3, 2])])
    np.testing.assert_allclose(found, asked(side, [2, -1, 2], [[0, 1], [0, 1], []]), atol=1e-6)


def test_a_tower_without_histories_knows_what_was_looked_at() -> None:
    """That an item stood in histories says nothing to it."""
    side = tower(ContextSettings(history=0))
    found = Queries(WIDE, side, looked_at_is_engaged=True, known=known([0], [0, 1])).similar(np.array([0, 1]))
    np.testing.assert_allclose(found[:1], asked(side, [0], [[]]), atol=1e-6)
    np.testing.assert_array_equal(found[1], WIDE[1])
