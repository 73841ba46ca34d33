"""Listings and their titles: relists, copies of a model, dealers, and words that agree in what they say."""

import numpy as np
import pytest

from hatchway.simulation import vocabulary
from hatchway.simulation.listings import Listings, draw_listings, draw_models
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.titles import titles

SETTINGS = MarketSettings(listings=5_000, days=10)
DAY = 86_400
END = SETTINGS.start + 10 * DAY


@pytest.fixture(scope="module")
def listings() -> Listings:
    """Return the listings of one market."""
    return draw_listings(SETTINGS, draw_models(SETTINGS, 4), 4)


def test_there_are_as_many_as_asked_for_in_the_order_of_their_times(listings: Listings) -> None:
    """Three fifths of the first listings are there before the first day, of every age, none listed after the end."""
    assert len(listings) == 5_000
    assert (np.diff(listings.listed) >= 0).all()
    assert listings.listed[-1] < END
    first = listings.relists < 0
    assert (listings.listed[first] < SETTINGS.start).mean() == pytest.approx(0.6, abs=0.03)
    assert (listings.expires > listings.listed).all()
    assert (listings.price >= 5).all()


def test_relists_repeat_a_listing_of_the_same_seller(listings: Listings) -> None:
    """6 % of the listings: same object, model, seller and condition, two to twenty days later, up to 20 % cheaper."""
    copy = np.flatnonzero(listings.relists >= 0)
    origin = listings.relists[copy]
    assert len(copy) == 300
    for name in ("thing", "model", "seller", "condition", "stock"):
        values = getattr(listings, name)
        assert (values[copy] == values[origin]).all(), name
    later = (listings.listed[copy] - listings.listed[origin]) / DAY
    assert later.min() >= 2
    assert np.median(later) < 25  # an old listing is relisted when the time of the market has begun
    cheaper = listings.price[copy] / listings.price[origin]
    assert cheaper.min() > 0.75
    assert cheaper.max() <= 1.0
    replaced = listings.expires[origin] == listings.listed[copy]
    assert replaced.mean() == pytest.approx(0.7, abs=0.12)


def test_only_relists_share_an_object_and_models_have_copies(listings: Listings) -> None:
    """Objects beside relists are distinct; a model is offered by several sellers, a few by many."""
    first = listings.thing[listings.relists < 0]
    assert len(np.unique(first)) == len(first)
    copies = np.bincount(listings.model)
    assert copies[copies > 0].mean() > 2.5
    assert copies.max() > 5 * np.median(copies[copies > 0])


def test_dealers_sell_from_stock(listings: Listings) -> None:
    """6 % of the objects, in stocks of three or more; all others are single pieces."""
    dealers = listings.stock > 1
    assert dealers.mean() == pytest.approx(0.06, abs=0.015)
    assert listings.stock[dealers].min() >= 3
    assert set(listings.stock[~dealers]) == {1}


def test_titles_say_what_is_offered(listings: Listings) -> None:
    """Every title names the kind in one of its words; five of six patterns, the wood, fabric or maker."""
    written = titles(listings, 4).to_list()
    models = listings.models
    for row in range(500):
        model = listings.model[row]
        kind, title = vocabulary.CATEGORIES[models.category[model]], written[row]
        assert any(noun in title.lower() for noun in kind.nouns), title
        assert title[0].isupper() or title[0].isdigit()
        known = (vocabulary.WOODS[models.wood[model]], vocabulary.FABRICS[models.fabric[model]])
        assert any(word in title.lower() for word in (*known, vocabulary.MAKERS[models.maker[model]].lower())), title


def test_a_relist_is_called_something_else(listings: Listings) -> None:
    """Nine in ten relists have another title than what they relist."""
    written = titles(listings, 4).to_numpy()
    copy = np.flatnonzero(listings.relists >= 0)
    assert (written[copy] != written[listings.relists[copy]]).mean() > 0.9


def test_titles_do_not_depend_on_how_they_are_cut(listings: Listings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written in runs of a million; runs of 700 give the same."""
    whole = titles(listings, 4)
    monkeypatch.setattr("hatchway.simulation.titles._CHUNK", 700)
    assert titles(listings, 4).equals(whole)


@pytest.mark.parametrize(("listed", "days", "relists"), [(100, 1, 0.5), (120, 1, 0.0), (400, 40, 0.5)])
def test_small_and_odd_markets(listed: int, days: int, relists: float) -> None:
    """A single day, no relists, or half of everything a relist: as many listings as asked for, all before the end."""
    settings = MarketSettings(listings=listed, days=days, relist_share=relists)
    drawn = draw_listings(settings, draw_models(settings, 2), 2)
    assert len(drawn) == listed
    assert (drawn.relists >= 0).sum() == round(listed * relists)
    assert drawn.listed.max() < settings.start + days * DAY
