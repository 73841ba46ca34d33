"""What a bundle carries to place listings by their columns, and which of its items are alike."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError, DataError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.item_encoder import encoder_weights
from hatchway.index.model_bundle import ServedSettings, encoder_of
from hatchway.index.new_items import new_item_vectors
from hatchway.screening.similar import SimilarItems
from hatchway.towers.build import build_model
from hatchway.towers.features import fit_reading
from hatchway.towers.settings import ItemSettings, ModelSettings
from hatchway.towers.two_tower import TwoTower

FRAME = pl.DataFrame(
    {"item": [1, 2, 3, 4], "title": ["oak bed", "oak sofa", "pine desk", "sofa"], "style": ["a", "b", "a", None]}
).with_columns(
    price=pl.Series([10.0, None, 3.0, 8.0]),
    kind=pl.Series(["bed", "sofa", "desk", "lamp"]),
    age=pl.Series([9, 1, 2, 3]),
)


def bundled(folder: Path, *, normalise: bool) -> tuple[TwoTower, Bundle]:
    """Write a bundle of a model that reads title, style and price."""
    settings = ModelSettings(
        dimension=8,
        normalise=normalise,
        text_buckets=64,
        item=ItemSettings(texts=("title",), categories=("style", "kind"), numbers=("price", "age")),
    )
    catalogue = Catalogue(FRAME)
    reading = fit_reading(FRAME, settings.item, settings.text_buckets)
    model = build_model(catalogue, 3, settings, 0, reading, None)
    vectors = np.eye(4, 8, dtype=np.float32)
    served = ServedSettings(model=settings, looked_at_is_engaged=True, reading=reading)
    contents = BundleContents(
        catalogue, vectors, vectors, settings=served.model_dump(mode="json"), encoder=encoder_weights(model)
    )
    write_bundle(folder, contents, IndexSettings())
    return model, Bundle.open(folder)


@pytest.mark.parametrize("normalise", [True, False])
def test_a_bundle_places_items_as_its_model_does(tmp_path: Path, *, normalise: bool) -> None:
    """Bit for bit, after a journey to the disk; columns that are absent count as missing."""
    model, bundle = bundled(tmp_path / "bundle", normalise=normalise)
    encoder = encoder_of(bundle)
    assert encoder is not None
    fresh = pl.DataFrame(
        {"item": [9, 8], "title": ["oak sofa", "chair"], "style": ["b", "new"], "kind": ["sofa", "bed"]}
    )
    fresh = fresh.with_columns(age=pl.Series([7, 1]))
    np.testing.assert_array_equal(encoder.vectors(fresh), new_item_vectors(model, fresh))
    assert encoder.vectors(fresh.head(0)).shape == (0, 8)
    lengths = np.linalg.norm(encoder.vectors(fresh), axis=1)
    assert (np.abs(lengths - 1) < 1e-5).all() == normalise


def test_weights_of_another_reading_are_refused(tmp_path: Path) -> None:
    """With the command that makes the bundle again."""
    _, bundle = bundled(tmp_path / "bundle", normalise=True)
    bundle.settings["reading"]["buckets"] = 32
    with pytest.raises(ArtefactError, match="hatchway index RUN"):
        encoder_of(bundle)


def test_similar_items_travel_with_the_bundle(tmp_path: Path) -> None:
    """They come back; those of another catalogue are refused; a bundle without them says None."""
    vectors = np.eye(4, dtype=np.float32)
    contents = BundleContents(Catalogue(FRAME), vectors, vectors)
    assert write_bundle(tmp_path / "bare", contents, IndexSettings()).similar is None
    pairs = SimilarItems.from_pairs(4, np.array([0]), np.array([3]))
    write_bundle(tmp_path / "bundle", replace(contents, similar=pairs), IndexSettings())
    found = Bundle.open(tmp_path / "bundle").similar
    assert found is not None
    assert found.of(3).tolist() == [0]
    with pytest.raises(DataError, match="are of 5 items, the bundle has 4"):
        write_bundle(tmp_path / "other", replace(contents, similar=SimilarItems.none(5)), IndexSettings())
