"""The manifest of a store: what is in it, and the hash of every part."""

from typing import Literal

import pydantic

MANIFEST = "manifest.json"

IdType = Literal["integer", "string"]


class StorePart(pydantic.BaseModel):
    """One file of the store: path (relative, with forward slashes), rows, and sha256."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    path: str
    rows: int
    sha256: str


class StoreManifest(pydantic.BaseModel):
    """What a store says of itself.

    Attributes:
        origin: who wrote it: the importer's name, or ``"python"``.
        buyer_type: type of the buyers' ids.
        item_type: type of the items' ids.
        events: rows of the log.
        buyers: how many different buyers the log has.
        items: rows of the catalogue.
        event_columns: the columns of the log.
        catalogue_columns: the columns of the catalogue.
        rejected: rows turned away, by reason.
        notes: what the importer had to say, line by line.
        parts: every file but the manifest, in the order in which :meth:`Store.events` reads them.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    format: Literal["hatchway-store"] = "hatchway-store"
    version: Literal[1] = 1
    origin: str
    buyer_type: IdType
    item_type: IdType
    events: int
    buyers: int
    items: int
    event_columns: tuple[str, ...]
    catalogue_columns: tuple[str, ...]
    rejected: dict[str, int]
    notes: tuple[str, ...]
    parts: tuple[StorePart, ...]
