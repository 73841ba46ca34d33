"""What the job does with settings that the log has nothing for."""

import logging
from pathlib import Path

import polars as pl
import pytest

from hatchway.config import RunSettings
from hatchway.data.store import Store, write_store
from hatchway.errors import DataError, SettingsError
from hatchway.job import train_run


def store_of(folder: Path, *, queries: bool) -> Store:
    """Write a small store, with query texts or without."""
    events = pl.DataFrame(
        {
            "buyer": [b for b in range(12) for _ in range(4)],
            "item": [(b + n) % 6 for b in range(12) for n in range(4)],
            "event": ["save"] * 48,
            "time": [1_767_225_600 + 60 * n for n in range(48)],
        }
    )
    if queries:
        events = events.with_columns(query=pl.lit("teak sofa"))
    return write_store(folder / "store", events.lazy(), None)


def settings_of(**context: object) -> RunSettings:
    """Make settings that train in a moment."""
    return RunSettings.parse(
        {
            "model": {"dimension": 4, "text_buckets": 32, "context": context},
            "negatives": {"uniform": 4},
            "training": {"epochs": 1, "batch": 8},
        }
    )


@pytest.mark.parametrize("queries", [False, True])
def test_query_text_is_read_where_there_is_some_and_its_absence_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, queries: bool
) -> None:
    """Without the column there is no table for it, and one line says so; with it there is."""
    with caplog.at_level(logging.INFO, logger="hatchway"):
        run = train_run(store_of(tmp_path, queries=queries), tmp_path / "run", settings_of())
    said = [record.message for record in caplog.records if record.message.startswith("query text")]
    assert len(said) == (0 if queries else 1)
    assert run.model_record().model.context.text is queries
    names = set(run.load_model(run.log()).state_dict())
    assert ("query_tower.by_gram.weight" in names) is queries


def test_a_tower_that_reads_text_alone_needs_some(tmp_path: Path) -> None:
    """It would have nothing to read, which is refused before a folder is made."""
    with pytest.raises(SettingsError, match="needs at least one of query_item"):
        train_run(
            store_of(tmp_path, queries=False), tmp_path / "run", settings_of(query_item=False, history=0, text=True)
        )
    assert not (tmp_path / "run").exists()


def test_a_wrong_item_column_leaves_the_folder_to_the_mended_command(tmp_path: Path) -> None:
    """Nothing is written before the columns are known to be there, so the same --out can be used again."""
    store = store_of(tmp_path, queries=False)
    wrong = settings_of().model_dump() | {"model": {"dimension": 4, "item": {"categories": ["dept"]}}}
    with pytest.raises(DataError, match="'dept'"):
        train_run(store, tmp_path / "run", RunSettings.parse(wrong))
    assert train_run(store, tmp_path / "run", settings_of()).is_finished()


def test_a_history_of_others_is_refused_where_there_are_times(tmp_path: Path) -> None:
    """A row would be told of what happened after it."""
    with pytest.raises(SettingsError, match="would hold what happened after it"):
        train_run(store_of(tmp_path, queries=False), tmp_path / "run", settings_of(history_of="others"))
