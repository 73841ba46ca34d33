"""The whole market, day by day, as tables: a catalogue, and one table of events for each day."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.buyers import draw_buyers
from hatchway.simulation.deeds import possible
from hatchway.simulation.events import Event, Rows
from hatchway.simulation.listings import DAY, draw_listings, draw_models
from hatchway.simulation.recommender import Shelf
from hatchway.simulation.sessions import PERIODS, searches, simulate_period
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.titles import titles
from hatchway.simulation.world import World, opening_state

EVENT_NAMES = tuple(event.name.lower() for event in Event)


@dataclass(eq=False)
class Market:
    """A market that is simulated by running through :meth:`days` once.

    Attributes:
        world: settings, listings, buyers, and where the market stands; complete when :meth:`days` has ended.
        seed: everything follows from it and the settings.
    """

    world: World
    seed: int

    @classmethod
    def open(cls, settings: MarketSettings, seed: int) -> "Market":
        """Draw the listings and the buyers; no day has passed yet."""
        listings = draw_listings(settings, draw_models(settings, seed), seed)
        buyers = draw_buyers(settings, seed)
        state = opening_state(settings, listings, len(buyers), stream(seed, "market", "opening"))
        return cls(World(settings, listings, buyers, Shelf(settings, listings), state), seed)

    def days(self) -> Iterator[pl.DataFrame]:
        """Simulate day after day and yield each day's events in the order of time.

        Columns: buyer, item (Int64), event (String), time (Int64), session (Int64), position (Int32, null unless it
        is an impression or a view), query_item (Int64, null), query (String, null).
        """
        words = pl.Series("query", searches())
        waiting = Rows.none()
        for day in range(self.world.settings.days):
            parts = [waiting]
            for period in range(PERIODS):
                random = stream(self.seed, "market", "period", day, period)
                parts.append(simulate_period(self.world, day, period, random))
            # A listing that went through its copy cannot be bought any more.
            rows = possible(Rows.joined(parts), self.world.state)
            today = rows.time < self.world.settings.start + (day + 1) * DAY
            # Purchases that come about tomorrow wait until then; those after the last day nobody sees.
            waiting = rows.take(~today)
            yield _table(rows.take(today), words)

    def catalogue(self, photos: bool) -> pl.DataFrame:
        """Return the catalogue as it stands at the end of the days simulated so far.

        Columns: item, title, category, style, price, seller, condition, photo (a path relative to the store, only with
        ``photos``), listed, gone (null while it is for sale).
        """
        listings, settings = self.world.listings, self.world.settings
        end = settings.start + settings.days * DAY
        item = np.arange(1, len(listings) + 1)
        gone = pl.Series("gone", self.world.state.gone)
        frame = pl.DataFrame(
            {
                "item": item,
                "title": titles(listings, self.seed),
                "category": _words([category.name for category in vocabulary.CATEGORIES], listings.category),
                "style": _words(vocabulary.STYLES, listings.style),
                "condition": _words(vocabulary.CONDITIONS, listings.condition),
                "price": pl.Series(listings.price),
                "seller": pl.Series(listings.seller.astype(np.int64) + 1),
                "listed": pl.Series(listings.listed),
                "gone": gone.set(gone >= end, None),
            }
        )
        if photos:
            frame = frame.insert_column(7, photo_paths(item))
        return frame


def photo_paths(item: np.ndarray) -> pl.Series:
    """Return where the photo of each listing lies in the store, [N] String; a thousand to a folder."""
    number = pl.Series("item", item)
    folder = (number // 1_000).cast(pl.String).str.zfill(5)
    return pl.select(pl.format("photos/{}/{}.jpg", folder, number)).to_series().rename("photo")


def _words(words: tuple[str, ...] | list[str], positions: np.ndarray) -> pl.Series:
    """Spell out positions in a list of words, [N] String."""
    return pl.Series(list(words)).gather(pl.Series(positions.astype(np.uint32)))


def _table(rows: Rows, words: pl.Series) -> pl.DataFrame:
    """Turn events into the store's columns, in the order of time; the kinds of one second stand in their own order."""
    order = np.lexsort((rows.position, rows.event, rows.session, rows.time))
    rows = rows.take(order)
    query_item, query = pl.Series(rows.query_item + 1), pl.Series(rows.query)
    position = pl.Series(rows.position.astype(np.int32))
    return pl.DataFrame(
        {
            "buyer": rows.buyer + 1,
            "item": rows.item + 1,
            "event": _words(EVENT_NAMES, rows.event),
            "time": rows.time,
            "session": rows.session + 1,
            "position": position.set(position == 0, None),
            "query_item": query_item.set(query_item == 0, None),
            "query": words.gather(query.set(query < 0, None)),
        }
    )
