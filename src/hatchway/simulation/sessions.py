"""Sessions: a buyer enters, looks at pages, opens listings, saves, writes to the seller, buys; all sessions at once.

The day has four periods. In a period every session that is still open takes its next step at the same time (a *round*),
so the work is a few array operations a round whatever the number of buyers.
"""

from dataclasses import dataclass, fields

import numpy as np

from hatchway.data.engagements import Float32, Int64
from hatchway.simulation import vocabulary
from hatchway.simulation.buyers import taste
from hatchway.simulation.deeds import act, possible, sell_copies
from hatchway.simulation.events import Event, Rows
from hatchway.simulation.listings import DAY, Bools, Int8
from hatchway.simulation.recommender import FEED, SEARCH, SIMILAR, Shelf
from hatchway.simulation.world import World

PERIODS = 4
PERIOD = DAY // PERIODS
PERIOD_SHARE = (0.08, 0.22, 0.30, 0.40)  # of a day's sessions: night, morning, afternoon, evening
ROUNDS = 10
LONGEST = 3_600  # seconds that a session can last, rounded up; the last one of a period begins before that

LEAVE = 3.4  # how good a listing has to look to be opened as readily as the page is left
FEED_SHARE = 0.35  # of sessions begin at the feed, the others with a search
GO_ON_OPENED = 0.9
GO_ON_NOTHING = 0.45

_WORTH = np.array([0.0, 1.0, 10.0, 10.0, 0.0])  # what the old recommender counts for each Event


def searches() -> list[str]:
    """List what can be searched for: each kind of furniture plain, with each style, and with each wood or fabric."""
    texts = []
    for category in vocabulary.CATEGORIES:
        colours = vocabulary.FABRICS if category.upholstered else vocabulary.WOODS
        words = ["", *vocabulary.STYLES, *colours]
        words += [""] * (_SEARCHES_PER_KIND - len(words))
        texts += [f"{word} {category.nouns[0]}".strip() for word in words]
    return texts


_SEARCHES_PER_KIND = 1 + len(vocabulary.STYLES) + max(len(vocabulary.FABRICS), len(vocabulary.WOODS))
_UPHOLSTERED = np.array([category.upholstered for category in vocabulary.CATEGORIES])


