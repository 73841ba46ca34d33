"""Mining beside the obvious form: the whole score matrix, and the window's candidates one by one, sorted by lot."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from earlier_models import BuyerQueries, WholeMatrix, earlier_model

from hatchway.data.engagements import Part
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.negatives.sources import Reason
from hatchway.randomness import stream
from hatchway.training.mining.bounds import within_bounds
from hatchway.training.mining.lots import draw_lots
from hatchway.training.mining.mine import Earlier, mine
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings

ITEMS, BUYERS, EACH = 150, 70, 12
DAY = 86_400

Int64 = npt.NDArray[np.int64]


@pytest.fixture(scope="module", name="log")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Make a log of 60 days in which buyers come back to a few favourites."""
    rng = stream(2, "mining log")
    buyers = np.repeat(np.arange(BUYERS), EACH)
    favourites = rng.integers(0, ITEMS, (BUYERS, 6))
    events = pl.DataFrame(
        {
            "buyer": buyers,
            "item": favourites[buyers, rng.integers(0, 6, len(buyers))],
            "event": ["save"] * len(buyers),
            "time": 1_750_000_000 + rng.integers(0, 60 * DAY, len(buyers)),
        }
    )
    catalogue = pl.DataFrame({"item": np.arange(ITEMS), "title": ["chair"] * ITEMS})
    store = write_store(tmp_path_factory.mktemp("mining") / "store", events.lazy(), catalogue)
    return build_log(store, PositivesSettings(), SplitSettings(), seed=1)


