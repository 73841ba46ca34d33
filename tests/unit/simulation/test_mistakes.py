"""Which negatives are none: by hand on a few listings, and against a search through all engagements."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.simulation.mistakes import Engaged, Mistake, mistakes, wanted
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth
from hatchway.simulation.writing import simulate

DAY = 86_400


@pytest.fixture(scope="module")
def engaged(tmp_path_factory: pytest.TempPathFactory) -> Engaged:
    """Return the truth and the engagements of a small market."""
    folder: Path = tmp_path_factory.mktemp("market")
    store = simulate(folder / "store", MarketSettings(listings=600, buyers=150, days=8), 3, photos=False)
    return Engaged.of(Truth.open(folder / "store-truth"), store)


def one(engaged: Engaged, buyer: int, positive: int, negative: int, time: int) -> Mistake:
    """Ask of a single row."""
    asked = (np.array([value]) for value in (buyer, positive, negative, time))
    return Mistake(int(mistakes(engaged, *asked)[0]))


def test_a_relist_is_a_duplicate_and_another_sellers_copy_is_the_same_model(engaged: Engaged) -> None:
    """For whoever has not engaged with either and does not want it much."""
    listings = engaged.truth.listings
    copy = int(np.flatnonzero(listings.relists >= 0)[0])
    origin = int(listings.relists[copy])
    start = engaged.truth.settings.start
    assert one(engaged, 1, origin + 1, copy + 1, start) == Mistake.DUPLICATE
    buyers = np.arange(1, 151)
    alike = listings.model[:, None] == listings.model
    first, other = (int(row) for row in np.argwhere(alike & (listings.thing[:, None] != listings.thing))[0])
    cool = int(buyers[wanted(engaged.truth, buyers, np.full(150, other + 1), np.full(150, start)) < 0][0])
    assert one(engaged, cool, first + 1, other + 1, start) == Mistake.SAME_MODEL
    stranger = int(np.argmax(listings.model != listings.model[first])) + 1
    cool = int(buyers[wanted(engaged.truth, buyers, np.full(150, stranger), np.full(150, start)) < 0][0])
    assert one(engaged, cool, first + 1, stranger, start) == Mistake.NONE


def test_what_a_buyer_would_write_about_is_a_hidden_positive(engaged: Engaged) -> None:
    """A taste of 6.0 or more on the row's day, and not a little less."""
    truth, buyers = engaged.truth, np.repeat(np.arange(1, 151), 600)
    items = np.tile(np.arange(1, 601), 150)
    times = np.full(len(items), truth.settings.start)  # before anybody engaged with anything
    taste = np.array([truth.taste(buyers[row : row + 1], items[row : row + 1], 0)[0] for row in range(0, 90_000, 900)])
    assert np.array_equal(wanted(truth, buyers, items, times)[::900], taste)
    likings = wanted(truth, buyers, items, times)
    # The positive is another model each time: the listing that stands 300 further on, or the next one that will do.
    positives = (items + 299) % 600 + 1
    plain = ~truth.same_model(positives, items)
    found = mistakes(engaged, buyers[plain], positives[plain], items[plain], times[plain])
    assert (likings[plain] >= 6).sum() > 5
    assert np.array_equal(found == Mistake.WANTED, likings[plain] >= 6)


def test_engaged_in_the_thirty_days_before(engaged: Engaged, tmp_path: Path) -> None:
    """By the second: at the time itself it is not yet before, a second later it is; and so is another listing of it."""
    truth = engaged.truth
    things = int(truth.listings.thing.max()) + 1
    seconds = 8 * DAY + 1
    pair, second = np.divmod(engaged.moments, seconds)
    buyers, thing = pair // things + 1, pair % things
    item = np.array([np.flatnonzero(truth.listings.thing == number)[-1] + 1 for number in thing])
    times = second + truth.settings.start
    first = np.concatenate([[True], pair[1:] != pair[:-1]])
    assert first.sum() > 100
    assert not engaged.before(buyers[first], item[first], times[first]).any()
    assert engaged.before(buyers, item, times + 1).all()
    assert engaged.before(buyers, item, times + DAY, days=1).all()
    last = np.concatenate([pair[1:] != pair[:-1], [True]])
    early = last & (second < 6 * DAY)
    assert not engaged.before(buyers[early], item[early], times[early] + DAY + 1, days=1).any()


def test_against_a_search_through_all(engaged: Engaged) -> None:
    """Random buyers, listings and times: the same as looking at every engagement."""
    truth, random = engaged.truth, np.random.default_rng(2)
    things = int(truth.listings.thing.max()) + 1
    pair, second = np.divmod(engaged.moments, 8 * DAY + 1)
    log = pl.DataFrame({"buyer": pair // things + 1, "thing": pair % things, "second": second})
    at = random.integers(len(pair), size=400)
    buyers = pair[at] // things + 1
    by_thing = {int(number): row + 1 for row, number in enumerate(truth.listings.thing)}
    met = random.random(400) < 0.7
    thing = np.where(met, pair[at] % things, np.roll(pair[at] % things, 1))
    items = np.array([by_thing[int(number)] for number in thing])
    times = random.integers(8 * DAY, size=400) + truth.settings.start
    expected = [
        not log.filter(
            (pl.col("buyer") == buyer)
            & (pl.col("thing") == truth.listings.thing[item - 1])
            & (pl.col("second") < time - truth.settings.start)
            & (pl.col("second") >= time - truth.settings.start - 2 * DAY)
        ).is_empty()
        for buyer, item, time in zip(buyers, items, times, strict=True)
    ]
    found = engaged.before(buyers, items, times, days=2)
    assert 20 < sum(expected) < 380
    assert found.tolist() == expected
