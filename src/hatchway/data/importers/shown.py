"""Rows that ``hatchway serve`` wrote down become impressions of the log: their buyers' ids in the log's own type."""

import contextlib
import glob
from pathlib import Path

import polars as pl

from hatchway.errors import DataError
from hatchway.progress import note

COLUMNS = {
    "buyer": pl.String(),
    "item": pl.String(),
    "event": pl.String(),
    "time": pl.Int64(),
    "session": pl.String(),
    "position": pl.Int64(),
    "query_item": pl.String(),
    "bundle": pl.String(),
    "request": pl.String(),
    "place": pl.String(),
}
"""What a shown row says; ids are of the type that the store had when it was served."""

_LOOKS = 5
"""How often the folder is listed while files of it are put together."""


def with_shown(log: pl.LazyFrame, source: Path | str) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Put what was shown into a log, behind its own rows; days and times sort it in when the store is written.

    The columns of shown rows are in the log afterwards, also where nothing was shown yet, so that the log of every
    night has the same. Rows without a buyer are left out: an impression teaches beside what the same buyer did.

    Args:
        log: the accepted rows, with their types and ``order``.
        source: a server's state folder, another folder of such files, a file, or a glob.

    Returns:
        the log, and what there is to say of it.

    Raises:
        DataError: the log has no times or no events, or a file holds no shown rows or ids of another type.
    """
    schema = log.collect_schema()
    absent = [name for name in ("time", "event") if name not in schema]
    if absent:
        raise DataError(
            f"--shown {source}: the log has no column {absent[0]!r}, without which impressions cannot be told from "
            "engagements of that time; say which one it is, with --map"
        )
    frames, anonymous, said = [], 0, []
    for frame in _read_all(source):
        if "buyer" not in frame.columns:
            anonymous += len(frame)
            continue
        frames.append(frame)
    if anonymous:
        said.append(
            f"{anonymous:,} shown rows of nobody in particular are left out: an impression needs its buyer, so ask "
            "with buyer=ID"
        )
    types = {name: schema.get(name) or kind for name, kind in COLUMNS.items()}
    types |= {"query_item": schema["item"]}
    shown = pl.concat(
        [pl.DataFrame(schema=types), *(_of_types(frame, types, source, said) for frame in frames)], how="vertical"
    )
    # While a server puts parts of a day together, or after a crash in it, a row lies in a part and in the whole.
    shown = shown.unique(maintain_order=True)
    said.append(f"{len(shown):,} shown rows of {source} are impressions of the log")
    for line in said:
        note(line)
    last = log.select(pl.col("order").max()).collect(engine="streaming").item()
    shown = shown.with_columns(order=pl.int_range(pl.len(), dtype=pl.Int64) + (0 if last is None else last + 1))
    return pl.concat([log, shown.lazy()], how="diagonal"), tuple(said)


def _files(source: Path | str) -> list[Path]:
    """List the files of shown rows, in the order of their names; none where the server has written nothing yet."""
    path = Path(source)
    if path.is_dir():
        return sorted(file for file in path.rglob("*.parquet") if not file.name.startswith("."))
    if path.is_file():
        return [path]
    found = sorted(Path(match) for match in glob.glob(str(source), recursive=True))  # noqa: PTH207 - may be absolute
    if not found:
        note(f"nothing is at {source} yet: no shown rows")
    return found


def _read_all(source: Path | str) -> list[pl.DataFrame]:
    """Read all files; where one is gone by then, a running server has just put it into another: look again."""
    for _ in range(_LOOKS - 1):
        with contextlib.suppress(FileNotFoundError):
            return [_read(path) for path in _files(source)]
    return [_read(path) for path in _files(source)]


def _read(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except FileNotFoundError:
        raise
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"--shown: {path} is no Parquet file, or damaged ({str(error).splitlines()[0]})") from None
    missing = [name for name in COLUMNS if name != "buyer" and name not in frame.columns]
    if missing:
        raise DataError(
            f"--shown: {path} has no column {missing[0]!r}, so hatchway serve did not write it; name the server's "
            "folder, as in --shown RUN-serving"
        )
    return frame


def _of_types(frame: pl.DataFrame, types: dict[str, pl.DataType], source: Path | str, said: list[str]) -> pl.DataFrame:
    """Give shown rows the types of the log."""
    ids = [name for name in ("buyer", "item", "query_item") if frame[name].dtype != types[name]]
    typed = frame.select(pl.col(name).cast(kind, strict=False) for name, kind in types.items())
    for name in ids:
        lost = frame.filter(typed[name].is_null() & frame[name].is_not_null())
        if len(lost):
            raise DataError(
                f"--shown {source}: {name} {lost[name][0]!r} is not of the log's type, {types[name]}; ask the server "
                "with the ids of the log"
            )
    lost_sessions = int((typed["session"].is_null() & frame["session"].is_not_null()).sum())
    if lost_sessions:
        said.append(
            f"{lost_sessions:,} shown rows have a session that is none of the log's type; they count by their day"
        )
    return typed
