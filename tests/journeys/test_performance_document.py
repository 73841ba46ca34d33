"""The table of docs/performance.md is what the benchmarks' own files say."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load_table() -> Any:
    """Load benchmarks/table.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("performance_table", BENCHMARKS / "table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_the_results() -> None:
    """Whoever measures anew runs benchmarks/table.py as well."""
    module = load_table()
    if not any((BENCHMARKS / f"{name}.json").is_file() for name in module.ORDER):
        pytest.skip("no benchmark has left results here; make bench")
    assert module.table() in module.PAGE.read_text("utf-8")


def test_a_line_of_the_table_by_hand() -> None:
    """Three digits that count, thousands as they are, a bound with its sense, nothing where there is none."""
    row = {"path": "a", "against": "b", "value": 1234.5, "sense": "at least", "required": 15, "aim": None, "unit": ""}
    size = row | {"value": 14.4258, "sense": "at most", "required": 25, "aim": 0.045, "unit": "MiB"}
    free = row | {"value": 0.1519, "required": None}
    assert load_table().lines_of(json.loads(json.dumps({"rows": [row, size, free]}))) == [
        "| a | b | 1,234 | at least 15 |  |",
        "| a | b | 14.4 MiB | at most 25 MiB | 0.045 MiB |",
        "| a | b | 0.152 |  |  |",
    ]
