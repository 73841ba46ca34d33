"""What an earlier model's index gives from a window of ranks, held against the truth of the market."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from trials import LIKED, Earlier, Market, Recipe

from hatchway.data.engagements import Part
from hatchway.data.living import living_in_training
from hatchway.data.log import Log, build_log
from hatchway.screening.build import build_screen
from hatchway.screening.screen import Screen
from hatchway.simulation.listings import DAY
from hatchway.simulation.mistakes import Engaged, Mistake, mistakes, wanted
from hatchway.training.mining.earlier import Skipped, open_earlier
from hatchway.training.mining.mine import mine
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings


@dataclass(frozen=True, eq=False)
class MinedTruth:
    """The last training day of a market: its positives are mined for, with nothing to be trained.

    Attributes:
        market: the market.
    """

    market: Market

    @cached_property
    def log(self) -> Log:
        """The log that is trained on."""
        settings = Recipe({}).settings(self.market.scale, self.market.seed)
        return build_log(self.market.store, settings.positives, settings.split, self.market.seed)

    @cached_property
    def screen(self) -> Screen:
        """The filter as it is by default."""
        settings = Recipe({}).settings(self.market.scale, self.market.seed)
        return build_screen(self.log.catalogue, settings.screening, self.market.store.path)

    @cached_property
    def engaged(self) -> Engaged:
        """Who saved or wrote about what, and when."""
        return Engaged.of(self.market.truth, self.market.store)

    def shares(
        self, window: tuple[int, int], *, screened: bool = True, which: Earlier | None = None
    ) -> dict[str, float]:
        """Mine two a positive and say what they are.

        Args:
            window: first and last rank.
            screened: whether the filter has a say.
            which: the earlier model; the usual one where None.

        Returns:
            hidden: the share that are duplicates or hidden positives (docs/market.md); duplicate, wanted, same_model
            of these and beside them; liked: the share that the buyer would as likely as not save or write about;
            other_kind: the share that are not even of the positive's kind of furniture.
        """
        settings = MiningSettings(first_rank=window[0], last_rank=window[1], cap=2, max_index_age_days=365)
        opened = open_earlier(self.market.earlier_run(which or Earlier()), self.log, settings)
        if isinstance(opened, Skipped):
            raise SystemExit(opened.message)
        engagements, times = self.log.engagements, self.log.engagements.times
        if times is None:
            raise SystemExit("the market's log has no times")
        rows = engagements.positives(Part.TRAIN)
        rows = rows[times[rows] >= (times[rows].max() // DAY) * DAY]
        rules = RowFilter(
            engagements, 30.0 if screened else 0.0, living_in_training(self.log), self.screen if screened else None
        )
        found = mine(opened[0], rows, rules, settings, self.market.seed)
        stand = np.flatnonzero(found.reasons == 0)
        rows = found.rows[np.repeat(np.arange(len(found)), np.diff(found.offsets))[stand]]
        buyers = self.log.buyers.external(engagements.buyers[rows]).to_numpy()
        positives = self.log.catalogue.external(engagements.items[rows]).to_numpy()
        items = self.log.catalogue.external(found.items[stand]).to_numpy()
        told = mistakes(self.engaged, buyers, positives, items, times[rows])
        kinds = self.log.catalogue.frame["category"].rank("dense").to_numpy()
        return {
            "hidden": float(np.isin(told, (Mistake.DUPLICATE, Mistake.KNOWN, Mistake.WANTED)).mean()),
            "duplicate": float((told == Mistake.DUPLICATE).mean()),
            "wanted": float((told == Mistake.WANTED).mean()),
            "same_model": float((told == Mistake.SAME_MODEL).mean()),
            "liked": float((wanted(self.market.truth, buyers, items, times[rows]) >= LIKED).mean()),
            "other_kind": float((kinds[found.items[stand]] != kinds[engagements.items[rows]]).mean()),
        }
