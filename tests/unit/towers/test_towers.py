"""The two towers: what moves a vector and what does not."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.contexts import Contexts
from hatchway.errors import DataError, SettingsError, UnknownIdError
from hatchway.towers.build import build_model
from hatchway.towers.context import ContextTower
from hatchway.towers.features import read_features
from hatchway.towers.settings import ContextSettings, ItemSettings, ModelSettings

CATALOGUE = Catalogue(
    frame=pl.DataFrame(
        {"item": range(6), "category": ["a", "a", "b", "b", "c", "c"], "title": [f"thing {i}" for i in range(6)]}
    )
)
WITH_COLUMNS = ModelSettings(
    dimension=4, text_buckets=50, item=ItemSettings(categories=("category",), texts=("title",))
)
HISTORY = ModelSettings(dimension=4, text_buckets=50, context=ContextSettings(history=2))


def contexts(query_items: list[int], histories: list[list[int]], texts: list[str] | None = None) -> Contexts:
    """Make contexts of unknown buyers."""
    return Contexts(
        buyers=np.full(len(query_items), -1, np.int32),
        query_items=np.array(query_items, np.int32),
        history=np.array([item for history in histories for item in history], np.int32),
        history_offsets=np.cumsum([0, *map(len, histories)]).astype(np.int64),
        texts=None if texts is None else np.array(texts, dtype=object),
    )


def test_the_same_seed_builds_the_same_model_and_leaves_the_global_stream_alone() -> None:
    """Weights are a function of the seed; the caller's own random numbers are not disturbed."""
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    models = [build_model(CATALOGUE, 3, WITH_COLUMNS, seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.rand(1), wanted)
    first, again, other = (torch.cat([p.detach().flatten() for p in m.parameters()]) for m in models)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_vectors_have_length_one_when_normalised_and_their_own_otherwise() -> None:
    """The served score is the trained one: normalisation is the tower's."""
    model = build_model(CATALOGUE, 3, WITH_COLUMNS, 1)
    assert model.item(torch.arange(6)).norm(dim=1).tolist() == pytest.approx([1.0] * 6)
    assert model.query(contexts([0, 3], [[1], []])).norm(dim=1).tolist() == pytest.approx([1.0] * 2)
    raw = build_model(CATALOGUE, 3, WITH_COLUMNS.model_copy(update={"normalise": False}), 1)
    assert not torch.allclose(raw.item(torch.arange(6)).norm(dim=1), torch.ones(6))


def test_only_the_last_engagements_count_and_their_order_matters() -> None:
    """Of three earlier items with L = 2 the first is not read; the two others weigh by place once that is learned."""
    model = build_model(CATALOGUE, 3, HISTORY, 1)
    one, other = model.query(contexts([-1, -1], [[5, 1, 2], [4, 1, 2]]))
    assert torch.equal(one, other)
    assert isinstance(model.query_tower, ContextTower)
    with torch.no_grad():
        model.query_tower.place_weights.copy_(torch.tensor([1.0, 0.0]))
    one, other = model.query(contexts([-1, -1], [[1, 2], [2, 1]]))
    assert not torch.allclose(one, other)


def test_pooled_history_by_hand() -> None:
    """Place weights e and 1 over two places: (e·last + 1·before) / (e + 1); a single engagement has weight 1."""
    model = build_model(CATALOGUE, 3, HISTORY, 1)
    tower = model.query_tower
    assert isinstance(tower, ContextTower)
    with torch.no_grad():
        tower.place_weights.copy_(torch.tensor([1.0, 0.0]))
    table = tower.by_history
    assert table is not None
    (pooled,) = tower._pooled(table, contexts([-1] * 3, [[1, 2], [4], []]), torch.device("cpu"))
    weight = table.weight
    e = float(np.e)
    torch.testing.assert_close(pooled[0], (e * weight[2] + weight[1]) / (e + 1))
    torch.testing.assert_close(pooled[1], weight[4])
    assert float(pooled[2].detach().abs().max()) == 0


def test_several_pools_begin_with_all_places_alike_and_with_the_last_one() -> None:
    """Of [1, 2, 4]: the plain mean; and 4 with weight 1, 2 with 1/e, 1 with 1/e²; each can learn its own."""
    settings = HISTORY.model_copy(update={"context": ContextSettings(query_item=False, text=False, history=3, pools=2)})
    tower = build_model(CATALOGUE, 3, settings, 1).query_tower
    assert isinstance(tower, ContextTower)
    table = tower.by_history
    assert table is not None
    mean, last = tower._pooled(table, contexts([-1], [[1, 2, 4]]), torch.device("cpu"))
    first, second, third = (table.weight[item] for item in (1, 2, 4))
    torch.testing.assert_close(mean[0], (first + second + third) / 3)
    e = float(np.e)
    torch.testing.assert_close(last[0], (third + second / e + first / e**2) / (1 + 1 / e + 1 / e**2))
    tower(contexts([-1], [[1, 2, 4]])).sum().backward()
    assert tower.place_weights.grad is not None
    assert all(row.abs().max() > 0 for row in tower.place_weights.grad)


def test_a_learned_length_scales_all_scores_of_an_item_and_only_what_training_reaches_has_one() -> None:
    """At the start every length is 1; a moved one changes the item's length and not its direction."""
    living = np.array([True, True, False, True, True, True])
    settings = ModelSettings.parse(
        {"dimension": 4, "text_buckets": 50, "item": {"length": "learned", "categories": ["category"]}}
    )
    model = build_model(CATALOGUE, 3, settings, 1, living=living)
    before = model.item(torch.arange(6))
    torch.testing.assert_close(before.norm(dim=1), torch.ones(6))
    assert model.item_tower.length is not None
    with torch.no_grad():
        model.item_tower.length.weight[1:3] = 5.0
    after = model.item(torch.arange(6))
    torch.testing.assert_close(after.norm(dim=1), torch.tensor([1.0, float(np.e) ** 0.5, 1.0, 1.0, 1.0, 1.0]))
    torch.testing.assert_close(after[1] / after[1].norm(), before[1])
    new = read_features(pl.DataFrame({"category": ["a"]}), model.item_tower.reading)
    torch.testing.assert_close(model.item_tower.new(new).norm(dim=1), torch.ones(1))


def test_a_history_of_others_is_a_set_and_without_layers_the_query_is_the_sum_of_its_parts() -> None:
    """By hand: buyer 1's vector plus the sum of n history vectors over the root of n; order means nothing."""
    context = ContextSettings(query_item=False, text=False, buyer=True, history=2, history_of="others", hidden=0)
    model = build_model(CATALOGUE, 3, HISTORY.model_copy(update={"context": context}), 1)
    tower = model.query_tower
    assert isinstance(tower, ContextTower)
    assert tower.by_history is not None
    assert tower.by_buyer is not None
    asked = replace(
        contexts([-1] * 5, [[1, 2], [2, 1], [5, 4, 3], [5], []]), buyers=np.array([1, 1, 2, 0, 1], np.int32)
    )
    history, buyer = tower.by_history.weight.detach(), tower.by_buyer.weight.detach()
    wanted = torch.stack(
        [
            buyer[1] + (history[1] + history[2]) / 2**0.5,
            buyer[1] + (history[1] + history[2]) / 2**0.5,
            buyer[2] + (history[4] + history[3]) / 2**0.5,  # L = 2: the last two
            buyer[0] + history[5],
            buyer[1],
        ]
    )
    torch.testing.assert_close(model.query(asked), wanted / wanted.norm(dim=1, keepdim=True))
    assert [name for name, p in model.named_parameters() if p.requires_grad] == [
        "query_tower.by_history.weight",
        "query_tower.by_buyer.weight",
        "item_tower.own.weight",
    ]


def test_what_stands_in_a_context_can_be_the_item_towers_own_vectors() -> None:
    """What the item tower learns of an id, the context reads; without ids there is nothing to share."""
    context = ContextSettings(text=False, history=2, vectors="item", hidden=0)
    model = build_model(CATALOGUE, 3, HISTORY.model_copy(update={"context": context}), 1)
    assert isinstance(model.query_tower, ContextTower)
    assert model.query_tower.by_history is model.item_tower.own
    assert model.query_tower.by_query_item is model.item_tower.own
    assert len([name for name, _ in model.named_parameters() if name.endswith("weight")]) == 1
    alone = model.query(contexts([-1], [[4]]))
    torch.testing.assert_close(alone, model.item(torch.tensor([4])))
    with pytest.raises(SettingsError, match="there are no such vectors"):
        ModelSettings.parse({"item": {"id": False, "categories": ["category"]}, "context": {"vectors": "item"}})


def test_query_text_moves_the_query() -> None:
    """Two texts give two vectors, and the empty text that of no text."""
    model = build_model(CATALOGUE, 3, HISTORY, 1)
    red, blue, none = model.query(contexts([0] * 3, [[]] * 3, ["red sofa", "blue lamp", ""]))
    without = model.query(contexts([0], [[]]))[0]
    assert not torch.allclose(red, blue)
    torch.testing.assert_close(none, without)


def test_a_new_item_is_placed_by_its_columns() -> None:
    """The vector of columns alone is that of a known item whose own vector is hidden."""
    model = build_model(CATALOGUE, 3, WITH_COLUMNS, 1)
    reading = model.item_tower.reading
    new = model.new_items(read_features(CATALOGUE.frame[2:3].with_columns(item=pl.lit(99)), reading))
    hidden = model.item(torch.tensor([2]), torch.tensor([[True, False]]))
    torch.testing.assert_close(new, hidden)
    assert not torch.allclose(new, model.item(torch.tensor([2])))


def test_a_hidden_category_is_read_as_one_that_was_not_there_at_training() -> None:
    """So what stands for it is trained, and a new item of a new category is placed by what else is known of it."""
    model = build_model(CATALOGUE, 3, WITH_COLUMNS, 1)
    stranger = CATALOGUE.frame[2:3].with_columns(item=pl.lit(99), category=pl.lit("submarine"))
    new = model.new_items(read_features(stranger, model.item_tower.reading))
    hidden = model.item(torch.tensor([2]), torch.tensor([[True, True]]))
    torch.testing.assert_close(new, hidden)
    hidden.sum().backward()
    assert model.item_tower.columns is not None
    by_category = model.item_tower.columns.by_category[0]
    assert isinstance(by_category, torch.nn.Embedding)
    assert by_category.weight.grad is not None
    assert by_category.weight.grad.coalesce().indices().tolist() == [[0]]


def test_what_a_step_leaves_out_is_drawn_as_often_as_the_settings_say() -> None:
    """Own vectors and categories independently, the same for one step, others for another."""
    item = WITH_COLUMNS.item.model_copy(update={"id_dropout": 0.5, "value_dropout": 0.1})
    tower = build_model(CATALOGUE, 3, WITH_COLUMNS.model_copy(update={"item": item}), 1).item_tower
    drawn, again, other = (tower.draw_hidden(20_000, 1, step) for step in (7, 7, 8))
    assert drawn is not None
    assert again is not None
    assert other is not None
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, other)
    shares = drawn.float().mean(0).tolist()
    assert shares == pytest.approx([0.5, 0.1], abs=0.015)  # four standard deviations
    assert (drawn[:, 0] & drawn[:, 1]).float().mean().item() == pytest.approx(0.05, abs=0.007)
    none = item.model_copy(update={"id_dropout": 0.0, "value_dropout": 0.0})
    assert (
        build_model(CATALOGUE, 3, WITH_COLUMNS.model_copy(update={"item": none}), 1).item_tower.draw_hidden(5, 1, 7)
        is None
    )
    assert build_model(CATALOGUE, 3, HISTORY, 1).item_tower.draw_hidden(5, 1, 7) is None


