"""Taste worked out by hand, and the truth as it is read back from disk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hatchway.errors import ArtefactError, UnknownIdError, UsageError
from hatchway.simulation import vocabulary
from hatchway.simulation.buyers import Buyers, draw_buyers, taste
from hatchway.simulation.listings import Listings
from hatchway.simulation.market import Market
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder, write_truth

SETTINGS = MarketSettings(listings=300, buyers=50, days=6)
KINDS = [category.name for category in vocabulary.CATEGORIES]
FIRST = np.array([0])


@pytest.fixture(scope="module")
def market() -> Market:
    """Return a market on its first morning."""
    return Market.open(SETTINGS, 3)


def plain(market: Market, kind: str, price: float) -> Listings:
    """Return listings whose first one is of a kind, without style, look or appeal that anybody could like."""
    world = market.world
    models = replace(
        world.listings.models,
        category=np.full_like(world.listings.models.category, KINDS.index(kind)),
        latent=np.zeros_like(world.listings.models.latent),
    )
    count = len(world.listings)
    return replace(
        world.listings, models=models, price=np.full(count, price, np.float32), appeal=np.zeros(count, np.float32)
    )


def indifferent(market: Market, need: str) -> Buyers:
    """Return buyers who like and dislike nothing and look for one kind."""
    buyers = market.world.buyers
    names = ("style_first", "style_last", "look_first", "look_last", "fabric", "wood", "budget")
    nothing = {name: np.zeros_like(getattr(buyers, name)) for name in names}
    return replace(buyers, **nothing, need=np.full_like(buyers.need, KINDS.index(need)))


@pytest.mark.parametrize(
    ("need", "kind", "price", "liking"),
    [
        ("sofa", "sofa", 420.0, 2.0),  # what is needed, at its usual price
        ("sofa", "lamp", 55.0, 0.6),  # goes with it
        ("sofa", "wardrobe", 300.0, 0.0),  # does not
        ("sofa", "sofa", 840.0, 2.0 - 1.2 * 0.6931),  # twice as dear: -1.2 ln 2
        ("sofa", "sofa", 210.0, 2.0 - 0.6 * 0.6931),  # half the price: half of that
    ],
)
def test_taste_by_hand(market: Market, need: str, kind: str, price: float, liking: float) -> None:
    """Kind and price add up as docs/market.md says."""
    found = taste(indifferent(market, need), plain(market, kind, price), FIRST, FIRST, 0)
    assert found == pytest.approx([liking], abs=1e-3)
    assert found.dtype == np.float32


def test_style_fabric_wood_look_and_appeal_add_up(market: Market) -> None:
    """On the first day 1 × style + .5 × fabric + .5 × wood + .9 × look + .65 × appeal, and no fabric on a wardrobe."""
    buyers = indifferent(market, "sofa")
    for name, value in (("style_first", 1.0), ("style_last", 3.0), ("fabric", 0.4), ("wood", 0.2), ("look_first", 0.1)):
        getattr(buyers, name)[:] = value
    for kind, price, expected in (("sofa", 420.0, 2.0), ("wardrobe", 300.0, -0.2)):
        listings = plain(market, kind, price)
        listings.models.latent[:] = 0.5
        listings.appeal[:] = 2.0
        sum_of_parts = expected + 1.0 + 0.5 * 0.4 + 0.5 * 0.2 + 0.9 * (8 * 0.1 * 0.5) + 0.65 * 2.0
        assert taste(buyers, listings, FIRST, FIRST, 0) == pytest.approx([sum_of_parts], abs=1e-3)
        # Half way through the time, styles are half way from 1 to 3, and half the first look is forgotten.
        later = sum_of_parts + 1.0 - 0.9 * 0.2
        assert taste(buyers, listings, FIRST, FIRST, 3) == pytest.approx([later], abs=1e-3)


def test_needs_last_some_days() -> None:
    """The same need for six days on average: on five days of six it is that of the day before, or drawn alike."""
    buyers = draw_buyers(MarketSettings(listings=100, buyers=3_000, days=30), 1)
    same = (buyers.need[:, 1:] == buyers.need[:, :-1]).mean()
    # A new need is the old one again with a chance of about one in twelve.
    assert same == pytest.approx(5 / 6 + 1 / 6 / 12, abs=0.01)
    assert buyers.activity.mean() == pytest.approx(0.35, abs=0.02)


def test_the_truth_is_read_back_as_it_was(market: Market, tmp_path: Path) -> None:
    """Tastes and pairs are asked by the store's ids, which begin at 1."""
    write_truth(market, tmp_path / "truth", "d1")
    truth = Truth.open(tmp_path / "truth")
    assert (truth.settings, truth.seed) == (SETTINGS, 3)
    who, what = np.arange(50), np.arange(50) * 5
    expected = taste(market.world.buyers, market.world.listings, who, what, 2)
    assert np.array_equal(truth.taste(who + 1, what + 1, 2), expected)
    listings = market.world.listings
    copy = int(np.flatnonzero(listings.relists >= 0)[0])
    origin = int(listings.relists[copy])
    assert truth.same_object([copy + 1, copy + 1], [origin + 1, origin + 2]).tolist() == [True, False]
    models, counts = np.unique(listings.model, return_counts=True)
    pair = np.flatnonzero(listings.model == models[counts.argmax()])[:2] + 1
    assert truth.same_model(pair[:1], pair[1:]).tolist() == [True]


def test_ids_that_are_not_in_the_market_are_named(market: Market, tmp_path: Path) -> None:
    """0 and negative ids would mean the last listings; those above and fractions are errors too, and a day is."""
    write_truth(market, tmp_path / "truth", "d1")
    truth = Truth.open(tmp_path / "truth")
    for wrong in (0, -1, 301, 1.5):
        with pytest.raises(UnknownIdError, match=f"listing {wrong} is not in the market; .* integers 1 to 300"):
            truth.taste([1, 2], [300, wrong], 0)
        for pairs in (truth.same_object, truth.same_model):
            with pytest.raises(UnknownIdError, match=f"listing {wrong} is not"):
                pairs([wrong], [1])
            with pytest.raises(UnknownIdError, match=f"listing {wrong} is not"):
                pairs([1], [wrong])
    with pytest.raises(UnknownIdError, match="buyer 51 is not in the market; its buyers are the integers 1 to 50"):
        truth.taste([51], [1], 0)
    for day in (-1, 6):
        with pytest.raises(UsageError, match=f"day {day}: the market has days 0 to 5"):
            truth.taste([1], [1], day)
    assert truth.taste([], [], 5).shape == (0,)


def test_what_is_no_truth_is_refused(tmp_path: Path) -> None:
    """A folder without it, or with a part missing, is named, with the command that makes one."""
    with pytest.raises(ArtefactError, match=r"nowhere does not hold the truth of a market .*hatchway simulate"):
        Truth.open(tmp_path / "nowhere")


def test_it_lies_beside_the_store_under_the_stores_name() -> None:
    """So that two markets in one folder keep apart."""
    assert truth_folder(Path("a/first")) == Path("a/first-truth")
