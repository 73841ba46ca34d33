"""Every test that docs/decisions/faults.md names exists, and every fault names one."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def faults() -> list[str]:
    """Return the lines of the tables, without their heads."""
    lines = (ROOT / "docs" / "decisions" / "faults.md").read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| fault |")]


def missing(lines: list[str]) -> list[str]:
    """Return the tests that are named and not there."""
    found: dict[str, set[str]] = {}
    gone = []
    for file, name in (node for line in lines for node in NODE.findall(line)):
        if file not in found:
            path = ROOT / file
            tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
            found[file] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if name not in found[file]:
            gone.append(f"{file}::{name}")
    return gone


def test_every_fault_has_tests_that_exist() -> None:
    """A test that is renamed takes its line along."""
    assert len(faults()) > 40
    assert [line for line in faults() if not NODE.search(line)] == []
    assert missing(faults()) == []


def test_a_test_that_is_gone_would_be_found() -> None:
    """In a file that exists, and in one that does not."""
    lines = ["| a | `tests/journeys/test_faults_document.py::test_gone`, `tests/unit/test_gone.py::test_gone` |"]
    assert missing(lines) == ["tests/journeys/test_faults_document.py::test_gone", "tests/unit/test_gone.py::test_gone"]
