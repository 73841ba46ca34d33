"""What the steps of a night work with: the log as of the day, and yesterday's model brought over to today's items."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hatchway.data.catalogue import Catalogue
from hatchway.data.days import SECONDS_A_DAY
from hatchway.data.engagements import Engagements, Int64, Part
from hatchway.data.log import Log, build_log
from hatchway.data.splits import SplitSettings
from hatchway.nightly.days import first_second
from hatchway.nightly.frequencies import Passed
from hatchway.nightly.recipe import NightRecipe
from hatchway.nightly.state import NightState
from hatchway.nightly.view import DayView
from hatchway.randomness import stream
from hatchway.screening.build import build_screen
from hatchway.screening.screen import Screen
from hatchway.towers.build import build_model
from hatchway.towers.features import FeatureReading, fit_reading
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.fitting import fitting_model
from hatchway.training.warm_start import carry_weights, extended_reading

Bools = npt.NDArray[np.bool_]

_WATCHED = {"seller": True, "photo": True, "title": False}


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a night reads, loaded when it is asked for.

    Attributes:
        recipe: the settings.
        day: the day, since 1970.
        paths: the accepted days, oldest first; the last is the day itself.
        catalogue: the N items as of the day.
        offered: [N] what is for sale at its end.
        previous: what the night before left; None for the first night.
        photos: the folder that photo paths start from.
        kept: tonight's model, once it is trained, under ``tonight``; it need not be read back then.
    """

    recipe: NightRecipe
    day: int
    paths: Sequence[Path]
    catalogue: Catalogue
    offered: Bools
    previous: NightState | None
    photos: Path | None = None
    kept: dict[str, TwoTower] = field(default_factory=dict)

    @property
    def begin(self) -> int:
        """The first second of the day."""
        return first_second(self.day)

    @cached_property
    def seed(self) -> int:
        """The night's seed: other draws every night, the same whenever the night is run."""
        return int(stream(self.recipe.seed, "night", self.day).integers(2**31))

    @cached_property
    def whole(self) -> Log:
        """The log up to the end of the day, all of it in the training part."""
        return self._log(self.begin + SECONDS_A_DAY, impressions=False)

    @cached_property
    def day_log(self) -> Log:
        """The log with the whole day as its test part."""
        return split_in(self.whole, self.begin)

    @cached_property
    def passed(self) -> Passed:
        """All positives in the order in which they happened."""
        engagements = self.whole.engagements
        rows = np.flatnonzero(engagements.weights > 0)
        times = times_of(engagements)[rows]
        order = np.lexsort((rows, times))
        return Passed(engagements.items[rows][order].astype(np.int64), times[order])

    @cached_property
    def cutoff(self) -> int:
        """The Unix second up to which the night trains; the day's later positives judge the model."""
        today = self.passed.between(self.begin, self.begin + SECONDS_A_DAY).times
        place = min(int(len(today) * (1 - self.recipe.nightly.held_out)), len(today) - 1)
        return int(today[place])

    @cached_property
    def log(self) -> Log:
        """The log with what is held out of the day as its test part."""
        if self.recipe.negatives.impressions:  # what was shown is read up to the moment that training ends
            return self._log(self.cutoff, impressions=True)
        return split_in(self.whole, self.cutoff)

    @cached_property
    def trained_from(self) -> int:
        """The Unix second from which positives are trained on."""
        if self.previous is None:
            return 0
        replayed = self.begin - self.recipe.nightly.replay_days * SECONDS_A_DAY
        return min(replayed, self.previous.manifest.trained_until)

    def training_log(self, crowd: float | None = None) -> Log:
        """Return the log as the loop reads it: what is too old weighs nothing, and what is gone is no negative.

        Args:
            crowd: at most so many of the day's positives weigh anything, whole buyers at a time; None for all.
        """
        engagements = self.log.engagements
        times = times_of(engagements)
        weights = np.where(times >= self.trained_from, engagements.weights, np.float32(0))
        if crowd is not None:
            today = (times >= self.begin) & (weights > 0) & (engagements.parts == Part.TRAIN)
            weights = np.where(today & ~self._chosen(engagements, today, crowd)[engagements.buyers], 0, weights)
        return replace(
            self.log, engagements=replace(engagements, weights=weights.astype(np.float32)), living=self.offered
        )

    @cached_property
    def model_settings(self) -> ModelSettings:
        """What the model is made of: as the night before, or as the log allows."""
        if self.previous is not None:
            return self.previous.manifest.model
        return fitting_model(self.recipe.model, self.log)

    @cached_property
    def reading(self) -> FeatureReading:
        """How item columns are read: as the night before, with the values that are new."""
        settings = self.model_settings
        fresh = fit_reading(self.catalogue.frame, settings.item, settings.text_buckets)
        return fresh if self.previous is None else extended_reading(self.previous.manifest.reading, fresh)

    @cached_property
    def buyers_before(self) -> Int64:
        """The rows of the buyers in the night before, [buyers] int64, -1 for new ones."""
        if self.previous is None:
            return np.full(len(self.log.buyers), -1, np.int64)
        return self.previous.rows_of_buyers(self.log.buyers)

    def model(self, reached: Bools | None = None) -> TwoTower:
        """Return yesterday's model with rows for today's items, placed by their columns; an untrained one at first.

        Args:
            reached: [N] the items that training will reach, whose own vectors count from now on.
        """
        model = build_model(
            self.catalogue, len(self.log.buyers), self.model_settings, self.recipe.seed, self.reading, reached
        )
        if self.previous is not None:
            fresh = model.item_tower.unreached.clone()
            carry_weights(model, self.previous.weights(), self.buyers_before)
            if reached is not None:
                model.item_tower.unreached &= fresh
        return model.eval()

    @cached_property
    def before(self) -> TwoTower:
        """Yesterday's model, as it would serve today's items without having learned from today."""
        return self.model()

    @cached_property
    def screen(self) -> Screen:
        """What may not stand as a negative beside which positive."""
        return build_screen(self.catalogue, self.recipe.screening, self.photos)

    @cached_property
    def watched(self) -> Screen:
        """What shows that a negative looks like its positive, whether or not the filter asks for it."""
        settings = self.recipe.screening
        if settings.seller and settings.photo:
            return self.screen
        watched = settings.model_copy(update=_WATCHED)
        return build_screen(self.catalogue, watched, self.photos, said=self.screen.notes)

    def candidates(self, log: Log) -> Bools:
        """Mark what can be recommended: what is for sale, and what the test part says was, [N] bool."""
        engagements = log.engagements
        found = self.offered.copy()
        found[engagements.items[engagements.positives(Part.TEST)]] = True
        return found

    def _log(self, split_at: int, *, impressions: bool) -> Log:
        view, split = DayView(self.paths, self.catalogue, split_at), SplitSettings(protocol="given")
        return build_log(view, self.recipe.positives, split, self.recipe.seed, impressions=impressions)

    def _chosen(self, engagements: Engagements, today: Bools, most: float) -> Bools:
        """Draw whole buyers until their positives of the day are as many as allowed, [buyers] bool."""
        count = len(engagements.offsets) - 1
        positives = np.bincount(engagements.buyers[today], minlength=count)
        order = stream(self.seed, "crowd").permutation(count)
        chosen = np.zeros(count, np.bool_)
        chosen[order[np.cumsum(positives[order]) <= most]] = True
        return chosen


def split_in(log: Log, split_at: int) -> Log:
    """Return a log with another split in time; rows of a buyer stand in the order of time, so none has to move."""
    parts = np.where(times_of(log.engagements) < split_at, Part.TRAIN, Part.TEST).astype(np.int8)
    return replace(log, engagements=replace(log.engagements, parts=parts))


def times_of(engagements: Engagements) -> Int64:
    """Return the times of the rows, which every accepted row has."""
    if engagements.times is None:
        raise AssertionError("an accepted day holds rows without a time")
    return engagements.times


def digest_of_log(engagements: Engagements) -> str:
    """Return one sha256 over what was trained on: equal logs give equal digests, whatever files they came from."""
    found = hashlib.sha256()
    for array in (engagements.offsets, engagements.items, engagements.parts, engagements.weights, engagements.times):
        if array is not None:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
