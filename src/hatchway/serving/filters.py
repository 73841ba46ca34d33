"""What a row may be narrowed to: categories, a range of prices, sellers; and the columns that say so, as numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.errors import UsageError
from hatchway.index.protocol import Int64
from hatchway.serving.names import NONE, Codes, Names

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Filters:
    """What a row is narrowed to; an item that lacks a column passes no filter that wants something of it.

    Attributes:
        categories: one of these; any where there is none.
        price_min: at least this.
        price_max: at most this.
        sellers: one of these; any where there is none.
        not_sellers: none of these.
    """

    categories: tuple[str, ...] = ()
    price_min: float | None = None
    price_max: float | None = None
    sellers: tuple[str, ...] = ()
    not_sellers: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether everything passes."""
        return self == Filters()

    def needs(self) -> tuple[str, ...]:
        """Name the catalogue columns that are asked for."""
        prices = self.price_min is not None or self.price_max is not None
        wanted = {"category": self.categories, "price": prices, "seller": self.sellers or self.not_sellers}
        return tuple(name for name, asked in wanted.items() if asked)


@dataclass(frozen=True, eq=False)
class Facts:
    """What decides whether each of n items may stand in a row.

    Attributes:
        gone: [n] bool, not for sale.
        category: [n] int64 numbers of names.
        seller: [n] int64 numbers of names.
        price: [n] float64, NaN where there is none.
        same_title: [n] uint64, equal where seller and title are; 0 where it cannot be told.
        same_photo: [n] uint64, equal where seller and photo are; 0 where it cannot be told.
    """

    gone: Bools
    category: Codes
    seller: Codes
    price: npt.NDArray[np.float64]
    same_title: npt.NDArray[np.uint64]
    same_photo: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.gone)

    def replaced(self, places: Int64, others: Self) -> Self:
        """Return the facts with some items' replaced; what is at or beyond the end is put there."""
        inside = places < len(self)

        def column(name: str) -> Any:
            mine, theirs = getattr(self, name), getattr(others, name)
            whole = np.concatenate([mine, theirs[~inside]])
            whole[places[inside]] = theirs[inside]
            return whole

        return type(self)(*(column(field.name) for field in fields(self)))


@dataclass(frozen=True)
class Naming:
    """The numbers of categories and of sellers."""

    category: Names
    seller: Names

    def facts(self, frame: pl.DataFrame, gone: Bools, *, whole: bool = False) -> Facts:
        """Read the facts of some items.

        Args:
            frame: [n] rows with any of the catalogue's columns.
            gone: [n] which of them are not for sale.
            whole: they are the whole catalogue that the numbers are of.
        """

        def codes(name: str, names: Names) -> Codes:
            if name not in frame.columns:
                return np.full(len(frame), NONE, np.int64)
            return names.all_codes(frame[name]) if whole else names.codes(frame[name])

        price = frame["price"].cast(pl.Float64).to_numpy() if "price" in frame.columns else np.full(len(frame), np.nan)
        return Facts(
            gone=gone,
            category=codes("category", self.category),
            seller=codes("seller", self.seller),
            price=np.array(price, np.float64),
            **_marks(frame),
        )


def _marks(frame: pl.DataFrame) -> dict[str, npt.NDArray[np.uint64]]:
    """Return equal numbers for items of one seller that share a title, or a photo.

    Where the seller is unknown, title and photo together have to be the same.
    """

    def text(name: str) -> pl.Expr:
        return pl.col(name).cast(pl.String) if name in frame.columns else pl.lit(None, pl.String)

    seller, photo = text("seller"), text("photo")
    words = text("title").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
    title = pl.when(words != "").then(words)
    by_title = pl.coalesce(
        pl.concat_str(pl.lit("seller"), seller, title, separator="\0"),
        pl.concat_str(pl.lit("photo"), photo, title, separator="\0"),
    )
    by_photo = pl.concat_str(seller, photo, separator="\0")
    marks = {"same_title": by_title, "same_photo": by_photo}
    found = frame.with_columns(
        pl.when(by.is_not_null()).then(by.hash(seed=7)).otherwise(pl.lit(0, pl.UInt64)).alias(name)
        for name, by in marks.items()
    )
    return {name: np.array(found[name].to_numpy(), np.uint64) for name in marks}


@dataclass(frozen=True)
class Wanted:
    """A filter with its names as numbers: asked of any items' facts. None where nothing is narrowed."""

    category: Codes | None
    seller: Codes | None
    not_seller: Codes | None
    price_min: float | None
    price_max: float | None

    @classmethod
    def of(cls, filters: Filters, naming: Naming) -> Self:
        """Look the names of a filter up; one that no item has lets nothing pass."""
        return cls(
            category=naming.category.some(filters.categories) if filters.categories else None,
            seller=naming.seller.some(filters.sellers) if filters.sellers else None,
            not_seller=naming.seller.some(filters.not_sellers) if filters.not_sellers else None,
            price_min=filters.price_min,
            price_max=filters.price_max,
        )

    def passing(self, facts: Facts, rows: Int64 | None = None) -> Bools:
        """Say which items may stand in the row: for sale, and within the filter.

        Args:
            facts: of n items.
            rows: [m] which of them are asked about; all where None.

        Returns:
            [m] or [n] bool.
        """
        chosen: slice | Int64 = slice(None) if rows is None else rows
        passing: Bools = ~facts.gone[chosen]
        for codes, wanted, outside in (
            (facts.category, self.category, False),
            (facts.seller, self.seller, False),
            (facts.seller, self.not_seller, True),
        ):
            if wanted is not None:
                passing &= _among(codes[chosen], wanted) != outside
        with np.errstate(invalid="ignore"):  # no price is not a number, and passes no range
            if self.price_min is not None:
                passing &= facts.price[chosen] >= self.price_min
            if self.price_max is not None:
                passing &= facts.price[chosen] <= self.price_max
        return passing


def _among(codes: Codes, wanted: Codes) -> Bools:
    """Say which codes are among a few."""
    found = np.zeros(len(codes), np.bool_)
    for code in wanted.tolist():
        found |= codes == code
    return found


def check_categories(filters: Filters, naming: Naming) -> None:
    """Refuse a category that no item has: a row that is empty for a misspelling would pass for an answer.

    Raises:
        UsageError: there is no such category; some that there are are named.
    """
    for name in filters.categories:
        if not naming.category.has(name):
            there = ", ".join(map(repr, naming.category.like(name)))
            raise UsageError(f"no item has the category {name[:80]!r}; there are, among others, {there or 'none'}")


def checked_filters(filters: Filters, columns: Iterable[str]) -> Filters:
    """Return a filter that can be asked of a catalogue.

    Raises:
        UsageError: the catalogue lacks a column that the filter asks for, or the range of prices is empty.
    """
    there = tuple(columns)
    absent = [name for name in filters.needs() if name not in there]
    if absent:
        raise UsageError(
            f"the filter asks for the {absent[0]}, and the catalogue has no such column; it has {', '.join(there)}"
        )
    low, high = filters.price_min, filters.price_max
    if low is not None and high is not None and low > high:
        raise UsageError(f"price_min = {low:g} is above price_max = {high:g}; no price is between them")
    return filters
