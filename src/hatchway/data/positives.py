"""Positives: which events of the log count, and how much."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl
import pydantic

from hatchway.data.catalogue import Catalogue
from hatchway.errors import DataError
from hatchway.settings import Settings

USUAL_POSITIVES = ("message", "save")
USUAL_ENGAGEMENTS = ("purchase",)
VIEW = "view"
IMPRESSION = "impression"
SHOWN_OR_SEEN = (IMPRESSION, VIEW)
"""Events that never count as positives unless the settings name them: being shown or looked at is no engagement."""

_NONE = "(none)"


class EventSource(Protocol):
    """What a log is built from; :class:`hatchway.data.store.Store` is one."""

    def events(self) -> pl.LazyFrame:
        """Scan the log, columns as in :data:`hatchway.data.schema.EVENT_TYPES`."""
        ...

    def has(self, column: str) -> bool:
        """Say whether the log has a column of this name."""
        ...

    def catalogue(self) -> Catalogue:
        """Return the items."""
        ...


class PositivesSettings(Settings):
    """Which events are positives, and which are engagements without being positives.

    Attributes:
        events: weight of each event that is a positive, all above 0; where the log has a column ``weight``, a row's
            weight is the product of the two (a null counts as 1). None: ``message`` and ``save`` with weight 1, those
            of the two that the log has; where it has neither, every event but ``impression`` and ``view``, weight 1.
        engagements: events that belong to a buyer's history and are masked, but are never trained on. None:
            ``purchase``, where the log has it and it is no positive.
    """

    events: dict[str, float] | None = None
    engagements: tuple[str, ...] | None = None

    @pydantic.model_validator(mode="after")
    def _agree(self) -> "PositivesSettings":
        if self.events is None:
            return self
        if not self.events:
            raise ValueError('no event is named; name at least one, e.g. {save = 1.0}, or leave "events" out')
        for event, weight in self.events.items():
            if not weight > 0:
                raise ValueError(
                    f"the weight of {event!r} is {weight}; weights are above 0 (leave the event out instead)"
                )
        both = [event for event in self.engagements or () if event in self.events]
        if both:
            raise ValueError(f"{both[0]!r} is among both events and engagements; a positive is an engagement already")
        return self


@dataclass(frozen=True)
class Choice:
    """What the settings come to for one log.

    Attributes:
        weights: the positives' events and their weights; "" stands for a row without an event.
        engagements: the events that are engagements but no positives.
        notes: what was chosen, in lines to be said.
    """

    weights: Mapping[str, float]
    engagements: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def events(self) -> tuple[str, ...]:
        """All events that are engagements, positives first."""
        return (*self.weights, *self.engagements)


def choose_events(source: EventSource, settings: PositivesSettings) -> Choice:
    """Decide which events of this log are positives and which are engagements only.

    Raises:
        DataError: the settings name events and the log has no column for them, an event is misspelt, or no row of the
            log would be a positive.
    """
    if not source.has("event"):
        if settings.events is not None or settings.engagements is not None:
            raise DataError(
                "positives.events or positives.engagements name events, but the log has no column 'event'; leave both "
                "out (then every row is a positive), or import the log with that column"
            )
        return Choice({"": 1.0}, (), ("positives: every row of the log (it has no column 'event')",))
    counts = _count_events(source)
    named = (*(settings.events or ()), *(settings.engagements or ()))
    notes = [_say_absent(event, counts, named) for event in named if event not in counts]
    weights = settings.events
    if weights is None:
        weights = {event: 1.0 for event in USUAL_POSITIVES if event in counts}
    if not weights:
        weights = {event: 1.0 for event in counts if event not in (*SHOWN_OR_SEEN, *(settings.engagements or ()))}
        notes.append(
            "the log has neither message nor save, so every event but impression and view counts as a positive; "
            "choose with positives.events"
        )
    weights = {event: weight for event, weight in weights.items() if event in counts}
    if not weights:
        likely = sorted(counts, key=lambda event: event in SHOWN_OR_SEEN)  # views only where there is nothing else
        raise DataError(
            f"no event of the log is a positive; it has {_listed(counts)}; name those that count, e.g. "
            f"positives.events = {{{next(iter(likely), 'save')} = 1.0}}"
        )
    wanted = settings.engagements if settings.engagements is not None else USUAL_ENGAGEMENTS
    engagements = tuple(event for event in wanted if event in counts and event not in weights)
    said = ", ".join(f"{event or _NONE} ({counts[event]:,}, weight {weight:g})" for event, weight in weights.items())
    notes.append(f"positives: {said}")
    if engagements:
        notes.append(f"engagements that are no positives: {_listed({event: counts[event] for event in engagements})}")
    return Choice(weights, engagements, tuple(notes))


def engaged_rows(source: EventSource, choice: Choice, columns: tuple[str, ...]) -> pl.LazyFrame:
    """Select the rows that are engagements, in the log's order.

    Args:
        source: the log.
        choice: what counts.
        columns: optional columns to keep; those that the log lacks are left out.

    Returns:
        columns ``buyer``, ``item``, ``order``, ``positive``, ``weight`` (Float32; 0 where the row is no positive), and
        ``columns``.
    """
    events = source.events()
    named = pl.col("event").fill_null("") if source.has("event") else pl.lit("")
    if source.has("event"):
        events = events.filter(named.is_in(list(choice.events)))
    weight = named.replace_strict(dict(choice.weights), default=0.0, return_dtype=pl.Float64)
    own = pl.col("weight").cast(pl.Float64).fill_null(1.0) if source.has("weight") else pl.lit(1.0)
    return events.select(
        "buyer",
        "item",
        "order",
        (weight > 0).alias("positive"),
        pl.when(weight > 0).then(weight * own).otherwise(0.0).cast(pl.Float32).alias("weight"),
        *(column for column in columns if source.has(column)),
    )


def check_weights(rows: pl.DataFrame) -> None:
    """Refuse weights that cannot weigh a positive.

    Args:
        rows: as from :func:`engaged_rows`.

    Raises:
        DataError: there is no positive, or one has a weight that is not above 0 and finite.
    """
    weights = rows.filter("positive")["weight"]
    bad = weights.filter(~(weights.is_finite() & (weights > 0)))
    if len(bad):
        raise DataError(
            f"{len(bad):,} of {len(weights):,} positives weigh no finite number above 0 (first: {bad[0]}); "
            "mend the log's column 'weight', or import it without"
        )
    if not len(weights):
        raise DataError("no row of the log is a positive; import a log with events, or choose positives.events")


def _count_events(source: EventSource) -> dict[str, int]:
    """Count the rows of each event, most frequent first."""
    counts = source.events().select(pl.col("event").fill_null("")).group_by("event").agg(pl.len())
    ordered = counts.collect(engine="streaming").sort(["len", "event"], descending=[True, False])
    return dict(ordered.iter_rows())


def _say_absent(event: str, counts: Mapping[str, int], named: tuple[str, ...]) -> str:
    """Return the line to say about an event that the settings name and the log lacks.

    Raises:
        DataError: the log has an event of nearly that name, which the settings do not name.
    """
    near = difflib.get_close_matches(event, [other for other in counts if other not in named], n=1)
    if near:
        raise DataError(f"the log has no event {event!r}; did you mean {near[0]!r}? It has {_listed(counts)}")
    return f"the log has no event {event!r}, which the settings for positives name"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{event or _NONE} ({count:,})" for event, count in counts.items()) or "no rows"
