"""From a served row to tomorrow's night: serve, import the day's log with what was shown, and train on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from fastapi.testclient import TestClient

from hatchway.config import RunSettings
from hatchway.data.log import build_log
from hatchway.data.store import Store
from hatchway.job import open_bundle
from hatchway.serving.app import create_app
from hatchway.serving.following import bundle_of
from hatchway.serving.service import Service
from hatchway.serving.settings import ServingSettings

DAY = 86_400
MARCH_2 = 1_772_323_200 + DAY
NIGHT = {
    "nightly.epochs": 1,
    "training.epochs": 1,
    "model.text_buckets": 1_024,
    "negatives.impressions": 4,
    "nightly.intake.fewest": 0.01,
}


def test_what_was_shown_today_teaches_tonight(hatchway: Callable[..., Any], tmp_path: Path) -> None:
    """One import a night with --shown: the served rows are impressions of the night's log, which is published."""
    market, logs, store = tmp_path / "market", tmp_path / "logs", tmp_path / "store"
    assert hatchway("simulate", market, "--listings", 200, "--buyers", 200, "--days", 2, "--no-photos", "-q").code == 0
    events = Store.open(market).events().drop("order").collect()
    Store.open(market).catalogue().frame.write_parquet(tmp_path / "items.parquet")
    logs.mkdir()
    state = tmp_path / "store-nights-serving"
    settings = [part for name, value in NIGHT.items() for part in ("--set", f"{name}={value}")]

    def night(day: int) -> None:
        events.filter(pl.col("time") // DAY == MARCH_2 // DAY + day - 2).write_parquet(logs / f"{day}.parquet")
        call = ("import", "table", f"{logs}/*.parquet", store, "--catalogue", tmp_path / "items.parquet", "-q")
        assert hatchway(*call, "--shown", state).code == 0
        ended = hatchway("nightly", store, "--day", f"2026-03-0{day}", *settings, "-q")
        assert ended.code == 0, ended.err

    night(1)
    served = Service(
        open_bundle(bundle_of(tmp_path / "store-nights")),
        settings=ServingSettings(buyer_ids="integer"),
        state=state,
        clock=lambda: MARCH_2 + 60,
    )
    saved = events.filter(pl.col("time") >= MARCH_2, pl.col("event") == "save")
    with TestClient(create_app(served)) as client:
        for buyer, session in saved.select("buyer", "session").unique().sort("buyer", "session").iter_rows():
            assert client.get(f"/similar/1?buyer={buyer}&session={session}&k=8").status_code == 200
    night(2)
    shown = Store.open(store).events().filter(pl.col("bundle").is_not_null()).collect()
    assert len(shown) == 8 * len(saved.select("buyer", "session").unique())
    assert shown["event"].unique().to_list() == ["impression"]
    recipe = RunSettings.parse({})
    log = build_log(Store.open(store), recipe.positives, recipe.split, 1, impressions=True)
    assert log.impressions is not None
    taught = set(log.catalogue.external(log.impressions.items).to_list())
    assert set(shown["item"].to_list()) & taught
