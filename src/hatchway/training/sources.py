"""The sources of a run's negatives, made from its settings and its log; what the log has nothing for is left out."""

import torch

from hatchway.data.engagements import training_counts
from hatchway.data.living import living_in_training
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import DataError, SettingsError
from hatchway.frequency.count_min import CountMin
from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.protocol import Frequency, LearnedFrequency
from hatchway.frequency.streaming import StreamingFrequency
from hatchway.negatives.distribution import Distribution, UniformDistribution
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.mined import Mined
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import PopularityDistribution
from hatchway.negatives.queue import Queue
from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import OwnSource, SharedSource, Source
from hatchway.progress import note
from hatchway.screening.screen import Screen
from hatchway.training.step import Negatives


def fitting_negatives(settings: NegativesSettings, log: Log) -> NegativesSettings:
    """Switch off what the log has nothing for, and say so in a line.

    Raises:
        SettingsError: no source would be left.
    """
    if not settings.impressions or (log.impressions is not None and len(log.impressions.items)):
        return settings
    if not (settings.in_batch or settings.uniform or settings.popularity or settings.per_row):
        raise SettingsError(
            "negatives.impressions is the only source, and the log has no items that were shown and not engaged with "
            "(event 'impression'); add another, e.g. negatives.in_batch = true"
        )
    note("impressions: the log has none that belong to a training row, so negatives.impressions is off")
    return settings.model_copy(update={"impressions": 0})


def negatives_of(
    settings: NegativesSettings,
    log: Log,
    *,
    seed: int,
    dimension: int,
    mined: RowTable | None = None,
    mined_from: int = 0,
    frequency: Frequency | None = None,
    steps: int = 0,
    screen: Screen | None = None,
) -> Negatives:
    """Make the sources of a run.

    Args:
        settings: which negatives.
        log: what is trained on; popularity is that of its training positives, and nothing is drawn that was not on
            offer at some time of the training part.
        seed: the run's seed.
        dimension: d, the length of the vectors that the queue keeps.
        mined: items mined for each engagement row, if any were.
        mined_from: the step from which they are used.
        frequency: how often each item is a row's positive; None for what the settings say.
        steps: of the whole run, for a schedule.
        screen: what is a hidden positive beside which positive; None: nothing but what the buyer engaged with.

    Raises:
        DataError: the mined table is of another log, or the screen of another catalogue.
        SettingsError: no source is left, or a schedule has no number of steps.
    """
    settings = fitting_negatives(settings, log)
    if mined is not None and len(mined) != len(log.engagements):
        raise DataError(
            f"the mined table has {len(mined)} rows and the log {len(log.engagements)} engagements; mine again for "
            "this log: the table has a list for every engagement row, empty where nothing was mined"
        )
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    found = living_in_training(log)
    living = None if found is None else torch.from_numpy(found)
    learned = learned_frequency(settings, len(counts), seed) if frequency is None else None
    frequency = frequency or learned or ExactCounts(counts)
    uniform: Distribution = UniformDistribution(len(counts), living)
    by_popularity = settings.popularity or (settings.per_row and settings.per_row_from == "popularity")
    popular: Distribution = PopularityDistribution(counts, settings.beta, living) if by_popularity else uniform

    shared: list[SharedSource] = [InBatch(frequency)] if settings.in_batch else []
    if settings.uniform:
        shared.append(SharedDraws(uniform, settings.uniform, Source.UNIFORM))
    if settings.popularity:
        shared.append(SharedDraws(popular, settings.popularity, Source.POPULARITY))
    queue = None
    if settings.queue:
        queue = Queue(
            frequency,
            settings.queue,
            dimension,
            warmup=settings.queue_warmup,
            beside_in_batch=settings.in_batch,
        )
        shared.append(queue)  # last: where columns are de-duplicated, today's vector stays
    own: list[OwnSource] = []
    if mined is not None and settings.mined:
        own.append(Mined(mined, settings.mined, settings.mined_weight))
    if settings.impressions and log.impressions is not None:
        own.append(Impressions(log.impressions, settings.impressions, settings.impressions_weight))
    if settings.per_row:
        source = Source.UNIFORM if settings.per_row_from == "uniform" else Source.POPULARITY
        own.append(PerRow(uniform if settings.per_row_from == "uniform" else popular, settings.per_row, source))
    if not shared and not own:
        raise SettingsError(
            "negatives.mined is the only source, and nothing was mined; name an earlier model to mine with, or add "
            "another source, e.g. negatives.in_batch = true"
        )
    if mined_from and not shared and all(source.source is Source.MINED for source in own):
        raise SettingsError(
            f"negatives.mined is the only source and begins at step {mined_from:,}: there is nothing to learn from "
            "before; set mining.warm_up_epochs = 0, or add another source, e.g. negatives.in_batch = true"
        )
    return Negatives(
        settings,
        seed,
        shared,
        own,
        queue,
        steps=steps,
        learned=learned,
        mined_from=mined_from,
        screen=_of_this(screen, log),
    )


def _of_this(screen: Screen | None, log: Log) -> Screen:
    """Refuse the screen of another catalogue: its rows would be other items."""
    screen = Screen() if screen is None else screen
    if screen.size not in (None, len(log.catalogue)):
        raise DataError(
            f"the screen is of {screen.size:,} items and the catalogue has {len(log.catalogue):,}; build it from the "
            "catalogue of the log that is trained on"
        )
    return screen


def learned_frequency(settings: NegativesSettings, catalogue: int, seed: int) -> LearnedFrequency | None:
    """Make the frequency that is learned as the batches pass; None where the counts are known."""
    if settings.frequency == "streaming":
        return StreamingFrequency(settings.streaming, catalogue, seed)
    return CountMin(settings.count_min, catalogue, seed) if settings.frequency == "count-min" else None
