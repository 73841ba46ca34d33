"""Items that were not there at training: what is refused, their types, where they stand, how they are placed."""

import logging
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.engagements import Engagements
from hatchway.errors import ArtefactError, DataError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.model_bundle import contents_of, item_vectors, queries_of
from hatchway.index.new_items import checked_new_items, new_item_vectors, with_new_items
from hatchway.serving.recommender import Recommender
from hatchway.towers.build import build_model
from hatchway.towers.features import FeatureReading, NumberScale
from hatchway.towers.settings import ContextSettings, ItemSettings, ModelSettings
from hatchway.towers.two_tower import TwoTower

CATALOGUE = Catalogue(
    pl.DataFrame(
        {"item": [10, 20, 30], "kind": ["wood", "metal", "wood"], "price": [5.0, 7.0, None], "year": [1, 2, 3]}
    )
)
READING = FeatureReading(
    categories={"kind": ("metal", "wood")}, numbers={"price": NumberScale(mean=6.0, deviation=1.0)}, buckets=64
)


def log() -> Engagements:
    """Make up a log of one buyer: items 0 and 1, the second while the first was looked at; item 2 is in no context."""
    return Engagements(
        offsets=np.array([0, 2]),
        buyers=np.array([0, 0], np.int32),
        items=np.array([0, 1], np.int32),
        parts=np.array([0, 0], np.int8),
        weights=np.array([1, 1], np.float32),
        query_items=np.array([-1, 0], np.int32),
        times=None,
        context_end=np.array([0, 1]),
    )


def model(**changes: object) -> TwoTower:
    """Build a model of the catalogue that reads kinds and prices."""
    settings = ModelSettings.parse(
        {"dimension": 8, "item": ItemSettings(categories=("kind",), numbers=("price",)), "text_buckets": 64} | changes
    )
    return build_model(CATALOGUE, 1, settings, seed=1).eval()


def test_types_are_the_catalogues() -> None:
    """Text becomes the number that it spells, a blank nothing; columns that nobody knows are left out."""
    given = pl.DataFrame({"item": [7, 5], "other": [1, 2], "price": [" 3.5", ""], "kind": ["wood", None]})
    found = checked_new_items(given, CATALOGUE, READING)
    assert found.schema == pl.Schema({"item": pl.Int64, "kind": pl.String, "price": pl.Float64})
    assert found.rows() == [(7, "wood", 3.5), (5, None, None)]
    whole = with_new_items(CATALOGUE, found)
    assert whole.ids.to_list() == [10, 20, 30, 7, 5]
    assert whole.frame["year"].to_list() == [1, 2, 3, None, None]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"id": [1]}, "no column 'item'; their columns are id"),
        ({"item": [7, None]}, "1 item ids of the new items are null"),
        ({"item": [7, 7]}, "item 7 stands in the new items more than once"),
        ({"item": ["a7"]}, r"are strings \('a7', …\), those of the catalogue are integers \(10, …\)"),
        ({"item": [7.0]}, "Float64"),
        ({"item": [30, 7, 10]}, "2 of 3 new items are in the catalogue already: 30, 10; .* leave them out"),
        ({"item": [7], "price": ["dear"]}, "'price' of the new items is String and does not fit .* Float64"),
    ],
)
def test_what_is_refused(frame: dict[str, list[object]], message: str) -> None:
    """What was received, what is allowed, what to do."""
    with pytest.raises(DataError, match=message):
        checked_new_items(pl.DataFrame(frame), CATALOGUE, READING)


def test_of_many_known_ids_some_are_named() -> None:
    """Three, and a sign that there are more."""
    catalogue = Catalogue(pl.DataFrame({"item": [str(number) for number in range(9)]}))
    with pytest.raises(DataError, match=r"9 of 9 .* already: '0', '1', '2', …; "):
        checked_new_items(catalogue.frame, catalogue, FeatureReading())


def test_a_missing_column_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """One note for all that is missing, none for what the model does not read."""
    with caplog.at_level(logging.INFO, logger="hatchway"):
        checked_new_items(pl.DataFrame({"item": [7, 8]}), CATALOGUE, READING)
    assert [record.getMessage() for record in caplog.records] == [
        "the new items have no column kind, price, which the model reads: it counts as missing"
    ]


