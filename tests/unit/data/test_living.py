"""Which items were on offer while the training part of the log was written."""

from pathlib import Path

import polars as pl

from hatchway.data.living import living_in_training
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store

DAY = 86_400
START = 1_767_225_600


def log_of(folder: Path, catalogue: pl.DataFrame) -> Log:
    """Save items 1, 2 and 3 on days 0, 1 and 2 of the training part, and item 4 on the test day."""
    events = pl.DataFrame(
        {
            "buyer": [1, 1, 2, 2],
            "item": [1, 2, 3, 4],
            "event": ["save"] * 4,
            "time": [START, START + DAY, START + 2 * DAY, START + 3 * DAY],
        }
    )
    store = write_store(folder / "store", events.lazy(), catalogue)
    return build_log(store, PositivesSettings(), SplitSettings(protocol="global-time", validation_days=0), 1)


def test_later_and_earlier_listings_are_not_living(tmp_path: Path) -> None:
    """Item 4 is listed after the last training engagement, item 5 was gone before the first, item 6 has no times.

    Item 3 was saved in training, whatever its dates say.
    """
    catalogue = pl.DataFrame(
        {
            "item": [1, 2, 3, 4, 5, 6],
            "listed": [START - DAY, START, START + 9 * DAY, START + 2 * DAY + 1, START - 9 * DAY, None],
            "gone": [None, START + 2 * DAY, None, None, START - 1, None],
        }
    )
    living = living_in_training(log_of(tmp_path, catalogue))
    assert living is not None
    assert living.tolist() == [True, True, True, False, False, True]


def test_a_catalogue_without_times_is_all_living(tmp_path: Path) -> None:
    """None says that nothing is known."""
    assert living_in_training(log_of(tmp_path, pl.DataFrame({"item": [1, 2, 3, 4]}))) is None
