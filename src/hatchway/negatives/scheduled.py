"""Sources at a step of a schedule: as at its top, with a share of the draws."""

from collections.abc import Sequence
from dataclasses import replace

from hatchway.negatives.per_row import PerRow
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import OwnSource, SharedSource, Source
from hatchway.negatives.table_columns import TableColumns


def shared_at_share(sources: Sequence[SharedSource], share: float) -> list[SharedSource]:
    """Return shared sources with a share of their draws; in-batch columns and the queue stay whole.

    The number is a whole one, at least one of some, and the resized source counts with it: the account stays exact.

    Args:
        sources: as they are at the top of the schedule.
        share: above 0 to 1.
    """
    return [
        source.resized(max(round(source.draws * share), 1))
        if isinstance(source, SharedDraws) and source.draws
        else source
        for source in sources
    ]


def own_at_share(sources: Sequence[OwnSource], share: float) -> list[OwnSource]:
    """Return own sources with a share of their columns, in expectation; mined columns stay as many.

    Args:
        sources: as they are at the top of the schedule.
        share: above 0 to 1.
    """
    made: list[OwnSource] = []
    for source in sources:
        if isinstance(source, PerRow):
            made.append(replace(source, draws=source.draws * share))
        elif isinstance(source, TableColumns) and source.source is Source.IMPRESSIONS:
            made.append(source.resized(source.most * share))
        else:
            made.append(source)
    return made
