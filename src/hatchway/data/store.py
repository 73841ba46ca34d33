"""The store: one folder of Parquet that holds a log and its catalogue, and a manifest that says what is in it.

::

    store/
      manifest.json                          what is here: columns, types, counts, the sha256 of every part
      events/day=2026-03-01/part-0.parquet   one day (UTC) each, sorted by (time, order)
      events/day=undated/part-0.parquet      rows without a time, sorted by order; they stand before all dated rows
      catalogue.parquet                      every item; the row number here is the item's row number everywhere
      rejected.parquet                       rows that an importer turned away: file, line, reason, text

Nothing in it depends on the clock or on where it lies. It is written whole or not at all (:func:`write_store`).
"""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl
import pydantic

from hatchway.artefacts.atomic import replacing_folder, settle
from hatchway.artefacts.manifest import is_not, sha256_of, what_lies_at
from hatchway.data.catalogue import Catalogue
from hatchway.data.days import day_name, spans_of_days
from hatchway.data.manifest import MANIFEST, IdType, StoreManifest, StorePart
from hatchway.data.schema import CATALOGUE_TYPES, EVENT_TYPES, REJECTED_TYPES, REQUIRED
from hatchway.errors import ArtefactError, DataError


@dataclass(frozen=True, eq=False)
class Store:
    """A store that lies on disk, open for reading; see :meth:`open`."""

    path: Path
    manifest: StoreManifest

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the store at ``path``; reads the manifest only.

        Raises:
            DataError: there is no store at ``path``.
            ArtefactError: the manifest cannot be read or is of another version, or a part is missing.
        """
        path = Path(path)
        settle(path)
        if not is_store(path):
            what = what_lies_at(path)
            remedy = "name the store that it was trained on" if what == "a run" else "make one with: hatchway import"
            raise DataError(f"{is_not('a store', path)}; {remedy}")
        try:
            manifest = StoreManifest.model_validate_json((path / MANIFEST).read_bytes())
        except pydantic.ValidationError as error:
            detail = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ArtefactError(
                f"{path / MANIFEST} is damaged or of another version of Hatchway ({detail}); import again"
            ) from None
        missing = [part.path for part in manifest.parts if not (path / part.path).is_file()]
        if missing:
            raise ArtefactError(f"{path} lacks {missing[0]} ({len(missing)} parts missing in all); import again")
        return cls(path, manifest)

    def events(self) -> pl.LazyFrame:
        """Scan the log: rows without time first, then by (time, order); columns as the manifest's ``event_columns``."""
        files = [self.path / part.path for part in self.manifest.parts if part.path.startswith("events/")]
        return pl.scan_parquet(files, hive_partitioning=False, glob=False)

    def has(self, column: str) -> bool:
        """Say whether the log has a column of this name."""
        return column in self.manifest.event_columns

    def catalogue(self) -> Catalogue:
        """Return the catalogue; read once."""
        return self._catalogue

    @cached_property
    def _catalogue(self) -> Catalogue:
        return Catalogue(frame=pl.read_parquet(self.path / "catalogue.parquet", glob=False))

    def rejected(self) -> pl.DataFrame:
        """Return the rows that the importer turned away: file, line, reason, text."""
        return pl.read_parquet(self.path / "rejected.parquet", glob=False)

    @cached_property
    def digest(self) -> str:
        """One sha256 (hex) over the names and hashes of all parts: equal digests, equal stores."""
        parts = [[part.path, part.sha256] for part in self.manifest.parts]
        return hashlib.sha256(json.dumps([self.manifest.version, parts]).encode()).hexdigest()

    def verify(self) -> None:
        """Hash every part and compare with the manifest.

        Raises:
            ArtefactError: a part is not what the manifest says, or cannot be read.
        """
        for part in self.manifest.parts:
            path = self.path / part.path
            try:
                found = sha256_of(path)
            except OSError as error:
                raise ArtefactError(f"{path} cannot be read ({error.strerror}); import again") from None
            if found != part.sha256:
                raise ArtefactError(f"{path} is not the file that was written; import again")


def is_store(path: Path) -> bool:
    """Say whether there is a store at ``path``, whole or damaged."""
    try:
        head = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and head.get("format") == "hatchway-store"


def check_target(target: Path) -> None:
    """Refuse to write a store over anything that is not one.

    Raises:
        DataError: ``target`` is a file, a folder that holds something else, no name for a folder, or a ring of links.
    """
    if target.name in ("", ".."):
        raise DataError(f"{str(target)!r} cannot become a store; name a folder of its own, e.g. store")
    settle(target)
    if target.is_symlink() and Path(os.path.realpath(target)).is_symlink():
        raise DataError(f"{target} is a link in a ring of links; remove it, or name another folder")
    if target.exists() and not is_store(target) and not (target.is_dir() and not any(target.iterdir())):
        raise DataError(
            f"{target} exists and is not a store, and is left as it is; name a new folder, or remove it first"
        )


def write_store(
    target: Path | str,
    events: pl.LazyFrame | pl.DataFrame,
    catalogue: pl.DataFrame | None = None,
    origin: str = "python",
) -> Store:
    """Write a store, whole or not at all; a store that lies at ``target`` is replaced.

    The rows are taken as they are: rejecting is the importers' work. The same rows give the same bytes.

    Args:
        target: the store's folder.
        events: the log, columns as in :data:`hatchway.data.schema.EVENT_TYPES` and any others; without ``order`` the
            rows' own order is taken.
        catalogue: items as in :data:`hatchway.data.schema.CATALOGUE_TYPES`; items that only the log has are added.
        origin: who writes it, for the manifest.

    Raises:
        DataError: the log is empty, lacks a column, or has a null buyer or item, or ``target`` holds something else.
    """
    target = Path(target)
    check_target(target)
    with replacing_folder(target) as folder:
        fill_store(folder, events.lazy(), catalogue, no_rejected(), origin=origin)
    return Store.open(target)


