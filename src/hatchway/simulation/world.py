"""The market as it stands between two moments: what is sold, what is popular, who did what, and what can be shown."""

from dataclasses import dataclass, field

import numpy as np

from hatchway.data.engagements import Float32, Int64
from hatchway.simulation.buyers import Buyers
from hatchway.simulation.listings import DAY, Int8, Listings
from hatchway.simulation.recommender import Shelf
from hatchway.simulation.settings import MarketSettings


@dataclass(eq=False)
class State:
    """What the market remembers from one period to the next.

    Attributes:
        gone: [N] Unix seconds at which a listing is or was sold or taken down.
        stock: [N] pieces left.
        last_sale: [N] Unix seconds of the last purchase, 0 for none.
        engagement: [N] float32 what the old recommender counts: views, and ten for a save or message.
        last_kind: [M] kind of furniture that the buyer looked at last, -1 for none.
        acted: sorted ``(buyer * N + item) * 8 + event`` of every save, message and purchase; nobody does one twice.
        recent: the same of the present period, in no order.
        sessions: number of sessions so far.
    """

    gone: Int64
    stock: Int64
    last_sale: Int64
    engagement: Float32
    last_kind: Int8
    acted: Int64
    recent: list[Int64] = field(default_factory=list)
    sessions: int = 0


@dataclass(frozen=True, eq=False)
class World:
    """Everything that a period of the market depends on; only ``state`` and ``shelf`` change.

    Attributes:
        settings: size and rules.
        listings: what is offered over the whole time.
        buyers: who buys.
        shelf: what can be shown.
        state: what is remembered.
    """

    settings: MarketSettings
    listings: Listings
    buyers: Buyers
    shelf: Shelf
    state: State


def opening_state(settings: MarketSettings, listings: Listings, buyers: int, random: np.random.Generator) -> State:
    """Return the state on the first morning: nothing sold, and the old recommender knows what was popular before."""
    days = np.maximum(settings.start - listings.listed, 0) / DAY
    seen = np.exp(0.9 * listings.appeal + random.normal(0.0, 0.7, len(listings))) * np.minimum(days, 14.0) / 4.0
    return State(
        gone=listings.expires.copy(),
        stock=listings.stock.astype(np.int64),
        last_sale=np.zeros(len(listings), np.int64),
        engagement=seen.astype(np.float32),
        last_kind=np.full(buyers, -1, np.int8),
        acted=np.zeros(0, np.int64),
    )
