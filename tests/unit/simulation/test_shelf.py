"""The old recommender on a shelf of six listings, whose every chance can be worked out by hand."""

import numpy as np
import pytest

from hatchway.simulation.listings import Listings, Models
from hatchway.simulation.recommender import PageKind, Shelf
from hatchway.simulation.settings import MarketSettings

NOW = 1_772_323_200
SETTINGS = MarketSettings(slots=2, popularity_weight=1.0)
# Two models of kind 3 (styles 0 and 1), one of kind 7; listings 0-2 are of the first, 3-4 of the second, 5 of the last.
MODEL = np.array([0, 0, 0, 1, 1, 2], np.int32)
ENGAGEMENT = np.array([0, 1, 2, 5, 0, 99], np.float32)


def listings() -> Listings:
    """Return six listings that were all put up this second."""
    nothing, one = np.zeros(3, np.int8), np.ones(6, np.int32)
    models = Models(
        category=np.array([3, 3, 7], np.int8),
        style=np.array([0, 1, 0], np.int8),
        wood=nothing,
        fabric=nothing,
        size=nothing,
        maker=nothing,
        name=np.zeros(3, np.int16),
        detail=nothing,
        other_detail=nothing,
        latent=np.zeros((3, 8), np.float32),
        appeal=np.zeros(3, np.float32),
        shape=np.zeros(3, np.float32),
    )
    return Listings(
        models=models,
        model=MODEL,
        thing=np.arange(6, dtype=np.int32),
        seller=one,
        condition=np.zeros(6, np.int8),
        price=np.ones(6, np.float32),
        appeal=np.zeros(6, np.float32),
        listed=np.full(6, NOW),
        expires=np.full(6, NOW + 1_000_000),
        stock=one,
        makers=np.zeros(6, np.bool_),
        stale=np.zeros(6, np.bool_),
        relists=np.full(6, -1, np.int32),
    )


def shelf(gone: dict[int, int] | None = None) -> Shelf:
    """Return a shelf stocked now; ``gone`` says when some listings went."""
    times = np.full(6, NOW + 1_000_000)
    for row, time in (gone or {}).items():
        times[row] = time
    made = Shelf(SETTINGS, listings())
    made.restock(NOW, times, ENGAGEMENT)
    return made


def first_slots(kind: PageKind, stocked: Shelf, category: int, style: int, pages: int = 20_000) -> np.ndarray:
    """Fill many pages and return how often each listing was among the candidates that were shown first, [6] shares."""
    ones = np.ones(pages, np.int8)
    shown = stocked.fill(kind, category * ones, style * ones, np.random.default_rng(3))
    assert shown.shape == (pages, 2)
    return np.bincount(shown[:, 0], minlength=6) / pages


def test_popularity_decides_within_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind 3 by popularity: draws in proportion to 1 + engagement, that is 1, 2, 3, 6, 1; the most popular leads.

    Of four candidates listing 3 (6 of 13) is one with 1 - (7/13)^4 = .916, and without the shuffle it then leads;
    listing 2 (3 of 13) leads where it was drawn and listing 3 was not: (7/13)^4 - (4/13)^4 = .075.
    """
    monkeypatch.setattr("hatchway.simulation.recommender.SHUFFLE", 0.0)
    shares = first_slots(PageKind((0, 1, 0, 0), match=0.0), shelf(), category=3, style=-1)
    assert shares[5] == 0
    assert shares[3] == pytest.approx(0.916, abs=0.01)
    assert shares[2] == pytest.approx(0.075, abs=0.01)


def test_the_style_of_the_page_comes_from_its_own_cell() -> None:
    """Same kind and style draws from listings 3 and 4 alone."""
    shares = first_slots(PageKind((1, 0, 0, 0), match=0.0), shelf(), category=3, style=1)
    assert shares[[0, 1, 2, 5]].sum() == 0
    assert shares[3] > shares[4] > 0


def test_fresh_draws_do_not_know_popularity() -> None:
    """Whatever its popularity: each of the five listings of kind 3 is drawn alike, so each is often enough shown."""
    pages = np.full(20_000, 3, np.int8)
    shown = shelf().fill(PageKind((0, 0, 1, 0), match=0.0), pages, -np.ones_like(pages), np.random.default_rng(2))
    # The two best of the distinct candidates are shown; the least popular ones are shown when little else was drawn.
    assert (np.bincount(shown[shown >= 0], minlength=6)[:5] > 2_000).all()
    assert (shown != 5).all()


def test_without_a_kind_everything_comes_from_everywhere() -> None:
    """A feed that knows nothing shows what is popular anywhere: listing 5 has 100 of 113."""
    shares = first_slots(PageKind((0, 0.5, 0.5, 0), match=0.0), shelf(), category=-1, style=-1)
    assert shares[5] > 0.95


def test_what_is_gone_or_not_yet_listed_is_not_shown() -> None:
    """Listing 3 went a second ago; nothing is left of style 1 but listing 4, and nothing at all of kind 7."""
    stocked = shelf({3: NOW - 1, 5: NOW})
    shares = first_slots(PageKind((1, 0, 0, 0), match=0.0), stocked, category=3, style=1)
    assert shares[4] == 1
    kind = np.full(10, 7, np.int8)
    shown = stocked.fill(PageKind((0, 1, 0, 0), match=0.0), kind, -np.ones_like(kind), np.random.default_rng(2))
    assert (shown == -1).all()


def test_a_page_never_has_a_listing_twice() -> None:
    """One living listing fills one slot; the other stays empty."""
    kind, style = np.full(100, 3, np.int8), np.full(100, 1, np.int8)
    shown = shelf({3: NOW}).fill(PageKind((1, 0, 0, 0), match=0.0), kind, style, np.random.default_rng(2))
    assert (shown == np.array([4, -1])).all()


def test_match_puts_the_pages_style_forward() -> None:
    """With a match of 10 the page's style leads whenever it was drawn, however popular the others are."""
    shares = first_slots(PageKind((0, 0, 1, 0), match=10.0), shelf(), category=3, style=1)
    # Listings 3 and 4 of five: at least one among four draws with 1 - (3/5)^4 = .870.
    assert shares[3] + shares[4] == pytest.approx(0.870, abs=0.02)


def test_slots_are_looked_at_less_and_less() -> None:
    """Slot p with chance p^-0.7: 1, .616, .463, .379."""
    made = Shelf(MarketSettings(slots=4), listings())
    assert made.looked_at == pytest.approx([1.0, 0.6156, 0.4635, 0.3789], abs=1e-4)
