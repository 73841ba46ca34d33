"""The whole evaluation on a market small enough to rank by eye."""

from collections.abc import Callable

import polars as pl
import pytest
import torch
from torch import Tensor

from hatchway.data.buyers import Buyers
from hatchway.data.catalogue import Catalogue
from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Engagements, Part
from hatchway.data.log import Log
from hatchway.errors import DataError, UsageError
from hatchway.evaluation.result import Evaluation
from hatchway.evaluation.settings import EvaluationSettings
from hatchway.evaluation.summary import evaluate, evaluate_baseline

TRAIN, VALIDATION, TEST = Part.TRAIN, Part.VALIDATION, Part.TEST
SMALL = EvaluationSettings(k=(1, 2), resamples=200, history_edges=(3,))


@pytest.fixture
def market(log_of: Callable[..., Engagements]) -> Log:
    """Return five items and four buyers: 0 is popular, 1 and 2 are less, 3 is rare, 4 is new."""
    engagements = log_of(
        [
            [(0, TRAIN, 1.0), (1, TRAIN, 1.0), (2, TRAIN, 1.0), (3, VALIDATION, 1.0), (4, TEST, 1.0)],
            [(0, TRAIN, 1.0), (2, VALIDATION, 1.0), (1, TEST, 1.0)],
            [(0, TRAIN, 1.0), (1, VALIDATION, 1.0), (3, TEST, 1.0)],
            [(0, TRAIN, 1.0), (1, TRAIN, 1.0), (2, TRAIN, 1.0), (3, TRAIN, 1.0)],
        ]
    )
    return Log(
        engagements, Buyers(pl.Series(range(4))), Catalogue(pl.DataFrame({"item": range(5)})), ("said before",), "given"
    )


class Model:
    """Scores by item row, low rows first, whoever asks."""

    history_length = 2

    def __init__(self, scores: list[float]) -> None:
        self.row = torch.tensor(scores)

    def scores(self, contexts: Contexts) -> Tensor:
        """Give every context the same scores."""
        assert len(contexts.history) <= 2 * len(contexts)
        return self.row.expand(len(contexts), -1)


def test_figures_of_a_model_and_its_baselines(market: Log) -> None:
    """Buyer by buyer: 0 has only 4 left (rank 1); 1 has 1, 3, 4 (rank 1); 2 has 2, 3, 4 (rank 2)."""
    found = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, SMALL, protocol="leave-one-out")
    assert (found.cases, found.relevant, found.k) == (3, 3, [1, 2])
    assert found.value("recall", 1) == pytest.approx(2 / 3)
    assert found.value("recall", 2) == 1
    assert found.value("mrr", 2) == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found.tied_share == 0
    assert ["not shown to be better than a random order" in line for line in found.warnings] == [True]  # of three cases
    assert found.notes == ["said before"]
    # Training counts are 4, 2, 2, 1, 0, so popularity ranks as the model does; at random the chance is 1, 1/3 and 1/3.
    assert found.baselines["popularity"].metrics["recall@1"].value == pytest.approx(2 / 3)
    assert found.baselines["random"].metrics["recall@1"].value == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    with pytest.raises(UsageError, match=r"recall@20 was not measured.*recall@1"):
        found.value("recall", 20)


def test_what_was_asked_is_in_the_result(market: Log) -> None:
    """The protocol says what a reader needs to compare figures."""
    protocol = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, SMALL, protocol="leave-one-out").protocol
    assert protocol.model_dump() == {
        "split": "leave-one-out",
        "part": "test",
        "cases": "one per buyer",
        "candidates": 5,
        "exclude_seen": True,
        "exclude_query_item": True,
        "ties": "expected",
    }
    rows = evaluate(Model([1.0] * 5), market, SMALL, protocol="global-time", part=VALIDATION).protocol
    assert (rows.part, rows.cases, rows.exclude_seen) == ("validation", "one per positive", False)


def test_slices_hold_their_cases_and_figures(market: Log) -> None:
    """4 is new; 1 is torso (4 of 9 positives lie above it), 3 is tail (8 of 9 do); one buyer knows 4 rows, two 2."""
    found = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, SMALL, protocol="leave-one-out")
    popularity = found.slices["popularity"]
    assert {name: piece.cases for name, piece in popularity.items()} == {"head": 0, "torso": 1, "tail": 1, "new": 1}
    assert popularity["head"].metrics == {}
    assert popularity["tail"].metrics["recall@1"].value == 0
    assert popularity["tail"].metrics["recall@2"].value == 1
    assert popularity["torso"].metrics["recall@1"].low is None  # one buyer shows no spread
    history = found.slices["history"]
    assert {name: piece.cases for name, piece in history.items()} == {"0-2": 2, "3+": 1}
    assert history["0-2"].metrics["recall@1"].value == pytest.approx(1 / 2)
    assert (history["0-2"].metrics["recall@1"].low, history["0-2"].metrics["recall@1"].high) == (0, 1)
    assert found.baselines["random"].slices["history"]["0-2"].metrics["recall@1"].value == pytest.approx(1 / 3)


