"""From a model to a bundle and back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.engagements import Engagements, Part
from hatchway.errors import ArtefactError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.model_bundle import (
    contents_of,
    item_vectors,
    known_items,
    living_rows,
    looked_at_is_engaged,
    queries_of,
)
from hatchway.towers.build import build_model
from hatchway.towers.settings import ContextSettings, ItemSettings, ModelSettings

CATALOGUE = Catalogue(
    pl.DataFrame(
        {
            "item": ["a", "b", "c", "d", "e"],
            "title": ["Oak bed", "Oak desk", None, "Lamp", "Rug"],
            "gone": pl.Series([None, 5, None, None, 9], dtype=pl.Int64),
        }
    )
)


def log(query_items: list[int]) -> Engagements:
    """Make up a log of two buyers, items [0, 1, 2] and [1, 3, 1], whose last engagements are tests."""
    return Engagements(
        offsets=np.array([0, 3, 6]),
        buyers=np.array([0, 0, 0, 1, 1, 1], np.int32),
        items=np.array([0, 1, 2, 1, 3, 1], np.int32),
        parts=np.array([0, 0, 2, 0, 0, 2], np.int8),
        weights=np.array([1, 1, 1, 1, 0, 1], np.float32),
        query_items=np.array(query_items, np.int32),
        times=None,
        context_end=np.array([0, 1, 2, 3, 4, 5]),
    )


PREVIOUS = log([-1, 0, 1, -1, 1, 3])
VIEWED = log([4, 3, 4, 3, 4, 3])


def settings(**changes: object) -> ModelSettings:
    """Return the settings of a small model that reads titles."""
    return ModelSettings.parse({"dimension": 8, "item": ItemSettings(texts=("title",)), "text_buckets": 64} | changes)


def test_item_vectors_are_the_towers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once or in blocks, and the model stays in the mode it was in."""
    model = build_model(CATALOGUE, 2, settings(), seed=1).train()
    with torch.inference_mode():
        wanted = model.item(torch.arange(5)).numpy()
    np.testing.assert_array_equal(item_vectors(model, 5), wanted)
    monkeypatch.setattr("hatchway.index.model_bundle._ITEMS_AT_ONCE", 2)
    np.testing.assert_allclose(item_vectors(model, 5), wanted, atol=1e-6)
    assert model.training
    assert item_vectors(model, 0).shape == (0, 8)


def test_whether_the_listing_looked_at_is_an_engagement() -> None:
    """It is where there are no views, and is not where query items come from views."""
    assert looked_at_is_engaged(PREVIOUS)
    assert not looked_at_is_engaged(VIEWED)
    assert looked_at_is_engaged(log([-1] * 6))


@pytest.mark.parametrize(
    ("engagements", "history_length", "looked_at", "in_history"),
    [
        (PREVIOUS, 5, [0], [0]),
        (VIEWED, 5, [3, 4], [0]),
        (VIEWED, 0, [3, 4], []),
    ],
)
def test_what_stood_in_a_training_context(
    engagements: Engagements, history_length: int, looked_at: list[int], in_history: list[int]
) -> None:
    """The three training positives' alone: 1 stood in that of a row that is no positive, and in those of the tests."""
    known = known_items(engagements, 6, history_length)
    assert np.flatnonzero(known.looked_at).tolist() == looked_at
    assert np.flatnonzero(known.in_history).tolist() == in_history
    assert len(known.looked_at) == len(known.in_history) == 6


def test_a_history_holds_the_last_engagements_only() -> None:
    """Of items 0 to 4 in a row, with the last alone a positive, a history of two holds 2 and 3."""
    numbers = np.arange(5)
    engagements = Engagements(
        offsets=np.array([0, 5]),
        buyers=np.zeros(5, np.int32),
        items=numbers.astype(np.int32),
        parts=np.zeros(5, np.int8),
        weights=np.array([0, 0, 0, 0, 1], np.float32),
        query_items=np.array([-1, 0, 1, 2, 3], np.int32),
        times=None,
        context_end=numbers,
    )
    for length, wanted in ((1, [3]), (2, [2, 3]), (9, [0, 1, 2, 3])):
        assert np.flatnonzero(known_items(engagements, 5, length).in_history).tolist() == wanted
    assert np.flatnonzero(known_items(engagements, 5, 9, "others").in_history).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(known_items(engagements, 5, 1, "others").in_history).tolist() == []


