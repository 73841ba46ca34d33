"""A small market for nights, its days as they arrive, and what can go wrong with them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from hatchway.config import RunSettings
from hatchway.data.store import Store, write_store
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.writing import simulate

FIRST = 20_513  # 2026-03-01, days since 1970
DAY = 86_400

RECIPE = {
    "seed": 3,
    "model": {
        "dimension": 16,
        "text_buckets": 256,
        "item": {
            "categories": ["category", "style"],
            "numbers": ["price"],
            "texts": ["title"],
            "id_dropout": 0.5,
            "hidden": 16,
        },
        "context": {"history": 5, "hidden": 16, "text": False},
    },
    "negatives": {"uniform": 50},
    "mining": {"first_rank": 11, "last_rank": 60},
    "training": {"epochs": 4, "batch": 64, "checkpoint_steps": 3, "auc_pairs": 0},
    "evaluation": {"k": [20], "resamples": 50, "baselines": []},
    "nightly": {"gate": {"fewest_cases": 10, "resamples": 200}, "intake": {"poisoned_fewest": 12}},
}
"""A recipe whose nights take a fraction of a second."""


def settings(**nightly: object) -> RunSettings:
    """Return the small recipe, with some of ``[nightly]`` otherwise."""
    return RunSettings.parse(RECIPE | {"nightly": RECIPE["nightly"] | nightly})  # type: ignore[operator]


@dataclass(frozen=True, eq=False)
class Days:
    """A log and its catalogue, before they are a store.

    Attributes:
        events: the log, in the order of time, with a column ``order``.
        catalogue: the items.
    """

    events: pl.DataFrame
    catalogue: pl.DataFrame

    def write(self, target: Path) -> Store:
        """Write them as a store."""
        return write_store(target, self.events, self.catalogue)

    def of(self, day: int) -> pl.Expr:
        """Choose the rows of a day, counted from 1."""
        return pl.col("time") // DAY == FIRST + day - 1

    def but(self, events: pl.DataFrame) -> "Days":
        """Return the same catalogue with another log."""
        return Days(events, self.catalogue)


def market(folder: Path, days: int, listings: int = 700, buyers: int = 600) -> Days:
    """Simulate a small market and read it back."""
    store = simulate(
        folder / "market", MarketSettings(listings=listings, buyers=buyers, days=days), seed=5, photos=False
    )
    return Days(store.events().collect(), store.catalogue().frame)


def pictured(folder: Path, days: int) -> Path:
    """Write the store of a very small market with photos, where six offers of a style at a time show the same one."""
    drawn = simulate(folder / "drawn", MarketSettings(listings=400, buyers=500, days=days), seed=5)
    catalogue = drawn.catalogue().frame
    six = pl.int_range(pl.len()).over("style") // 6
    shown = catalogue.with_columns(photo=pl.col("photo").first().over("style", six))
    store = write_store(folder / "pictured", drawn.events().collect(), shown).path
    shutil.copytree(drawn.path / "photos", store / "photos")
    return store


def name(day: int) -> str:
    """Name a day, counted from 1."""
    return str(np.datetime64(FIRST + day - 1, "D"))


def doubled(days: Days, day: int) -> Days:
    """Deliver a day's events twice."""
    again = days.events.filter(days.of(day))
    orders = days.events["order"].max()
    assert isinstance(orders, int)
    again = again.with_columns(order=pl.col("order") + orders + 1)
    return days.but(pl.concat([days.events, again]))


def empty(days: Days, day: int) -> Days:
    """Lose a day."""
    return days.but(days.events.filter(~days.of(day)))


def tenfold(days: Days, day: int) -> Days:
    """Make ten of every event of a day, by other buyers and on the day's items in another order."""
    own = days.events.filter(days.of(day))
    strangers = [
        own.with_columns(
            buyer=pl.col("buyer") + 10_000 * copy,
            session=pl.col("session") + 1_000_000 * copy,
            item=pl.col("item").shuffle(seed=copy).over("event"),
            order=pl.col("order") + 1_000_000 * copy,
        )
        for copy in range(1, 10)
    ]
    return days.but(pl.concat([days.events, *strangers]))


