"""Sales: the last piece is sold once, in the order of time, and a sale ends the other listing of the object."""

import numpy as np
import pytest

from hatchway.simulation.deeds import _sell, possible, sell_copies
from hatchway.simulation.events import Event, Rows
from hatchway.simulation.listings import Listings, draw_listings, draw_models
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.world import State

FOREVER = 10_000


def state(stock: list[int], gone: list[int] | None = None) -> State:
    """Return a state of a few listings."""
    count = len(stock)
    return State(
        gone=np.array(gone or [FOREVER] * count),
        stock=np.array(stock),
        last_sale=np.zeros(count, np.int64),
        engagement=np.zeros(count, np.float32),
        last_kind=np.zeros(1, np.int8),
        acted=np.zeros(0, np.int64),
    )


def test_the_earliest_buyer_gets_the_single_piece() -> None:
    """Three want listing 0, at 30, 10 and 20: the one at 10 has it, and it is gone then."""
    market = state([1, 1])
    sold = _sell(market, np.array([0, 0, 0]), np.array([30, 10, 20]))
    assert sold.tolist() == [1]
    assert (market.stock.tolist(), market.gone.tolist()) == ([0, 1], [10, FOREVER])


def test_a_dealer_sells_until_the_stock_is_empty() -> None:
    """Two pieces of listing 1: the two earliest have them, it is gone at the second sale."""
    market = state([1, 2])
    sold = _sell(market, np.array([1, 1, 1]), np.array([30, 10, 20]))
    assert sorted(sold.tolist()) == [1, 2]
    assert (market.stock.tolist(), market.gone.tolist()) == ([1, 0], [FOREVER, 20])


def test_a_later_piece_may_be_sold_earlier() -> None:
    """A sale at 50 was agreed on before one at 40: the listing is gone at 50, when the last piece is fetched."""
    market = state([2])
    _sell(market, np.array([0]), np.array([50]))
    _sell(market, np.array([0]), np.array([40]))
    assert market.gone.tolist() == [50]


def test_nobody_wants_anything() -> None:
    """No buyers, no sales."""
    market = state([1])
    assert _sell(market, np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
    assert market.gone.tolist() == [FOREVER]


def twins(listed: list[int]) -> Listings:
    """Return two listings of one object, the second a relist of the first."""
    settings = MarketSettings(listings=100)
    drawn = draw_listings(settings, draw_models(settings, 1), 1)
    fields = {name: getattr(drawn, name)[:2] for name in drawn.__dataclass_fields__ if name != "models"}
    fields |= {"listed": np.array(listed), "relists": np.array([-1, 0], np.int32)}
    return Listings(models=drawn.models, **fields)


@pytest.mark.parametrize("sold", [0, 1])
def test_a_sale_ends_both_listings_of_an_object(sold: int) -> None:
    """Whichever of the two it went through."""
    market = state([1, 1])
    _sell(market, np.array([sold]), np.array([70]))
    sell_copies(twins([0, 50]), market)
    assert market.gone.tolist() == [70, 70]
    assert market.stock.tolist() == [0, 0]


def test_a_relist_after_the_sale_stays() -> None:
    """The first was sold at 70, and the seller lists again at 80, because the sale fell through."""
    market = state([1, 1])
    _sell(market, np.array([0]), np.array([70]))
    sell_copies(twins([0, 80]), market)
    assert market.gone.tolist() == [70, FOREVER]


def test_a_withdrawn_listing_takes_nothing_with_it() -> None:
    """The first was taken down at 60, unsold: the relist stays up."""
    market = state([1, 1], gone=[60, FOREVER])
    sell_copies(twins([0, 50]), market)
    assert market.gone.tolist() == [60, FOREVER]


def test_what_cannot_have_happened_is_left_out() -> None:
    """A listing gone at 100: a view at 99 and the sale at 100 happened, a view at 100 and a sale at 101 did not."""
    count = 4
    number, small = np.zeros(count, np.int64), np.zeros(count, np.int8)
    events = np.array([Event.VIEW, Event.PURCHASE, Event.VIEW, Event.PURCHASE], np.int8)
    rows = Rows(number, number, events, np.array([99, 100, 100, 101]), number, small, number, number)
    assert possible(rows, state([0], gone=[100])).time.tolist() == [99, 100]