@pytest.mark.parametrize("engagements", [PREVIOUS, VIEWED], ids=["previous", "viewed"])
@pytest.mark.parametrize("buyer", [False, True])
def test_the_query_side_comes_back_bit_for_bit(tmp_path: Path, engagements: Engagements, buyer: bool) -> None:
    """The weights, so that a bundle answers as the model that it was made from."""
    model = build_model(CATALOGUE, 2, settings(context=ContextSettings(history=4, buyer=buyer)), seed=1)
    contents = contents_of(model, CATALOGUE, engagements, IndexSettings(), {"step": 7})
    write_bundle(tmp_path / "bundle", contents, IndexSettings())
    bundle = Bundle.open(tmp_path / "bundle")
    before = torch.random.get_rng_state()
    queries = queries_of(bundle)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert queries.by_model
    np.testing.assert_allclose(queries.similar(np.arange(5)), np.asarray(contents.queries, np.float32), atol=1e-6)
    assert bundle.weights.keys() == contents.weights.keys()
    assert all(torch.equal(tensor, bundle.weights[name]) for name, tensor in contents.weights.items())
    assert bundle.manifest.origin == {"step": 7}
    assert bundle.manifest.index.recall == 1.0


@pytest.mark.parametrize("context", [{"text": True}, {"text": False, "buyer": True}], ids=["text", "buyer"])
def test_a_query_side_that_is_told_of_no_item_is_served_by_item_vectors(
    tmp_path: Path, context: dict[str, bool]
) -> None:
    """Its tower has no table of items, which is no contradiction to items that stood in contexts of training."""
    chosen = settings(context=ContextSettings.parse({"query_item": False, "history": 0} | context))
    model = build_model(CATALOGUE, 2, chosen, seed=1)
    contents = contents_of(model, CATALOGUE, VIEWED, IndexSettings(), {})
    queries = queries_of(write_bundle(tmp_path / "bundle", contents, IndexSettings()))
    assert not queries.by_model
    np.testing.assert_array_equal(queries.similar(np.array([3])), item_vectors(model, 5)[3:4])


def test_factorisation_takes_no_weights_along(tmp_path: Path) -> None:
    """Its query side knows buyers only, who are not served; item vectors answer."""
    model = build_model(CATALOGUE, 2, settings(kind="factorisation"), seed=1)
    contents = contents_of(model, CATALOGUE, PREVIOUS, IndexSettings(), {})
    bundle = write_bundle(tmp_path / "bundle", contents, IndexSettings())
    assert bundle.weights == {}
    queries = queries_of(bundle)
    assert not queries.by_model
    np.testing.assert_array_equal(queries.similar(np.array([3])), item_vectors(model, 5)[3:4])


def test_the_catalogue_counts_training_positives_only() -> None:
    """Item 1 has two (its test positive does not count), items 0 one, item 3 an engagement that is no positive."""
    model = build_model(CATALOGUE, 2, settings(), seed=1)
    contents = contents_of(model, CATALOGUE, PREVIOUS, IndexSettings(), {})
    assert contents.catalogue.frame["engagements"].to_list() == [1, 2, 0, 0, 0]
    assert PREVIOUS.positives(Part.TEST).tolist() == [2, 5]


def test_items_that_are_gone_are_not_recommended(tmp_path: Path) -> None:
    """Unless they are asked for; and where nothing is left, everything is."""
    model = build_model(CATALOGUE, 2, settings(), seed=1)
    for include, wanted in ((False, {0, 2, 3, -1}), (True, {0, 1, 2, 3, 4})):
        chosen = IndexSettings(include_gone=include)
        contents = contents_of(model, CATALOGUE, PREVIOUS, chosen, {})
        bundle = write_bundle(tmp_path / str(include), contents, chosen)
        assert set(bundle.index.search(np.ones((1, 8)), 5).rows[0].tolist()) == wanted
    frame = CATALOGUE.frame
    assert living_rows(Catalogue(frame.drop("gone"))) is None
    assert living_rows(Catalogue(frame.with_columns(gone=pl.lit(None, pl.Int64)))) is None
    assert living_rows(Catalogue(frame.with_columns(gone=pl.lit(3, pl.Int64)))) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"model": {"kind": "context"}, "looked_at_is_engaged": True}}, "weights .* do not fit"),
        ({"settings": {"model": {"kind": "cnotext"}, "looked_at_is_engaged": True}}, "settings.json is of another"),
        ({"settings": {}}, "settings.json is of another"),
        ({"weights": {}}, "weights .* do not fit"),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    """Other settings than the weights', or none: a clear refusal, not a model with random weights."""
    model = build_model(CATALOGUE, 2, settings(), seed=1)
    contents = contents_of(model, CATALOGUE, PREVIOUS, IndexSettings(), {})
    changed = BundleContents(**(vars(contents) | changes))
    bundle = write_bundle(tmp_path / "bundle", changed, IndexSettings())
    with pytest.raises(ArtefactError, match=message):
        queries_of(bundle)
