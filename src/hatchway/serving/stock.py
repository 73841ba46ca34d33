"""What is for sale right now: the catalogue of a bundle, and what was posted since it was made.

A stock never changes; a post gives another one (:func:`hatchway.serving.restocking.restocked`), which shares what
stayed as it was. So a request that holds one sees one state from its beginning to its end, whatever is posted.

Row numbers below N are the bundle's items; from N on stand the posted ones, in the order in which they came.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.index.bundle import Bundle
from hatchway.index.item_encoder import ItemEncoder
from hatchway.index.model_bundle import encoder_of
from hatchway.index.protocol import Float32, Int64
from hatchway.serving.filters import Facts, Filters, Naming, Wanted, check_categories, checked_filters
from hatchway.serving.lookup import IdLookup
from hatchway.serving.names import Names
from hatchway.serving.post_columns import Columns
from hatchway.serving.posts import Item

_MOST_OF_A_PHOTO = 8
"""A seller's photo on more listings than this is a logo, and says nothing."""


@dataclass(frozen=True, eq=False)
class Posted:
    """The listings that the bundle does not know.

    Attributes:
        items: [M] their ids.
        known: [M] their columns.
        vectors: [M, d] float32.
        facts: of M listings.
        places: id to position.
    """

    items: tuple[Item, ...]
    known: tuple[Mapping[str, Any], ...]
    vectors: Float32
    facts: Facts
    places: Mapping[Item, int]


