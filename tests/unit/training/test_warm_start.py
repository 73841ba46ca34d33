"""A model brought over to a catalogue that has grown: old rows stay, new ones say nothing until they are trained."""

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError
from hatchway.towers.build import build_model
from hatchway.towers.features import fit_reading
from hatchway.towers.settings import ContextSettings, ItemSettings, ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.warm_start import carry_weights, extended_reading

SETTINGS = ModelSettings(
    dimension=4,
    text_buckets=16,
    item=ItemSettings(categories=("kind",), numbers=("price",), hidden=4),
    context=ContextSettings(history=2, hidden=4, text=False, buyer=True),
)
BEFORE = pl.DataFrame({"item": [1, 2, 3], "kind": ["sofa", "lamp", "sofa"], "price": [1.0, 2.0, 3.0]})
AFTER = pl.concat([BEFORE, pl.DataFrame({"item": [4, 5], "kind": ["bed", "lamp"], "price": [9.0, 2.0]})])


def model(frame: pl.DataFrame, seed: int, settings: ModelSettings = SETTINGS, buyers: int = 2) -> TwoTower:
    """Build a model whose reading goes on from the first catalogue's."""
    old = fit_reading(BEFORE, settings.item, settings.text_buckets)
    reading = extended_reading(old, fit_reading(frame, settings.item, settings.text_buckets))
    return build_model(Catalogue(frame), buyers, settings, seed, reading).eval()


def test_a_reading_goes_on_where_it_was() -> None:
    """Values keep their numbers, new ones follow, and the scale of prices is the old one."""
    old = fit_reading(BEFORE, SETTINGS.item, 16)
    now = extended_reading(old, fit_reading(AFTER, SETTINGS.item, 16))
    assert old.categories == {"kind": ("lamp", "sofa")}
    assert now.categories == {"kind": ("lamp", "sofa", "bed")}
    assert now.numbers == old.numbers
    with pytest.raises(ArtefactError, match="reads other item columns"):
        extended_reading(old, fit_reading(AFTER, ItemSettings(categories=("kind",)), 16))


def test_known_items_keep_their_vectors_and_new_ones_are_placed_by_their_columns() -> None:
    """The vectors of the first three are the old ones to the bit; the fifth is what a lamp of that price is."""
    old, new = model(BEFORE, seed=1), model(AFTER, seed=2)
    carry_weights(new, old.state_dict(), np.array([1, -1]))
    with torch.inference_mode():
        assert torch.equal(new.item(torch.arange(3)), old.item(torch.arange(3)))
        alone = new.new_items(new.item_tower._features_of(torch.tensor([4])))
        assert torch.equal(new.item(torch.tensor([4])), alone)
    for part in ("query_tower.by_history.weight", "query_tower.by_query_item.weight", "item_tower.own.weight"):
        assert not new.state_dict()[part][3:].any(), part
    assert new.item_tower.unreached.tolist() == [False, False, False, True, True]


def test_a_new_value_begins_as_an_unknown_one() -> None:
    """A bed is read as what stands for an unknown kind, until beds are trained on."""
    old, new = model(BEFORE, seed=1), model(AFTER, seed=2)
    carry_weights(new, old.state_dict(), np.array([0, 1]))
    table = new.state_dict()["item_tower.columns.by_category.0.weight"]
    assert torch.equal(table[3], old.state_dict()["item_tower.columns.by_category.0.weight"][0])


def test_buyers_are_found_again_by_their_rows() -> None:
    """The first was the second; the second is new and keeps its own start."""
    old, new = model(BEFORE, seed=1), model(AFTER, seed=2)
    start = new.state_dict()["query_tower.by_buyer.weight"].clone()
    carry_weights(new, old.state_dict(), np.array([1, -1]))
    carried = new.state_dict()["query_tower.by_buyer.weight"]
    assert torch.equal(carried[0], old.state_dict()["query_tower.by_buyer.weight"][1])
    assert torch.equal(carried[1], start[1])


def test_a_model_by_ids_alone_keeps_the_start_of_new_items() -> None:
    """Zeros could not be told apart, and nothing else is known of a new item."""
    plain = ModelSettings(dimension=4, text_buckets=16, context=ContextSettings(history=2, hidden=4, text=False))
    old, new = model(BEFORE, 1, plain), model(AFTER, 2, plain)
    start = new.state_dict()["item_tower.own.weight"].clone()
    carry_weights(new, old.state_dict(), np.array([0, 1]))
    assert torch.equal(new.state_dict()["item_tower.own.weight"][3:], start[3:])


def test_another_model_is_refused() -> None:
    """Other parts, another width, or a catalogue that lost rows: named, with the remedy."""
    old = model(AFTER, seed=1)
    wider = SETTINGS.model_copy(update={"dimension": 8})
    for other, said in (
        (model(AFTER, 1, wider), r"was \(.*\) and is \(.*\) now"),
        (model(BEFORE, 1), r"was \(.*\) and is \(.*\) now"),
        (model(AFTER, 1, SETTINGS.model_copy(update={"context": ContextSettings(text=False)})), "do not both have"),
    ):
        with pytest.raises(ArtefactError, match=said) as refused:
            carry_weights(other, old.state_dict(), np.array([0, 1]))
        assert "settings of the model have changed" in str(refused.value)
