"""The examples of docs/ledger.md run as they stand: the loss moves the vectors, and a buyer's own items are masked."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from hatchway.data.store import write_store
from hatchway.negatives.sources import Reason

DOCUMENT = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; the second on a store of thirty buyers who each saved four items, of which two train."""
    rows = [{"buyer": buyer, "item": (buyer + n) % 12, "event": "save"} for buyer in range(30) for n in range(4)]
    write_store(tmp_path / "store", pl.DataFrame(rows))
    monkeypatch.chdir(tmp_path)
    first, second, third = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(first, str(DOCUMENT), "exec"), names)  # noqa: S102
    assert bool(torch.isfinite(names["loss"].detach()))
    assert float(names["items"].weight.grad.abs().sum()) > 0
    assert names["ledger"].items[:4].tolist() == [3, 1, 3, 0]
    exec(compile(third, str(DOCUMENT), "exec"), dict(names))  # noqa: S102  one process: nothing to wait for
    exec(compile(second, str(DOCUMENT), "exec"), names)  # noqa: S102
    ledger, batch = names["ledger"], names["batch"]
    assert len(batch.positives) == 60
    known = {(buyer, (buyer + n) % 12) for buyer in range(30) for n in range(2)}  # the last two are held out
    masked = {(int(batch.contexts.buyers[row]), int(ledger.items[column])) for row, column in _engaged(ledger)}
    assert masked
    assert masked <= known


def _engaged(ledger: Any) -> list[tuple[int, int]]:
    """Return the pairs that are masked because the buyer engaged with the item."""
    pairs: list[tuple[int, int]] = torch.stack([ledger.masked.rows, ledger.masked.columns], 1).tolist()
    return [
        pair for pair, reason in zip(pairs, ledger.masked.reasons.tolist(), strict=True) if reason == Reason.ENGAGED
    ]
