"""MIND: impressions, their clicks, and the histories before them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from hatchway.data.importers import ImportSettings, import_mind
from hatchway.data.store import Store
from hatchway.errors import DataError

# 2019-11-12 02:14:46 UTC is 1573524886, by `date -u -d "2019-11-12 02:14:46" +%s`.
MORNING = 1_573_524_886
BEHAVIOURS = (
    "7\tU2\t11/12/2019 2:14:46 PM\tN1 N2 N1\tN3-0 N4-1 N5-0\n"
    "3\tU1\t11/12/2019 2:14:47 AM\t\tN3-1\n"
    "9\tU2\t11/12/2019 2:14:46 AM\tN1 N2\tN5-1 N3-1\n"
)
NEWS = (
    'N3\tsports\tsoccer\tA "quoted" title\tAn abstract\thttps://x/1.html\t[]\t[]\n'
    "N9\tnews\tworld\tNever shown\t\thttps://x/2.html\t[]\t[]\n"
)


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Write text files below ``folder``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def events_of(store: Store) -> list[tuple[object, ...]]:
    """Return the rows of a store: event, buyer, item, seconds after the morning, session, position."""
    after = pl.col("time") - MORNING
    return store.events().select("event", "buyer", "item", after, "session", "position").collect().rows()


def test_histories_slots_and_clicks_become_events(tmp_path: Path) -> None:
    """The history of a user's earliest line comes first and undated, then slots by time, each with its click."""
    store = import_mind(written(tmp_path / "s", {"behaviors.tsv": BEHAVIOURS, "news.tsv": NEWS}), tmp_path / "store")
    assert events_of(store) == [
        ("view", "U2", "N1", None, None, None),
        ("view", "U2", "N2", None, None, None),
        ("impression", "U2", "N5", 0, 9, 0),
        ("click", "U2", "N5", 0, 9, 0),
        ("impression", "U2", "N3", 0, 9, 1),
        ("click", "U2", "N3", 0, 9, 1),
        ("impression", "U1", "N3", 1, 3, 0),
        ("click", "U1", "N3", 1, 3, 0),
        ("impression", "U2", "N3", 43_200, 7, 0),
        ("impression", "U2", "N4", 43_200, 7, 1),
        ("click", "U2", "N4", 43_200, 7, 1),
        ("impression", "U2", "N5", 43_200, 7, 2),
    ]


def test_what_was_shown_and_not_clicked_can_be_told(tmp_path: Path) -> None:
    """An impression without a click of the same session and position."""
    store = import_mind(written(tmp_path / "s", {"behaviors.tsv": BEHAVIOURS}), tmp_path / "store")
    shown = store.events().filter(pl.col("event") == "impression")
    clicked = store.events().filter(pl.col("event") == "click")
    rest = shown.join(clicked, on=["session", "position"], how="anti").select("session", "item").collect()
    assert rest.sort("item").rows() == [(7, "N3"), (7, "N5")]
    assert store.manifest.notes == ("there is no news.tsv: the catalogue has ids only",)


def test_the_catalogue_is_the_news_with_quotes_as_they_stand(tmp_path: Path) -> None:
    """The files have no quoting; articles that were shown without being in the news follow."""
    store = import_mind(written(tmp_path / "s", {"behaviors.tsv": BEHAVIOURS, "news.tsv": NEWS}), tmp_path / "store")
    frame = store.catalogue().frame
    assert frame.select("item", "title", "category", "subcategory", "abstract").rows()[:2] == [
        ("N3", 'A "quoted" title', "sports", "soccer", "An abstract"),
        ("N9", "Never shown", "news", "world", None),
    ]
    assert frame["item"].to_list()[2:] == ["N1", "N2", "N5", "N4"]


def test_train_and_dev_become_a_split(tmp_path: Path) -> None:
    """Sessions begin anew in each part and are kept apart; an article of both parts is there once."""
    files = {
        "MINDsmall_train/behaviors.tsv": BEHAVIOURS,
        "MINDsmall_train/news.tsv": NEWS,
        "MINDsmall_dev/behaviors.tsv": "3\tU1\t11/15/2019 2:14:46 AM\tN3\tN9-1\n",
        "MINDsmall_dev/news.tsv": NEWS + "N8\tnews\tworld\tNew\t\thttps://x/3.html\t[]\t[]\n",
    }
    store = import_mind(written(tmp_path / "s", files), tmp_path / "store")
    rows = store.events().filter(pl.col("session").str.ends_with("-3")).select("split", "session", "event", "item")
    assert rows.collect().rows() == [
        ("train", "train-3", "impression", "N3"),
        ("train", "train-3", "click", "N3"),
        ("test", "test-3", "impression", "N9"),
        ("test", "test-3", "click", "N9"),
    ]
    assert store.catalogue().frame["item"].to_list()[:3] == ["N3", "N9", "N8"]
    assert store.manifest.rejected == {}


def test_lines_and_slots_that_do_not_fit_are_rejected_alone(tmp_path: Path) -> None:
    """A slot without its mark, a time of another form, a line without a user: the rest of the file stands."""
    bad = "4\tU3\t12.11.2019\t\tN3-1\n5\t\t11/12/2019 2:14:46 AM\tN1\tN3-1\n6\tU4\t11/12/2019 2:14:46 AM\t\tN3 N4-0\n"
    source = written(tmp_path / "s", {"behaviors.tsv": BEHAVIOURS + bad})
    store = import_mind(source, tmp_path / "store", ImportSettings(max_rejected=0.5))
    assert store.rejected().rows() == [
        ("behaviors.tsv", 4, "time not understood", "4\tU3\t12.11.2019\tN3"),
        ("behaviors.tsv", 4, "time not understood", "4\tU3\t12.11.2019\tN3"),
        ("behaviors.tsv", 5, "fields", "5\t\t11/12/2019 2:14:46 AM\tN1\tN3-1"),
        ("behaviors.tsv", 6, "fields", "6\tU4\t11/12/2019 2:14:46 AM\tN3"),
    ]
    assert store.events().filter(pl.col("buyer") == "U4").select("item").collect()["item"].to_list() == ["N4"]


def test_a_zip_and_another_folder(tmp_path: Path) -> None:
    """A zip is read like its folder; a folder of something else is told."""
    with zipfile.ZipFile(tmp_path / "MIND.zip", "w") as archive:
        archive.writestr("behaviors.tsv", BEHAVIOURS)
    assert import_mind(tmp_path / "MIND.zip", tmp_path / "store").manifest.buyers == 2
    with pytest.raises(DataError, match=r"is no MIND data set: it has no behaviors\.tsv; it holds x\.csv"):
        import_mind(written(tmp_path / "other", {"x.csv": "a\n"}), tmp_path / "store2")
    with pytest.raises(DataError, match=r"several behaviors\.tsv"):
        import_mind(
            written(tmp_path / "two", {"a/behaviors.tsv": BEHAVIOURS, "b/behaviors.tsv": BEHAVIOURS}), tmp_path / "x"
        )


def test_the_sample_is_read_whole(data_folder: Path, tmp_path: Path) -> None:
    """The published counts of the sample: 189,359 shown, 7,542 clicks, 2,000 articles."""
    store = import_mind(data_folder / "mind-sample", tmp_path / "store")
    counts = dict(store.events().group_by("event").len().collect().iter_rows())
    assert (counts["impression"], counts["click"]) == (189_359, 7_542)
    assert store.catalogue().frame["title"].drop_nulls().len() == 2_000
    assert store.manifest.rejected == {}
