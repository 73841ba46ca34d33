"""What a page shows of an item, and finding items by title or id."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from hatchway.errors import UnknownIdError
from hatchway.index.protocol import Float32, Int64
from hatchway.serving.placeholder import placeholder
from hatchway.serving.stock import Stock
from hatchway.serving.words import Words
from hatchway.settings import Settings

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

PHOTO_TYPES = {
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
"""Files that may be served as photos, by the end of their names."""


class PageSettings(Settings):
    """How the pages look.

    Attributes:
        name: what the site is called.
        currency: what stands before a price, e.g. ``"€"``.
        photos: the folder that the catalogue's photo paths start from; without it placeholders are drawn.
        row: how many items the row "More like this" has.
    """

    name: str = "Hatchway"
    currency: str = ""
    photos: Path | None = None
    row: int = 12


@dataclass(frozen=True)
class Listing:
    """One item, in words that a page can print; what the catalogue does not know is empty.

    Attributes:
        item: the external id.
        title: the title, or one made of the id.
        category: the category.
        price: the price, with its currency.
        seller: the seller.
        listed: the day it was listed.
        gone: the day it was sold or taken down.
        engagements: how many training engagements it has, or None.
        photo: whether there is a photo file.
        link: its id, quoted for a URL.
        drawing: an SVG image that stands in for a photo.
        score: the dot product with the query, where it stands in a row.
        others: how many that are alike it stands for in a row.
        sold: whether it is not for sale any more, or was left out of the bundle as gone.
    """

    item: int | str
    title: str
    category: str
    price: str
    seller: str
    listed: str
    gone: str
    engagements: int | None
    photo: bool
    link: str
    drawing: str
    score: float | None = None
    others: int = 0
    sold: bool = False


class Listings:
    """The items as a page shows them.

    Args:
        stock: what is for sale.
        settings: how the pages look.
        words: of the stock's bundle, where they were read before.
    """

    def __init__(self, stock: Stock, settings: PageSettings, words: Words | None = None) -> None:
        self.stock = stock
        self.words = words or Words(stock.catalogue)
        self._settings = settings
        self._photos = settings.photos.resolve() if settings.photos is not None else None

    def at(
        self, rows: Int64, scores: Float32 | None = None, others: Sequence[Sequence[int]] | None = None
    ) -> list[Listing]:
        """Return the items of row numbers, in the order given, with their scores where there are any.

        Args:
            rows: [n] row numbers.
            scores: [n] dot products.
            others: for each of the n the row numbers of those that it stands for.
        """
        given = [None] * len(rows) if scores is None else scores.tolist()
        alike = [len(rest) for rest in others] if others is not None else [0] * len(rows)
        known = zip(rows.tolist(), self.stock.describe(rows), given, alike, strict=True)
        return [
            self._listing(columns, score, count, gone=not self.stock.for_sale(row))
            for row, columns, score, count in known
        ]

    def popular(self, limit: int) -> Int64:
        """Return the row numbers of the items with most engagements, those that are gone last."""
        by_popularity = self.words.by_popularity
        there = self._there[by_popularity]
        return np.concatenate([by_popularity[there], by_popularity[~there]])[:limit]

    @cached_property
    def _there(self) -> npt.NDArray[np.bool_]:
        """Which of the bundle's items are for sale, [N]; an item that was gone when the bundle was made is not."""
        there: npt.NDArray[np.bool_] = ~self.stock.facts.gone
        catalogue = self.stock.catalogue
        if catalogue.has("gone"):
            gone = catalogue.frame["gone"].is_not_null().to_numpy().copy()
            for row, values in self.stock.changed.items():
                gone[row] = values.get("gone") is not None
            there = there & ~gone
        return there

    def search(self, text: str, limit: int) -> tuple[Int64, int]:
        """Find items whose title or id has every word of ``text``.

        An item whose id is exactly ``text`` stands first, then posted listings, the newest first, then the others by
        their engagements.

        Returns:
            up to ``limit`` row numbers, and how many there are in all.
        """
        asked = text.lower().split()
        matching = np.ones(len(self.words.of_items), np.bool_)
        for word in asked:
            matching &= self.words.of_items.str.contains(word, literal=True).to_numpy()
        for row, values in self.stock.changed.items():
            if "title" in values:
                words = f"{values['title'] or ''} {self.stock.catalogue.ids[row]}".lower()
                matching[row] = all(word in words for word in asked)
        found = self.words.by_popularity[matching[self.words.by_popularity]]
        posted = [
            len(self.words.of_items) + place
            for place, known in enumerate(self.stock.posted.known)
            if all(word in f"{known.get('title') or ''} {known['item']}".lower() for word in asked)
        ]
        found = np.concatenate([np.array(posted[::-1], np.int64), found])
        try:
            exact = self.stock.row(text.strip())
        except UnknownIdError:
            return found[:limit], len(found)
        found = np.concatenate([np.array([exact], np.int64), found[found != exact]])
        return found[:limit], len(found)

    def photo_file(self, name: object) -> Path | None:
        """Return the file of a photo: there, inside the folder of photos, and of a type that may be served.

        Args:
            name: what the catalogue says; a path from the folder of photos, or no path at all.
        """
        if self._photos is None or not isinstance(name, str) or "\0" in name:
            return None
        try:
            path = (self._photos / name).resolve()
            allowed = path.is_relative_to(self._photos) and path.suffix.lower() in PHOTO_TYPES and path.is_file()
        except (OSError, RuntimeError):  # a name too long for a file, a folder that may not be read, a ring of links
            return None
        return path if allowed else None

    def _listing(self, known: dict[str, Any], score: float | None, others: int, *, gone: bool) -> Listing:
        """Put one row of the catalogue into words."""
        item, category = known["item"], _text(known.get("category"))
        title = _text(known.get("title"))
        return Listing(
            item=item,
            title=title or f"Item {item}",
            category=category,
            price=_price(known.get("price"), self._settings.currency),
            seller=_text(known.get("seller")),
            listed=_day(known.get("listed")),
            gone=_day(known.get("gone")),
            engagements=known.get("engagements"),
            photo=self.photo_file(known.get("photo")) is not None,
            link=quote(str(item), safe=""),
            drawing=placeholder(title, category, str(item)),
            score=score,
            others=others,
            sold=gone or known.get("gone") is not None,
        )


def _text(value: object) -> str:
    """Write a value as text: nothing for null, a list with dots between."""
    if value is None:
        return ""
    return " · ".join(map(str, value)) if isinstance(value, list) else str(value)


def _price(value: float | None, currency: str) -> str:
    """Write a price, without decimals where it has none.

    >>> _price(1250.0, "€"), _price(9.5, ""), _price(None, "€")
    ('€1,250', '9.50', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    return f"{currency}{value:,.0f}" if value == round(value) else f"{currency}{value:,.2f}"


def _day(seconds: int | None) -> str:
    """Write the day of a time in Unix seconds (UTC); nothing where no calendar has that day.

    >>> _day(1772323200), _day(1772323200000000), _day(-(2**60))
    ('1 March 2026', '', '')
    """
    try:
        day = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # before year 1 or after 9999: another unit than seconds, say
        day = None
    if day is None:
        return ""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
