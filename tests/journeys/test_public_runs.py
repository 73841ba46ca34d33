"""Runs on public data, on a data set of the same form that is made here."""

import gzip
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
ITEMS = 40


@pytest.fixture(scope="module")
def runs() -> ModuleType:
    """Load the module, which is no part of the package."""
    if str(EXPERIMENTS) not in sys.path:
        sys.path.insert(0, str(EXPERIMENTS))
    import public_runs  # type: ignore[import-not-found]  # noqa: PLC0415

    module: ModuleType = public_runs
    return module


@pytest.fixture(scope="module")
def films(runs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Make 300 buyers with forty ratings each, whose popularity falls as 1/rank and changes in the last thirty."""
    source = tmp_path_factory.mktemp("data")
    (source / "ml-1m").mkdir()
    draws = np.random.default_rng(1)
    chance = 1 / np.arange(1, ITEMS + 1)
    with gzip.open(source / "ml-1m" / "ml-1m_sasrec.txt.gz", "wt") as lines:
        for buyer in range(1, 301):
            early = np.full(10, ITEMS + 1)
            late = draws.choice(np.arange(1, ITEMS + 1), 30, p=chance / chance.sum())
            lines.writelines(f"{buyer} {item}\n" for item in (*early, *late))
    return runs.Films(source, tmp_path_factory.mktemp("work"), short=True)


def test_the_last_thirty_of_each_buyer_are_used(films: Any) -> None:
    """What was rated before the last thirty is neither in the log nor in the catalogue."""
    log = films.log(1)
    assert len(log.catalogue) == ITEMS
    assert np.diff(log.engagements.offsets).tolist() == [30] * 300


def test_the_correction_gives_the_score_its_slope(films: Any, runs: ModuleType) -> None:
    """By in-batch columns without correction the score says less of popularity than with it, and than the exact one."""
    plain, corrected = (
        films.measures(name, runs.Variant({"uniform": 0, "alpha": alpha}, {"batch": 64, "epochs": 1}), 1)
        for name, alpha in (("plain", 0.0), ("corrected", 1.0))
    )
    exact = films.measures("exact", runs.Variant(training={"batch": 64}, full=True), 1)
    assert corrected["slope"] > plain["slope"] + 0.2
    assert exact["slope"] == pytest.approx(corrected["slope"], abs=0.2)
    assert sum(exact[f"share_{name}"] for name in ("head", "torso", "tail", "new")) == pytest.approx(1)


def test_a_variant_is_measured_once(films: Any, runs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is found again by its settings; other settings are trained anew."""
    variant = runs.Variant({"uniform": 5})
    first = films.measures("kept", variant, 1)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(runs, "trained", refuse)
    assert films.measures("kept", variant, 1) == first
    with pytest.raises(AssertionError, match="trained again"):
        films.measures("kept", runs.Variant({"uniform": 6}), 1)
