"""Everything that one request needs: a bundle, what is for sale of it, and who answers."""

from dataclasses import dataclass, replace
from typing import Self

from hatchway.index.bundle import Bundle
from hatchway.index.model_bundle import queries_of
from hatchway.index.queries import Queries
from hatchway.serving.listings import Listings, PageSettings
from hatchway.serving.ranking import SearchLimits
from hatchway.serving.recommender import Recommender
from hatchway.serving.stock import Stock
from hatchway.serving.words import Words


@dataclass(frozen=True, eq=False)
class Shelf:
    """What is served; it never changes, and another one is put in its place.

    Attributes:
        bundle: what is served.
        digest: which one it is.
        stock: what is for sale.
        recommender: answers.
        listings: what a page shows.
        queries: the query side of the model.
        words: finds items by title or id.
        pages: how the pages look.
        limits: when all items are scored instead of searching deeper.
    """

    bundle: Bundle
    digest: str
    stock: Stock
    recommender: Recommender
    listings: Listings
    queries: Queries
    words: Words
    pages: PageSettings
    limits: SearchLimits

    @classmethod
    def of(cls, bundle: Bundle, pages: PageSettings, limits: SearchLimits) -> Self:
        """Read all of a bundle.

        Raises:
            ArtefactError: a part of it does not fit the others.
        """
        stock, queries, words = Stock.of(bundle), queries_of(bundle), Words(bundle.catalogue)
        recommender = Recommender(bundle, stock, queries, limits)
        listings = Listings(stock, pages, words)
        return cls(bundle, bundle.digest, stock, recommender, listings, queries, words, pages, limits)

    def holding(self, stock: Stock) -> Self:
        """Return the shelf with another stock of the same bundle."""
        recommender = Recommender(self.bundle, stock, self.queries, self.limits)
        return replace(self, stock=stock, recommender=recommender, listings=Listings(stock, self.pages, self.words))
