"""What the job does with settings that the log has nothing for."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from hatchway.config import RunSettings, load_recipe
from hatchway.data.splits import SplitSettings
from hatchway.data.store import Store, write_store
from hatchway.errors import ArtefactError, DataError, SettingsError
from hatchway.job import evaluate_run, index_run, open_bundle, overfitting, train_run


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


def test_a_run_that_is_there_is_refused_before_the_log_is_read(tmp_path: Path) -> None:
    """A log of a hundred million rows takes minutes; that the folder is taken is known at once."""
    store = store_of(tmp_path, queries=False)
    train_run(store, tmp_path / "run", settings_of())
    unread = replace(store, path=tmp_path / "moved")  # nothing can be read from there
    with pytest.raises(SettingsError, match="holds a run already"):
        train_run(unread, tmp_path / "run", settings_of())
    assert train_run(unread, tmp_path / "run", settings_of(), resume=True).is_finished()


def test_a_refused_resume_names_what_differs(tmp_path: Path) -> None:
    """The settings by their dotted names with both values, the store by its digest; and where the run's own stand."""
    store = store_of(tmp_path, queries=False)
    train_run(store, tmp_path / "run", settings_of())
    other = settings_of(history=3).model_copy(update={"seed": 9})
    with pytest.raises(SettingsError) as refused:
        train_run(store_of(tmp_path / "other", queries=True), tmp_path / "run", other, resume=True)
    said = str(refused.value)
    assert "seed was 1 and is now 9; model.context.history was 20 and is now 3; the store's digest was " in said
    assert f"its settings are in {tmp_path / 'run' / 'settings.toml'}" in said
    assert said.count(" was ") == 4  # three differences, and "it was begun with"


def test_a_store_that_was_cut_short_is_refused_by_name(tmp_path: Path) -> None:
    """Whatever the part, before it is parsed; no run folder is left."""
    store = store_of(tmp_path, queries=False)
    part = store.path / store.manifest.parts[0].path
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(ArtefactError, match=f"{part.name} is not the file that was written; import again"):
        train_run(store, tmp_path / "run", settings_of())
    assert not (tmp_path / "run").exists()


def test_a_log_with_a_split_of_its_own_is_split_by_it(tmp_path: Path) -> None:
    """Unless the settings say otherwise; what was chosen is written into the run's settings."""
    events = pl.DataFrame(
        {"buyer": [0, 0, 0, 0, 1, 1], "item": [0, 1, 2, 3, 0, 1], "split": ["train"] * 3 + ["test"] + ["train"] * 2}
    )
    store = write_store(tmp_path / "store", events)
    run = train_run(store, tmp_path / "run", settings_of())
    assert run.log().protocol == run.record.split.protocol == "given"
    assert "split given, as the log's column 'split' says: 5 train, 0 validation, 1 test positives" in run.record.notes
    assert load_recipe(run.path / "settings.toml").split.protocol == "given"
    assert evaluate_run(run).cases == 1
    other = settings_of().model_copy(update={"split": SplitSettings(protocol="leave-one-out")})
    assert train_run(store, tmp_path / "other", other).record.split.protocol == "leave-one-out"
    assert train_run(store_of(tmp_path, queries=False), tmp_path / "none", settings_of()).log().protocol == (
        "leave-one-out"
    )


def test_one_kind_of_folder_given_for_another_is_named(tmp_path: Path) -> None:
    """With what to do about it."""
    store = store_of(tmp_path, queries=False).path
    with pytest.raises(DataError, match=f"is not a run but a store; train on it first: hatchway train {store} --out"):
        evaluate_run(store)
    train_run(store, tmp_path / "run", settings_of())
    with pytest.raises(DataError, match="is not a store but a run; name the store that it was trained on"):
        train_run(tmp_path / "run", tmp_path / "other", settings_of())
    index_run(tmp_path / "run")
    with pytest.raises(DataError, match="is not a run but a bundle; name the run that it was made of"):
        evaluate_run(tmp_path / "run" / "bundle")
    with pytest.raises(DataError, match="is not a run or a bundle but a store"):
        open_bundle(store)
    with pytest.raises(DataError, match="nowhere does not exist; make one with: hatchway train STORE"):
        evaluate_run(tmp_path / "nowhere")


def test_items_that_were_not_on_offer_are_counted_in_the_record(tmp_path: Path) -> None:
    """So that the report has the line, too."""
    listed = [None] * 6 + [1_767_225_600 + 10_000_000]
    catalogue = pl.DataFrame({"item": range(7), "listed": pl.Series(listed, dtype=pl.Int64)})
    events = store_of(tmp_path, queries=False).events()
    run = train_run(write_store(tmp_path / "with", events, catalogue), tmp_path / "run", settings_of())
    assert "1 of 7 items were not on offer in the training part: never negatives" in run.record.notes


def test_cut_offs_can_be_chosen_after_training(tmp_path: Path) -> None:
    """The figures are the same model's, and lie in the run folder."""
    run = train_run(store_of(tmp_path, queries=False), tmp_path / "run", settings_of())
    assert evaluate_run(run).k == [5, 10, 20, 50]
    found = evaluate_run(run, k=(1, 6))
    assert (found.k, found.value("recall", 6)) == ([1, 6], 1.0)
    assert json.loads((run.path / "evaluation.json").read_text())["k"] == [1, 6]
    with pytest.raises(SettingsError, match="must ascend"):
        evaluate_run(run, k=(6, 1))


def test_a_best_validation_long_before_the_end_is_said() -> None:
    """In the first half of the run; later, or where nothing was validated, there is nothing to say."""
    judged = [{"step": 10.0 * epoch, "ndcg@20": score} for epoch, score in ((1, 0.2), (2, 0.3), (5, 0.1))]
    line = overfitting(judged, "ndcg@20", 10)
    assert line is not None
    assert line.startswith("validation was best after epoch 2 of 5 (ndcg@20 0.3000, at the end 0.1000)")
    assert overfitting(judged[:2], "ndcg@20", 10) is None
    assert overfitting(judged[:1], "ndcg@20", 10) is None
    assert overfitting([], "ndcg@20", 10) is None


def test_a_bundle_says_which_items_are_the_same_thing(tmp_path: Path) -> None:
    """Two titles of one seller that say the same stand in each other's list; another seller's does not."""
    store = store_of(tmp_path, queries=False)
    titles = ["Teak sofa Ekby 180 cm", "sofa teak, Ekby 180cm", "Teak sofa Ekby 180 cm", "pine bed", "desk lamp", "rug"]
    catalogue = pl.DataFrame({"item": range(6), "title": titles, "seller": ["a", "a", "b", "c", "d", "e"]})
    told = write_store(tmp_path / "told", store.events(), catalogue)
    settings = settings_of().model_dump() | {"screening": {"title_bits": -100.0, "seller_share": 1.0}}
    similar = index_run(train_run(told, tmp_path / "run", RunSettings.parse(settings))).similar
    assert similar is not None
    assert [similar.of(item).tolist() for item in range(6)] == [[1], [0], [], [], [], []]
