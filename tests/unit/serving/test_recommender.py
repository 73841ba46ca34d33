"""Rows by hand: the best items, without those that were asked with."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.data.catalogue import Catalogue
from hatchway.data.identifiers import Identifiers
from hatchway.errors import UsageError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.protocol import Int64
from hatchway.serving.posts import Record
from hatchway.serving.recommender import Recommender
from hatchway.serving.restocking import restocked
from hatchway.serving.stock import Stock


def test_the_row_of_an_item(bundle: Bundle) -> None:
    """Item 10 is [1, 0]: 50 scores 3, 20 scores 2, 30 scores 1, 40 scores -1; itself it is not there."""
    row = Recommender(bundle).similar(0, 3)
    assert row.rows.tolist() == [4, 1, 2]
    assert row.scores.tolist() == [3.0, 2.0, 1.0]


def test_an_item_that_does_not_find_itself_loses_nothing(bundle: Bundle) -> None:
    """Item 40 is [-1, 0]: itself scores best, and then -1, -1, -2, -3 for the others."""
    row = Recommender(bundle).similar(3, 2)
    assert row.rows.tolist() == [0, 2]
    assert row.scores.tolist() == [-1.0, -1.0]


def test_more_than_there_is(bundle: Bundle) -> None:
    """Four others are all there are."""
    assert Recommender(bundle).similar(0, 100).rows.tolist() == [4, 1, 2, 3]


def test_the_row_of_a_buyer(bundle: Bundle) -> None:
    """Items 10 and 40 have the mean [0, 0], items 20 and 30 the mean [1.5, 2]: 50 scores 2.5, 10 scores 1.5."""
    recommender = Recommender(bundle)
    row = recommender.recommend([1, 2], 5)
    assert row.rows.tolist() == [4, 0, 3]
    assert row.scores.tolist() == [2.5, 1.5, -1.5]
    assert recommender.recommend([0, 3], 5).rows.tolist() == [1, 2, 4]


def test_an_item_named_twice_weighs_twice(bundle: Bundle) -> None:
    """The mean of 10, 10 and 20 is [4/3, 1/3]; an item named twice is left out once, and costs no place."""
    row = Recommender(bundle).recommend([0, 0, 1], 2)
    assert row.rows.tolist() == [4, 2]
    np.testing.assert_allclose(row.scores, [4 - 1 / 3, 4 / 3 + 1], rtol=1e-6)


def test_what_cannot_be_asked(bundle: Bundle) -> None:
    """No items, or no places."""
    recommender = Recommender(bundle)
    with pytest.raises(UsageError, match="at least one"):
        recommender.recommend([], 5)
    with pytest.raises(UsageError, match="k = 0"):
        recommender.similar(0, 0)


def test_finding_ids(bundle: Bundle) -> None:
    """Numbers and their text; None for what is nobody's id, however odd."""
    recommender = Recommender(bundle)
    assert [recommender.find(identifier) for identifier in (30, "30")] == [2, 2]
    odd = (31, "x", "", 10**40, -(10**40), "9" * 50, "\ud800", "\x00")
    assert [recommender.find(identifier) for identifier in odd] == [None] * len(odd)


def test_everything_is_in_memory(bundle: Bundle) -> None:
    """The folder may be replaced while a recommender answers."""
    recommender = Recommender(bundle)
    for path in bundle.path.iterdir():
        path.unlink()
    assert recommender.similar(0, 3).rows.tolist() == [4, 1, 2]
    assert recommender.recommend([1, 2], 1).rows.tolist() == [4]


def test_many_ids_cost_no_pass_over_the_catalogue(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a few steps down a sorted list; a join would hash all ids, for every request."""
    recommender = Recommender(bundle)
    asked: list[int | str] = [20, "10", 7, "gone", "\ud800", 10**30, 20]
    calls: list[int] = []
    rows = Identifiers.rows

    def counted(self: Identifiers, ids: pl.Series) -> Int64:
        calls.append(len(ids))
        return rows(self, ids)

    monkeypatch.setattr(Identifiers, "rows", counted)
    assert recommender.find_all(asked).tolist() == [1, 0, -1, -1, -1, -1, 1]
    assert calls == []


def test_what_the_index_lacks_stands_in_its_place(tmp_path: Path) -> None:
    """Sixty alike are found first; what is back for sale scores least, and does not get ahead of the others."""
    frame = pl.DataFrame(
        {
            "item": range(100),
            "title": ["the same"] * 60 + [f"title {number}" for number in range(60, 100)],
            "seller": ["s"] * 60 + ["t"] * 40,
            "gone": pl.Series([None] * 99 + [5], dtype=pl.Int64),
        }
    )
    vectors = np.stack([np.arange(200, 100, -1), np.ones(100)], axis=1).astype(np.float32)
    served = {"model": {"kind": "factorisation"}, "looked_at_is_engaged": True}
    contents = BundleContents(Catalogue(frame), vectors, vectors[:3], settings=served, rows=np.arange(99))
    bundle = write_bundle(tmp_path / "bundle", contents, IndexSettings())
    stock = restocked(Stock.of(bundle), [Record(99, {"gone": (None, 9)})])
    assert Recommender(bundle, stock).similar(70, 2).rows.tolist() == [0, 60]
    assert Recommender(bundle, stock).similar(70, 100).rows.tolist() == [0, *range(60, 70), *range(71, 100)]
