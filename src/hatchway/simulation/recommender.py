"""The old recommender: what the marketplace showed before there was a model, and why its log is biased.

It knows the kind and style of the page it fills and how much each listing was engaged with so far, and nothing of the
buyer. What is popular is shown more, is therefore engaged with more, and is shown more again; most listings are never
shown at all.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Float32, Int64
from hatchway.simulation import vocabulary
from hatchway.simulation.listings import DAY, Int8, Listings
from hatchway.simulation.settings import MarketSettings

Float64 = npt.NDArray[np.float64]
_STYLES = len(vocabulary.STYLES)
_CELLS = len(vocabulary.CATEGORIES) * _STYLES


class Source(IntEnum):
    """Where a candidate for a page comes from."""

    SAME_STYLE = 0  # the page's kind and style, the popular ones first
    SAME_KIND = 1  # the page's kind, the popular ones first
    FRESH = 2  # the page's kind, whatever its popularity
    EVERYWHERE = 3  # the whole market, the popular ones first


@dataclass(frozen=True)
class PageKind:
    """How one kind of page is filled.

    Attributes:
        shares: probability of each :class:`Source` for each candidate.
        match: how much a candidate of the page's style is put forward.
    """

    shares: tuple[float, float, float, float]
    match: float


FEED = PageKind(shares=(0.0, 0.5, 0.2, 0.3), match=0.0)
SEARCH = PageKind(shares=(0.6, 0.3, 0.1, 0.0), match=2.0)
SIMILAR = PageKind(shares=(0.5, 0.3, 0.1, 0.1), match=1.0)

CANDIDATES_PER_SLOT = 2
SHUFFLE = 0.7  # standard deviation of what is added to a candidate's score, so that pages differ


class Shelf:
    """What can be shown during one period, arranged so that a page is filled by a few binary searches.

    Living listings stand by (kind, style); the running sum of their popularity in that order gives draws in proportion
    to popularity from any kind and style, from any kind, and from everywhere.

    Attributes:
        slots: number of slots of a page.
        looked_at: [slots] float64 chance that a buyer looks at a slot at all.
    """

    def __init__(self, settings: MarketSettings, listings: Listings) -> None:
        self._settings = settings
        self.slots = settings.slots
        self.looked_at = np.arange(1, settings.slots + 1) ** -settings.position_bias
        cell = listings.category.astype(np.int64) * _STYLES + listings.style
        self._listings = listings
        self._order = np.argsort(cell, kind="stable")
        self._starts = np.searchsorted(cell[self._order], np.arange(_CELLS + 1))
        self._popular = np.zeros(len(listings) + 1)
        self._living = np.zeros(len(listings) + 1)
        self._score = np.zeros(len(listings), np.float32)

    def restock(self, now: int, gone: Int64, engagement: Float32) -> None:
        """Arrange what is for sale at ``now``.

        Args:
            now: Unix seconds.
            gone: [N] when each listing is or was taken down or sold.
            engagement: [N] how much each listing was engaged with so far.
        """
        weight = (1.0 + engagement.astype(np.float64)) ** self._settings.popularity_weight
        age = np.maximum(now - self._listings.listed, 0) / DAY
        weight *= 0.4 + np.exp(-age / 7.0)
        living = (self._listings.listed <= now) & (gone > now)
        self._score = np.log(weight).astype(np.float32)
        np.cumsum(np.where(living, weight, 0.0)[self._order], out=self._popular[1:])
        np.cumsum(living[self._order].astype(np.float64), out=self._living[1:])

    def fill(self, page: PageKind, category: Int8, style: Int8, random: np.random.Generator) -> Int64:
        """Fill P pages of one kind, the best candidate first.

        Args:
            page: the kind of page.
            category: [P] kind of furniture of each page, -1 for none (then everything comes from everywhere).
            style: [P] style of each page, -1 for none.
            random: the stream of the period.

        Returns:
            [P, slots] int64 rows of listings, no listing twice on a page, -1 where nothing was left to show.
        """
        pages, slots = len(category), self._settings.slots
        shape = (pages, slots * CANDIDATES_PER_SLOT)
        source = np.searchsorted(np.cumsum(page.shares), random.random(shape), side="right").astype(np.int8)
        source = np.where(category[:, None] < 0, Source.EVERYWHERE, np.minimum(source, Source.EVERYWHERE))
        source = np.where((style[:, None] < 0) & (source == Source.SAME_STYLE), Source.SAME_KIND, source)
        first = np.maximum(category, 0).astype(np.int64) * _STYLES
        cell = first + np.maximum(style, 0)
        begin = np.where(source == Source.SAME_STYLE, cell[:, None], first[:, None])
        end = np.where(source == Source.SAME_STYLE, cell[:, None] + 1, first[:, None] + _STYLES)
        everywhere = source == Source.EVERYWHERE
        begin, end = np.where(everywhere, 0, begin), np.where(everywhere, _CELLS, end)
        candidates = self._draw(source == Source.FRESH, self._starts[begin], self._starts[end], random.random(shape))

        matches = self._listings.style[candidates] == style[:, None]
        score = self._score[candidates] + np.float32(page.match) * matches
        score += np.float32(SHUFFLE) * random.standard_normal(shape, dtype=np.float32)
        return _best(candidates, score, slots)

    def _draw(self, fresh: npt.NDArray[np.bool_], begin: Int64, end: Int64, uniform: Float64) -> Int64:
        """Draw one living listing from each run ``begin:end`` of the order, -1 where none lives there."""
        drawn = np.full(uniform.shape, -1, np.int64)
        for running, chosen in ((self._living, fresh), (self._popular, ~fresh)):
            low, high = running[begin[chosen]], running[end[chosen]]
            at = np.searchsorted(running, low + uniform[chosen] * (high - low), side="right") - 1
            # Rounding may land one past the run; the entry before it that lives is then the last of the run.
            last = np.searchsorted(running, high, side="left") - 1
            drawn[chosen] = np.where(high > low, self._order[np.minimum(at, last)], -1)
        return drawn


def _best(candidates: Int64, score: Float32, slots: int) -> Int64:
    """Keep each page's ``slots`` best distinct candidates, best first, -1 where there are fewer."""
    by_id = np.argsort(candidates, axis=1, kind="stable")
    ordered = np.take_along_axis(candidates, by_id, axis=1)
    repeated = np.zeros(ordered.shape, bool)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    value = np.where(repeated | (ordered < 0), -np.inf, np.take_along_axis(score, by_id, axis=1))
    best = np.argsort(-value, axis=1, kind="stable")[:, :slots]
    shown = np.take_along_axis(ordered, best, axis=1)
    return np.where(np.take_along_axis(value, best, axis=1) > -np.inf, shown, -1)
