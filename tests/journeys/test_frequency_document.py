"""The example of docs/frequency.md runs as it stands, and says what the text says it says."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

DOCUMENT = Path(__file__).parents[2] / "docs" / "frequency.md"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Two copies, one copy, and the floor, printed and in the ledger."""
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(DOCUMENT), "exec"), names)  # noqa: S102
    assert names["frequency"].whole_batch(torch.tensor([3, 1, 2]), 4).tolist() == pytest.approx([2, 1, 4 / 160])
    assert "2.0000, 1.0000, 0.0250" in capsys.readouterr().out
    assert names["ledger"].log_count.exp().tolist() == pytest.approx([1.5, 0.75, 1.5, 0.75])