@dataclass(frozen=True, eq=False)
class Stock:
    """What is for sale; made by :meth:`of`.

    Attributes:
        bundle: what it is based on.
        columns: what a post may say.
        encoder: what places a posted listing; None where the model reads no columns.
        lookup: finds the bundle's items by their ids.
        naming: numbers of categories and sellers.
        indexed: [N] bool, which items the index holds.
        facts: of the bundle's N items, as they are now.
        changed: row number to the columns of the bundle's items that were posted anew.
        posted: the listings that the bundle does not know.
        unplaced: how many posted listings no vector could be made for.
    """

    bundle: Bundle
    columns: Columns
    encoder: ItemEncoder | None
    lookup: IdLookup
    naming: Naming
    indexed: npt.NDArray[np.bool_]
    facts: Facts
    changed: Mapping[int, Mapping[str, Any]]
    posted: Posted
    unplaced: frozenset[Item] = frozenset()

    @classmethod
    def of(cls, bundle: Bundle) -> Self:
        """Read the catalogue of a bundle, as it was when the bundle was made.

        Raises:
            ArtefactError: a part of the bundle does not fit the others.
        """
        catalogue, encoder = bundle.catalogue, encoder_of(bundle)
        frame = catalogue.frame
        gone = frame["gone"].is_not_null().to_numpy() if catalogue.has("gone") else np.zeros(len(frame), np.bool_)
        some_are_left_out = bundle.manifest.index.vectors == int((~gone).sum())
        # An index that holds what is gone was asked to.
        indexed = ~gone if some_are_left_out else np.ones(len(frame), np.bool_)
        absent = pl.Series([], dtype=pl.String)
        naming = Naming(*(Names(frame[name] if catalogue.has(name) else absent) for name in ("category", "seller")))
        facts = naming.facts(frame, np.array(~indexed), whole=True)
        nothing = naming.facts(frame.head(0), np.empty(0, np.bool_))
        columns = Columns.of(catalogue, encoder.reading if encoder is not None else None)
        none_yet = Posted((), (), np.empty((0, bundle.manifest.dimension), np.float32), nothing, {})
        return cls(
            bundle,
            columns,
            encoder,
            IdLookup(catalogue.identifiers),
            naming,
            indexed,
            _without_logos(facts),
            {},
            none_yet,
        )

    def __len__(self) -> int:
        """N + M."""
        return len(self.facts) + len(self.posted.items)

    @property
    def catalogue(self) -> Catalogue:
        """The bundle's items."""
        return self.bundle.catalogue

    @cached_property
    def outside(self) -> Int64:
        """The row numbers of what may be for sale and is not in the index: posted listings, and items back for sale."""
        back = np.flatnonzero(~self.indexed & ~self.facts.gone)
        return np.concatenate([back, np.arange(len(self.facts), len(self))]).astype(np.int64)

    @cached_property
    def gone_since(self) -> int:
        """How many items of the index are not for sale any more."""
        return int((self.indexed & self.facts.gone).sum())

    def row(self, identifier: str | int) -> int:
        """Return the row number of an id.

        Raises:
            UnknownIdError: neither the catalogue nor a post has it.
        """
        row = self._row(identifier)
        return self.catalogue.row(identifier) if row is None else row

    def rows(self, items: Sequence[str | int]) -> Int64:
        """Return the row number of every id, -1 where there is no such item."""
        found = [self._row(item) for item in items]
        return np.array([-1 if row is None else row for row in found], np.int64)

    def ids(self, rows: Int64) -> list[Item]:
        """Return the ids of row numbers."""
        return [known["item"] for known in self.describe(rows, ("item",))]

    def describe(self, rows: Int64, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the columns of row numbers as they are now, each with its ``item``; all columns where None."""
        base = rows < len(self.facts)
        frame = self.catalogue.frame
        wanted = frame.columns if names is None else [name for name in names if name in frame.columns]
        columns = [frame.get_column(name)[rows[base]].to_list() for name in wanted]
        of_base = iter([dict(zip(wanted, values, strict=True)) for values in zip(*columns, strict=True)])
        found = []
        for row, is_base in zip(rows.tolist(), base.tolist(), strict=True):
            known = next(of_base) | dict(self.changed.get(row, ())) if is_base else dict(self._posted_at(row))
            found.append(known if names is None else {name: known.get(name) for name in names})
        return found

    def vectors(self, rows: Int64) -> Float32:
        """Return the [n, d] vectors of row numbers."""
        base = rows < len(self.facts)
        found = np.empty((len(rows), self.bundle.manifest.dimension), np.float32)
        found[base] = self.bundle.vectors[rows[base]]
        found[~base] = self.posted.vectors[rows[~base] - len(self.facts)]
        return found

    def wanted(self, filters: Filters) -> Wanted:
        """Look the names of a filter up.

        Raises:
            UsageError: the catalogue lacks a column that the filter asks for, no item has a category, or the range of
                prices is empty.
        """
        checked = checked_filters(filters, self.catalogue.frame.columns)
        check_categories(checked, self.naming)
        return Wanted.of(checked, self.naming)

    def passing(self, rows: Int64, wanted: Wanted) -> npt.NDArray[np.bool_]:
        """Say which row numbers are for sale and pass a filter."""
        base = rows < len(self.facts)
        found = np.empty(len(rows), np.bool_)
        found[base] = wanted.passing(self.facts, rows[base])
        found[~base] = wanted.passing(self.posted.facts, rows[~base] - len(self.facts))
        return found

    def marks(self, rows: Int64) -> tuple[list[int], list[int], list[int]]:
        """Return of row numbers the marks of equal titles and of equal photos, and the numbers of the sellers."""
        base = rows < len(self.facts)
        columns = []
        for name in ("same_title", "same_photo", "seller"):
            mine, posted = getattr(self.facts, name), getattr(self.posted.facts, name)
            found = np.empty(len(rows), mine.dtype)
            found[base] = mine[rows[base]]
            found[~base] = posted[rows[~base] - len(self.facts)]
            columns.append(found.tolist())
        return columns[0], columns[1], columns[2]

    def for_sale(self, row: int) -> bool:
        """Say whether an item is for sale."""
        base = len(self.facts)
        return not (self.facts.gone[row] if row < base else self.posted.facts.gone[row - base])

    def _row(self, identifier: str | int) -> int | None:
        """Return the row number of an id, None where there is no such item."""
        item = self.columns.asked(identifier)
        if item is None:
            return None
        place = self.posted.places.get(item)
        return self.lookup.row(item) if place is None else len(self.facts) + place

    def _posted_at(self, row: int) -> Mapping[str, Any]:
        return self.posted.known[row - len(self.facts)]


def _without_logos(facts: Facts) -> Facts:
    """Forget photos that a seller puts on very many listings."""
    marks, inverse, counts = np.unique(facts.same_photo, return_inverse=True, return_counts=True)
    del marks
    return replace(facts, same_photo=np.where(counts[inverse] > _MOST_OF_A_PHOTO, np.uint64(0), facts.same_photo))
