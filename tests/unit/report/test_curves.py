"""The training log read back, summed up, and drawn."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hatchway.errors import ArtefactError
from hatchway.report.curves import Curve, TrainingLog, draw_curves
from hatchway.report.negatives import account_of

LINES = [
    {"step": 20, "loss": 6.5, "columns": {"in_batch": 100.0, "uniform": 50.0}, "masked_share": {"positive": 0.01}},
    {"step": 30, "validation": {"ndcg@20": 0.1, "recall@20": 0.2}},
    {"step": 40, "loss": 5.5, "columns": {"in_batch": 60.0, "uniform": 50.0},
     "masked_share": {"positive": 0.01, "engaged": 0.04}},
]  # fmt: skip


def written(folder: Path, text: str) -> Path:
    """Write a training log."""
    (folder / "log.jsonl").write_text(text, encoding="utf-8")
    return folder / "log.jsonl"


def test_a_log_is_taken_apart(tmp_path: Path) -> None:
    """Loss lines and validations, each against its step."""
    log = TrainingLog.read(written(tmp_path, "".join(json.dumps(line) + "\n" for line in LINES)))
    assert log.loss() == Curve((20, 40), (6.5, 5.5), "training loss")
    assert log.validation("ndcg@20") == Curve((30,), (0.1,), "validation ndcg@20")
    assert log.validation("mrr@20").steps == ()


def test_a_run_without_a_log_has_nothing_to_show(tmp_path: Path) -> None:
    """No file is an empty log."""
    log = TrainingLog.read(tmp_path / "log.jsonl")
    assert (log.lines, log.validations) == ((), ())
    assert draw_curves([log.loss()], 3) == ""


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    """A killed run leaves half a line."""
    log = TrainingLog.read(written(tmp_path, json.dumps(LINES[0]) + '\n{"step": 40, "lo'))
    assert log.loss().steps == (20,)


@pytest.mark.parametrize("text", ["not json\n", "[1]\n", '{"loss": 1}\n'])
def test_a_damaged_log_is_named(tmp_path: Path, text: str) -> None:
    """A whole line that no run writes."""
    with pytest.raises(ArtefactError, match=r"log\.jsonl is damaged"):
        TrainingLog.read(written(tmp_path, text))


def test_curves_are_svg_in_the_colours_of_the_page() -> None:
    """Well-formed, no colour of its own, the same text every time; what has no point is left out."""
    curves = [Curve((1, 2, 3), (3.0, 2.0, 1.5), "training loss"), Curve((), (), "nothing"), Curve((2,), (0.4,), "mine")]
    svg = draw_curves(curves, chosen_step=2)
    assert svg == draw_curves(curves, chosen_step=2)
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    assert "width" not in root.attrib
    assert root.attrib["viewBox"].startswith("0 0 720 ")  # two panels of five inches, 72 points each
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"training loss", "mine", "step"} <= texts
    assert "nothing" not in texts
    for variable in ("--accent", "--soft", "--line"):
        assert f"var({variable})" in svg
    for told in ("#010203", "#040506", "#070809"):
        assert told not in svg


def test_negatives_are_averaged_over_the_log() -> None:
    """In-batch (100 + 60) / 2 = 80, uniform 50; engaged masks (0 + .04) / 2 = 2 % of 130 columns."""
    account = account_of([LINES[0], LINES[2]])
    assert account is not None
    assert account.columns == 130
    assert [(part.name, part.amount) for part in account.sources] == [("in-batch", 80), ("uniform", 50)]
    assert [part.share for part in account.sources] == pytest.approx([80 / 130, 50 / 130])
    assert [(part.name, part.share) for part in account.masked] == [("positive", 0.01), ("engaged", 0.02)]
    assert [part.amount for part in account.masked] == pytest.approx([1.3, 2.6])
    assert account.left == pytest.approx(130 * 0.97)


def test_a_source_nobody_described_keeps_its_name() -> None:
    """So that a new source is seen in the report before it is described there."""
    account = account_of([{"step": 1, "columns": {"novel": 4.0}}])
    assert account is not None
    assert [(part.name, part.meaning) for part in account.sources] == [("novel", "")]


def test_without_columns_there_is_no_account() -> None:
    """A run too short to write a line."""
    assert account_of([]) is None
