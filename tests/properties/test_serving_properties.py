"""Rows against their definition: everything for sale that passes the filter, best first, each thing once."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.data.catalogue import Catalogue
from hatchway.errors import UsageError
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import BundleContents, write_bundle
from hatchway.screening.similar import SimilarItems
from hatchway.serving.filters import Filters
from hatchway.serving.posts import Record
from hatchway.serving.ranking import SearchLimits
from hatchway.serving.recommender import Recommender
from hatchway.serving.restocking import restocked
from hatchway.serving.stock import Stock

SIZE = 90
CATEGORIES = ("sofa", "desk", None)
TITLES = ("A sofa", "a Sofa!", "desk", "b")
SELLERS = ("s1", "s2", "s3", None)


def make_up(seed: int) -> dict[str, list[Any]]:
    """Make up a shop: integer vectors, so that every sum is exact, few titles and sellers, and lists of alike items."""
    generator = np.random.default_rng(seed)

    def some(values: Sequence[object]) -> list[Any]:
        return [values[place] for place in generator.integers(0, len(values), SIZE)]

    share = generator.choice([0.0, 0.1, 0.3, 0.3, 1.0], p=[0.2, 0.3, 0.2, 0.2, 0.1])
    posted = generator.choice(SIZE, generator.integers(0, 30), replace=False)
    return {
        "vectors": generator.integers(-3, 4, (SIZE, 3)).tolist(),
        "category": some(CATEGORIES),
        "seller": some(SELLERS),
        "title": some(TITLES[: generator.integers(1, len(TITLES) + 1)] + (None,) * int(generator.choice([0, 1, 4]))),
        "price": some((None, *map(float, range(10)))),
        "gone": (generator.random(SIZE) < share).tolist(),
        "posted": [(int(row), bool(generator.integers(0, 2))) for row in posted],
        "pairs": generator.integers(0, SIZE, (generator.integers(0, 40), 2)).tolist(),
    }


filters_of = st.builds(
    Filters,
    categories=st.sampled_from([(), ("sofa",), ("sofa", "desk"), ("boat",)]),
    price_min=st.sampled_from([None, None, 3.0]),
    price_max=st.sampled_from([None, None, 7.0]),
    sellers=st.sampled_from([(), (), ("s1",), ("s2", "nobody")]),
    not_sellers=st.sampled_from([(), (), ("s1",), ("nobody",)]),
)


def words(title: object) -> str | None:
    """Read a title as the service compares them."""
    return "".join(letter for letter in str(title).lower() if letter.isalnum() or letter == " ") if title else None


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**9),
    filters=st.one_of(st.just(Filters()), filters_of),
    asked=st.integers(0, SIZE - 1),
    k=st.sampled_from([1, 5, 12, 25, SIZE]),
    limits=st.sampled_from([SearchLimits(), SearchLimits(0, 10**6), SearchLimits(0, 1), SearchLimits(10**6, 10**6)]),
    kind=st.sampled_from(["flat", "ivf-sq8"]),
    collapse=st.booleans(),
)
def test_a_row_is_what_its_definition_says(
    seed: int,
    filters: Filters,
    asked: int,
    k: int,
    limits: SearchLimits,
    kind: str,
    *,
    collapse: bool,
) -> None:
    """Whichever way the ranking is found, whatever is gone, filtered or alike: never short and never wrong."""
    shop = make_up(seed)
    frame = pl.DataFrame(
        {"item": range(SIZE), **{name: shop[name] for name in ("title", "category", "price", "seller")}},
        schema_overrides={"title": pl.String, "category": pl.String, "price": pl.Float64, "seller": pl.String},
    ).with_columns(gone=pl.Series([5 if gone else None for gone in shop["gone"]], dtype=pl.Int64))
    vectors = np.array(shop["vectors"], np.float32)
    pairs = np.array(shop["pairs"], np.int64).reshape(-1, 2)
    living = np.flatnonzero(frame["gone"].is_null().to_numpy())
    contents = BundleContents(
        Catalogue(frame),
        vectors,
        vectors[:2],
        settings={"model": {"kind": "factorisation"}, "looked_at_is_engaged": True},
        rows=living if len(living) else None,
        similar=SimilarItems.from_pairs(SIZE, pairs[:, 0], pairs[:, 1]),
    )
    with TemporaryDirectory() as folder:
        bundle = write_bundle(Path(folder) / "bundle", contents, IndexSettings.parse({"kind": kind, "cells": 2}))
        stock = Stock.of(bundle)
        gone = {row for row in range(SIZE) if shop["gone"][row]} if len(living) else set()
        latest: dict[int, bool] = dict(shop["posted"])
        stock = restocked(
            stock, [Record(row, {"gone": (99 if is_gone else None, 100)}) for row, is_gone in latest.items()]
        )
        gone = (gone | {row for row, is_gone in latest.items() if is_gone}) - {
            row for row, is_gone in latest.items() if not is_gone
        }
        recommender = Recommender(bundle, stock, limits=limits)
        if set(filters.categories) - set(frame["category"].drop_nulls()):  # nothing has it, so it is misspelt
            with pytest.raises(UsageError, match="no item has the category"):
                recommender.similar(asked, k, filters, collapse=collapse)
            return
        found = recommender.similar(asked, k, filters, collapse=collapse)

    entries = frame.to_dicts()

    def passes(row: int) -> bool:
        entry = entries[row]
        price, seller = entry["price"], entry["seller"]
        return (
            row not in gone
            and row != asked
            and (not filters.categories or entry["category"] in filters.categories)
            and (filters.price_min is None or (price is not None and price >= filters.price_min))
            and (filters.price_max is None or (price is not None and price <= filters.price_max))
            and (not filters.sellers or seller in filters.sellers)
            and not (seller is not None and seller in filters.not_sellers)
        )

    def alike(one: int, other: int) -> bool:
        mine, theirs = entries[one], entries[other]
        listed = (one, other) in listed_pairs or (other, one) in listed_pairs
        same_seller = mine["seller"] is not None and mine["seller"] == theirs["seller"]
        title = words(mine["title"])
        return listed or (same_seller and title is not None and title == words(theirs["title"]))

    listed_pairs = {(int(one), int(other)) for one, other in pairs if one != other}
    scores = vectors.astype(np.int64) @ vectors[asked].astype(np.int64)
    ranked = sorted((row for row in range(SIZE) if passes(row)), key=lambda row: (-scores[row], row))
    kept: list[int] = []
    for row in ranked if collapse else []:
        own = entries[asked]["seller"]
        shown_already = asked not in gone and own is not None and entries[row]["seller"] == own and alike(asked, row)
        if not shown_already and not any(alike(row, other) for other in kept):
            kept.append(row)
    wanted = kept[:k] if collapse else ranked[:k]
    assert found.rows.tolist() == wanted
    assert found.scores.tolist() == [float(scores[row]) for row in wanted]
    for row, others in zip(found.rows.tolist(), found.others, strict=True):
        assert all(alike(row, other) and scores[other] <= scores[row] for other in others)
