"""AUCs from scores, and where measured curves are read from."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from hatchway.errors import DataError, FailureError
from hatchway.how_many.curves import AucPoint, auc, before_overfitting, read_points, read_run, simulated_means


def test_auc_by_hand() -> None:
    """Two wins, a tie and a loss of four are 2.5 / 4; tensors and arrays alike."""
    positive, negative = [2.0, 1.0, 0.5, -1.0], [1.0, 0.0, 0.5, 3.0]
    assert auc(positive, negative) == 0.625
    assert auc(torch.tensor(positive), torch.tensor(negative)) == 0.625
    assert auc(np.array(positive, np.float32), np.array(negative, np.float32)) == 0.625
    assert auc(negative, positive) == 0.375


def test_a_collapsed_model_has_one_half() -> None:
    """Where all scores are equal every pair is a tie."""
    assert auc(np.zeros(7), np.zeros(7)) == 0.5


def test_infinite_scores_are_scores() -> None:
    """A score may overflow and still say which is the larger."""
    assert auc([math.inf, 0.0], [0.0, -math.inf]) == 1.0


def test_what_has_no_auc() -> None:
    """NaN is a diverged model; other shapes are a mistake of the caller."""
    with pytest.raises(FailureError, match="NaN"):
        auc([1.0, math.nan], [0.0, 0.0])
    with pytest.raises(FailureError, match="NaN"):
        auc([1.0, 2.0], [0.0, math.nan])
    for positive, negative in (([1.0, 2.0], [1.0]), ([], []), ([[1.0]], [[0.0]])):
        with pytest.raises(ValueError, match="one negative score for each positive"):
            auc(positive, negative)


def test_the_simulated_curve() -> None:
    """121 equal points of t from 0 to 3, both ends included."""
    means = simulated_means(2.0)
    assert len(means) == 121
    assert (means[0], means[40], means[120]) == pytest.approx((0.0, 2 * (1 - math.exp(-1)), 2 * (1 - math.exp(-3))))


def test_the_first_of_equally_good_validations_ends_the_curve() -> None:
    """What comes after the best validation is overfitting."""
    points = [AucPoint(0.6, 0.6), AucPoint(0.7, 0.65), AucPoint(0.8, 0.65), AucPoint(0.9, 0.6)]
    assert before_overfitting(points) == points[:2]


def test_a_runs_log(tmp_path: Path) -> None:
    """Lines with AUCs are taken, others and one that was cut short are passed over."""
    lines: list[object] = [
        {"step": 0, "auc": {"training": 0.5, "validation": 0.5}},
        {"step": 20, "loss": 3.2},
        {"step": 40, "validation": {"ndcg@20": 0.1}},
        {"step": 40, "auc": {"training": 0.8, "validation": 0.75}},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 60, "auc": {"tr')
    assert read_run(tmp_path) == [AucPoint(0.5, 0.5), AucPoint(0.8, 0.75)]
    assert read_points(tmp_path / "log.jsonl") == read_run(tmp_path)


def test_no_run_and_a_run_without_aucs(tmp_path: Path) -> None:
    """Each is refused with what to do."""
    with pytest.raises(DataError, match=r"no log\.jsonl"):
        read_run(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"step": 20, "loss": 3.2}\n')
    with pytest.raises(DataError, match=r"has no AUCs; .* --auc"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aucs.csv", "step,training,validation\n1,0.6,0.58\n2,0.7,0.66\n"),
        ("excel.csv", "\ufeffvalidation,training\r\n0.58,0.6\r\n0.66,0.7\r\n"),
        ("pairs.json", "[[0.6, 0.58], [0.7, 0.66]]"),
        ("objects.json", '[{"training": 0.6, "validation": 0.58}, {"step": 9, "training": 0.7, "validation": 0.66}]'),
    ],
)
def test_files(tmp_path: Path, name: str, text: str) -> None:
    """A table with the two columns among others, or a list of pairs or objects."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert read_points(tmp_path / name) == [AucPoint(0.6, 0.58), AucPoint(0.7, 0.66)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "train,val\n0.6,0.5\n"),
        ("b.csv", "training,validation\n0.6,high\n"),
        ("c.csv", "training,validation\n0.6\n"),
        ("d.json", "{"),
        ("e.json", "[0.6, 0.7]"),
        ("f.json", "[[0.6, 0.7, 0.8]]"),
        ("g.json", '{"training": 0.6}'),
        ("h.json", "[[NaN, 0.6]]"),
        ("i.json", "[[true, 0.6]]"),
        ("j.json", '["67"]'),
        ("k.csv", "training,validation\n"),
        ("l.jsonl", '{"auc": [0.6]}\n'),
        ("m.jsonl", "{}\n"),
        ("n.json", "3"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, text: str) -> None:
    """Each is refused by name."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=name):
        read_points(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The system's reason is said."""
    with pytest.raises(DataError, match="No such file"):
        read_points(tmp_path / "none.csv")