def test_a_slice_knows_whose_its_cases_are(log_of: Callable[..., Engagements]) -> None:
    """Both cases of a new item are of the second buyer, who alone shows no spread; the three are of two."""
    engagements = log_of([[(0, TRAIN, 1.0), (1, TRAIN, 1.0), (0, TEST, 1.0)], [(4, TEST, 1.0), (3, TEST, 1.0)]])
    log = Log(engagements, Buyers(pl.Series(range(2))), Catalogue(pl.DataFrame({"item": range(5)})), (), "given")
    found = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), log, SMALL, protocol="global-time")
    new = found.slices["popularity"]["new"]
    assert (new.cases, new.metrics["recall@1"].low) == (2, None)
    assert found.metrics["recall@1"].low is not None


def test_a_collapsed_model_is_worth_what_chance_is_and_said_to_be(market: Log) -> None:
    """All scores equal: exactly the random baseline, with a warning."""
    found = evaluate(Model([0.5] * 5), market, SMALL, protocol="leave-one-out")
    assert found.metrics == found.baselines["random"].metrics
    assert found.tied_share == pytest.approx(2 / 3)  # the first buyer has one candidate, which ties with nothing
    assert len(found.warnings) == 2
    assert "67% of the relevant items" in found.warnings[1]


def test_a_model_that_is_no_better_than_chance_is_said_to_be(market: Log) -> None:
    """Chance is exact, whatever baselines are asked for, and where an interval holds it a sentence says so."""
    settings = EvaluationSettings(k=(1, 5), resamples=200, baselines=())
    best = evaluate(Model([0.0, 5.0, 0.0, 4.0, 3.0]), market, settings, protocol="leave-one-out")
    assert best.chance["recall@1"] == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    assert best.chance["recall@5"] == 1
    assert best.value("recall", 1) == 1
    assert best.warnings == []
    # The first has nothing but 4 left; for the others the right item is last.
    worst = evaluate(Model([1.0, 0.0, 5.0, 0.5, 4.0]), market, settings, protocol="leave-one-out")
    [line] = worst.warnings
    assert line.startswith("the model is not shown to be better than a random order: recall@1 is 0.3333 (interval 0.")
    assert line.endswith(" and 0.5556 in a random order")
    bare = settings.model_copy(update={"resamples": 0})
    [line] = evaluate(Model([1.0, 0.0, 5.0, 0.5, 4.0]), market, bare, protocol="leave-one-out").warnings
    assert "recall@1 is 0.3333 and 0.5556 in a random order" in line
    assert evaluate_baseline("random", market, settings, protocol="leave-one-out").warnings == []


def test_a_baseline_by_itself(market: Log) -> None:
    """It is its own ranking, and not one of its own baselines; popularity alone counts ties at their mean rank."""
    popularity = evaluate_baseline("popularity", market, SMALL, protocol="leave-one-out")
    assert (popularity.ranking, list(popularity.baselines), popularity.protocol.ties) == (
        "popularity",
        ["random"],
        "mean-rank",
    )
    random = evaluate_baseline("random", market, SMALL, protocol="leave-one-out")
    assert (list(random.baselines), random.protocol.ties) == (["popularity"], "expected")
    assert random.metrics == popularity.baselines["random"].metrics


def test_ties_at_their_mean_rank(market: Log) -> None:
    """Scores all equal: three candidates stand at position 2, except the random baseline, which is an expectation."""
    settings = SMALL.model_copy(update={"ties": "mean-rank"})
    found = evaluate(Model([0.5] * 5), market, settings, protocol="leave-one-out")
    assert found.value("recall", 1) == pytest.approx(1 / 3)
    assert found.value("recall", 2) == 1
    assert found.baselines["random"].metrics["recall@1"].value == pytest.approx(5 / 9)


def test_quick_settings_leave_everything_out_but_the_figures(market: Log) -> None:
    """No intervals, slices or baselines: what training asks for at every validation."""
    quick = EvaluationSettings(k=(1,), resamples=0, slices=False, baselines=())
    found = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, quick, protocol="leave-one-out", part=VALIDATION)
    assert found.metrics["recall@1"].low is None
    assert (found.slices, found.baselines) == ({}, {})
    assert found.value("recall", 1) == pytest.approx(2 / 3)  # 3 leads 3 4; 2 is second of 1 2 3 4; 1 leads them


def test_the_record_survives_json(market: Log) -> None:
    """Written and read back it is the same, and the same seed writes the same."""
    found = evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, SMALL, protocol="leave-one-out", seed=3)
    assert Evaluation.model_validate_json(found.model_dump_json()) == found
    assert evaluate(Model([5.0, 4.0, 3.0, 2.0, 1.0]), market, SMALL, protocol="leave-one-out", seed=3) == found


def test_a_split_that_keeps_nothing_back_is_refused(market: Log) -> None:
    """There is nothing to ask about."""
    with pytest.raises(DataError, match="'none' trains on every row"):
        evaluate_baseline("random", market, SMALL, protocol="none")
