"""Mining for a log, from an index on disk: opened and checked, asked, and written down, or skipped with the reason."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pydantic

from hatchway.data.engagements import Part
from hatchway.data.living import living_in_training
from hatchway.data.log import Log
from hatchway.progress import note
from hatchway.training.mining.earlier import EarlierFacts, Skipped, SkipReason, open_earlier, open_judge
from hatchway.training.mining.mine import mine
from hatchway.training.mining.mined import Mined, MiningFigures
from hatchway.training.mining.row_filter import PairScreen, RowFilter
from hatchway.training.mining.settings import MiningSettings

_HARD_SHARE = 0.05
"""A window that begins deeper than this share of the catalogue holds no hard negatives to speak of."""


class MiningRecord(pydantic.BaseModel):
    """What is written down of a mining, also of one that was skipped.

    Attributes:
        version: of this format.
        status: whether there is a mined set.
        reason: why not, one word; None where there is one.
        message: why not, one sentence with the remedy.
        settings: what was asked for.
        seed: of the draw.
        screened: whether candidates were screened for hidden positives beside the buyer's own engagements.
        judged: whether a judge had a say.
        index: the index that was asked.
        figures: how it went.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    status: Literal["mined", "skipped"]
    reason: SkipReason | None = None
    message: str = ""
    settings: MiningSettings
    seed: int
    screened: bool
    judged: bool
    index: EarlierFacts | None = None
    figures: MiningFigures | None = None

    def said(self) -> str:
        """Return it as one line."""
        if self.figures is None:
            return f"mining was skipped ({str(self.reason).replace('_', ' ')}): {self.message}"
        found = self.figures
        refused = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in found.refused.items()) or "none"
        short = f"{found.short:,} positives have fewer than {self.settings.cap}"
        if found.unasked:
            short += f", {found.unasked:,} of them because the earlier model knows nothing of their query"
        window = f"ranks {self.settings.first_rank} to {self.settings.last_rank}"
        return (
            f"mined {found.mined:,} negatives for {found.positives:,} positives ({found.effective_per_positive:.2f} "
            f"each) from {window}, with {found.queries:,} "
            f"{'query' if found.queries == 1 else 'queries'}; "
            f"refused of {found.looked_at:,} candidates: {refused}; {short}"
        )


@dataclass(frozen=True)
class Wanted:
    """What is to be mined.

    Attributes:
        source: the earlier model: a bundle, or a run or other folder with a bundle in it.
        settings: window, cap, bounds, and which indexes are believed.
        seed: the run's seed.
        columns: how many mined columns a row has at most in training (``negatives.mined``).
        engaged_days: what a buyer engaged with in so many days before the row is no negative for it.
        screen: finds hidden positives among items; None: nobody does.
        judge: a stronger model, as ``source``; None: nobody judges.
    """

    source: Path
    settings: MiningSettings
    seed: int
    columns: float = 2
    engaged_days: float = 30.0
    screen: PairScreen | None = None
    judge: Path | None = None


def mine_log(log: Log, wanted: Wanted) -> tuple[Mined | None, MiningRecord]:
    """Mine for the training positives of a log.

    Returns:
        the mined set, None where mining was skipped; and what is to be written down of it.
    """
    settings = wanted.settings
    judge = None if wanted.judge is None else open_judge(wanted.judge, log)
    found = judge if isinstance(judge, Skipped) else open_earlier(wanted.source, log, settings)
    if isinstance(found, Skipped) or isinstance(judge, Skipped):
        assert isinstance(found, Skipped)  # noqa: S101  for the type checker: a judge that is skipped is what was found
        record = MiningRecord(
            status="skipped",
            reason=found.reason,
            message=found.message,
            settings=settings,
            seed=wanted.seed,
            screened=wanted.screen is not None,
            judged=False,
        )
        note(record.said())
        return None, record
    earlier, facts = found
    if facts.vectors < settings.first_rank:
        note(
            f"mining: the index has {facts.vectors:,} items and the window begins at rank {settings.first_rank}: "
            "nothing can be mined; lower mining.first_rank and mining.last_rank"
        )
    elif settings.first_rank > _HARD_SHARE * facts.vectors:
        note(
            f"mining: rank {settings.first_rank} is not near the top of an index of {facts.vectors:,} items, and what "
            "stands there is little harder than a random item; lower mining.first_rank and mining.last_rank"
        )
    rules = RowFilter(log.engagements, wanted.engaged_days, living_in_training(log), wanted.screen)
    mined = mine(earlier, log.engagements.positives(Part.TRAIN), rules, settings, wanted.seed, judge)
    record = MiningRecord(
        status="mined",
        settings=settings,
        seed=wanted.seed,
        screened=wanted.screen is not None,
        judged=judge is not None,
        index=facts,
        figures=mined.figures(wanted.columns),
    )
    note(record.said())
    return mined, record
