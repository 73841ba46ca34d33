"""Who buys: what each buyer needs on each day, what they like, and how that turns into a liking for a listing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Float32, Int64
from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.listings import LATENT, Int8, Listings
from hatchway.simulation.settings import MarketSettings

NEED = 2.0
RELATED = 0.6
STYLE = 1.0
FABRIC = 0.5
WOOD = 0.5
LOOK = 0.9
APPEAL = 0.65
PRICE = 1.2


@dataclass(frozen=True, eq=False)
class Buyers:
    """M buyers; buyer ids are 1 to M.

    A buyer's taste moves in a straight line from the first to the last day: on day t of D it is
    ``(1 - t/D) * first + t/D * last``.

    Attributes:
        activity: [M] float32 expected sessions a day.
        need: [M, D] int8 category that the buyer looks for on each day.
        style_first, style_last: [M, styles] float32 liking of each style.
        look_first, look_last: [M, 8] float32 liking of each dimension of a model's look.
        fabric: [M, fabrics] float32 liking of each fabric.
        wood: [M, woods] float32 liking of each wood.
        budget: [M] float32, the logarithm of how much more than usual the buyer would spend.
    """

    activity: Float32
    need: Int8
    style_first: Float32
    style_last: Float32
    look_first: Float32
    look_last: Float32
    fabric: Float32
    wood: Float32
    budget: Float32

    def __len__(self) -> int:
        return len(self.activity)

    @property
    def days(self) -> int:
        """Number of days the buyers were drawn for."""
        return int(self.need.shape[1])


def draw_buyers(settings: MarketSettings, seed: int) -> Buyers:
    """Draw the buyers, and for every day of theirs what they look for."""
    random = stream(seed, "market", "buyers")
    count = settings.buyers
    activity = np.exp(random.normal(0.0, 0.8, count))
    # The mean of that distribution is exp(0.8^2 / 2).
    activity = settings.sessions_per_day * activity / np.exp(0.32)

    style_first = _favourites(random, count, len(vocabulary.STYLES))
    look_first = random.standard_normal((count, LATENT), dtype=np.float32) / np.float32(np.sqrt(LATENT))
    style_other = _favourites(random, count, len(vocabulary.STYLES))
    look_other = random.standard_normal((count, LATENT), dtype=np.float32) / np.float32(np.sqrt(LATENT))
    return Buyers(
        activity=activity.astype(np.float32),
        need=_needs(settings, random),
        style_first=style_first,
        style_last=((1 - settings.drift) * style_first + settings.drift * style_other).astype(np.float32),
        look_first=look_first,
        look_last=((1 - settings.drift) * look_first + settings.drift * look_other).astype(np.float32),
        fabric=random.standard_normal((count, len(vocabulary.FABRICS)), dtype=np.float32),
        wood=random.standard_normal((count, len(vocabulary.WOODS)), dtype=np.float32),
        budget=random.normal(0.0, 0.5, count).astype(np.float32),
    )


def _favourites(random: np.random.Generator, buyers: int, styles: int) -> Float32:
    """Draw a liking of every style, [buyers, styles] float32: one favourite, the others around zero."""
    liking = random.normal(0.0, 0.6, (buyers, styles)).astype(np.float32)
    liking[np.arange(buyers), random.integers(styles, size=buyers)] += 1.6
    return liking


def _needs(settings: MarketSettings, random: np.random.Generator) -> Int8:
    """Draw what each buyer looks for on each day, [M, D] int8: the same for some days, then something else."""
    count, days = settings.buyers, settings.days
    share = np.array([category.share for category in vocabulary.CATEGORIES])
    fresh = random.choice(len(share), size=(count, days), p=share / share.sum()).astype(np.int8)
    changes = random.random((count, days)) < 1 / settings.need_days
    changes[:, 0] = True
    since = np.maximum.accumulate(np.where(changes, np.arange(days), 0), axis=1)
    return np.take_along_axis(fresh, since, axis=1)


def taste(buyers: Buyers, listings: Listings, who: Int64, what: Int64, day: int) -> Float32:
    """Return how much each buyer likes each listing on a day: the truth that the market's events follow.

    Args:
        buyers: the buyers.
        listings: the listings.
        who: [n] rows of buyers.
        what: [n] rows of listings; pair i is ``who[i], what[i]``.
        day: 0 to D - 1.

    Returns:
        [n] float32; unbounded, larger is better. Everything a listing is liked for adds up: its kind is what the buyer
        needs (+2.0, +0.6 for a related kind), its style, fabric (where there is any), wood and look are to their
        taste, it appeals to everybody, and its price is near what they would spend.
    """
    models, model = listings.models, listings.model[what]
    category, style = models.category[model], models.style[model]
    need = buyers.need[who, day]
    share = np.float32(day / buyers.days)
    liking = np.where(category == need, np.float32(NEED), np.float32(0))
    liking += np.float32(RELATED) * _RELATED[need, category]
    liking += STYLE * ((1 - share) * buyers.style_first[who, style] + share * buyers.style_last[who, style])
    liking += FABRIC * np.where(_UPHOLSTERED[category], buyers.fabric[who, models.fabric[model]], np.float32(0))
    liking += WOOD * buyers.wood[who, models.wood[model]]
    look = models.latent[model]
    # The dot product of two looks; einsum keeps the products out of memory.
    liking += LOOK * (1 - share) * np.einsum("nd,nd->n", buyers.look_first[who], look)
    liking += LOOK * share * np.einsum("nd,nd->n", buyers.look_last[who], look)
    liking += APPEAL * listings.appeal[what]
    over = np.log(listings.price[what]) - _LOG_PRICE[category] - buyers.budget[who]
    # Too dear hurts, too cheap raises doubts, but only half as much.
    liking -= PRICE * np.where(over > 0, over, -over / 2)
    return liking.astype(np.float32)


def _related() -> npt.NDArray[np.float32]:
    """Return which kinds go together, [categories, categories] float32 of 0 and 1, none with itself."""
    rooms = (
        {"sofa", "armchair", "coffee table", "lamp", "rug", "sideboard"},
        {"chair", "dining table", "sideboard", "lamp"},
        {"bed", "wardrobe", "mirror", "rug"},
        {"desk", "bookcase", "lamp", "chair"},
    )
    names = [category.name for category in vocabulary.CATEGORIES]
    matrix = [[float(a != b and any({a, b} <= room for room in rooms)) for b in names] for a in names]
    return np.array(matrix, np.float32)


_RELATED = _related()
_UPHOLSTERED = np.array([category.upholstered for category in vocabulary.CATEGORIES])
_LOG_PRICE = np.log(np.array([category.price for category in vocabulary.CATEGORIES], np.float32))