def poisoned(days: Days, day: int, share: float = 0.5) -> Days:
    """Let one item be the object of half of a day's positives, all within one hour."""
    positive = days.of(day) & pl.col("event").is_in(["save", "message"])
    own = days.events.filter(positive)
    hour = int(own["time"].median() or 0) // 3_600 * 3_600  # type: ignore[arg-type]
    item = days.catalogue.filter(pl.col("listed") < own["time"].min())["item"][7]
    count = int(len(own) * share / (1 - share))
    made = own.sample(count, with_replacement=True, seed=1).with_columns(
        item=pl.lit(item, pl.Int64),
        time=hour + pl.int_range(count) * (3_600 // count),
        order=pl.int_range(count) + 5_000_000,
        session=pl.int_range(count) + 50_000_000,
        buyer=pl.int_range(count) + 500_000,
        query_item=pl.lit(None, pl.Int64),
    )
    return days.but(pl.concat([days.events, made.select(days.events.columns)]))


def newly_wanted(days: Days, day: int, count: int) -> Days:
    """Let the last positives of a day, so many, each be of a listing that nobody engaged with before."""
    positive = pl.col("event").is_in(["save", "message"])
    last = days.events.filter(days.of(day) & positive).tail(count)
    there = (pl.col("listed") < last["time"].min()) & (pl.col("gone").is_null() | (pl.col("gone") > last["time"].max()))
    wanted = days.events.filter(positive & (pl.col("time") <= last["time"].max()))
    cold = days.catalogue.filter(there).join(wanted, on="item", how="anti").head(count)
    item = pl.col("order").replace_strict(last["order"], cold["item"], default=pl.col("item"))
    return days.but(days.events.with_columns(item=item))


def jumped(days: Days, day: int, sessions: int = 6, seconds: int = 30_000) -> Days:
    """Let the clock jump by hours within some sessions of a day."""
    own = days.events.filter(days.of(day) & (pl.col("time") % DAY < DAY - seconds - 7_200))
    long = own.group_by("session").len().filter(pl.col("len") > 8).sort("session").head(sessions)["session"]
    place = pl.int_range(pl.len()).over("session")
    late = pl.col("session").is_in(long.to_list()) & days.of(day) & (place % 4 == 3)
    return days.but(days.events.with_columns(time=pl.when(late).then(pl.col("time") + seconds).otherwise("time")))


def ahead(days: Days, day: int, by: int = 40) -> Days:
    """Let the clock of one buyer in fifty run weeks ahead on a day."""
    wrong = days.of(day) & (pl.col("buyer") % 50 == 0)
    return days.but(days.events.with_columns(time=pl.when(wrong).then(pl.col("time") + by * DAY).otherwise("time")))


def late(days: Days, day: int) -> Days:
    """Leave out the events of a day's afternoon: they have not arrived yet."""
    return days.but(days.events.filter(~(days.of(day) & (pl.col("time") % DAY >= DAY // 2))))


def without_a_third(days: Days) -> Days:
    """Lose every third row of the catalogue."""
    return Days(days.events, days.catalogue.filter(pl.int_range(pl.len()) % 3 != 0))


def for_sale(days: Days, day: int) -> Days:
    """Return the catalogue as some shops write it at the end of a day: what is for sale, and no dates."""
    end = (FIRST + day) * DAY
    there = (pl.col("listed") < end) & (pl.col("gone").is_null() | (pl.col("gone") >= end))
    return Days(days.events, days.catalogue.filter(there).drop("listed", "gone"))


def without_prices(days: Days, share: float = 0.4) -> Days:
    """Make NaN of the prices of some listings."""
    worse = pl.int_range(pl.len()) % 10 < int(10 * share)
    price = pl.when(worse).then(float("nan")).otherwise(pl.col("price"))
    return Days(days.events, days.catalogue.with_columns(price=price))