def test_new_vectors_are_of_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vector that a known item of these columns has with its own vector hidden; whatever the blocks."""
    built = model()
    alike = pl.DataFrame({"item": [7, 8, 9], "kind": ["metal", "wood", "wood"], "price": [7.0, 5.0, None]})
    with torch.inference_mode():
        wanted = built.item(torch.tensor([1, 0, 2]), torch.tensor([[True, False]] * 3)).numpy()
    checked = checked_new_items(alike, CATALOGUE, built.item_tower.reading)
    np.testing.assert_allclose(new_item_vectors(built, checked), wanted, atol=1e-6)
    monkeypatch.setattr("hatchway.index.new_items._ITEMS_AT_ONCE", 2)
    np.testing.assert_allclose(new_item_vectors(built.train(), checked), wanted, atol=1e-6)
    assert built.training
    assert new_item_vectors(built, checked.head(0)).shape == (0, 8)


@pytest.mark.parametrize("kind", ["context", "factorisation"])
def test_a_bundle_with_new_items(tmp_path: Path, kind: str) -> None:
    """After the known ones, found by the index, with a page of their own, in the same bytes each time."""
    built = model(kind=kind, context=ContextSettings(history=4))
    fresh = pl.DataFrame({"item": [7, 5], "kind": ["wood", "metal"], "price": [5.0, 7.0]})
    contents = contents_of(built, CATALOGUE, log(), IndexSettings(), {"step": 1}, fresh)
    for name in ("a", "b"):
        write_bundle(tmp_path / name, contents, IndexSettings())
    assert Bundle.open(tmp_path / "a").digest == Bundle.open(tmp_path / "b").digest
    bundle = Bundle.open(tmp_path / "a")
    assert bundle.manifest.origin == {"new_items": 2, "step": 1}
    assert bundle.catalogue.ids.to_list() == [10, 20, 30, 7, 5]
    assert bundle.catalogue.frame["engagements"].to_list() == [1, 1, 0, 0, 0]
    assert bundle.catalogue.frame["looked_at"].to_list() == [True, False, False, False, False]
    assert bundle.catalogue.frame["in_history"].to_list() == [kind == "context", False, False, False, False]
    np.testing.assert_array_equal(bundle.vectors[:3], item_vectors(built, 3))
    recommender = Recommender(bundle)
    assert sorted(recommender.similar(0, 9).rows.tolist()) == [1, 2, 3, 4]
    row = recommender.similar(3, 9)
    assert sorted(row.rows.tolist()) == [0, 1, 2, 4]
    np.testing.assert_allclose(row.scores, np.sort(bundle.vectors[[0, 1, 2, 4]] @ bundle.vectors[3])[::-1], rtol=1e-5)
    assert sorted(recommender.recommend([4, 0], 9).rows.tolist()) == [1, 2, 3]


def test_without_new_items_nothing_is_said_of_them() -> None:
    """An empty table adds none; no table is not mentioned."""
    built = model()
    assert contents_of(built, CATALOGUE, log(), IndexSettings(), {}).origin == {}
    empty = pl.DataFrame(schema={"item": pl.String, "kind": pl.String})
    contents = contents_of(built, CATALOGUE, log(), IndexSettings(), {}, empty)
    assert (len(contents.catalogue), contents.origin) == (3, {"new_items": 0})


def test_a_model_of_ids_places_nothing_new() -> None:
    """It says what to train with."""
    with pytest.raises(DataError, match="train with item columns"):
        contents_of(model(item=ItemSettings()), CATALOGUE, log(), IndexSettings(), {}, pl.DataFrame({"item": [7]}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.lit(value=True).alias("in_history"), "beyond the first 3 that the model knows them"),
        (pl.lit(1).alias("looked_at"), "does not say which items are looked_at"),
    ],
)
def test_a_bundle_that_knows_too_much_or_nothing_is_refused(tmp_path: Path, change: pl.Expr, message: str) -> None:
    """The tower has no place for the new items, and without a mask it would be asked about them."""
    contents = contents_of(model(), CATALOGUE, log(), IndexSettings(), {}, pl.DataFrame({"item": [7]}))
    changed = vars(contents) | {"catalogue": Catalogue(contents.catalogue.frame.with_columns(change))}
    bundle = write_bundle(tmp_path / "bundle", BundleContents(**changed), IndexSettings())
    with pytest.raises(ArtefactError, match=f"{message}.*hatchway index RUN"):
        queries_of(bundle)
