"""A small log with tastes in it: buyers of two kinds, each engaging with its own half of the catalogue."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import Store, write_store
from hatchway.randomness import stream

ITEMS, BUYERS, EACH = 40, 60, 8


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the store once."""
    rng = stream(9, "two tastes")
    buyers = np.repeat(np.arange(BUYERS), EACH)
    items = rng.integers(0, ITEMS // 2, len(buyers)) + (buyers % 2) * (ITEMS // 2)
    events = pl.DataFrame(
        {
            "buyer": buyers,
            "item": items,
            "event": ["save"] * len(buyers),
            "time": 1_750_000_000 + np.arange(len(buyers)) * 3_600,
        }
    ).lazy()
    catalogue = pl.DataFrame(
        {
            "item": np.arange(ITEMS),
            "title": [f"{'teak' if i < ITEMS // 2 else 'steel'} chair {i}" for i in range(ITEMS)],
            "category": ["wood" if i < ITEMS // 2 else "metal" for i in range(ITEMS)],
            "price": [float(i) for i in range(ITEMS)],
        }
    )
    target = tmp_path_factory.mktemp("store") / "store"
    write_store(target, events, catalogue)
    return target


@pytest.fixture(scope="session")
def log(store_path: Path) -> Log:
    """Build its log, leave-one-out."""
    return build_log(Store.open(store_path), PositivesSettings(), SplitSettings(), seed=1)
