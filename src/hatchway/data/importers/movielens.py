"""The importer of MovieLens in each of its forms: 100k (``u.data``), 1m and 10m (``ratings.dat``), latest (csv)."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from hatchway.data.importers.files import SourceFile, TextFile, as_text, files_of, find, listing
from hatchway.data.importers.intake import ImportSettings, Source, take_in
from hatchway.data.importers.lines import BAD, FILE, LINE, Rows, header_of, lines_of, read_csv, split_rows
from hatchway.data.store import Store
from hatchway.errors import DataError

_NO_SETTINGS = ImportSettings()
_NO_GENRES = "(no genres listed)"
_GENRES_OF_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip


def import_movielens(source: Path | str, target: Path | str, settings: ImportSettings = _NO_SETTINGS) -> Store:
    """Import a MovieLens data set from its folder or zip; which form it is, its files say.

    Every rating becomes an event ``rating`` with its stars in the column ``rating`` and its time. There is no
    ``weight``: a rating of one star is an engagement like any other. The catalogue has item, title, category (the
    first genre) and ``genres`` (the list of them, null where none is given). Users' ages and tags are not read.

    Args:
        source: the folder or zip as GroupLens gives it out, files gzipped or not; or the file of ratings alone.
        target: the store's folder.
        settings: the share of rows that may be rejected.

    Raises:
        DataError: no form of MovieLens is there, a file cannot be read, or too many rows are rejected.
    """

    def read(work: Path) -> Source:
        files = files_of(source)
        ratings, movies, read_ratings, read_movies = _form(files, source)
        events = read_ratings(_text(ratings, work)).with_columns(pl.lit("rating").alias("event"))
        log = Rows(events, separator=_separator(ratings), shown=("buyer", "item", "rating", "time"))
        if movies is None:
            note = f"there is no file of movies beside {ratings.name}: the catalogue has ids only"
            return Source(log, notes=(note,))
        return Source(log, Rows(_with_genres(read_movies(_text(movies, work))), separator=_separator(movies)))

    return take_in("movielens", source, target, read, settings)


_Reader = Callable[[TextFile], pl.LazyFrame]


def _form(files: list[SourceFile], source: Path | str) -> tuple[SourceFile, SourceFile | None, _Reader, _Reader]:
    """Find the files of ratings and of movies, and how to read them."""
    forms: list[tuple[str, str, _Reader, _Reader]] = [
        ("u.data", "u.item", _ratings_100k, _movies_100k),
        ("ratings.dat", "movies.dat", _ratings_dat, _movies_dat),
        ("ratings.csv", "movies.csv", _ratings_csv, _movies_csv),
    ]
    for ratings_name, movies_name, read_ratings, read_movies in forms:
        ratings = find(files, ratings_name)
        if ratings is not None:
            return ratings, find(files, movies_name), read_ratings, read_movies
    raise DataError(
        f"{source} is no MovieLens data set: it has none of u.data (100k), ratings.dat (1m, 10m), ratings.csv (latest, "
        f"20m and later); it holds {listing(files)}"
    )


def _separator(file: SourceFile) -> str:
    return {"u.data": "\t", "u.item": "|", "ratings.dat": "::", "movies.dat": "::"}.get(file.plain_name, ",")


def _text(file: SourceFile, work: Path) -> TextFile:
    text = as_text(file, work)
    if text is None:
        raise DataError(f"{file.name} is empty; fetch the data set again")
    return text


def _ratings_100k(text: TextFile) -> pl.LazyFrame:
    return split_rows(lines_of(text), ("buyer", "item", "rating", "time"), "\t")


def _ratings_dat(text: TextFile) -> pl.LazyFrame:
    return split_rows(lines_of(text), ("buyer", "item", "rating", "time"), "::")


def _ratings_csv(text: TextFile) -> pl.LazyFrame:
    return _csv(text, {"userId": "buyer", "movieId": "item", "rating": "rating", "timestamp": "time"})


def _movies_100k(text: TextFile) -> pl.LazyFrame:
    columns = ("item", "title", "released", "video", "url", *_GENRES_OF_100K)
    rows = split_rows(lines_of(text), columns, "|")
    genres = pl.concat_list(pl.when(pl.col(name) == "1").then(pl.lit(name)) for name in _GENRES_OF_100K)
    return rows.select(FILE, LINE, BAD, "item", "title", genres.list.drop_nulls().list.join("|").alias("genres"))


def _movies_dat(text: TextFile) -> pl.LazyFrame:
    return split_rows(lines_of(text), ("item", "title", "genres"), "::")


def _movies_csv(text: TextFile) -> pl.LazyFrame:
    return _csv(text, {"movieId": "item", "title": "title", "genres": "genres"})


def _csv(text: TextFile, columns: dict[str, str]) -> pl.LazyFrame:
    """Read the columns that are needed, whatever else there is and in whatever order."""
    header = header_of(text, ",")
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(f"{text.name} has no column {missing[0]!r}; its columns are {', '.join(header)}")
    rows = read_csv(text, ",", header)
    return rows.select(FILE, LINE, BAD, *(pl.col(theirs).alias(ours) for theirs, ours in columns.items()))


def _with_genres(movies: pl.LazyFrame) -> pl.LazyFrame:
    """Split the genres and take the first as the category."""
    given = pl.when(~pl.col("genres").is_in(["", _NO_GENRES, "unknown"])).then(pl.col("genres").str.split("|"))
    return movies.with_columns(given.list.first().alias("category"), given.alias("genres"))
