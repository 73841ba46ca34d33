"""``hatchway evaluate --baseline`` from a store to its figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchway.data.store import write_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write a store of three buyers with sequences of three and four items, and one item that is only listed."""
    sequences = {"ann": "abcd", "bob": "acb", "eve": "bac"}
    rows = [(buyer, item) for buyer, items in sequences.items() for item in items]
    events = pl.DataFrame(rows, schema=["buyer", "item"], orient="row")
    write_store(tmp_path / "store", events, pl.DataFrame({"item": list("abcde")}))
    return tmp_path / "store"


def test_popularity_as_json(store: Path, hatchway: Callable[..., Any]) -> None:
    """Training is a b of ann, a of bob, b of eve. Left are d e for ann, b d e for bob, c d e for eve."""
    ended = hatchway("evaluate", "--baseline", "popularity", store, "--protocol", "leave-one-out", "--json")
    found = ended.json
    assert ended.code == 0
    assert found["ranking"] == "popularity"
    assert found["protocol"]["split"] == "leave-one-out"
    assert (found["cases"], found["protocol"]["candidates"]) == (3, 5)
    # By mean rank: d and e tie at 1.5, counted as 2; b is first; c, d and e tie at 2.
    assert found["metrics"]["mrr@5"]["value"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
    assert found["baselines"]["random"]["metrics"]["recall@5"]["value"] == 1
    assert "split leave-one-out" in ended.err


def test_random_as_text(store: Path, hatchway: Callable[..., Any]) -> None:
    """The table has the figures, the baseline beside them and the slices; settings can be put over the defaults."""
    ended = hatchway(
        "evaluate", store, "--baseline", "random", "--part", "validation", "--set", "evaluation.k=[1]", "--quiet"
    )
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("random, leave-one-out, validation part: 3 cases (one per buyer), 3 relevant items")
    # Candidates: c d e for ann (a b seen), b c d e for bob, a c d e for eve.
    assert f"chance, a random order of the candidates: recall@1 {(1 / 3 + 1 / 4 + 1 / 4) / 3:.4f}" in lines
    [recall] = [line.split() for line in lines if line.startswith("recall@1 ")]
    assert float(recall[1]) == pytest.approx((1 / 3 + 1 / 4 + 1 / 4) / 3, abs=1e-4)
    assert any(line.startswith("popularity new") for line in lines)
    assert any(line.startswith("history 1-4") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "given", "--baseline", "random"], "'split'"),
        (["--baseline", "random", "--set", "evaluation.kk=[1]"], "unknown setting 'evaluation.kk'"),
        (["--protocol", "given"], "go with --baseline"),
    ],
)
def test_mistakes_end_with_2_and_a_remedy(
    store: Path, hatchway: Callable[..., Any], arguments: list[str], message: str
) -> None:
    """The message says what was wrong; stdout stays empty."""
    ended = hatchway("evaluate", store, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_a_store_that_was_cut_short_is_named(store: Path, hatchway: Callable[..., Any]) -> None:
    """Not an error of the library that parses it."""
    part = store / "catalogue.parquet"
    part.write_bytes(part.read_bytes()[:40])
    ended = hatchway("evaluate", "--baseline", "random", store)
    assert (ended.code, ended.out) == (3, "")
    assert "catalogue.parquet is not the file that was written; import again" in ended.err


def test_a_log_with_a_split_is_evaluated_by_it(tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """As it would be trained; ``--protocol`` says otherwise."""
    events = pl.DataFrame({"buyer": [1] * 4, "item": list("abcd"), "split": ["train", "train", "train", "test"]})
    write_store(tmp_path / "store", events)
    split = {
        protocol: hatchway("evaluate", "--baseline", "random", tmp_path / "store", *protocol, "--json").json["protocol"]
        for protocol in ((), ("--protocol", "leave-one-out"))
    }
    assert [found["split"] for found in split.values()] == ["given", "leave-one-out"]


def test_metrics_that_are_the_same_number_are_printed_once(store: Path, hatchway: Callable[..., Any]) -> None:
    """With one relevant item in every case hit rate is recall and map is mrr, which is said; JSON has them all."""
    call = ("evaluate", "--baseline", "popularity", store, "--k", "3,1")
    lines = hatchway(*call).out.splitlines()
    assert "one relevant item in every case, so hit_rate is recall and map is mrr" in lines
    shown = [line.split()[0] for line in lines if "@" in line and not line.startswith(("slice", "chance", "the "))]
    assert shown == ["recall@1", "recall@3", "ndcg@1", "ndcg@3", "mrr@1", "mrr@3"]
    metrics = hatchway(*call, "--json").json["metrics"]
    assert [metrics[f"hit_rate@{k}"] == metrics[f"recall@{k}"] for k in (1, 3)] == [True, True]
    assert [metrics[f"map@{k}"] == metrics[f"mrr@{k}"] for k in (1, 3)] == [True, True]


def test_with_several_relevant_items_all_metrics_are_printed(tmp_path: Path, hatchway: Callable[..., Any]) -> None:
    """Then they differ."""
    events = pl.DataFrame({"buyer": [1] * 4, "item": list("abcd"), "split": ["train", "train", "test", "test"]})
    write_store(tmp_path / "store", events)
    out = hatchway("evaluate", "--baseline", "random", tmp_path / "store", "--k", "1").out
    assert [
        line.split()[0]
        for line in out.splitlines()
        if "@1 " in line and not line.startswith(("slice", "chance", "the "))
    ] == [
        "recall@1",
        "hit_rate@1",
        "ndcg@1",
        "mrr@1",
        "map@1",
    ]


@pytest.mark.parametrize("k", ["x", "5,", "0"])
def test_cut_offs_that_are_none_are_refused(store: Path, hatchway: Callable[..., Any], k: str) -> None:
    """With the value and how to write it."""
    ended = hatchway("evaluate", "--baseline", "random", store, "--k", k)
    assert (ended.code, ended.out) == (2, "")
    assert (f"--k {k}: write whole numbers" in ended.err) or "evaluation.k" in ended.err
