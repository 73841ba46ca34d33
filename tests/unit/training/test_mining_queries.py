"""Rows as the queries of an earlier model: what it knows is told, what it does not is left out, equal ones are one."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.contexts import contexts_of
from hatchway.data.engagements import Engagements, Part
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.index.queries import Known
from hatchway.randomness import stream
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.training.mining.queries import ModelQueries, Reads

ITEMS = 12


@pytest.fixture(scope="module", name="log")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Make a log of sessions with texts, in which contexts come back: many buyers do the same few things."""
    rng = stream(3, "mining queries")
    buyers = np.repeat(np.arange(80), 6)
    step = np.tile(np.arange(6), 80)
    events = pl.DataFrame(
        {
            "buyer": buyers,
            "item": (step // 2 + rng.integers(0, 2, len(buyers))) % ITEMS,
            "event": ["save"] * len(buyers),
            # Two of a second do not see each other: they ask the same.
            "time": 1_750_000_000 + buyers * 100_000 + step // 2 * 50,
            "query": np.array(["teak sofa", "", "lamp"])[rng.integers(0, 3, len(buyers))],
        }
    )
    catalogue = pl.DataFrame({"item": np.arange(ITEMS)})
    store = write_store(tmp_path_factory.mktemp("queries") / "store", events.lazy(), catalogue)
    return build_log(store, PositivesSettings(), SplitSettings(protocol="none"), seed=1)


def queries_of(log: Log, *, buyer: bool, query_item: bool, text: bool, history: int) -> ModelQueries:
    """Ask a tower with random weights that knows everything."""
    context = {"buyer": buyer, "query_item": query_item, "text": text, "history": history, "hidden": 8}
    settings = ModelSettings.parse({"dimension": 4, "text_buckets": 64, "context": context})
    model = build_model(log.catalogue, len(log.buyers), settings, seed=2).eval()
    with torch.no_grad():
        vectors = model.item(torch.arange(ITEMS)).numpy()
    every = np.arange(ITEMS, dtype=np.int64)
    reads = Reads(buyer, query_item, text, history)
    buyers = np.arange(len(log.buyers), dtype=np.int64)
    return ModelQueries(log.engagements, model.query, reads, vectors, every, buyers)


PARTS = [
    {"buyer": buyer, "query_item": query_item, "text": text, "history": history}
    for buyer, query_item, text, history in (
        (False, True, False, 0),
        (False, False, False, 2),
        (False, True, True, 3),
        (True, False, False, 0),
        (True, True, True, 20),
    )
]


def obvious(log: Log, rows: np.ndarray, parts: dict[str, object]) -> list[object]:
    """Write down what each row asks with, as a tuple."""
    history = int(str(parts["history"]))
    contexts = contexts_of(log.engagements, rows, history)
    stand_in = contexts_of(log.engagements, rows, history or 20)
    found: list[object] = []
    for place in range(len(rows)):
        assert contexts.texts is not None
        told = (
            int(contexts.buyers[place]) if parts["buyer"] else None,
            int(contexts.query_items[place]) if parts["query_item"] else -1,
            str(contexts.texts[place]) if parts["text"] else "",
            tuple(contexts.history[contexts.history_offsets[place] : contexts.history_offsets[place + 1]].tolist()),
        )
        if told != (None, -1, "", ()):
            found.append(told)
        elif contexts.query_items[place] >= 0:
            found.append(int(contexts.query_items[place]))
        else:
            begin, end = stand_in.history_offsets[place : place + 2]
            found.append(tuple(stand_in.history[begin:end].tolist()) or None)
    return found


@pytest.mark.parametrize("parts", PARTS)
def test_rows_are_one_group_where_and_only_where_they_ask_the_same(log: Log, parts: dict[str, object]) -> None:
    """Compared with tuples of everything that is read; and the groups are called after their first rows."""
    queries = queries_of(log, **parts)  # type: ignore[arg-type]
    rows = np.arange(len(log.engagements))[::-1].copy()
    groups, asked = queries.groups(rows), obvious(log, rows, parts)
    assert [group < 0 for group in groups] == [told is None for told in asked]
    names: dict[object, int] = {}
    for place, told in enumerate(asked):
        assert groups[place] == (-1 if told is None else names.setdefault(told, place))
    assert len(names) < len(rows) or parts["buyer"]


@pytest.mark.parametrize("parts", PARTS)
def test_vectors_are_those_of_the_tower_or_of_items_that_stand_in(log: Log, parts: dict[str, object]) -> None:
    """Rows of one group have one vector; a row that tells the tower something has the tower's."""
    queries = queries_of(log, **parts)  # type: ignore[arg-type]
    rows = log.engagements.positives(Part.TRAIN)
    found, asked = queries.vectors(rows), obvious(log, rows, parts)
    assert queries.tower is not None
    whole = contexts_of(log.engagements, rows, 20)
    if not parts["text"]:
        whole = replace(whole, texts=None)
    with torch.no_grad():
        towers = queries.tower(whole).numpy()
    for place, told in enumerate(asked):
        if isinstance(told, tuple) and len(told) == 4 and not isinstance(told[3], int):
            np.testing.assert_allclose(found[place], towers[place], atol=1e-6)
        elif told is None:
            assert not found[place].any()
        else:
            items = [told] if isinstance(told, int) else list(told)  # type: ignore[call-overload]
            np.testing.assert_allclose(found[place], queries.item_vectors[items].mean(0), atol=1e-6)


def two_rows(log: Log, query_items: list[int], histories: list[list[int]]) -> Engagements:
    """Make a log whose last rows have the given contexts, one buyer each."""
    items = np.array([item for history in histories for item in [*history, 0]], np.int32)
    lengths = np.array([len(history) + 1 for history in histories])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    buyers = np.repeat(np.arange(len(histories)), lengths).astype(np.int32)
    looked_at = np.full(len(items), -1, np.int32)
    looked_at[offsets[1:] - 1] = query_items
    return Engagements(
        offsets=offsets,
        buyers=buyers,
        items=items,
        parts=np.zeros(len(items), np.int8),
        weights=np.ones(len(items), np.float32),
        query_items=looked_at,
        times=None,
        context_end=np.arange(len(items), dtype=np.int64),
    )


def test_what_the_model_was_never_told_of_is_left_out(log: Log) -> None:
    """Items that are new since, and items that it knows by their columns alone, change no query."""
    queries = queries_of(log, buyer=False, query_item=True, text=False, history=5)
    known = Known(looked_at=np.arange(ITEMS) != 7, in_history=np.arange(ITEMS) != 8)
    there = np.where(np.arange(ITEMS) < 10, np.arange(ITEMS), -1)  # 10 and 11 are new
    pairs = [
        ((1, [2, 3]), (1, [2, 10, 3])),  # a new item in the history
        ((1, [2, 3]), (1, [8, 2, 3])),  # one that no history of training held
        ((-1, [2, 3]), (7, [2, 3])),  # a page that nobody was on
        ((-1, [2, 3]), (11, [2, 3])),  # a page that is new
        ((7, []), (7, [8, 10])),  # nothing is left: the page's own vector stands in, whatever the history
        ((-1, [8]), (11, [10, 8])),  # nothing is left: the items of the history that have a vector
    ]
    for one, other in pairs:
        engagements = two_rows(log, [one[0], other[0]], [one[1], other[1]])
        asked = replace(queries, engagements=engagements, items=there, known=known)
        rows = engagements.offsets[1:] - 1
        first, second = asked.groups(rows)
        assert first == second >= 0, (one, other)
        vectors = asked.vectors(rows)
        assert np.array_equal(vectors[0], vectors[1])
        assert vectors[0].any()
    apart = two_rows(log, [1, 1, 7, -1], [[2, 3], [3, 4], [], [8]])
    asked = replace(queries, engagements=apart, items=there, known=known)
    vectors = asked.vectors(apart.offsets[1:] - 1)
    assert len(set(asked.groups(apart.offsets[1:] - 1).tolist())) == 4
    assert all(not np.allclose(one, other) for one, other in combinations(vectors, 2))
    assert np.array_equal(vectors[2], queries.item_vectors[7])
    assert np.array_equal(vectors[3], queries.item_vectors[8])


def test_nothing_known_is_no_query(log: Log) -> None:
    """An empty context, and one of new items only, ask nothing."""
    queries = queries_of(log, buyer=False, query_item=True, text=False, history=5)
    engagements = two_rows(log, [-1, 11, 3], [[], [10], []])
    asked = replace(queries, engagements=engagements, items=np.where(np.arange(ITEMS) < 10, np.arange(ITEMS), -1))
    assert asked.groups(engagements.offsets[1:] - 1).tolist() == [-1, -1, 2]


def test_without_a_tower_item_vectors_are_asked(log: Log) -> None:
    """As a bundle of matrix factorisation answers a buyer that it does not know; known buyers ask with their own."""
    queries = replace(queries_of(log, buyer=False, query_item=True, text=False, history=5), tower=None, reads=Reads())
    engagements = two_rows(log, [4, -1], [[1, 2], [1, 2]])
    asked = replace(queries, engagements=engagements)
    vectors = asked.vectors(engagements.offsets[1:] - 1)
    assert np.array_equal(vectors[0], queries.item_vectors[4])
    np.testing.assert_allclose(vectors[1], queries.item_vectors[[1, 2]].mean(0), atol=1e-7)
