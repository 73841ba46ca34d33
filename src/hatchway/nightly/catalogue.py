"""The catalogue as of a day: yesterday's rows first and in their order, so that a row number never changes its item."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.catalogue import Catalogue

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CatalogueOfDay:
    """The items of a night.

    Attributes:
        catalogue: N items; the first rows are those of the night before, in its order.
        offered: [N] whether the item is for sale at the end of the day.
        known: how many rows the night before had.
        added: how many are new.
        gone: how many were for sale the night before and are not any more.
        lost: how many that were for sale the night before have no row any more; yesterday's stands in, and is for sale
            as it was unless ``vanish`` says otherwise.
        lost_share: of those that were for sale the night before; None where none was.
        missing: for each column that the model reads, the share of offered items without a usable value.
    """

    catalogue: Catalogue
    offered: Bools
    known: int
    added: int
    gone: int
    lost: int
    lost_share: float | None
    missing: dict[str, float]


def catalogue_of_day(
    frame: pl.DataFrame,
    end: int,
    before: pl.DataFrame | None,
    read: tuple[str, ...] = (),
    seen: pl.Series | None = None,
    vanish: float | None = None,
) -> CatalogueOfDay:
    """Return the catalogue as it stood at the end of a day.

    Items that were listed later are left out, and one that goes later is still for sale. A row that was there the night
    before and has vanished is taken from the night before: a listing is not sold because its row is missing, unless
    ``vanish`` says that it is.

    Args:
        frame: the store's catalogue.
        end: first second after the day.
        before: the catalogue of the night before, None where there was none.
        read: the columns that the model reads.
        seen: ids that the log has seen by then; such items are there, whatever the catalogue says of when they were
            listed, and others of which the catalogue says nothing are not. None for those that it says something of.
        vanish: up to this share of those that were for sale, a row that vanished is of a listing that is gone; where
            more vanished, the catalogue has lost them; what only the log knows of is not for sale either. None where it
            only ever loses rows.
    """
    frame = _as_of(frame, end, seen)
    if vanish is not None:
        frame, before = _with_gone(frame), None if before is None else _with_gone(before)
    if before is None:
        frame = frame if vanish is None else _told_of_are_there(frame, end)
        offered = _on_offer(frame)
        missing = _missing(frame.filter(offered), read)
        return CatalogueOfDay(Catalogue(frame), offered.to_numpy(), 0, len(frame), 0, 0, None, missing)
    told = frame.filter(_says_something(frame))
    selling = before.filter(_on_offer(before))
    lost = selling.filter(_says_something(selling)).join(told, on="item", how="anti")["item"]
    share = len(lost) / len(selling) if len(selling) else None
    if vanish is not None and share is not None and share <= vanish:
        left = pl.col("item").is_in(lost.implode())
        before = before.with_columns(gone=pl.when(left).then(pl.lit(end - 1, pl.Int64)).otherwise("gone"))
    # Yesterday's row stands in for one that vanished; a column that the catalogue has no more is gone for all.
    columns = [name for name in before.columns if name in frame.columns]
    rows = pl.concat([told, before.join(told, on="item", how="anti").select(columns)], how="diagonal_relaxed")
    known = before.select("item").join(rows, on="item", how="left", maintain_order="left").select(frame.columns)
    added = frame.join(before, on="item", how="anti", maintain_order="left")
    whole = pl.concat([known, added], how="vertical_relaxed")
    whole = whole if vanish is None else _told_of_are_there(whole, end)
    offered = _on_offer(whole)
    gone = len(known.filter(~offered.head(len(known))).join(selling, on="item", how="semi"))
    return CatalogueOfDay(
        catalogue=Catalogue(whole),
        offered=offered.to_numpy(),
        known=len(known),
        added=len(added),
        gone=gone,
        lost=len(lost),
        lost_share=share,
        missing=_missing(whole.filter(offered), read),
    )


def _as_of(frame: pl.DataFrame, end: int, seen: pl.Series | None) -> pl.DataFrame:
    """Leave out what came later, and make nulls of numbers that are none."""
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    frame = frame.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats)
    vectors = [name for name, kind in frame.schema.items() if _is_vector(kind)]
    for name in vectors:
        whole = pl.col(name).cast(pl.List(pl.Float64)).list.eval(pl.element().is_finite().all()).list.first()
        frame = frame.with_columns(pl.when(whole).then(pl.col(name)).alias(name))
    listed = pl.Series(np.ones(len(frame), np.bool_))
    if "listed" in frame.columns:
        listed = (frame["listed"].is_null() | (frame["listed"] < end)) & _says_something(frame)
    if seen is not None:
        listed = listed | frame["item"].is_in(seen.implode())
    frame = frame.filter(listed)
    if "gone" in frame.columns:
        frame = frame.with_columns(pl.when(pl.col("gone") < end).then(pl.col("gone")).alias("gone"))
    return frame


def _is_vector(kind: pl.DataType) -> bool:
    return isinstance(kind, (pl.List, pl.Array)) and kind.inner.is_numeric()


def _with_gone(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the column that says when a listing went, where there is none."""
    return frame if "gone" in frame.columns else frame.with_columns(gone=pl.lit(None, pl.Int64))


def _told_of_are_there(frame: pl.DataFrame, end: int) -> pl.DataFrame:
    """Let be gone what only the log knows of, and no catalogue of what was for sale has told of."""
    untold = ~_says_something(frame.drop("gone")) & frame["gone"].is_null()
    return frame.with_columns(gone=pl.when(untold).then(pl.lit(end - 1, pl.Int64)).otherwise("gone"))


def _on_offer(frame: pl.DataFrame) -> pl.Series:
    """Mark the items that are for sale, [N] Boolean; all where the catalogue does not say when they go."""
    if "gone" not in frame.columns:
        return pl.Series("offered", np.ones(len(frame), np.bool_))
    return frame["gone"].is_null().alias("offered")


def _says_something(frame: pl.DataFrame) -> pl.Series:
    """Mark the rows of which more than the id is known: a store adds bare rows for items that only its log has."""
    others = [pl.col(name).is_not_null() for name in frame.columns if name != "item"]
    if not others:
        return pl.Series(np.ones(len(frame), np.bool_))
    return frame.select(pl.any_horizontal(others).alias("told"))["told"]


def _missing(frame: pl.DataFrame, read: tuple[str, ...]) -> dict[str, float]:
    """Return the share of nulls in each column that is read; 1 where there is no such column."""
    if not len(frame):
        return {}
    return {name: frame[name].null_count() / len(frame) if name in frame.columns else 1.0 for name in read}
