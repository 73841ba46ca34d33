"""Mining on a market whose truth is known: likes lie near the top of a ranking, and the filter takes known ones out."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from hatchway.config import RunSettings
from hatchway.data.log import Log
from hatchway.job import index_run, train_run
from hatchway.screening.build import build_screen
from hatchway.screening.settings import ScreeningSettings
from hatchway.simulation.mistakes import wanted
from hatchway.simulation.settings import MarketSettings
from hatchway.simulation.truth import Truth, truth_folder
from hatchway.simulation.writing import simulate
from hatchway.training.mining.mine_log import Wanted, mine_log
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.settings import MiningSettings

SETTINGS = {
    "split": {"protocol": "global-time"},
    "model": {"dimension": 16, "item": {"categories": ["category", "style"]}},
    "negatives": {"uniform": 200},
    "training": {"epochs": 4, "batch": 256, "auc_pairs": 0, "validate_epochs": 0},
}


@dataclass(frozen=True)
class Mining:
    """A market, and an earlier model of it."""

    run: Path
    log: Log
    truth: Truth
    deeds: pl.DataFrame

    def mine(self, first: int, last: int, *, days: float = 30.0, screened: bool = False, cap: int = 2) -> Mined:
        """Mine a window."""
        screen = build_screen(self.log.catalogue, ScreeningSettings(photo=False)) if screened else None
        settings = MiningSettings(first_rank=first, last_rank=last, cap=cap)
        mined, record = mine_log(self.log, Wanted(self.run, settings, seed=1, engaged_days=days, screen=screen))
        assert mined is not None, record.said()
        return mined

    def pairs(self, mined: Mined) -> pl.DataFrame:
        """Lay out what stands, in the store's own ids: who, when, beside which positive."""
        stands = mined.reasons == 0
        rows = mined.rows[np.repeat(np.arange(len(mined)), np.diff(mined.offsets))[stands]]
        engagements = self.log.engagements
        return pl.DataFrame(
            {
                "buyer": self.log.buyers.external(engagements.buyers[rows]),
                "item": self.log.catalogue.external(mined.items[stands]),
                "positive": self.log.catalogue.external(engagements.items[rows]),
                "at": engagements.times[rows] if engagements.times is not None else [],
            }
        )

    def taste(self, pairs: pl.DataFrame) -> float:
        """Return how much the buyers like what was mined for them, on average, by the truth."""
        buyer, item, at = (pairs[name].to_numpy() for name in ("buyer", "item", "at"))
        return float(wanted(self.truth, buyer, item, at).mean())

    def known(self, pairs: pl.DataFrame) -> int:
        """Count what the buyer had saved or written about in the thirty days before, by the events themselves."""
        before = pairs.join(self.deeds, on=["buyer", "item"]).filter(
            (pl.col("time") < pl.col("at")) & (pl.col("time") >= pl.col("at") - 30 * 86_400)
        )
        return before.select("buyer", "item", "at").n_unique()


@pytest.fixture(scope="module", name="mining")
def _mining(tmp_path_factory: pytest.TempPathFactory) -> Mining:
    """Simulate a week, train, build the index."""
    folder = tmp_path_factory.mktemp("mining market")
    size = MarketSettings.parse({"listings": 1_000, "buyers": 600, "days": 8})
    store = simulate(folder / "store", size, 3, photos=False)
    run = train_run(store, folder / "run", RunSettings.parse(SETTINGS))
    index_run(run)
    deeds = store.events().filter(pl.col("event").is_in(["save", "message"])).select("buyer", "item", "time").collect()
    return Mining(run.path, run.log(), Truth.open(truth_folder(store.path)), deeds)


def random_items(mining: Mining, pairs: pl.DataFrame) -> pl.DataFrame:
    """Put random listings of the market in the place of the mined ones."""
    drawn: npt.NDArray[np.int64] = np.random.default_rng(0).integers(1, 1_001, len(pairs))
    return pairs.with_columns(item=pl.Series(drawn))


def test_the_nearer_the_top_the_more_a_buyer_likes_it(mining: Mining) -> None:
    """By the true tastes: positives above the top of the ranking, that above the middle, that above random."""
    top, middle = (mining.pairs(mining.mine(*window)) for window in ((1, 20), (21, 120)))
    tastes = [
        mining.taste(top.with_columns(item="positive")),
        mining.taste(top),
        mining.taste(middle),
        mining.taste(random_items(mining, top)),
    ]
    assert all(one > other + 0.2 for one, other in pairwise(tastes)), tastes


def test_what_the_buyer_knows_is_not_mined(mining: Mining) -> None:
    """Counted in the events of the store: with the filter not one, without it many."""
    with_filter, without = (mining.mine(1, 20, days=days) for days in (30.0, 0.0))
    assert mining.known(mining.pairs(with_filter)) == 0
    assert mining.known(mining.pairs(without)) > 15
    assert with_filter.refused()["engaged"] > 15
    assert "engaged" not in without.refused()


def test_relists_by_the_seller_are_not_mined(mining: Mining) -> None:
    """Screened, nothing of the positive's own seller comes through, and nearly as many arrive; unscreened, some do."""

    def of_the_seller(mined: Mined) -> int:
        seller = mining.log.catalogue.frame.select("item", "seller")
        both = mining.pairs(mined).join(seller, on="item").join(seller, left_on="positive", right_on="item")
        return both.filter(pl.col("seller") == pl.col("seller_right")).height

    unscreened, screened = (mining.mine(1, 120, screened=screened, cap=20) for screened in (False, True))
    assert of_the_seller(unscreened) > 30
    assert of_the_seller(screened) == 0
    assert screened.refused()["seller"] >= of_the_seller(unscreened)
    assert mining.mine(1, 120, screened=True).figures().per_positive >= 1.9
