"""What is for sale: models of furniture, objects made after them, and the listings that offer those objects.

A *model* is a design (its kind, style, wood, fabric, size and a latent look); an *object* is one piece of a model with
one owner; a *listing* offers an object for a while. The same object may be listed again by its seller (a relist), and
the same model by others.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Float32, Int32, Int64
from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.settings import MarketSettings

Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Bools = npt.NDArray[np.bool_]
DAY = 86_400
LATENT = 8

STALE_LIFE = 4  # a forgotten listing stays up that many times as long as others
NICHE_APPEAL = -1.2
NICHE_LOOK = 2.0  # how far the look of a niche model is from the ordinary, relative to other models


@dataclass(frozen=True, eq=False)
class Models:
    """M designs of furniture.

    Attributes:
        category, style, wood, fabric, size, maker: [M] int8 positions in the lists of :mod:`vocabulary`.
        name: [M] int16 number of the model's name, below ``vocabulary.NAMES``.
        detail, other_detail: [M] int8 two different positions in ``vocabulary.DETAILS`` of the kind.
        latent: [M, 8] float32, the look that no word describes; unit variance in each dimension, four for niche models.
        appeal: [M] float32, what everybody likes or dislikes about the design.
        shape: [M] float32 in [0, 1), the proportions it is drawn with.
    """

    category: Int8
    style: Int8
    wood: Int8
    fabric: Int8
    size: Int8
    maker: Int8
    name: Int16
    detail: Int8
    other_detail: Int8
    latent: Float32
    appeal: Float32
    shape: Float32

    def __len__(self) -> int:
        return len(self.category)


@dataclass(frozen=True, eq=False)
class Listings:
    """N listings in the order of their listing times; listing ids are 1 to N in this order.

    Attributes:
        models: the designs.
        model: [N] int32 design of the object.
        thing: [N] int32 the object; two listings of one object are a relist and what it relists.
        seller: [N] int32.
        condition: [N] int8 position in ``vocabulary.CONDITIONS``.
        price: [N] float32 asking price.
        appeal: [N] float32 what everybody likes about this offer: the design, the photo, the deal.
        listed: [N] int64 Unix seconds.
        expires: [N] int64 Unix seconds at which it is taken down if it is not sold before.
        stock: [N] int32 pieces at hand; above 1 only at dealers.
        makers: [N] bool, whether the seller shows the maker's picture and uses the maker's words.
        stale: [N] bool, whether the seller has forgotten it: it stays up, and nobody who writes gets an answer.
        relists: [N] int32 row of the listing that this one repeats, or -1.
    """

    models: Models
    model: Int32
    thing: Int32
    seller: Int32
    condition: Int8
    price: Float32
    appeal: Float32
    listed: Int64
    expires: Int64
    stock: Int32
    makers: Bools
    stale: Bools
    relists: Int32

    def __len__(self) -> int:
        return len(self.model)

    @cached_property
    def category(self) -> Int8:
        """[N] int8 category of each listing."""
        return self.models.category[self.model]

    @cached_property
    def style(self) -> Int8:
        """[N] int8 style of each listing."""
        return self.models.style[self.model]


def draw_models(settings: MarketSettings, seed: int) -> Models:
    """Draw the designs that exist in the market."""
    random = stream(seed, "market", "models")
    count = max(1, round(settings.listings / settings.objects_per_model))
    share = np.array([category.share for category in vocabulary.CATEGORIES])
    category = random.choice(len(share), size=count, p=share / share.sum()).astype(np.int8)

    def words(vocabulary_size: int) -> Int8:
        return random.integers(vocabulary_size, size=count, dtype=np.int8)

    style = words(len(vocabulary.STYLES))
    # Styles have woods of their own: half of the models take one of the three that belong to the style.
    at_home = (3 * style + random.integers(3, size=count)) % len(vocabulary.WOODS)
    wood = np.where(random.random(count) < 0.5, at_home, words(len(vocabulary.WOODS))).astype(np.int8)
    niche = random.random(count) < settings.niche_share
    latent = random.standard_normal((count, LATENT), dtype=np.float32)
    latent[niche] *= np.float32(NICHE_LOOK)
    appeal = random.standard_normal(count, dtype=np.float32)
    appeal[niche] += np.float32(NICHE_APPEAL)
    details = len(vocabulary.DETAILS[0])
    detail = words(details)
    further = random.integers(1, details, size=count)
    return Models(
        category=category,
        style=style,
        wood=wood,
        fabric=words(len(vocabulary.FABRICS)),
        size=random.choice(3, size=count, p=[0.3, 0.5, 0.2]).astype(np.int8),
        maker=words(len(vocabulary.MAKERS)),
        name=random.integers(vocabulary.NAMES, size=count, dtype=np.int16),
        detail=detail,
        other_detail=((detail + further) % details).astype(np.int8),
        latent=latent,
        appeal=appeal,
        shape=random.random(count, dtype=np.float32),
    )


def draw_listings(settings: MarketSettings, models: Models, seed: int) -> Listings:
    """Draw all listings of the whole time, relists among them.

    The first listings of an object come first and are then repeated by relists; at the end all are put in the order of
    their listing times.
    """
    random = stream(seed, "market", "listings")
    total = settings.listings
    relisted = round(total * settings.relist_share)
    objects = total - relisted
    end = settings.start + settings.days * DAY

    # Some designs were made by the thousand: the weights are long-tailed, so a few models have many copies.
    weight = np.cumsum(np.exp(random.normal(0.0, 1.0, len(models))))
    model = np.searchsorted(weight, random.random(objects) * weight[-1], side="right").astype(np.int32)
    model = np.minimum(model, len(models) - 1).astype(np.int32)
    dealer = random.random(objects) < settings.dealer_share
    private_sellers = max(1, objects // 2)
    dealers = max(1, objects // 200)
    seller = np.where(
        dealer, random.integers(dealers, size=objects), dealers + random.integers(private_sellers, size=objects)
    )
    stock = np.where(dealer, 2 + random.geometric(1 / 12, size=objects), 1)
    condition = random.choice(len(vocabulary.CONDITIONS), size=objects, p=[0.15, 0.3, 0.3, 0.17, 0.08])
    price = _typical_price(models)[model] * np.array(vocabulary.CONDITION_PRICE)[condition]
    deal = random.normal(0.0, 0.25, objects)  # above 0: asked more than such a piece is worth
    price = np.maximum(5.0, np.round(price * np.exp(deal)))
    photo_quality = random.normal(0.0, 0.7, objects)
    appeal = models.appeal[model] + photo_quality - 1.2 * deal + np.where(dealer, 0.5, 0.0)

    makers = random.random(dealers + private_sellers) < settings.makers_share
    stale = (random.random(objects) < settings.stale_share) & ~dealer

    # Those there before the first day are of every age, up to the time at which they would be taken down.
    life = settings.lifetime_days * DAY * random.uniform(0.6, 1.4, objects) * np.where(stale, STALE_LIFE, 1)
    before = random.random(objects) < settings.initial_share
    age = random.random(objects)
    listed = np.where(before, settings.start - age * life, settings.start + age * (end - settings.start)).astype(
        np.int64
    )
    expires = listed + life.astype(np.int64)

    again = _relist(settings, listed, stale, random)
    origin = np.concatenate([np.full(objects, -1), again.origin])
    take = np.concatenate([np.arange(objects), again.origin])
    expires = np.concatenate([np.where(again.withdrawn < expires, again.withdrawn, expires), again.expires])
    listed = np.concatenate([listed, again.listed])
    price = price[take]
    price[objects:] = np.maximum(5.0, np.round(price[objects:] * random.uniform(0.8, 1.0, relisted)))
    appeal = appeal[take]
    appeal[objects:] += random.normal(0.1, 0.2, relisted)

    order = np.argsort(listed, kind="stable")
    place = np.empty(total, np.int64)
    place[order] = np.arange(total)
    origin = origin[order]
    return Listings(
        models=models,
        model=model[take][order],
        thing=take[order].astype(np.int32),
        seller=seller[take][order].astype(np.int32),
        condition=condition[take][order].astype(np.int8),
        price=price[order].astype(np.float32),
        appeal=appeal[order].astype(np.float32),
        listed=listed[order],
        expires=expires[order],
        stock=stock[take][order].astype(np.int32),
        makers=makers[seller][take][order],
        stale=stale[take][order],
        relists=np.where(origin < 0, -1, place[origin]).astype(np.int32),
    )


@dataclass(frozen=True, eq=False)
class _Relists:
    """The relists: which listing each repeats, its times, and when each first listing is withdrawn because of one."""

    origin: Int64
    listed: Int64
    expires: Int64
    withdrawn: Int64


def _relist(settings: MarketSettings, listed: Int64, stale: Bools, random: np.random.Generator) -> _Relists:
    """Choose listings that are relisted two to twenty days after they were listed, as far as that is before the end.

    Seven in ten sellers take the old listing down when they relist; the others leave both up. Nobody relists what they
    have forgotten.
    """
    count = round(settings.listings * settings.relist_share)
    end = settings.start + settings.days * DAY
    earliest = np.maximum(listed + 2 * DAY, settings.start)
    possible = np.flatnonzero((earliest < end - DAY // 4) & ~stale)
    if not len(possible):  # a market of very few listings that began on its one day
        possible = np.arange(len(listed))
        earliest = np.minimum(earliest, end - DAY // 4)
    # An object is listed a third time only where there are more relists to make than objects that can be relisted.
    origin = np.sort(random.choice(possible, size=count, replace=len(possible) < count))
    latest = np.maximum(np.minimum(listed[origin] + 20 * DAY, end - 1), earliest[origin] + 1)
    at = (earliest[origin] + random.random(count) * (latest - earliest[origin])).astype(np.int64)
    life = (settings.lifetime_days * DAY * random.uniform(0.6, 1.4, count)).astype(np.int64)
    withdrawn = np.full(len(listed), np.iinfo(np.int64).max)
    replaced = random.random(count) < 0.7
    np.minimum.at(withdrawn, origin[replaced], at[replaced])
    return _Relists(origin, at, at + life, withdrawn)


def _typical_price(models: Models) -> npt.NDArray[np.float64]:
    """Return what each model costs in good condition, [M] float64."""
    price: npt.NDArray[np.float64] = (
        np.array([category.price for category in vocabulary.CATEGORIES])[models.category]
        * np.array(vocabulary.STYLE_PRICE)[models.style]
        * np.array(vocabulary.SIZE_PRICE)[models.size]
    )
    return price