@dataclass(eq=False)
class _Visit:
    """The open sessions of a period: one entry each.

    Attributes:
        buyer, session, clock: who, which, and the second at which it has arrived.
        category, style: what the present page is about, -1 for nothing.
        query_item: the listing whose page is open, -1 for none.
        query: what was searched for, -1 for nothing.
    """

    buyer: Int64
    session: Int64
    clock: Int64
    category: Int8
    style: Int8
    query_item: Int64
    query: Int64

    def rows(self, which: Int64, item: Int64, position: Int64) -> Rows:
        """Return impressions in the given sessions, now, of the given listings at the given slots."""
        return Rows(
            buyer=self.buyer[which],
            item=item,
            event=np.full(len(which), Event.IMPRESSION, np.int8),
            time=self.clock[which],
            session=self.session[which],
            position=position.astype(np.int8),
            query_item=self.query_item[which],
            query=self.query[which],
        )

    def keep(self, rows: Bools) -> None:
        """Close all sessions but the chosen ones."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def simulate_period(world: World, day: int, period: int, random: np.random.Generator) -> Rows:
    """Simulate one period and return its events in no particular order; purchases may lie some hours after it.

    Args:
        world: the market; its state is brought up to date.
        day: 0 is the first.
        period: 0 to 3.
        random: the period's stream.
    """
    state = world.state
    world.shelf.restock(_beginning(world, day, period), state.gone, state.engagement)
    visit = _enter(world, day, period, random)
    parts = [Rows.none()]
    for _ in range(ROUNDS):
        if len(visit.buyer):
            parts += _round(world, visit, day, random)
    sell_copies(world.listings, state)
    rows = possible(Rows.joined(parts), state)
    state.acted = np.sort(np.concatenate([state.acted, *state.recent]), kind="stable")
    state.recent.clear()
    state.engagement += np.bincount(rows.item, weights=_WORTH[rows.event], minlength=len(state.gone)).astype(np.float32)
    return rows


def _beginning(world: World, day: int, period: int) -> int:
    """Return the Unix second at which a period begins."""
    return world.settings.start + day * DAY + period * PERIOD


def _enter(world: World, day: int, period: int, random: np.random.Generator) -> _Visit:
    """Open the sessions of a period, at most one a buyer, each at its first page."""
    buyers, state = world.buyers, world.state
    chance = 1 - np.exp(-buyers.activity * PERIOD_SHARE[period])
    who = np.flatnonzero(random.random(len(buyers)) < chance)
    count = len(who)
    need = buyers.need[who, day]
    feed = random.random(count) < FEED_SHARE
    # A search names a style, a colour (of the fabric where there is one, else of the wood), or only the kind.
    share = np.float32(day / buyers.days)
    style_liking = (1 - share) * buyers.style_first[who] + share * buyers.style_last[who]
    style = _noisy_best(style_liking, random)
    fabric, wood = _noisy_best(buyers.fabric[who], random), _noisy_best(buyers.wood[who], random)
    colour = np.where(_UPHOLSTERED[need], fabric, wood)
    what = random.random(count)
    word = np.where(what < 0.5, 1 + style, np.where(what < 0.75, 1 + len(vocabulary.STYLES) + colour, 0))
    query = np.where(feed, -1, need.astype(np.int64) * _SEARCHES_PER_KIND + word)
    visit = _Visit(
        buyer=who,
        session=state.sessions + np.arange(count),
        clock=_beginning(world, day, period) + random.integers(PERIOD - LONGEST, size=count),
        category=np.where(feed, state.last_kind[who], need).astype(np.int8),
        style=np.where(~feed & (what < 0.5), style, -1).astype(np.int8),
        query_item=np.full(count, -1),
        query=query,
    )
    state.sessions += count
    return visit


def _noisy_best(liking: Float32, random: np.random.Generator) -> Int64:
    """Choose one column a row, the well-liked ones more often."""
    best: Int64 = np.argmax(liking + random.gumbel(0.0, 0.5, liking.shape), axis=1)
    return best


def _fill(shelf: Shelf, visit: _Visit, random: np.random.Generator) -> Int64:
    """Fill the present page of every open session, [sessions, slots] int64 rows of listings, -1 for an empty slot."""
    shown = np.full((len(visit.buyer), shelf.slots), -1)
    on_listing, searched = visit.query_item >= 0, visit.query >= 0
    for page, chosen in ((SIMILAR, on_listing), (SEARCH, searched), (FEED, ~on_listing & ~searched)):
        shown[chosen] = shelf.fill(page, visit.category[chosen], visit.style[chosen], random)
    shown[shown == visit.query_item[:, None]] = -1  # a listing is not shown on its own page
    return shown


def _round(world: World, visit: _Visit, day: int, random: np.random.Generator) -> list[Rows]:
    """Let every open session look at one page and perhaps open a listing; advances ``visit`` and returns the events."""
    listings, shelf, state = world.listings, world.shelf, world.state
    shown = _fill(shelf, visit, random)
    shown[state.gone[shown] <= visit.clock[:, None]] = -1
    page, slot = np.nonzero(shown >= 0)
    item = shown[page, slot]
    liking = taste(world.buyers, listings, visit.buyer[page], item, day)

    # Slot p is looked at with probability p^-bias; of what was looked at, one is opened, or the page is left.
    looked = random.random(len(page)) < shelf.looked_at[slot]
    value = np.full(shown.shape, -np.inf)
    value[page, slot] = np.where(looked, liking + random.gumbel(size=len(page)), -np.inf)
    best = np.argmax(value, axis=1)
    every = np.arange(len(best))
    opened = value[every, best] > LEAVE + random.gumbel(size=len(best))
    chosen = shown[every, best]

    impressions = visit.rows(page, item, slot + 1)
    visit.clock = visit.clock + random.integers(5, 60, size=len(best))
    who = np.flatnonzero(opened)
    views = visit.rows(who, chosen[who], best[who] + 1).becoming(Event.VIEW)
    parts = [impressions, views, *act(world, views, day, random)]

    # Whoever opened a listing is now on its page; whoever did not may scroll on, which shows another page of the kind.
    visit.clock = visit.clock + random.integers(20, 180, size=len(best))
    kind = listings.category[chosen]
    visit.category = np.where(opened, kind, visit.category).astype(np.int8)
    visit.style = np.where(opened, listings.style[chosen], visit.style).astype(np.int8)
    visit.query_item = np.where(opened, chosen, visit.query_item)
    visit.query = np.where(opened, -1, visit.query)
    state.last_kind[visit.buyer[who]] = kind[who]
    visit.keep(random.random(len(best)) < np.where(opened, GO_ON_OPENED, GO_ON_NOTHING))
    return parts
