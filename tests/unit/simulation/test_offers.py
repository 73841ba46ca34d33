"""Listings and their titles: relists, copies of a model, dealers, and words that agree in what they say."""

import re

import numpy as np
import pytest
from rapidfuzz import fuzz

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
    """12 % of the listings: same object, model, seller and condition, two to twenty days later, up to 20 % cheaper."""
    copy = np.flatnonzero(listings.relists >= 0)
    origin = listings.relists[copy]
    assert len(copy) == 600
    for name in ("thing", "model", "seller", "condition", "stock", "makers"):
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


def test_a_forgotten_listing_stays_up_and_is_no_dealers(listings: Listings) -> None:
    """One private object in twenty, for twenty weeks (within 40 %) where others have five; none is a relist."""
    weeks = (listings.expires - listings.listed) / DAY / 7
    withdrawn = np.isin(np.arange(len(listings)), listings.relists)
    assert listings.stale.mean() == pytest.approx(0.05 * 0.94 * 0.88, abs=0.01)
    assert weeks[listings.stale].min() >= 4 * 5 * 0.6 - 0.01
    assert weeks[~listings.stale].max() <= 5 * 1.4 + 0.01
    assert (listings.stock[listings.stale] == 1).all()
    assert not (listings.stale & ((listings.relists >= 0) | withdrawn)).any()


def test_niche_models_are_liked_by_few() -> None:
    """One in ten: its look is twice as far out, and its appeal to everybody 1.2 lower."""
    every, none = (draw_models(MarketSettings(listings=5_000, niche_share=share), 4) for share in (1.0, 0.0))
    assert np.array_equal(every.latent, 2 * none.latent)
    assert every.appeal == pytest.approx(none.appeal - 1.2, abs=1e-6)
    mixed = draw_models(MarketSettings(listings=5_000), 4)
    niche = (mixed.latent != none.latent).any(axis=1)
    assert niche.mean() == pytest.approx(0.1, abs=0.02)
    assert np.array_equal(mixed.appeal == none.appeal, ~niche)


def words(title: str) -> list[str]:
    """Return the words of a title without its marks."""
    return sorted(re.sub(r"[,()]", " ", title.lower()).split())


def test_titles_say_what_is_offered(listings: Listings) -> None:
    """Where no letter is wrong, a title names the kind in one of its words, and the wood, fabric or maker."""
    written = titles(listings, 4).to_list()
    models = listings.models
    careful = 0
    for row in range(500):
        model = listings.model[row]
        kind, title = vocabulary.CATEGORIES[models.category[model]], written[row]
        assert title[0].isupper() or title[0].isdigit()
        known = (vocabulary.WOODS[models.wood[model]], vocabulary.FABRICS[models.fabric[model]])
        said = any(word in title.lower() for word in (*known, vocabulary.MAKERS[models.maker[model]].lower()))
        careful += said and any(noun in title.lower() for noun in kind.nouns)
    assert 500 * 0.85 < careful < 500


def test_a_relist_is_written_anew(listings: Listings) -> None:
    """Nine in ten in another order; a letter wrong and the unit changed in a part; otherwise the same words."""
    written = titles(listings, 4).to_list()
    copy = np.flatnonzero((listings.relists >= 0) & ~listings.makers)
    pairs = [(written[listings.relists[row]], written[row]) for row in copy]
    assert np.mean([first != again for first, again in pairs]) > 0.95
    same = [words(first) == words(again) for first, again in pairs]
    assert np.mean(same) > 0.2
    likeness = [fuzz.token_sort_ratio(first.lower(), again.lower()) for first, again in pairs]
    assert np.quantile(likeness, 0.1) > 80
    wide = [(first, again) for first, again in pairs if re.search(r"\d (cm|in)\b", first)]
    centimetres = [
        [
            float(number) * (1 if unit == "cm" else 2.54)
            for number, unit in re.findall(r"(\d+) (cm|in)\b", " ".join(pair))
        ]
        for pair in wide
    ]
    assert len(wide) > 100
    assert all(first == pytest.approx(again, abs=1.3) for first, again in centimetres)
    changed = [re.findall(r"\d (cm|in)\b", first) != re.findall(r"\d (cm|in)\b", again) for first, again in wide]
    assert np.mean(changed) == pytest.approx(0.5, abs=0.12)


def test_sellers_who_use_the_makers_words_agree(listings: Listings) -> None:
    """Two copies of a model with the maker's words are far more alike than two in words of the sellers' own."""
    written = titles(listings, 4).to_list()
    likeness: dict[bool, list[float]] = {True: [], False: []}
    for model in range(300):
        rows = np.flatnonzero(listings.model == model)
        for makers in (True, False):
            mine = [row for row in rows if listings.makers[row] == makers]
            if len(mine) > 1 and listings.thing[mine[0]] != listings.thing[mine[1]]:
                likeness[makers].append(fuzz.token_sort_ratio(written[mine[0]].lower(), written[mine[1]].lower()))
    assert len(likeness[True]) > 10
    assert np.median(likeness[True]) > 85
    assert np.median(likeness[False]) < 70


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
