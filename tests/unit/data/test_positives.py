"""Which events count, and how much."""

import math
from typing import Any

import polars as pl
import pytest
from event_sources import FrameSource

from hatchway.data.positives import PositivesSettings, check_weights, choose_events, engaged_rows
from hatchway.errors import DataError, SettingsError


def _source(events: list[str | None] | None, **columns: Any) -> FrameSource:
    count = len(events or next(iter(columns.values())))
    named = {} if events is None else {"event": pl.Series(events, dtype=pl.String)}
    return FrameSource(
        pl.DataFrame({"buyer": [1] * count, "item": range(count), "order": range(count), **named, **columns})
    )


def _weighed(source: FrameSource, settings: PositivesSettings) -> list[tuple[int, float]]:
    """Return (order, weight) of the rows that are engagements."""
    rows = engaged_rows(source, choose_events(source, settings), ()).collect()
    check_weights(rows)
    return list(rows.select("order", "weight").iter_rows())


def test_by_default_messages_and_saves_are_positives_and_purchases_are_engagements() -> None:
    """Impressions, views and unknown events are neither."""
    source = _source(["view", "save", "impression", "message", "purchase", "like", None])
    assert _weighed(source, PositivesSettings()) == [(1, 1.0), (3, 1.0), (4, 0.0)]
    notes = choose_events(source, PositivesSettings()).notes
    assert "positives: message (1, weight 1), save (1, weight 1)" in notes
    assert "engagements that are no positives: purchase (1)" in notes


def test_one_of_the_two_usual_events_is_enough() -> None:
    """A log of saves and clicks: clicks do not count because saves are there."""
    assert _weighed(_source(["save", "click"]), PositivesSettings()) == [(0, 1.0)]


def test_a_log_with_neither_counts_all_but_impressions_and_views_and_says_so() -> None:
    """A row without an event counts too."""
    source = _source(["rating", "view", "impression", "purchase", None, "rating"])
    assert _weighed(source, PositivesSettings()) == [(0, 1.0), (3, 1.0), (4, 1.0), (5, 1.0)]
    notes = choose_events(source, PositivesSettings()).notes
    assert any("neither message nor save" in line and "positives.events" in line for line in notes)
    assert "positives: rating (2, weight 1), (none) (1, weight 1), purchase (1, weight 1)" in notes


def test_an_engagement_by_name_is_not_made_a_positive_by_the_lack_of_usual_ones() -> None:
    """The user has said what a purchase is."""
    source = _source(["rating", "purchase"])
    assert _weighed(source, PositivesSettings(engagements=("purchase",))) == [(0, 1.0), (1, 0.0)]


def test_a_log_without_events_counts_every_row() -> None:
    """And its own weights are kept."""
    source = _source(None, weight=[0.5, None, 2.0])
    assert _weighed(source, PositivesSettings()) == [(0, 0.5), (1, 1.0), (2, 2.0)]
    assert choose_events(source, PositivesSettings()).notes[0].startswith("positives: every row of the log")


def test_a_positives_weight_is_that_of_its_event_times_its_own() -> None:
    """A null counts as 1; an engagement that is no positive weighs 0 whatever its row says."""
    source = _source(["save", "message", "save", "purchase"], weight=[0.5, 3.0, None, math.nan])
    settings = PositivesSettings(events={"save": 0.25, "message": 2.0})
    assert _weighed(source, settings) == [(0, 0.125), (1, 6.0), (2, 0.25), (3, 0.0)]


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf, 1e-60])
def test_a_weight_in_the_log_must_be_above_zero_and_finite(weight: float) -> None:
    """Zero would quietly make a positive none; 1e-60 is zero as a 32-bit float."""
    with pytest.raises(DataError, match=r"1 of 3 positives weigh no finite number above 0 .*column 'weight'"):
        _weighed(_source(["save"] * 3, weight=[1.0, weight, 1.0]), PositivesSettings())


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_in_the_settings_must_be_above_zero_and_finite(weight: float) -> None:
    """The error names the event."""
    with pytest.raises(SettingsError, match="save"):
        PositivesSettings.parse({"events": {"save": weight}})


def test_settings_that_contradict_themselves_are_refused() -> None:
    """No event at all, and an event in both lists."""
    with pytest.raises(SettingsError, match="no event is named"):
        PositivesSettings.parse({"events": {}})
    with pytest.raises(SettingsError, match="'save' is among both"):
        PositivesSettings.parse({"events": {"save": 1.0}, "engagements": ["save"]})


def test_without_positives_the_error_lists_the_events_and_the_setting() -> None:
    """With their counts, and an example that would work."""
    source = _source(["view", "impression", "view"])
    with pytest.raises(DataError, match=r"it has view \(2\), impression \(1\); .*positives.events = \{view = 1.0\}"):
        choose_events(source, PositivesSettings())
    with pytest.raises(DataError, match=r"no event of the log is a positive"):
        choose_events(source, PositivesSettings(events={"booking": 1.0}))
    with pytest.raises(DataError, match=r"it has view \(2\), save \(1\); .*positives.events = \{save = 1.0\}"):
        choose_events(_source(["view", "view", "save"]), PositivesSettings(events={"purchase": 1.0}))


def test_a_misspelt_event_is_an_error_and_an_absent_one_a_line() -> None:
    """A log of one day may lack a rare event; it does not lack ``mesage`` by chance."""
    source = _source(["message", "save"])
    with pytest.raises(DataError, match="no event 'mesage'; did you mean 'message'"):
        choose_events(source, PositivesSettings(events={"mesage": 1.0, "save": 1.0}))
    choice = choose_events(source, PositivesSettings(events={"booking": 5.0, "save": 1.0}))
    assert dict(choice.weights) == {"save": 1.0}
    assert any("no event 'booking'" in line for line in choice.notes)


def test_two_spellings_may_both_be_named() -> None:
    """Logs of two sources: the one that is absent is no misspelling of the one that is named too."""
    choice = choose_events(_source(["saved"]), PositivesSettings(events={"save": 1.0, "saved": 1.0}))
    assert dict(choice.weights) == {"saved": 1.0}


@pytest.mark.parametrize("settings", [{"events": {"save": 1.0}}, {"engagements": ["purchase"]}])
def test_events_cannot_be_chosen_where_the_log_has_none(settings: dict[str, Any]) -> None:
    """The remedy: leave both out, or import with the column."""
    with pytest.raises(DataError, match="no column 'event'; leave both out"):
        choose_events(_source(None, weight=[1.0]), PositivesSettings.parse(settings))


def test_only_optional_columns_that_are_there_are_kept() -> None:
    """The rest of the log is not read."""
    source = _source(["save"], time=[5], title=["x"])
    rows = engaged_rows(source, choose_events(source, PositivesSettings()), ("time", "query")).collect()
    assert rows.columns == ["buyer", "item", "order", "positive", "weight", "time"]
