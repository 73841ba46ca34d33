"""A mined set on disk: one row a positive, its candidates in lists, in row numbers of the log that it was mined for."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.engagements import Int64
from hatchway.errors import ArtefactError
from hatchway.training.mining.mined import Mined

_LISTS = {"items": pl.Int32, "scores": pl.Float32, "ranks": pl.Int32, "reasons": pl.Int8}
_COLUMNS = ("row", "positive_score", "positive_rank", "asked")


def write_mined(path: Path, mined: Mined) -> None:
    """Write a mined set as Parquet, whole or not at all; equal sets give equal bytes."""
    lists = {name: as_lists(name, getattr(mined, name), mined.offsets) for name in _LISTS}
    frame = pl.DataFrame(
        {
            "row": mined.rows,
            "positive_score": mined.positive_scores,
            "positive_rank": mined.positive_ranks,
            "asked": mined.asked,
            **lists,
        }
    )
    with replacing_file(path) as partial:
        frame.write_parquet(
            partial, compression="zstd", metadata={"queries": str(mined.queries), "cap": str(mined.cap)}
        )


def read_mined(path: Path) -> Mined:
    """Read what :func:`write_mined` wrote.

    Raises:
        ArtefactError: it is missing, cut short, or no mined set.
    """
    try:
        frame = pl.read_parquet(path, glob=False)
        about = pl.read_parquet_metadata(path)
        lengths = frame["items"].list.len().cast(pl.Int64).to_numpy()
        flat = {name: frame[name].explode(empty_as_null=False).cast(kind).to_numpy() for name, kind in _LISTS.items()}
        queries, cap = int(about["queries"]), int(about["cap"])
        row, positive_score, positive_rank, asked = (frame[name].to_numpy() for name in _COLUMNS)
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArtefactError(f"{path} is missing, cut short or no mined set ({error}); mine again") from None
    return Mined(
        rows=row,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        items=flat["items"],
        scores=flat["scores"],
        ranks=flat["ranks"],
        reasons=flat["reasons"],
        positive_scores=positive_score,
        positive_ranks=positive_rank,
        asked=asked,
        queries=queries,
        cap=cap,
    )


def as_lists(name: str, values: npt.NDArray[np.generic] | pl.Series, offsets: Int64) -> pl.Series:
    """Cut flat values into a column of lists.

    Args:
        name: of the column.
        values: [M].
        offsets: [P + 1] int64, where each list begins, and where the last ends.
    """
    flat = pl.Series(name, values)
    places = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    there = pl.DataFrame({"place": places, name: flat}).group_by("place", maintain_order=True).agg(pl.col(name))
    every = pl.DataFrame({"place": np.arange(len(offsets) - 1)})
    found = every.join(there, on="place", how="left", maintain_order="left")[name]
    return found.fill_null(pl.lit([], pl.List(flat.dtype)))  # a positive without candidates has an empty list