@dataclass(frozen=True)
class SameHundred:
    """A screen: items are near-duplicates where their numbers agree modulo 31."""

    def pairs(self, positives: npt.NDArray[np.integer], candidates: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
        """Compare the numbers."""
        alike = (positives % 31 == candidates % 31) & (positives != candidates)
        return np.where(alike, np.int8(Reason.PHOTO), np.int8(0))


def obvious_reason(log: Log, rules: RowFilter, row: int, item: int) -> int:
    """Ask one pair, event by event."""
    engagements = log.engagements
    positive = int(engagements.items[row])
    if item == positive:
        return Reason.SAME_ITEM
    assert engagements.times is not None
    for other in np.flatnonzero(engagements.buyers == engagements.buyers[row]):
        before = engagements.times[row] - engagements.times[other]
        training = engagements.parts[other] == Part.TRAIN
        if training and engagements.items[other] == item and 0 < before <= rules.engaged_days * DAY:
            return Reason.ENGAGED
    if item == engagements.query_items[row]:
        return Reason.LOOKED_AT
    if rules.screen is not None and (reason := int(rules.screen.pairs(np.array([positive]), np.array([item]))[0])):
        return reason
    return Reason.NOT_ON_OFFER if rules.living is not None and not rules.living[item] else 0


def inside(score: float, positive: float, settings: MiningSettings) -> bool:
    """Judge one score by the bounds, as they are written in the documentation."""
    ceilings = [math.inf if settings.max_score is None else settings.max_score]
    if settings.margin is not None:
        ceilings.append(positive - settings.margin)
    if settings.relative_margin is not None:
        ceilings.append(positive - settings.relative_margin * abs(positive))
    return (settings.min_score is None or score >= settings.min_score) and all(score <= top for top in ceilings)


def obvious(log: Log, earlier: Earlier, rules: RowFilter, settings: MiningSettings, seed: int) -> list[list[Any]]:
    """Return, for each training positive, (item, rank, reason) of all that is looked at, in order."""
    rows = log.engagements.positives(Part.TRAIN)
    matrix = earlier.queries.vectors(rows).astype(np.float64) @ earlier.vectors.T.astype(np.float64)
    key = int(stream(seed, "mining").integers(2**64, dtype=np.uint64))
    found = []
    for row, scores in zip(rows.tolist(), matrix.astype(np.float32), strict=True):
        ranking = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
        window = [
            (item, rank) for rank, item in enumerate(ranking, 1) if settings.first_rank <= rank <= settings.last_rank
        ]
        lots = draw_lots(key, np.array([row]), np.array([[item for item, _ in window]], np.int64))[0].tolist()
        seen: list[Any] = []
        for _, item, rank in sorted((lot, item, rank) for lot, (item, rank) in zip(lots, window, strict=True)):
            if sum(reason == 0 for _, _, reason in seen) == settings.cap:
                break
            reason = obvious_reason(log, rules, row, item)
            if not reason and not inside(scores[item], scores[log.engagements.items[row]], settings):
                reason = Reason.SCORE
            seen.append((item, rank, int(reason)))
        found.append(seen)
    return found


def told(mined: Mined) -> list[list[Any]]:
    """Lay what was mined out in the same form."""
    whole = list(zip(mined.items.tolist(), mined.ranks.tolist(), mined.reasons.tolist(), strict=True))
    return [whole[begin:end] for begin, end in zip(mined.offsets[:-1], mined.offsets[1:], strict=True)]


SETTINGS = {
    "window": MiningSettings(first_rank=11, last_rank=60, cap=2),
    "the very top": MiningSettings(first_rank=1, last_rank=5, cap=4),
    "deeper than the catalogue": MiningSettings(first_rank=120, last_rank=500, cap=50),
    "beyond the catalogue": MiningSettings(first_rank=501, last_rank=600),
    "margin": MiningSettings(first_rank=1, last_rank=60, margin=0.5),
    "relative margin": MiningSettings(first_rank=1, last_rank=150, relative_margin=0.2, cap=3),
    "absolute": MiningSettings(first_rank=1, last_rank=150, min_score=-1.0, max_score=1.5),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_what_the_whole_matrix_says(log: Log, name: str) -> None:
    """The same candidates with the same ranks and reasons, in the same order, for every positive."""
    earlier, _ = earlier_model(log.engagements, ITEMS)
    living = np.arange(ITEMS) % 17 != 3
    rules = RowFilter(log.engagements, 10.0, living, SameHundred())
    rows = log.engagements.positives(Part.TRAIN)
    mined = mine(earlier, rows, rules, SETTINGS[name], seed=4)
    expected = obvious(log, earlier, rules, SETTINGS[name], seed=4)
    assert told(mined) == expected
    table = mined.table(len(log.engagements))
    assert table.lengths.sum() == sum(reason == 0 for seen in expected for _, _, reason in seen)
    for row, seen in zip(rows.tolist(), expected, strict=True):
        assert table.items[table.begin[row] : table.end[row]].tolist() == [i for i, _, reason in seen if not reason]
    figures = mined.figures()
    assert figures.looked_at == figures.mined + sum(figures.refused.values()) == sum(map(len, expected))
    assert figures.short == sum(sum(not r for _, _, r in seen) < SETTINGS[name].cap for seen in expected)
    if name == "beyond the catalogue":
        assert (figures.mined, figures.short, figures.by_number[0]) == (0, len(rows), len(rows))
    else:
        assert figures.refused.keys() >= {"photo", "not_on_offer"}


def test_scores_are_the_serving_score(log: Log) -> None:
    """Each is the dot product of its row's query and its item, and so is the positive's; ranks fall with scores."""
    earlier, _ = earlier_model(log.engagements, ITEMS)
    rows = log.engagements.positives(Part.TRAIN)
    mined = mine(earlier, rows, RowFilter(log.engagements), MiningSettings(first_rank=1, last_rank=150, cap=5), seed=4)
    queries = np.repeat(earlier.queries.vectors(rows), np.diff(mined.offsets), axis=0)
    np.testing.assert_allclose(mined.scores, (queries * earlier.vectors[mined.items]).sum(1), rtol=1e-5, atol=1e-6)
    own = (earlier.queries.vectors(rows) * earlier.vectors[log.engagements.items[rows]]).sum(1)
    np.testing.assert_allclose(mined.positive_scores, own, rtol=1e-5, atol=1e-6)
    better = (earlier.queries.vectors(rows) @ earlier.vectors.T > own[:, None] + 1e-5).sum(1)
    assert np.array_equal(mined.positive_ranks, better + 1)


@pytest.mark.parametrize("block", [1, 3, 64, 5000])
def test_blocks_change_nothing_and_equal_queries_are_asked_once(log: Log, block: int) -> None:
    """Every buyer asks once, however many positives; in blocks of any size, and of any order of the rows."""
    earlier, index = earlier_model(log.engagements, ITEMS)
    rows = log.engagements.positives(Part.TRAIN)
    rules = RowFilter(log.engagements, 10.0, None, SameHundred())
    settings = MiningSettings(first_rank=11, last_rank=60, queries_at_once=block)
    mined = mine(earlier, rows, rules, settings, seed=4)
    assert sum(index.asked) == mined.queries == len(np.unique(log.engagements.buyers[rows])) == BUYERS < len(rows)
    assert max(index.asked) <= block
    whole = mine(earlier, rows, rules, settings.model_copy(update={"queries_at_once": 7}), seed=4)
    for name in ("rows", "offsets", "items", "scores", "ranks", "reasons", "positive_scores", "positive_ranks"):
        assert np.array_equal(getattr(mined, name), getattr(whole, name)), name
    # A row's negatives depend on no other row.
    some = mine(earlier, rows[::3], rules, settings, seed=4)
    assert told(some) == told(mined)[::3]


def test_seeds_draw_otherwise_and_every_rank_alike(log: Log) -> None:
    """Over many seeds each rank of the window is chosen as often as the others (chi-square within 4 sigma)."""
    earlier, _ = earlier_model(log.engagements, ITEMS)
    rows = log.engagements.positives(Part.TRAIN)
    settings = MiningSettings(first_rank=11, last_rank=30, cap=2)
    chosen = [mine(earlier, rows, RowFilter(log.engagements, 0.0), settings, seed).ranks for seed in range(30)]
    counts = np.bincount(np.concatenate(chosen), minlength=31)[11:]
    expected = counts.sum() / 20
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - 19) < 4 * math.sqrt(2 * 19)
    assert not np.array_equal(chosen[0], chosen[1])


def test_what_the_log_learns_later_changes_nothing(log: Log) -> None:
    """Engagements after a row, of training or not, are no reason to leave an item out: mined alike without them."""
    engagements = log.engagements
    assert engagements.times is not None
    earlier, _ = earlier_model(engagements, ITEMS)
    settings = MiningSettings(first_rank=1, last_rank=40, cap=10)
    rows = engagements.positives(Part.TRAIN)
    whole = told(mine(earlier, rows, RowFilter(engagements, 30.0), settings, seed=4))
    refused = sum(reason == Reason.ENGAGED for seen in whole for _, _, reason in seen)
    assert refused > 50
    middle = int(np.median(engagements.times))
    # Whatever happened from the middle of the log on was with other items.
    items = np.where(engagements.times >= middle, (engagements.items + 7) % ITEMS, engagements.items).astype(np.int32)
    other = replace(engagements, items=items)
    early = rows[engagements.times[rows] < middle]
    queries = BuyerQueries(other, earlier.queries.buyers)  # type: ignore[attr-defined]
    changed = mine(replace(earlier, queries=queries), early, RowFilter(other, 30.0), settings, seed=4)
    assert told(changed) == [seen for row, seen in zip(rows, whole, strict=True) if row in set(early.tolist())]


def test_rows_without_a_query_and_items_without_a_vector(log: Log) -> None:
    """They are counted as unasked and short; a positive without a score has no candidate within a margin."""
    earlier, index = earlier_model(log.engagements, ITEMS)
    rows = log.engagements.positives(Part.TRAIN)
    earlier.queries.buyers[3:10] = np.nan  # type: ignore[attr-defined]
    unasked = np.isin(log.engagements.buyers[rows], np.arange(3, 10))
    there = np.where(np.arange(ITEMS) < 100, np.arange(ITEMS), -1)  # items from 100 on are new in this log
    here = np.where(np.arange(ITEMS) < 90, np.arange(ITEMS), -1)  # and those from 90 to 99 are gone from it
    settings = MiningSettings(first_rank=5, last_rank=60, margin=0.1)
    mined = mine(replace(earlier, there=there, here=here), rows, RowFilter(log.engagements), settings, seed=4)
    assert np.array_equal(mined.asked, ~unasked)
    assert mined.figures().unasked == unasked.sum() > 0
    assert not mined.numbers[unasked].any()
    new = log.engagements.items[rows] >= 100
    assert np.array_equal(np.isnan(mined.positive_scores), new | unasked)
    assert not mined.numbers[new].any()
    assert mined.items[mined.reasons == 0].max() < 90
    of_rows = np.repeat(np.arange(len(rows)), np.diff(mined.offsets))
    gone = (mined.reasons == Reason.NOT_ON_OFFER) & (mined.items < 0)
    assert gone.sum() > 100
    assert not np.isnan(mined.scores).any()
    assert len(np.unique(of_rows[gone])) > 50
    assert sum(index.asked) == mined.queries == BUYERS - 7


def test_a_judge_decides_and_is_asked_only_of_what_is_left(log: Log) -> None:
    """Candidates of odd numbers are too good for it; what others refuse is never put before it."""
    earlier, _ = earlier_model(log.engagements, ITEMS)
    rows = log.engagements.positives(Part.TRAIN)
    rules = RowFilter(log.engagements, 10.0, None, SameHundred())
    asked: list[tuple[int, int]] = []

    def judge(of_rows: Int64, items: Int64) -> npt.NDArray[np.float64]:
        asked.extend(zip(of_rows.tolist(), items.tolist(), strict=True))
        own = items == log.engagements.items[of_rows]
        return np.where(own, 1.0, np.where(items % 2, 0.8, np.where(items % 3, 0.4, np.nan)))

    settings = MiningSettings(first_rank=11, last_rank=60, judge_margin=0.3)
    mined = mine(earlier, rows, rules, settings, seed=4, judge=judge)
    stand = mined.items[mined.reasons == 0]
    assert (stand % 2 == 0).all()
    assert (stand % 3 != 0).all()
    refused = mined.items[mined.reasons == Reason.JUDGE]
    assert ((refused % 2 == 1) | (refused % 3 == 0)).all()
    by_screen = mined.reasons == Reason.PHOTO
    of_rows = np.repeat(mined.rows, np.diff(mined.offsets))[by_screen]
    screened = set(zip(of_rows.tolist(), mined.items[by_screen].tolist(), strict=True))
    assert len(screened) > 10
    assert not screened & set(asked)
    assert mined.figures().refused["judge"] == len(refused) > 100


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_the_relative_bound_is_never_above_the_positive(share: float) -> None:
    """For scores of any sign it is a ceiling below the positive, further below for larger shares, and scales along."""
    rng = stream(1, "bounds")
    positive = rng.normal(0, 2, 500)
    scores = rng.normal(0, 2, 500)
    settings = MiningSettings(relative_margin=share)
    found = within_bounds(scores, positive, settings)
    assert (scores[found] <= positive[found]).all()
    assert np.array_equal(found, within_bounds(8 * scores, 8 * positive, settings))
    above = positive > 0
    assert np.array_equal(found[above], scores[above] <= (1 - share) * positive[above])
    looser = within_bounds(scores, positive, MiningSettings(relative_margin=share / 2))
    assert (looser | ~found).all()


def test_the_matrix_double_ranks_ties_by_row() -> None:
    """As every index does."""
    found = WholeMatrix(np.ones((5, 2), np.float32)).search(np.ones((1, 2), np.float32), 3)
    assert found.rows.tolist() == [[0, 1, 2]]