def test_ids_alone_cannot_place_a_new_item() -> None:
    """The message says what to train with."""
    model = build_model(CATALOGUE, 3, HISTORY, 1)
    with pytest.raises(DataError, match="train with item columns"):
        model.new_items(read_features(CATALOGUE.frame, model.item_tower.reading))


def test_factorisation_has_no_vector_for_unknown_buyers() -> None:
    """It says so instead of answering with somebody else's vector."""
    model = build_model(CATALOGUE, 3, ModelSettings(kind="factorisation", dimension=4), 1)
    assert not model.anonymous
    with pytest.raises(UnknownIdError, match="known buyers only"):
        model.query(contexts([0], [[]]))


def test_gradients_touch_looked_up_rows_only() -> None:
    """A step's cost must not grow with the catalogue."""
    model = build_model(CATALOGUE, 3, HISTORY, 1)
    model.item(torch.tensor([4, 1])).sum().backward()
    assert model.item_tower.own is not None
    gradient = model.item_tower.own.weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert sorted(gradient.coalesce().indices()[0].tolist()) == [1, 4]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"item": {"id": False}}, "needs at least one of categories"),
        ({"item": {"categories": ["x"], "texts": ["x"]}}, "'x' is named twice"),
        ({"context": {"query_item": False, "history": 0, "text": False}}, "at least one of query_item"),
        ({"item": {"categoreis": []}}, "did you mean 'categories'"),
        ({"normalise": False, "item": {"length": "learned"}}, "needs normalise and item.id"),
        ({"context": {"pools": 3, "history_of": "others"}}, "context.pools is 3, but there is no history"),
        ({"context": {"pools": 2, "history": 0}}, "context.pools is 2, but there is no history"),
        ({"dimension": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_make_no_model_are_refused(table: dict[str, object], message: str) -> None:
    """Each with what is wrong and what is allowed."""
    with pytest.raises(SettingsError, match=message):
        ModelSettings.parse(table)


def test_items_that_training_never_reached_are_placed_by_their_columns() -> None:
    """Their own vectors, still random, are left out, the others' are not, and the mark travels with the weights."""
    living = np.array([True, True, False, True, True, True])
    model = build_model(CATALOGUE, 3, WITH_COLUMNS, 1, living=living)
    plain = build_model(CATALOGUE, 3, WITH_COLUMNS, 1)
    hidden = plain.item(torch.arange(6), torch.tensor([[n == 2, False] for n in range(6)]))
    torch.testing.assert_close(model.item(torch.arange(6)), hidden)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(plain.item(torch.arange(6)), hidden)
