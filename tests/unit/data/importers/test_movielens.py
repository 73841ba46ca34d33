"""MovieLens in each of its forms, from small files written as GroupLens writes them."""

import gzip
import zipfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from hatchway.data.importers import ImportSettings, import_movielens
from hatchway.data.store import Store
from hatchway.errors import DataError

LATIN = "Misérables, Les (1995)"
RATINGS = [("12", "31", "2.5", "1260759144"), ("12", "7", "3", "1260759179"), ("9", "31", "5", "1260759182")]
FLAGS_31 = "|".join("1" if at in (8, 14) else "0" for at in range(19))  # Drama, Romance
FLAGS_7 = "|".join("1" if at == 0 else "0" for at in range(19))  # unknown

FORMS: Mapping[str, Mapping[str, bytes]] = {
    "100k": {
        "ml-100k/u.data": "".join("\t".join(row) + "\n" for row in RATINGS).encode(),
        "ml-100k/u.item": (
            f"31|{LATIN}|01-Jan-1995||http://us.imdb.com/x|{FLAGS_31}\n7|unknown||||{FLAGS_7}\n".encode("latin-1")
        ),
    },
    "1m": {
        "ml-1m/ratings.dat": "".join("::".join(row) + "\n" for row in RATINGS).encode(),
        "ml-1m/movies.dat": f"31::{LATIN}::Drama|Romance\n7::unknown::\n".encode("latin-1"),
        "ml-1m/users.dat": b"12::F::1::10::48067\n",
    },
    "latest": {
        "ml-latest/ratings.csv": (
            "userId,movieId,rating,timestamp\r\n" + "".join(",".join(r) + "\r\n" for r in RATINGS)
        ).encode(),
        "ml-latest/movies.csv": (
            f'movieId,title,genres\r\n31,"{LATIN}",Drama|Romance\r\n7,unknown,(no genres listed)\r\n'.encode()
        ),
        "ml-latest/links.csv": b"movieId,imdbId,tmdbId\r\n31,0112792,9909\r\n",
    },
}


def laid_out(folder: Path, form: str, packing: str) -> Path:
    """Write the files of a form as a folder, a folder of gzip, or a zip."""
    if packing == "zip":
        path = folder / "data.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in FORMS[form].items():
                archive.writestr(name, content)
        return path
    for name, content in FORMS[form].items():
        path = folder / "source" / (name + ".gz" if packing == "gzip" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if packing == "gzip" else content)
    return folder / "source"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packing", ["folder", "gzip", "zip"])
def test_every_form_and_packing_gives_the_same_store(tmp_path: Path, form: str, packing: str) -> None:
    """Ratings with stars and times, movies with title and genres, ids as GroupLens numbers them."""
    store = import_movielens(laid_out(tmp_path, form, packing), tmp_path / "store")
    assert store.events().collect().rows(named=True) == [
        {"buyer": 12, "item": 31, "event": "rating", "time": 1260759144, "order": 0, "rating": 2.5},
        {"buyer": 12, "item": 7, "event": "rating", "time": 1260759179, "order": 1, "rating": 3.0},
        {"buyer": 9, "item": 31, "event": "rating", "time": 1260759182, "order": 2, "rating": 5.0},
    ]
    assert store.catalogue().frame.rows(named=True) == [
        {"item": 31, "title": LATIN, "category": "Drama", "genres": ["Drama", "Romance"]},
        {"item": 7, "title": "unknown", "category": None, "genres": None},
    ]
    assert store.manifest.rejected == {}
    assert store.manifest.origin == "movielens"


def test_ratings_alone_are_enough(tmp_path: Path) -> None:
    """Without the file of movies the catalogue has the ids of the log, and a note says so."""
    (tmp_path / "ratings.dat").write_bytes(FORMS["1m"]["ml-1m/ratings.dat"])
    store = import_movielens(tmp_path / "ratings.dat", tmp_path / "store")
    assert store.catalogue().frame.to_dict(as_series=False) == {"item": [31, 7]}
    assert store.manifest.notes == ("there is no file of movies beside ratings.dat: the catalogue has ids only",)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_do_not_fit_are_shown_as_they_stand(tmp_path: Path, form: str) -> None:
    """A row cut short, stars that are none, a time in milliseconds, and a repeat: each with file, line and reason."""
    source = laid_out(tmp_path, form, "folder")
    name = {"100k": "u.data", "1m": "ratings.dat", "latest": "ratings.csv"}[form]
    separator = {"100k": "\t", "1m": "::", "latest": ","}[form]
    file = next(source.rglob(name))
    bad = [("3", "7"), ("3", "7", "many", "1260759150"), ("3", "7", "1", "1260759150000"), RATINGS[1]]
    with file.open("a") as out:
        out.writelines(separator.join(row) + "\n" for row in bad)
    from_line = 5 if form == "latest" else 4
    store = import_movielens(source, tmp_path / "store", ImportSettings(max_rejected=0.9))
    reasons = ["fields", "number not understood", "time in another unit", "repeat"]
    place = file.relative_to(source).as_posix()
    assert store.rejected().rows() == [
        (place, from_line + at, reason, separator.join(row))
        for at, (row, reason) in enumerate(zip(bad, reasons, strict=True))
    ]
    assert store.manifest.events == 3


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"notes.txt": b"x"}, "is no MovieLens data set: it has none of u.data .* it holds notes.txt"),
        ({"ratings.dat": b""}, "ratings.dat is empty"),
        ({"ratings.csv": b"userId,movieId,rating\n1,2,3\n"}, "ratings.csv has no column 'timestamp'; its columns are"),
        ({"ratings.csv": b"userId,movieId,rating,timestamp\n"}, "the source has no rows"),
        ({"ratings.dat": b"1,2,3,4\n"}, r"1 of 1 rows \(100.00%\) were rejected"),
    ],
)
def test_what_is_no_movielens_is_told(tmp_path: Path, files: Mapping[str, bytes], complaint: str) -> None:
    """A folder of something else, an empty file, a missing column, a header alone, rows of another form."""
    (tmp_path / "source").mkdir()
    for name, content in files.items():
        (tmp_path / "source" / name).write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        import_movielens(tmp_path / "source", tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_the_2016_edition_is_read_whole(data_folder: Path, tmp_path: Path) -> None:
    """The published numbers of ml-latest-small: 100,004 ratings, 671 users, 9,125 movies of which 9,066 are rated."""
    store = import_movielens(data_folder / "ml-latest-small", tmp_path / "store")
    assert (store.manifest.events, store.manifest.buyers, store.manifest.items) == (100_004, 671, 9_125)
    assert store.events().select(pl.col("item").n_unique()).collect().item() == 9_066
    titles = store.catalogue().frame.filter(pl.col("item").is_in([73, 11])).sort("item")
    assert titles["title"].to_list() == ["American President, The (1995)", "Misérables, Les (1995)"]
    assert Store.open(store.path).manifest.rejected == {}
