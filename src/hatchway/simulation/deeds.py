"""What buyers do with a listing that they have opened: save it, write to the seller, buy it; and what a sale ends."""

import numpy as np

from hatchway.data.engagements import Int64
from hatchway.simulation.buyers import taste
from hatchway.simulation.events import Event, Rows
from hatchway.simulation.listings import Bools, Listings
from hatchway.simulation.world import State, World

SAVE_AT = 4.6  # liking at which a save is as likely as not
MESSAGE_AT = 6.0
BUY = 0.22  # chance that a message leads to a purchase
BUY_AFTER = 4 * 3_600  # seconds, the median; the logarithm has a standard deviation of 0.8


def act(world: World, views: Rows, day: int, random: np.random.Generator) -> list[Rows]:
    """Let those who opened a listing save it, write to its seller, and perhaps buy it.

    Args:
        world: the market; its state learns of the sales.
        views: the openings.
        day: the day.
        random: the period's stream.

    Returns:
        The saves, the messages and the purchases; these may lie hours ahead.
    """
    state, count = world.state, len(views)
    liking = taste(world.buyers, world.listings, views.buyer, views.item, day).astype(np.float64)
    saves = random.random(count) < 1 / (1 + np.exp(SAVE_AT - liking))
    writes = random.random(count) < 1 / (1 + np.exp(MESSAGE_AT - liking))
    # Whoever forgot the listing answers nobody.
    buys = writes & (random.random(count) < BUY) & ~world.listings.stale[views.item]
    saved = views.time + random.integers(5, 90, size=count)
    written = saved + random.integers(5, 60, size=count)
    bought = written + np.exp(random.normal(np.log(BUY_AFTER), 0.8, count)).astype(np.int64)
    parts = []
    for event, does, time in (
        (Event.SAVE, saves, saved),
        (Event.MESSAGE, writes, written),
        (Event.PURCHASE, buys, bought),
    ):
        key = (views.buyer * len(world.listings) + views.item) * 8 + int(event)
        rows = np.flatnonzero(does & (time < state.gone[views.item]) & ~_among(key, state))
        if event == Event.PURCHASE:
            rows = rows[_sell(state, views.item[rows], time[rows])]
        parts.append(views.take(rows).becoming(event, time[rows]))
        state.recent.append(key[rows])
    return parts


def _sell(state: State, item: Int64, time: Int64) -> Int64:
    """Let the earliest buyers have the pieces that are left, and return which they are; sold-out listings are gone."""
    order = np.lexsort((time, item))
    first = np.searchsorted(item[order], item[order], side="left")
    sold = order[np.arange(len(order)) - first < state.stock[item[order]]]
    np.subtract.at(state.stock, item[sold], 1)
    np.maximum.at(state.last_sale, item[sold], time[sold])
    empty = item[sold][state.stock[item[sold]] == 0]
    state.gone[empty] = np.minimum(state.gone[empty], state.last_sale[empty])
    return sold


def sell_copies(listings: Listings, state: State) -> None:
    """Take down the other listing of an object that is listed twice and was sold through one of the two.

    A listing that appears after the sale stays: its seller lists again because the sale fell through.
    """
    copy = np.flatnonzero(listings.relists >= 0)
    origin = listings.relists[copy]
    for sold, other in ((origin, copy), (copy, origin)):
        at = state.gone[sold]
        both = (state.stock[sold] == 0) & (listings.listed[other] < at) & (at < state.gone[other])
        state.gone[other[both]] = at[both]
        state.stock[other[both]] = 0


def possible(rows: Rows, state: State) -> Rows:
    """Leave out what could not happen, because the listing was gone by then.

    Sessions of one period go on side by side, so one may have opened a listing whose last piece went a little before.
    """
    gone = state.gone[rows.item]
    return rows.take((rows.time < gone) | ((rows.time == gone) & (rows.event == Event.PURCHASE)))


def _among(keys: Int64, state: State) -> Bools:
    """Say which of the keys stand for something that was done before."""
    at = np.minimum(np.searchsorted(state.acted, keys), max(len(state.acted) - 1, 0))
    before = state.acted[at] == keys if len(state.acted) else np.zeros(len(keys), np.bool_)
    return before | np.isin(keys, np.concatenate(state.recent)) if state.recent else before
