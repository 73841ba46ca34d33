"""What goes wrong with a day's data: found, named, kept out of the model, or bounded in what it changes."""

import json
import shutil
from pathlib import Path

import night_market
import polars as pl
import pytest
import safetensors.torch
from night_market import Days, name

from hatchway.config import RunSettings
from hatchway.errors import DataError, GateRefusedError
from hatchway.job import nightly_run
from hatchway.nightly.pointer import NightRecord, current, read_record

FIRST, DAY, LAST = 3, 13, 18
SETTINGS = night_market.settings(keep_nights=40)
NEAR = 0.12
"""How far the recall of the next day, on about a hundred positives, may be from that without the fault."""


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    """Simulate the market."""
    return night_market.market(tmp_path_factory.mktemp("market"), LAST)


@pytest.fixture(scope="module")
def store(days: Days, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write its store."""
    return days.write(tmp_path_factory.mktemp("clean") / "store").path


@pytest.fixture(scope="module")
def before(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the nights before anything goes wrong."""
    nights = tmp_path_factory.mktemp("nights") / "before"
    for day in range(FIRST, DAY):
        nightly_run(store, nights, name(day), SETTINGS)
    return nights


@pytest.fixture(scope="module")
def clean(before: Path, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the nights after, too, as if nothing had gone wrong."""
    nights = tmp_path_factory.mktemp("nights") / "clean"
    shutil.copytree(before, nights, symlinks=True)
    for day in (DAY, DAY + 1, DAY + 2):
        nightly_run(store, nights, name(day), SETTINGS)
    return nights


@pytest.fixture
def nights(before: Path, tmp_path: Path) -> Path:
    """Copy the nights before."""
    shutil.copytree(before, tmp_path / "nights", symlinks=True)
    return tmp_path / "nights"


def run(days: Days | Path, nights: Path, day: int, settings: RunSettings = SETTINGS) -> NightRecord:
    """Run a night on a store that is written for it."""
    store = days if isinstance(days, Path) else days.write(nights.with_name("store")).path
    return nightly_run(store, nights, name(day), settings)


def raised(record: NightRecord) -> list[str]:
    """Name the alarms."""
    return [alarm.name for alarm in record.alarms if alarm.raised]


def record_of(nights: Path, day: int) -> NightRecord:
    """Read how a night ended."""
    record = read_record(nights / name(day))
    assert record is not None
    return record


def honest(record: NightRecord) -> float:
    """Return what the model of the night before found of the day that it had not seen."""
    return float(record.steps["honest"]["figures"]["all"]["value"])


def weights(nights: Path, day: int) -> bytes:
    """Read the weights of a night."""
    return (nights / name(day) / "state" / "weights.safetensors").read_bytes()


def test_a_day_without_events_is_no_night(nights: Path, days: Days, store: Path) -> None:
    """Exit 4, nothing trained, nothing published; the next night goes on, and mines with an older index."""
    with pytest.raises(GateRefusedError, match=f"no event of {name(DAY)}"):
        run(night_market.empty(days, DAY), nights, DAY)
    assert current(nights) == nights / name(DAY - 1)
    refused = record_of(nights, DAY)
    assert (refused.outcome, raised(refused)) == ("refused", ["day_events_ratio"])
    assert "train" not in refused.steps
    following = run(night_market.empty(days, DAY), nights, DAY + 1)
    assert following.outcome == "published"
    assert following.steps["mine"]["index_age_days"] == 2
    assert following.previous == name(DAY - 1)


def test_events_that_come_after_all_give_the_night_that_was_missing(
    nights: Path, days: Days, store: Path, clean: Path
) -> None:
    """A refused day is run again when its events are there, and has the bytes of a night that never failed."""
    with pytest.raises(GateRefusedError):
        run(night_market.empty(days, DAY), nights, DAY)
    assert run(store, nights, DAY).outcome == "published"
    assert weights(nights, DAY) == weights(clean, DAY)


def test_ten_times_the_events_are_cut_back(nights: Path, days: Days, clean: Path) -> None:
    """The alarm names it, no more than four usual days of positives are trained on, and the model stays near."""
    many = night_market.tenfold(days, DAY)
    record = run(many, nights, DAY)
    assert "day_positives_ratio" in raised(record)
    intake, training = record.steps["intake"], record.steps["train"]
    usual = intake["usual"]["positives"]
    assert intake["day"]["positives"] > 7 * usual
    today = training["positives"] - record_of(clean, DAY).steps["train"]["positives"]
    assert 0 < today <= 4 * usual
    assert abs(honest(run(days, nights, DAY + 1)) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_late_events_are_trained_on_when_they_come(nights: Path, days: Days, store: Path, clean: Path) -> None:
    """Half a day that comes late is counted, and the next night trains on as many positives as without the fault."""
    assert raised(run(night_market.late(days, DAY), nights, DAY)) == []
    record = run(store, nights, DAY + 1)
    assert raised(record) == ["late_share"]
    missed = days.events.filter(days.of(DAY)).height - night_market.late(days, DAY).events.filter(days.of(DAY)).height
    assert record.steps["intake"]["late"] == missed > 100
    assert record.steps["train"]["positives"] == record_of(clean, DAY + 1).steps["train"]["positives"]
    assert abs(honest(run(store, nights, DAY + 2)) - honest(record_of(clean, DAY + 2))) <= NEAR


def test_a_schema_that_changed_is_refused_and_changes_nothing(
    nights: Path, days: Days, store: Path, clean: Path
) -> None:
    """A renamed column, other ids, a renamed event: exit 2, the change by name; once mended the clean bytes."""
    renamed = days.but(days.events.rename({"session": "visit"}))
    texts = Days(
        days.events.with_columns(pl.col("item", "query_item").cast(pl.String)),
        days.catalogue.with_columns(pl.col("item").cast(pl.String)),
    )
    event = pl.when(days.of(DAY) & (pl.col("event") == "save")).then(pl.lit("favourite")).otherwise("event")
    for changed, said in (
        (renamed, "the log has changed its columns since the night of .*: session is gone"),
        (texts, "item was Int64 and is String"),
        (days.but(days.events.with_columns(event=event)), f"{name(DAY)} has no event 'save', of which"),
    ):
        with pytest.raises(DataError, match=said):
            run(changed, nights, DAY)
        assert current(nights) == nights / name(DAY - 1)
        assert record_of(nights, DAY).outcome == "failed"
    run(store, nights, DAY)
    assert weights(nights, DAY) == weights(clean, DAY)


def test_a_poisoned_hour_is_turned_away(nights: Path, days: Days, clean: Path) -> None:
    """One item makes half of the day's positives within an hour: none of them is trained on."""
    record = run(night_market.poisoned(days, DAY), nights, DAY)
    assert raised(record) == ["poisoned_items"]
    today, same = (found.steps["intake"]["day"] for found in (record, record_of(clean, DAY)))
    assert len(today["poisoned"]) == 1
    assert today["largest_share"] > 0.5
    assert today["positives"] <= same["positives"]
    assert same["positives"] - today["positives"] <= 3, "no more than that hour's own positives of the item are lost"
    assert abs(honest(run(days, nights, DAY + 1)) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_rows_of_a_clock_that_jumped_are_turned_away(nights: Path, days: Days, clean: Path) -> None:
    """Rows that lie hours away from their session are not read; all others are."""
    jumped = night_market.jumped(days, DAY)
    moved = int((jumped.events["time"] != days.events["time"]).sum())
    assert moved > 10
    record = run(jumped, nights, DAY)
    assert raised(record) == ["jumped_share"]
    assert record.steps["intake"]["day"]["rejected"] == {"clock": moved}
    assert abs(honest(run(days, nights, DAY + 1)) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_events_of_days_to_come_are_not_read_and_are_said(nights: Path, days: Days, clean: Path) -> None:
    """A clock that is weeks ahead: what it wrote waits until its day, and the alarm says how much it is."""
    shifted = night_market.ahead(days, DAY)
    moved = int((shifted.events["time"] != days.events["time"]).sum())
    record = run(shifted, nights, DAY)
    assert raised(record) == ["ahead_share"]
    assert record.steps["intake"]["ahead"] == moved > 10
    accepted = (found.steps["intake"]["day"]["accepted"] for found in (record_of(clean, DAY), record))
    assert next(accepted) - next(accepted) == moved
    assert abs(honest(run(days, nights, DAY + 1)) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_yesterdays_rows_stand_in_for_a_third_of_the_catalogue(nights: Path, days: Days, clean: Path) -> None:
    """No listing that was on offer leaves the index because its row is missing; only new ones are not known yet."""
    record = run(night_market.without_a_third(days), nights, DAY)
    assert "lost_listings_share" in raised(record)
    lost = next(alarm for alarm in record.alarms if alarm.name == "lost_listings_share")
    assert lost.value == pytest.approx(1 / 3, abs=0.05)
    catalogue, same = (found.steps["intake"]["catalogue"] for found in (record, record_of(clean, DAY)))
    kept = pl.read_parquet(nights / name(DAY) / "bundle" / "catalogue.parquet")
    were = pl.read_parquet(nights / name(DAY - 1) / "bundle" / "catalogue.parquet").filter(pl.col("gone").is_null())
    assert were.join(kept.filter(pl.col("title").is_not_null()), on="item", how="anti").is_empty()
    assert 0 <= same["added"] - catalogue["added"] <= same["added"] / 2
    after = run(days, nights, DAY + 1)
    assert raised(after) == []
    assert abs(honest(after) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_a_catalogue_of_what_is_for_sale_alone(days: Days, tmp_path: Path) -> None:
    """Sold listings have no row any more: they leave the index, without an alarm, and most of it stays."""
    selling = night_market.settings(catalogue={"vanished": "gone", "most_lost": 0.3})
    stores = [night_market.for_sale(days, day) for day in (5, 6)]
    for day, store in zip((5, 6), stores, strict=True):
        record = run(store, tmp_path / "nights", day, selling)
    assert raised(record) == []
    figures = record.steps["intake"]["catalogue"]
    assert figures["gone"] == figures["lost"] > 0
    bundle = pl.read_parquet(tmp_path / "nights" / name(6) / "bundle" / "catalogue.parquet")
    offered = bundle.filter(pl.col("gone").is_null())["item"]
    assert set(offered) <= set(stores[1].catalogue["item"])
    assert record.steps["index"]["index"]["vectors"] == len(offered) < len(bundle)


def test_prices_that_are_no_numbers_count_as_missing(nights: Path, days: Days, clean: Path) -> None:
    """The alarm says how many, the model stays finite, and near."""
    record = run(night_market.without_prices(days), nights, DAY)
    assert raised(record) == ["missing_values_rise"]
    assert record.steps["intake"]["catalogue"]["missing"]["price"] == pytest.approx(0.4, abs=0.05)
    assert record.outcome == "published"
    assert abs(honest(run(days, nights, DAY + 1)) - honest(record_of(clean, DAY + 1))) <= NEAR


def test_an_index_that_was_not_renewed_is_not_mined_with(
    nights: Path, days: Days, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nights without an index: the third finds yesterday's index three days old, and trains on easy negatives."""

    def no_index(*arguments: object) -> object:
        raise MemoryError("no memory for the index")

    with monkeypatch.context() as patch:
        patch.setattr("hatchway.nightly.making.write_bundle", no_index)
        for day in (DAY, DAY + 1):
            with pytest.raises(MemoryError):
                run(store, nights, day)
    record = run(store, nights, DAY + 2)
    assert raised(record) == ["index_age_days"]
    assert (record.steps["mine"]["skipped"], record.outcome) == ("too_old", "published")
    assert "mined" not in record.steps["train"]["columns"]
    assert record.steps["train"]["columns"]["in_batch"] > 0
    assert run(store, nights, DAY + 3).steps["mine"]["mined"], "the index is new again"


def test_relists_that_slip_past_the_filter_raise_the_alarm(nights: Path, store: Path) -> None:
    """Without the filter some of what is mined has the positive's seller: it is seen, and not used."""
    strict = night_market.settings(keep_nights=40, most_leaked=0.001)
    careless = strict.model_copy(
        update={"screening": SETTINGS.screening.model_copy(update={"seller": False, "photo": False, "title": False})}
    )
    careful = run(store, nights, DAY, strict)
    assert careful.steps["mine"]["leaks"]["seller"] == 0
    record = run(store, nights, DAY + 1, careless)
    assert raised(record) == ["leak_share"]
    assert record.steps["mine"]["leaks"]["seller"] > 0.001
    assert not record.steps["mine"]["mined"]


def test_photos_that_slip_past_the_filter_raise_the_alarm(tmp_path: Path) -> None:
    """Six sellers show one picture: with the photo filter off it is seen, by photo alone, and nothing is used."""
    store, nights = night_market.pictured(tmp_path, 5), tmp_path / "nights"
    strict = night_market.settings(most_leaked=0.0)
    screening = strict.screening.model_copy(update={"photo": False, "title": False})
    run(store, nights, 3, strict)
    careful = run(store, nights, 4, strict)
    assert careful.steps["mine"]["leaks"] == {"seller": 0, "photo": 0}
    assert careful.steps["mine"]["refused"]["photo"] > 0
    assert (careful.steps["mine"]["mined"], raised(careful)) == (True, [])
    many = night_market.settings(most_leaked=0.0, held_out=0.8)  # cases, of which some ask beside a look-alike
    record = run(store, nights, 5, many.model_copy(update={"screening": screening}))
    assert raised(record) == ["leak_share"]
    leaks = record.steps["mine"]["leaks"]
    assert leaks["photo"] > 0 == leaks["seller"]
    assert (record.steps["mine"]["mined"], record.steps["mine"]["skipped"]) == (False, "leaks")
    assert "mined" not in record.steps["train"]["columns"]
    alike = [piece for piece in record.steps["evaluate"]["compared"] if piece["kind"] == "alike"]
    assert [piece["cases"] > 0 for piece in alike] == [True], "compared also while the filter is off"
    assert f'hatchway_night_leak_share{{reason="photo"}} {leaks["photo"]}' in (nights / "metrics.prom").read_text(
        "utf-8"
    )


def test_a_model_that_lost_its_way_is_refused(nights: Path, store: Path) -> None:
    """Rates a hundred times too high: worse beyond the interval, exit 4, and the old model stays."""
    wild = SETTINGS.model_copy(
        update={"training": SETTINGS.training.model_copy(update={"table_rate": 30.0, "layer_rate": 3.0})}
    )
    with pytest.raises(GateRefusedError, match=f"was refused and {name(DAY - 1)} stays"):
        run(store, nights, DAY, wild)
    record = record_of(nights, DAY)
    assert record.outcome == "refused"
    assert [verdict.name for verdict in record.gate if not verdict.passed]
    assert current(nights) == nights / name(DAY - 1)
    assert run(store, nights, DAY).outcome == "published", "with the usual rates the day is run after all"


def test_a_sketch_that_missed_days_is_brought_up_to_date(days: Days, store: Path, tmp_path: Path) -> None:
    """Two nights fail: the alarm says how long the sketch saw nothing, and it then knows of every positive, once."""
    streaming = SETTINGS.model_copy(
        update={"negatives": SETTINGS.negatives.model_copy(update={"frequency": "streaming"})}
    )
    nights = tmp_path / "nights"
    for day in (4, 5):
        run(store, nights, day, streaming)
    for day in (6, 7):
        with pytest.raises(GateRefusedError):
            run(night_market.empty(days, day), nights, day, streaming)
    late = run(store, nights, 8, streaming)
    assert "sketch_lag_hours" in raised(late)
    lag = late.steps["frequencies"]["lag_hours"]
    assert 48 <= lag < 72, "from the end of training on day 5 to the beginning of day 8"
    assert late.steps["frequencies"]["after"]["covered"] > 0
    following = run(store, nights, 9, streaming)
    assert raised(following) == []
    clocks = safetensors.torch.load_file(nights / name(9) / "state" / "sketch.safetensors")["clocks"]
    state = json.loads((nights / name(9) / "state" / "manifest.json").read_bytes())
    positives = days.events.filter(
        pl.col("event").is_in(["save", "message"]) & (pl.col("time") < state["sketched_until"])
    )
    assert int(clocks[1]) == len(positives), "no positive is counted twice, and none is left out"


def test_a_sketch_that_stands_still_covers_less_than_it_should(days: Days, store: Path, tmp_path: Path) -> None:
    """The last hours go to listings that nobody wanted before: the alarm compares the counts' top with them."""
    narrow, nights = night_market.settings(sketch={"top": 20, "fewest": 50}), tmp_path / "nights"
    usual = [run(store, nights, day, narrow) for day in (5, 6)]
    assert [raised(record) for record in usual] == [[], []]
    record = run(night_market.newly_wanted(days, 7, 50), nights, 7, narrow)
    after = record.steps["frequencies"]["after"]
    assert after["positives"] >= 50
    cover = next(alarm for alarm in record.alarms if alarm.name == "sketch_cover")
    assert raised(record) == ["sketch_cover"]
    assert cover.value == pytest.approx(after["covered"] / after["expected_covered"])
    assert cover.done.endswith("look at head and tail")
    assert {"head", "tail"} <= record.steps["honest"]["figures"].keys(), "where the effect on them is seen"
