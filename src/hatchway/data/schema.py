"""The columns of a store and their types, the events that are known, and why a row may be rejected: said once, here."""

from types import MappingProxyType

import polars as pl

REQUIRED = ("buyer", "item", "order")
"""The event columns that every store has; every other one may be absent."""

EVENT_TYPES = MappingProxyType(
    {
        "buyer": None,  # Int64 or String: the user's own ids, as they came
        "item": None,  # the same
        "event": pl.String(),
        "time": pl.Int64(),  # Unix seconds, UTC
        "order": pl.Int64(),  # position in the source; breaks ties of time, and stands for time where there is none
        "session": None,  # Int64 or String
        "position": pl.Int64(),  # the slot that the item was shown in, counted as the source counts
        "weight": pl.Float32(),
        "rating": pl.Float32(),  # stars, on the source's own scale
        "query": pl.String(),  # what was typed
        "query_item": None,  # the listing being looked at; the type of `item`
        "split": pl.String(),  # "train", "validation" or "test", where the source gives a split
    }
)
"""The event columns with a meaning, in the order in which they are stored; None: an id, Int64 or String."""

CATALOGUE_TYPES = MappingProxyType(
    {
        "item": None,
        "title": pl.String(),
        "category": pl.String(),
        "price": pl.Float64(),
        "seller": None,
        "photo": None,  # String (a path) or UInt64 (a perceptual hash)
        "listed": pl.Int64(),  # Unix seconds, UTC
        "gone": pl.Int64(),  # Unix seconds, UTC; null while the item is for sale
    }
)
"""The catalogue columns with a meaning, in the order in which they are stored."""

ID_COLUMNS = ("buyer", "item", "session", "query_item", "seller")

SPLITS = ("train", "validation", "test")

KNOWN_EVENTS = MappingProxyType(
    {
        "impression": "the item was shown",
        "click": "a shown item was clicked",
        "view": "the item's page was opened",
        "save": "the item was saved, liked or put on a wish list",
        "message": "the buyer wrote to the seller, or made an offer",
        "cart": "the item was put into the basket",
        "purchase": "the item was bought",
        "rating": "the item was rated; the stars are in the column `rating`",
    }
)
"""The events that an importer takes without being told more, and what they mean."""

REASONS = MappingProxyType(
    {
        "fields": "the row has not the fields that the format asks for",
        "no buyer": "the buyer is missing",
        "no item": "the item is missing",
        "no time": "the time is missing",
        "time not understood": "the time is no number, no ISO date, nor, in the log, in the --time-format given",
        "absurd time": "the time is before 1970 or after 2099",
        "time in another unit": "the time is, say, in milliseconds where the rest is in seconds",
        "unknown event": "the event is none of those known or given with --event",
        "number not understood": "a position, weight, rating or price is below 0 or not like 12.50; an id too long",
        "unknown split": "the split is none of train, validation, test",
        "repeat": "every field is as in an earlier row, time included",
        "repeated item": "the item stands in the catalogue already, earlier in the file",
    }
)
"""Why a row may be rejected: the short name that stands in ``rejected.parquet``, and what it means."""

REJECTED_TYPES = MappingProxyType({"file": pl.String(), "line": pl.Int64(), "reason": pl.String(), "text": pl.String()})
"""The columns of ``rejected.parquet``."""
