"""Rankings side by side: means by hand, differences paired, and no word where chance could be at work."""

import numpy as np
import pytest

from hatchway.compare.paired import PairedSettings, side_by_side, standing
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.result import Figure
from hatchway.evaluation.slices import Slice


def cases(count: int) -> Cases:
    """Return cases of as many buyers with one relevant item each."""
    one = np.arange(count + 1, dtype=np.int64)
    none = np.zeros(count + 1, np.int64)
    return Cases(
        buyers=np.arange(count, dtype=np.int32),
        query_items=np.full(count, -1, np.int32),
        history_begin=one[:-1],
        history_end=one[:-1],
        texts=None,
        relevant_offsets=one,
        relevant_items=np.arange(count, dtype=np.int32),
        excluded_offsets=none,
        excluded_items=np.zeros(0, np.int32),
    )


def ranks(better: np.ndarray) -> Ranks:
    """Return a ranking in which case i's item has ``better[i]`` candidates above it."""
    return Ranks(np.arange(len(better) + 1), better.astype(np.int64), np.ones(len(better), np.int64))


SETTINGS = PairedSettings(k=5, resamples=400)


def test_means_and_differences_by_hand() -> None:
    """Of four cases the first ranking has two among five and the second three; the slice has the last two."""
    asked = cases(4)
    rankings = {"first": ranks(np.array([0, 4, 5, 9])), "second": ranks(np.array([0, 5, 2, 3]))}
    late = Slice("place", "late", "the last two", np.array([False, False, True, True]))
    nobody = Slice("place", "nobody", "no case", np.zeros(4, np.bool_))
    whole, piece = side_by_side(rankings, asked, [late, nobody], SETTINGS, 1)
    assert (whole.name, whole.cases, piece.name, piece.cases) == ("all", 4, "late", 2)
    assert [whole.figures[name].value for name in rankings] == [0.5, 0.75]
    assert whole.differences["second"].value == pytest.approx(0.25)
    assert [piece.figures[name].value for name in rankings] == [0.0, 1.0]
    assert piece.standings == {"second": "better"}


def test_what_is_hard_for_all_does_not_hide_a_difference() -> None:
    """Half of the cases are hopeless for all. One ranking misses every tenth that the other finds: it is worse."""
    random = np.random.default_rng(0)
    hopeless = random.random(600) < 0.5
    good = np.where(hopeless, 50, 0)
    less = np.where(np.arange(600) % 10 == 0, 50, good)
    same = good.copy()
    (found,) = side_by_side(
        {"good": ranks(good), "less": ranks(less), "same": ranks(same)}, cases(600), [], SETTINGS, 2
    )
    assert found.standings == {"less": "worse", "same": "undecided"}
    assert found.figures["less"].high > found.figures["good"].low  # type: ignore[operator]
    assert found.differences["same"] == Figure(value=0.0, low=0.0, high=0.0)


def test_chance_is_undecided_nineteen_times_in_twenty() -> None:
    """Two rankings that hit at random and equally often: a word is said in about one of twenty comparisons."""
    random = np.random.default_rng(3)
    said = 0
    for trial in range(200):
        draws = {name: ranks(random.integers(10, size=150)) for name in ("one", "other")}
        (found,) = side_by_side(draws, cases(150), [], SETTINGS, trial)
        said += found.standings["other"] != "undecided"
    assert 1 <= said <= 22


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.01, 0.2, "better"), (-0.2, -0.01, "worse"), (-0.1, 0.1, "undecided"), (None, None, "undecided")],
)
def test_words(low: float | None, high: float | None, word: str) -> None:
    """An interval that reaches 0, or is not there, decides nothing."""
    assert standing(Figure(value=0.0, low=low, high=high)) == word