def no_rejected() -> pl.DataFrame:
    """Return an empty ``rejected`` table."""
    return pl.DataFrame(schema=dict(REJECTED_TYPES))


def fill_store(
    folder: Path,
    events: pl.LazyFrame,
    catalogue: pl.DataFrame | None,
    rejected: pl.DataFrame,
    *,
    origin: str,
    notes: tuple[str, ...] = (),
) -> StoreManifest:
    """Write a store's files into ``folder``; the arguments are those of :func:`write_store` and the manifest's fields.

    ``events`` is read once for the days and once for about every ten million rows.

    Raises:
        DataError: as :func:`write_store`.
    """
    events = _typed_events(events)
    parts: list[StorePart] = []
    seen: list[pl.Series] = []
    looked_at: list[pl.Series] = []
    for span, days in spans_of_days(events):
        frame = span.collect(engine="streaming").sort("time" if "time" in span.collect_schema() else "order", "order")
        seen = [_distinct([*seen, frame["item"]])]
        if "query_item" in frame.columns:
            looked_at = [_distinct([*looked_at, frame["query_item"].drop_nulls()])]
        start = 0
        for day, rows in days.select("day", "rows").iter_rows():
            parts.append(_write(folder, f"events/day={day_name(day)}/part-0.parquet", frame.slice(start, rows)))
            start += rows
    items = _typed_catalogue(catalogue, _distinct([*seen, *looked_at]))
    parts += [_write(folder, "catalogue.parquet", items), _write(folder, "rejected.parquet", rejected)]
    schema = events.collect_schema()
    by_reason = rejected.group_by("reason").len().sort("reason").iter_rows()
    manifest = StoreManifest(
        origin=origin,
        buyer_type=_id_type(schema["buyer"]),
        item_type=_id_type(schema["item"]),
        events=sum(part.rows for part in parts if part.path.startswith("events/")),
        buyers=events.select(pl.col("buyer").n_unique()).collect(engine="streaming").item(),
        items=len(items),
        event_columns=tuple(schema.names()),
        catalogue_columns=tuple(items.columns),
        rejected=dict(by_reason),
        notes=notes,
        parts=tuple(parts),
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


def _distinct(parts: list[pl.Series]) -> pl.Series:
    """Return the distinct values of several series, in order of first appearance."""
    return pl.concat(parts).unique(maintain_order=True)


def _typed_events(events: pl.LazyFrame) -> pl.LazyFrame:
    """Cast the columns with a meaning and put them first, in their order."""
    schema = events.collect_schema()
    if "order" not in schema:
        events = events.with_row_index("order")
        schema = events.collect_schema()
    absent = [column for column in REQUIRED if column not in schema]
    if absent:
        raise DataError(f"the log has no column {absent[0]!r}; its columns are {', '.join(schema.names())}")
    empty, buyers, items = (
        events.select(pl.len(), pl.col("buyer").null_count(), pl.col("item").null_count().alias("items"))
        .collect(engine="streaming")
        .row(0)
    )
    if not empty:
        raise DataError("the log has no rows; a store needs at least one event")
    if buyers or items:
        raise DataError(f"{buyers} rows of the log have no buyer and {items} no item; every row needs both")
    known = [pl.col(c).cast(t or _id_dtype(schema[c], c)) for c, t in EVENT_TYPES.items() if c in schema]
    return events.select(*known, pl.exclude(list(EVENT_TYPES)))


def _typed_catalogue(catalogue: pl.DataFrame | None, seen: pl.Series) -> pl.DataFrame:
    """Cast the catalogue's columns, put those with a meaning first, and add the items that only the log has."""
    log_only = seen.alias("item").to_frame()
    if catalogue is None:
        return log_only
    if "item" not in catalogue.columns:
        raise DataError(f"the catalogue has no column 'item'; its columns are {', '.join(catalogue.columns)}")
    schema = catalogue.schema
    known = [
        pl.col(c).cast(t or (schema[c] if c == "photo" else _id_dtype(schema[c], c)))
        for c, t in CATALOGUE_TYPES.items()
        if c in schema
    ]
    typed = catalogue.select(*known, pl.exclude(list(CATALOGUE_TYPES)))
    if typed.schema["item"] != seen.dtype:
        raise DataError(
            f"item ids are {seen.dtype} in the log and {typed.schema['item']} in the catalogue; make them the same type"
        )
    missing = log_only.join(typed.select("item"), on="item", how="anti", maintain_order="left")
    return Catalogue(frame=pl.concat([typed, missing], how="diagonal")).frame


def _id_dtype(dtype: pl.DataType, column: str) -> pl.DataType:
    """Return the type that ids of ``dtype`` are stored with: Int64 or String."""
    if dtype.is_integer():
        return pl.Int64()
    if dtype == pl.String or isinstance(dtype, (pl.Categorical, pl.Enum)):
        return pl.String()
    raise DataError(f"column {column!r} is {dtype}; ids must be integers or strings")


def _id_type(dtype: pl.DataType) -> IdType:
    return "integer" if dtype == pl.Int64 else "string"


def _write(folder: Path, name: str, frame: pl.DataFrame) -> StorePart:
    """Write one part with settings that never change, so that the same rows give the same bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.rechunk().write_parquet(
        path, compression="zstd", compression_level=3, statistics=True, row_group_size=262_144
    )
    return StorePart(path=name, rows=len(frame), sha256=sha256_of(path))
