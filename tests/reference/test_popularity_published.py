"""Popularity on public data, imported, split and ranked by the program, against figures computed elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("source", "cases", "candidates", "hit_rate", "ndcg"),
    [
        ("ml-1m/ml-1m_sasrec.txt.gz", 6_040, 3_416, 0.0369, 0.0180),
        ("amazon/Beauty.txt.gz", 22_363, 12_101, 0.0110, 0.0053),
        ("amazon/Sports_and_Outdoors.txt.gz", 35_598, 18_357, 0.0091, 0.0052),
    ],
)
def test_leave_one_out(
    data_folder: Path,
    tmp_path: Path,
    hatchway: Callable[..., Any],
    source: str,
    cases: int,
    candidates: int,
    hit_rate: float,
    ndcg: float,
) -> None:
    """Counts from training only, training and validation items excluded, ties by mean rank; to 0.0001."""
    store = tmp_path / "store"
    assert hatchway("import", "sequences", data_folder / source, store, "--quiet").code == 0
    ended = hatchway(
        "evaluate", "--baseline", "popularity", store, "--protocol", "leave-one-out", "--set", "evaluation.resamples=0",
        "--json", "--quiet",
    )  # fmt: skip
    found = ended.json
    assert (found["cases"], found["relevant"], found["protocol"]["candidates"]) == (cases, cases, candidates)
    assert found["metrics"]["hit_rate@10"]["value"] == pytest.approx(hit_rate, abs=0.0001)
    assert found["metrics"]["ndcg@10"]["value"] == pytest.approx(ndcg, abs=0.0001)
    # A list in random order hits 10 of the candidates that are left, which are most of them.
    assert found["baselines"]["random"]["metrics"]["hit_rate@10"]["value"] == pytest.approx(10 / candidates, rel=0.1)
