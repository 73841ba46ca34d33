"""The example of docs/ledger.md runs as it stands, and its loss moves the vectors."""

import re
from pathlib import Path
from typing import Any

import torch

DOCUMENT = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_the_example_runs() -> None:
    """Three catalogue items and four rows are enough for a finite loss and a gradient in the table."""
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(DOCUMENT), "exec"), names)  # noqa: S102
    assert bool(torch.isfinite(names["loss"].detach()))
    assert float(names["items"].weight.grad.abs().sum()) > 0
    assert names["ledger"].items[:4].tolist() == [3, 1, 3, 0]
