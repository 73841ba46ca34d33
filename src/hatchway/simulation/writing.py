"""From a market to folders on disk: the store that everything else reads, and the truth that nothing else does."""

import shutil
from pathlib import Path

import polars as pl

from hatchway.artefacts.atomic import replacing_folder
from hatchway.data.store import Store, check_target, fill_store, no_rejected
from hatchway.progress import Progress
from hatchway.simulation.market import Market
from hatchway.simulation.photos import take_photos
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import check_truth_target, truth_folder, write_truth


def simulate(target: Path | str, settings: MarketSettings, seed: int, *, photos: bool = True) -> Store:
    """Simulate a market and write it as a store; a store that lies at ``target`` is replaced.

    The truth is written beside it (:func:`hatchway.simulation.truth.truth_folder`), an earlier one is replaced, and it
    names the digest of the store. The same arguments give the same bytes in both. A kill leaves the earlier pair, or
    two that do not belong together, which :meth:`hatchway.simulation.truth.Truth.open` refuses; simulating again mends
    it.

    Args:
        target: the store's folder.
        settings: size and rules of the market.
        seed: everything follows from it and the settings.
        photos: whether to draw a photo of every listing, under ``photos/`` in the store.

    Raises:
        DataError: ``target`` holds something that is no store, or its truth's folder something that is no truth.
    """
    target = Path(target)
    check_target(target)
    check_truth_target(truth_folder(target))
    market = Market.open(settings, seed)
    with replacing_folder(target) as folder:
        # Day by day through the disk, so that memory does not grow with the number of days.
        staged = folder / "staged"
        staged.mkdir()
        with Progress(settings.days, "days", "day") as progress:
            for day, events in enumerate(market.days()):
                events.write_parquet(staged / f"{day:04}.parquet", compression="lz4")
                progress.advance(text=f"{len(events):,} events")
        catalogue = market.catalogue(photos)
        if photos:
            take_photos(market.world.listings, catalogue["photo"].to_list(), folder, seed)
        days = pl.scan_parquet(sorted(staged.glob("*.parquet")), glob=False)
        fill_store(folder, days, catalogue, no_rejected(), origin="simulate")
        shutil.rmtree(staged)
        # Both take their places one right after the other; a full disk is met before the first of the two does.
        write_truth(market, truth_folder(target), Store.open(folder).digest)
    return Store.open(target)
