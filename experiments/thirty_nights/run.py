"""Thirty nights in a row with a fault in ten of them, each beside its twin without the fault.

Usage: python experiments/thirty_nights/run.py [--listings 3000] [--buyers 2500] [--keep FOLDER]

The market is simulated (seed 11, 33 days). Before every night with a fault the folder of nights is copied; the copy
runs that night and the next without the fault. So what a fault changes is seen alone: whether it was detected, what was
published, whether the night's model has the same bytes as its twin's, and what each of the two models finds of the next
day, which neither has seen. Writes results.json beside this file. With --keep the nights stay, with nights.html.
"""

import argparse
import json
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import polars as pl

from hatchway.artefacts.alone import alone_in
from hatchway.artefacts.atomic import write_text
from hatchway.config import RunSettings, load_recipe
from hatchway.data.store import write_store
from hatchway.errors import HatchwayError
from hatchway.job import nightly_run
from hatchway.nightly.page import write_page
from hatchway.nightly.pointer import NightRecord, current, read_record
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.writing import simulate
from hatchway.training import loop

HERE = Path(__file__).parent
DAY, START, FIRST, LAST = 86_400, 1_772_323_200, 3, 32
SETTINGS = (
    "model.dimension=32",
    "training.batch=256",
    "training.epochs=8",
    "training.checkpoint_steps=2",
    "mining.first_rank=51",
    "mining.last_rank=250",
    "nightly.keep_nights=2",
    "evaluation.resamples=0",
    "evaluation.k=[20]",
)


class Killed(BaseException):
    """The end of a process."""


class Market:
    """The market, its stores with and without faults, and the nights on it."""

    def __init__(self, folder: Path, listings: int, buyers: int, settings: RunSettings) -> None:
        self.folder, self.settings, self.nights = folder, settings, folder / "nights"
        made = simulate(
            folder / "market",
            MarketSettings(listings=listings, buyers=buyers, days=LAST + 1),
            11,
            photos=False,
        )
        self.store, self.events, self.items = made.path, made.events().collect(), made.catalogue().frame

    def run(self, day: int, store: Path | None = None, nights: Path | None = None) -> NightRecord:
        """Run the night of a day."""
        return nightly_run(store or self.store, nights or self.nights, name(day), self.settings)

    def other(self, events: pl.DataFrame | None = None, items: pl.DataFrame | None = None) -> Path:
        """Write the market with other events or items."""
        target = self.folder / "with-fault"
        write_store(target, self.events if events is None else events, self.items if items is None else items)
        return target

    def fails(self, day: int) -> str:
        """Run a night that does not publish, and return what was said."""
        before = current(self.nights)
        try:
            self.run(day)
        except (HatchwayError, MemoryError, Killed) as error:
            self.still(before)
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"the night of {name(day)} did not fail")

    def still(self, before: Path | None) -> None:
        """See that what was served is still served."""
        if current(self.nights) != before:
            raise AssertionError("a night that did not end well is served")


def name(day: int) -> str:
    """Name a day, counted from 1."""
    found = pl.select(pl.from_epoch(pl.lit(START + (day - 1) * DAY)).dt.strftime("%Y-%m-%d")).item()
    return str(found)


def of(day: int) -> pl.Expr:
    """Choose a day's rows."""
    return pl.col("time") // DAY == START // DAY + day - 1


