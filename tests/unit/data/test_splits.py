"""The three protocols, by hand."""

import numpy as np
import polars as pl
import pytest

from hatchway.data.engagements import Part
from hatchway.data.splits import SplitSettings, draw_validation, given, global_time, leave_one_out
from hatchway.errors import DataError, SettingsError
from hatchway.randomness import stream

DAY = 86_400
TR, VA, TE = Part.TRAIN, Part.VALIDATION, Part.TEST


def _flat(*positives: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return offsets, buyers and positive flags; one string a buyer, ``p`` a positive, ``e`` an engagement only."""
    lengths = [len(text) for text in positives]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    buyers = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return offsets, buyers, np.array([letter == "p" for letter in "".join(positives)])


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ("ppp", [TR, VA, TE]),
        ("ppppp", [TR, TR, TR, VA, TE]),
        ("pp", [TR, TR]),
        ("p", [TR]),
        ("eeee", [TR, TR, TR, TR]),
        ("pepepe", [TR, TR, VA, VA, TE, TE]),
        ("epppe", [TR, TR, VA, TE, TE]),
        ("ppe", [TR, TR, TR]),
    ],
)
def test_leave_one_out_takes_the_last_two_positives_of_three_or_more(rows: str, parts: list[Part]) -> None:
    """What follows a held-out positive goes with it; a buyer with fewer than three positives only trains."""
    assert leave_one_out(*_flat("ppp", rows, "p"))[3:-1].tolist() == parts


def test_leave_one_out_needs_somebody_with_three_positives() -> None:
    """Engagements that are no positives do not make up the number."""
    with pytest.raises(DataError, match=r"of 2 buyers the busiest has 2; use split.protocol = 'global-time' or 'none'"):
        leave_one_out(*_flat("ppeee", "p"))


def test_global_time_cuts_at_midnight() -> None:
    """Two days of test and one of validation, counted back from the day of the last positive (day 4)."""
    times = np.array([0, 2 * DAY - 1, 2 * DAY, 3 * DAY - 1, 3 * DAY, 4 * DAY + 7, 4 * DAY + 8])
    positive = np.array([True, True, True, True, True, True, False])
    settings = SplitSettings(protocol="global-time", validation_days=1, test_days=2)
    assert global_time(times, positive, settings).tolist() == [TR, TR, VA, VA, TE, TE, TE]


def test_global_time_counts_from_the_last_positive_not_the_last_row() -> None:
    """An engagement days after the last positive is test, and does not push the window off the positives."""
    times = np.array([0, DAY, 2 * DAY, 9 * DAY])
    positive = np.array([True, True, True, False])
    settings = SplitSettings(protocol="global-time", validation_days=1, test_days=1)
    assert global_time(times, positive, settings).tolist() == [TR, VA, TE, TE]


def test_global_time_without_validation() -> None:
    """``validation_days = 0`` asks for none."""
    times = np.array([0, DAY, 2 * DAY])
    settings = SplitSettings(protocol="global-time", validation_days=0, test_days=1)
    assert global_time(times, np.ones(3, bool), settings).tolist() == [TR, TR, TE]


@pytest.mark.parametrize(
    ("days", "validation_days", "test_days", "part"),
    [([0, 1, 2], 2, 1, "train"), ([0, 5], 1, 1, "validation"), ([3, 3], 1, 1, "train")],
)
def test_global_time_refuses_an_empty_part(days: list[int], validation_days: int, test_days: int, part: str) -> None:
    """The message has the dates of the log and of the windows."""
    settings = SplitSettings(protocol="global-time", validation_days=validation_days, test_days=test_days)
    with pytest.raises(DataError, match=f"no positive for {part}: positives run from 1970-01-0"):
        global_time(np.array(days) * DAY, np.ones(len(days), bool), settings)


def test_given_reads_the_column() -> None:
    """By name."""
    assert given(pl.Series(["test", "train", "validation"])).tolist() == [TE, TR, VA]


@pytest.mark.parametrize("odd", ["valid", "", None, "Train"])
def test_given_refuses_any_other_value(odd: str | None) -> None:
    """The message counts them and shows the first."""
    with pytest.raises(DataError, match=f"1 of 2 engagements .*{odd!r}.*allowed are train, validation, test"):
        given(pl.Series(["train", odd], dtype=pl.String))


def test_given_needs_rows_to_train() -> None:
    """A test file alone trains nothing."""
    with pytest.raises(DataError, match="no row to train; it has test"):
        given(pl.Series(["test", "test"]))


def test_a_share_of_each_buyers_training_positives_moves_to_validation() -> None:
    """A buyer of 40 gives 10 of a quarter, whatever is drawn; a buyer of one gives none; tests and others stay."""
    _, buyers, positive = _flat("p" * 40 + "e" * 8, "p", "p" * 8)
    parts = np.zeros(len(buyers), np.int8)
    parts[-4:] = TE
    moved = draw_validation(parts, positive, buyers, 0.25, stream(5, "validation"))
    assert np.bincount(buyers[moved == VA], minlength=3).tolist() == [10, 0, 1]
    assert (moved[~positive] == TR).all()
    assert moved[-4:].tolist() == [TE] * 4
    assert (parts[:-4] == TR).all(), "the parts given are left alone"


def test_the_last_ones_can_be_moved_instead() -> None:
    """As many as at random, but each buyer's last training positives; test rows and other engagements stay."""
    _, buyers, positive = _flat("p" * 40 + "e" * 8, "p", "p" * 12)
    parts = np.zeros(len(buyers), np.int8)
    parts[-4:] = TE
    moved = draw_validation(parts, positive, buyers, 0.25, stream(5, "validation"), last=True)
    assert np.flatnonzero(moved == VA).tolist() == [*range(30, 40), 55, 56]
    assert moved[-4:].tolist() == [TE] * 4


def test_the_draw_is_the_seeds() -> None:
    """Same stream, same rows; another seed, other rows; every row has its turn."""
    _, buyers, positive = _flat("p" * 10, "p" * 10)
    parts = np.zeros(20, np.int8)

    def moved(seed: int) -> list[int]:
        return np.flatnonzero(draw_validation(parts, positive, buyers, 0.3, stream(seed, "validation")) == VA).tolist()

    assert moved(1) == moved(1)
    assert moved(1) != moved(2)
    assert set().union(*(moved(seed) for seed in range(40))) == set(range(20))
    assert all(len(moved(seed)) == 6 for seed in range(40))


def test_the_share_is_right_on_average_where_it_is_no_whole_number() -> None:
    """A tenth of three positives each: 0.3 a buyer, so 600 of 2,000 buyers give one (standard deviation 20)."""
    _, buyers, positive = _flat(*["ppp"] * 2_000)
    moved = draw_validation(np.zeros(6_000, np.int8), positive, buyers, 0.1, stream(0, "validation"))
    assert abs((moved == VA).sum() - 600) < 100
    assert np.bincount(buyers[moved == VA]).max() == 1


def test_a_buyer_keeps_a_positive_to_train_on() -> None:
    """Even of nine tenths."""
    _, buyers, positive = _flat("pp", "ppp")
    for seed in range(20):
        moved = draw_validation(np.zeros(5, np.int8), positive, buyers, 0.9, stream(seed, "validation"))
        assert np.bincount(buyers[moved == TR]).tolist() == [1, 1]


def test_validation_is_not_drawn_beside_one_that_is_given() -> None:
    """Nor is a share taken that comes to nothing."""
    _, buyers, positive = _flat("ppp")
    with pytest.raises(DataError, match="has validation rows already"):
        draw_validation(np.array([0, 1, 2], np.int8), positive, buyers, 0.5, stream(0, "validation"))
    with pytest.raises(DataError, match="1 training positives comes to none"):
        draw_validation(np.array([0, 2, 2], np.int8), positive, buyers, 0.5, stream(0, "validation"))


@pytest.mark.parametrize("protocol", ["leave-one-out", "global-time", "none"])
def test_a_fraction_goes_with_a_given_split_only(protocol: str) -> None:
    """A setting that would do nothing is refused."""
    with pytest.raises(SettingsError, match=f"'given' only; '{protocol}'"):
        SplitSettings.parse({"protocol": protocol, "validation_fraction": 0.1})


@pytest.mark.parametrize(
    "values",
    [
        {"protocol": "random"},
        {"protocol": "given", "validation_fraction": 1.0},
        {"protocol": "given", "validation_fraction": -0.1},
        {"test_days": 0},
        {"validation_days": -1},
    ],
)
def test_settings_out_of_range_are_refused(values: dict[str, object]) -> None:
    """Each names its key."""
    with pytest.raises(SettingsError, match=list(values)[-1]):
        SplitSettings.parse(values)


def test_what_no_protocol_stands_for() -> None:
    """The log's own split where it has one; ``validation_fraction`` then goes with it, and not with leave-one-out."""
    assert SplitSettings().settled(given=True) == SplitSettings(protocol="given")
    assert SplitSettings().settled(given=False) == SplitSettings(protocol="leave-one-out")
    assert SplitSettings(protocol="none").settled(given=True) == SplitSettings(protocol="none")
    part = SplitSettings(validation_fraction=0.1)
    assert part.settled(given=True) == SplitSettings(protocol="given", validation_fraction=0.1)
    with pytest.raises(SettingsError, match="goes with protocol 'given' only"):
        part.settled(given=False)
