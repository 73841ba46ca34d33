"""From a stock and what was posted to the next stock: only what was touched is computed anew."""

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from hatchway.data.schema import CATALOGUE_TYPES
from hatchway.serving.post_columns import Columns
from hatchway.serving.posts import Change, Item, Offence, Record, Value
from hatchway.serving.reconciling import data_end, gone_now, may_be_forgotten, newer_values
from hatchway.serving.stock import Posted, Stock


def restocked(stock: Stock, records: Sequence[Record]) -> Stock:
    """Return the stock in which some listings are as their records say.

    Args:
        stock: what there was.
        records: all that was ever posted of these listings.

    Raises:
        DataError: no vector can be made of a new listing's columns.
    """
    records = [record for record in records if stock.columns.fits(record.item)]
    rows = stock.lookup.rows(record.item for record in records)
    theirs = [(row, record) for row, record in zip(rows, records, strict=True) if row is not None]
    fresh = [record for row, record in zip(rows, records, strict=True) if row is None]
    return _with_posted(_with_changed(stock, theirs), fresh)


def cannot_be_placed(
    stock: Stock, changes: Sequence[Change], touched: Mapping[Item, Record], limit: int
) -> list[Offence]:
    """Name the listings of a post that are nobody's, and that no vector can be made for.

    Args:
        stock: what there is.
        changes: the post.
        touched: what its listings come to.
        limit: the most listings that a stock may have beside its bundle's.
    """
    offences: list[Offence] = []
    fresh: set[Item] = set()
    for place, change in enumerate(changes):
        record, at = touched[change.item], ("listings", place, "item")
        is_known = change.item in stock.posted.places or stock.lookup.row(change.item) is not None
        if is_known or only_gone(record):
            continue
        fresh.add(change.item)
        if stock.encoder is None:
            said = (
                "is not in the catalogue, and this model knows items by their ids only: it cannot place a new one; "
                "train with item columns (settings model.item.categories, numbers, texts or vectors)"
            )
            offences.append((at, said))
        elif not says_something(record, stock.columns):
            columns = ", ".join(stock.columns.read)
            said = f"is not in the catalogue, and says nothing of what places a new one: {columns}"
            offences.append((at, said))
    if len(stock.posted.items) + len(fresh) > limit:
        said = f"are more than {limit:,} new ones with those before; make a bundle that knows them"
        offences.append((("listings",), said))
    return offences


def forget_from(records: MutableMapping[Item, Record], stock: Stock, days: int) -> None:
    """Take out of the records what was posted long ago and the catalogue says as well.

    Args:
        records: all that was posted.
        stock: of the bundle that is to be served.
        days: how long a record is kept in any case.
    """
    since = data_end(stock.bundle.manifest.origin)
    for item, record in list(records.items()) if since is not None else ():
        row = stock.lookup.row(item)
        known = None if row is None else stock.catalogue.frame.row(row, named=True)
        if may_be_forgotten(record, known, since, days):
            del records[item]


def says_something(record: Record, columns: Columns) -> bool:
    """Say whether a record has a value of a column that the model reads."""
    return any(record.values.get(name, (None, 0))[0] is not None for name in columns.read)


def only_gone(record: Record) -> bool:
    """Say whether a record says that something is not for sale, which needs no place."""
    return record.values.get("gone", (None, 0))[0] is not None


def _with_changed(stock: Stock, theirs: Sequence[tuple[int, Record]]) -> Stock:
    """Return the stock with items of the bundle changed."""
    if not theirs:
        return stock
    rows = np.array([row for row, _ in theirs], np.int64)
    since = data_end(stock.bundle.manifest.origin)
    old = stock.catalogue.frame[rows].to_dicts()
    gone = np.array(~stock.indexed[rows])
    new = []
    for place, (known, (_, record)) in enumerate(zip(old, theirs, strict=True)):
        values = newer_values(record, since)
        gone[place], values["gone"] = gone_now(record, known, since, left_out=bool(gone[place]))
        new.append(_readable({name: value for name, value in values.items() if name in CATALOGUE_TYPES}, stock.columns))
    frame = _frame([known | values for known, values in zip(old, new, strict=True)])
    facts = stock.facts.replaced(rows, stock.naming.facts(frame, gone))
    return replace(stock, facts=facts, changed={**stock.changed, **dict(zip(rows.tolist(), new, strict=True))})


def _with_posted(stock: Stock, fresh: Sequence[Record]) -> Stock:
    """Return the stock with listings that the bundle does not know, new ones or new versions of posted ones."""
    placed = [
        record
        for record in fresh
        if stock.encoder is not None and (record.item in stock.posted.places or says_something(record, stock.columns))
    ]
    unplaced = stock.unplaced.union(record.item for record in fresh if not only_gone(record))
    unplaced = unplaced.difference(record.item for record in placed)
    if stock.encoder is None or not placed:
        return replace(stock, unplaced=unplaced)
    known = [
        {"item": record.item} | _readable({name: value for name, (value, _) in record.values.items()}, stock.columns)
        for record in placed
    ]
    frame = _frame(known)
    gone = np.array([entry.get("gone") is not None for entry in known], np.bool_)
    before = stock.posted
    places = dict(before.places)
    for record in placed:
        places.setdefault(record.item, len(places))
    at = np.array([places[record.item] for record in placed], np.int64)
    grown = len(places) - len(before.items)
    entries = [*before.known, *({} for _ in range(grown))]
    vectors = np.concatenate([before.vectors, np.empty((grown, before.vectors.shape[1]), np.float32)])
    vectors[at] = stock.encoder.vectors(frame)
    for place, entry in zip(at.tolist(), known, strict=True):
        entries[place] = entry
    facts = before.facts.replaced(at, stock.naming.facts(frame, gone))
    posted = Posted(tuple(places), tuple(entries), vectors, facts, places)
    return replace(stock, posted=posted, unplaced=unplaced)


def _readable(values: Mapping[str, Value], columns: Columns) -> dict[str, Any]:
    """Return what these columns can hold; what was posted when another bundle was served may be of other columns."""
    found = {}
    for name, value in values.items():
        with suppress(ValueError, KeyError):
            found[name] = columns.value(name, value, 0)
    return found


def _frame(known: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a table of listings; what one of them lacks is null."""
    names = dict.fromkeys(name for entry in known for name in entry)
    return pl.DataFrame([_column(name, [entry.get(name) for entry in known]) for name in names])


def _column(name: str, values: list[Any]) -> pl.Series:
    """Make a column of the type that the catalogue's has; integers and other numbers together are numbers."""
    kind: pl.DataType | None = CATALOGUE_TYPES.get(name)
    if kind is None and any(isinstance(value, int) and value >= 2**63 for value in values):
        kind = pl.UInt64()
    return pl.Series(name, values, dtype=kind, strict=False)
