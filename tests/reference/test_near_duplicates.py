"""Near duplicates against truths of others: real photos and their copies, and the simulated market's own truth."""

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.data.store import Store
from hatchway.screening.build import build_screen
from hatchway.screening.photos import perceptual_hashes, similar_pictures
from hatchway.screening.settings import ScreeningSettings
from hatchway.screening.titles import similar_titles
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder
from hatchway.simulation.writing import simulate


def test_copies_of_real_photos_are_found(data_folder: Path) -> None:
    """Resized, mirrored, grey and transparent copies of one, and a plain copy of another; no other two are alike."""
    folder = data_folder / "near-duplicate-photos"
    if not folder.is_dir():
        pytest.skip("HATCHWAY_DATA has no near-duplicate-photos")
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*g"))
    seen = perceptual_hashes(names, folder)
    assert [name for name, usable in zip(names, seen.usable, strict=True) if not usable] == [
        "mixed_images/ukbench09268_corrupt.jpg"
    ]
    first, second = similar_pictures(seen, 8).similar.first_of_pairs()
    found = {(names[one], names[other]) for one, other in zip(first.tolist(), second.tolist(), strict=True)}
    copies = [n for n in names if ("00120" in n or "alpha" in n) and "rotation" not in n]
    wanted = {*combinations(copies, 2), ("base_images/ukbench09268.jpg", "mixed_images/ukbench09268.jpg")}
    assert len(wanted) == 16
    assert found == wanted


def test_titles_of_one_story_are_found_in_the_news(data_folder: Path) -> None:
    """BBC stories that stand in the archive twice: whoever has one title has one text, and most are found."""
    archive = data_folder / "news-text" / "bbc" / "bbc.parquet"
    if not archive.is_file():
        pytest.skip("HATCHWAY_DATA has no news-text")
    stories = pl.read_parquet(archive)
    texts = [set(text.lower().split()) for text in stories["body"].to_list()]
    first, second = similar_titles(stories["title"]).similar.first_of_pairs()
    shared = [
        len(texts[one] & texts[other]) / len(texts[one] | texts[other])
        for one, other in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert len(shared) >= 120
    assert min(shared) > 0.4  # two stories at random share 0.08, one pair in a hundred 0.14


@pytest.fixture(scope="module", name="market")
def _market(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Truth]:
    """Return a market of 900 listings with photos, and its truth."""
    folder = tmp_path_factory.mktemp("market") / "store"
    store = simulate(folder, MarketSettings(listings=900, buyers=60, days=4), seed=3)
    return store, Truth.open(truth_folder(folder))


def test_relists_are_found_and_little_else(market: tuple[Store, Truth]) -> None:
    """By photo or title at least seven of ten relists; of the pairs found at least 95 of a hundred are of one model."""
    store, truth = market
    screen = build_screen(store.catalogue(), ScreeningSettings(), store.path)
    assert screen.photos is not None
    assert screen.titles is not None
    ids = store.catalogue().ids.to_numpy()
    one, other = (ids[rows] for rows in np.triu_indices(len(ids), 1))
    relists = truth.same_object(one, other)
    assert relists.sum() > 50
    first, second = screen.photos.union(screen.titles).first_of_pairs()
    assert truth.same_object(ids[first], ids[second]).sum() >= 0.7 * relists.sum()
    assert truth.same_model(ids[first], ids[second]).mean() >= 0.95
    # Whoever relists is the same seller, so with the seller hardly a relist is left.
    rows = np.searchsorted(ids, one[relists]), np.searchsorted(ids, other[relists])
    assert (screen.pairs(*rows) > 0).all()