def killed(market: Market, day: int) -> list[str]:
    """End the process after the second checkpoint, then run the night again."""
    save, calls = loop.save_checkpoint, []

    def dies(*arguments: object) -> object:
        calls.append(1)
        if len(calls) > 1:
            raise Killed("signal 9")
        return save(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(loop, "save_checkpoint", dies):
        said = market.fails(day)
    market.run(day)
    return [said]


def index_failed(market: Market, day: int) -> list[str]:
    """Let the index fail, then run the night again."""
    with mock.patch("hatchway.nightly.making.write_bundle", side_effect=MemoryError("no memory for the index")):
        said = market.fails(day)
    market.run(day)
    return [said]


@contextmanager
def full_disk(bytes_left: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def disk_full(market: Market, day: int) -> list[str]:
    """Let the disk be full, then run the night again."""
    with full_disk(100_000):
        said = market.fails(day)
    market.run(day)
    return [said.replace(str(market.folder), "…")]


def index_cut(market: Market, day: int) -> list[str]:
    """Cut yesterday's index short."""
    index = next((market.nights / "current" / "bundle").glob("index.*"))
    with index.open("rb+") as file:
        file.truncate(index.stat().st_size // 2)
    return alarms(market.run(day))


def twice(market: Market, day: int) -> list[str]:
    """Deliver the day's events twice."""
    again = market.events.filter(of(day)).with_columns(order=pl.col("order") + len(market.events))
    return alarms(market.run(day, market.other(pl.concat([market.events, again]))))


def second_night(market: Market, day: int) -> list[str]:
    """Run a night while another runs."""
    with alone_in(market.nights, "filled"):
        said = market.fails(day)
    market.run(day)
    return [said.replace(str(market.folder), "…")]


def poisoned(market: Market, day: int) -> list[str]:
    """Make one item the object of half of the day's positives, within an hour."""
    positives = market.events.filter(of(day) & pl.col("event").is_in(["save", "message"]))
    hour = START + (day - 1) * DAY + 12 * 3_600
    item = market.items.filter(pl.col("listed") < hour)["item"][7]
    count = len(positives)
    made = positives.with_columns(
        item=pl.lit(item, pl.Int64),
        time=hour + pl.int_range(count) * 3_600 // count,
        order=pl.int_range(count) + 50_000_000,
        session=pl.int_range(count) + 50_000_000,
        buyer=pl.int_range(count) + 5_000_000,
        query_item=pl.lit(None, pl.Int64),
    )
    return alarms(market.run(day, market.other(pl.concat([market.events, made.select(market.events.columns)]))))


def late(market: Market, day: int) -> list[str]:
    """Let half of the day come a day late; the alarm is that of the next night."""
    arrived = market.events.filter(~(of(day) & (pl.col("time") % DAY >= DAY // 2)))
    market.run(day, market.other(arrived))
    return alarms(market.run(day + 1))


def rows_lost(market: Market, day: int) -> list[str]:
    """Lose a third of the catalogue's rows."""
    return alarms(market.run(day, market.other(items=market.items.filter(pl.int_range(pl.len()) % 3 != 0))))


def no_events(market: Market, day: int) -> list[str]:
    """Lose the day; it comes a day later, too late for its own night."""
    before = current(market.nights)
    try:
        market.run(day, market.other(market.events.filter(~of(day))))
    except HatchwayError as error:
        market.still(before)
        return [f"{type(error).__name__}: {error}"]
    raise AssertionError("a day without events was published")


FAULTS: dict[int, tuple[str, Callable[[Market, int], list[str]]]] = {
    5: ("killed with signal 9", killed),
    8: ("the re-index fails", index_failed),
    11: ("the disk is full", disk_full),
    14: ("yesterday's index is cut short", index_cut),
    16: ("every event comes twice", twice),
    18: ("a second night at the same time", second_night),
    20: ("a poisoned hour", poisoned),
    23: ("half a day comes late", late),
    26: ("a third of the catalogue is lost", rows_lost),
    29: ("a day without events; nothing is mined or trained", no_events),
}


def alarms(record: NightRecord) -> list[str]:
    """Name the alarms of a night with their values."""
    return [f"{alarm.name} {alarm.value:.4g}" for alarm in record.alarms if alarm.raised]


def honest(record: NightRecord) -> dict[str, float]:
    """Return what the model of the night before found of the day that it had not seen."""
    return {"recall@20": record.steps["honest"]["figures"]["all"]["value"], "cases": record.steps["honest"]["cases"]}


def weights(nights: Path, day: int) -> bytes | None:
    """Read the weights of a published night."""
    path = nights / name(day) / "state" / "weights.safetensors"
    return path.read_bytes() if path.is_file() else None


def main() -> None:
    """Run the nights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listings", type=int, default=3_000)
    parser.add_argument("--buyers", type=int, default=2_500)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    recipe = load_recipe(HERE.parents[1] / "recipes" / "market.toml", SETTINGS)
    with tempfile.TemporaryDirectory() as scratch:
        market = Market(Path(scratch), asked.listings, asked.buyers, recipe)
        found, waiting = [], None
        for day in range(FIRST, LAST + 1):
            if day not in FAULTS:
                there = read_record(market.nights / name(day))
                record = there if there is not None and there.outcome == "published" else market.run(day)
                if waiting is not None:
                    found.append(waiting | {"next day": honest(record)})
                    waiting = None
                print(name(day), record.outcome, alarms(record), flush=True)
                continue
            kind, fault = FAULTS[day]
            twin = market.folder / "twin"
            shutil.rmtree(twin, ignore_errors=True)
            shutil.copytree(market.nights, twin, symlinks=True)
            market.run(day, nights=twin)
            same_day = weights(twin, day)
            without = honest(market.run(day + 1, nights=twin))
            said = fault(market, day)
            mine = weights(market.nights, day)
            waiting = {
                "night": name(day),
                "fault": kind,
                "detected": said,
                "published": mine is not None,
                "same bytes": mine == same_day,
                "next day without the fault": without,
            }
            print(json.dumps(waiting), flush=True)
        results = {
            "market": {"listings": asked.listings, "buyers": asked.buyers, "days": LAST + 1, "seed": 11},
            "nights": LAST - FIRST + 1,
            "faults": found,
        }
        write_text(HERE / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        if asked.keep is not None:
            write_page(market.nights)
            shutil.copytree(market.nights, asked.keep, symlinks=True, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
