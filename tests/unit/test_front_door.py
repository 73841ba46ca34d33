"""What ``import hatchway`` offers, and that it costs nothing until it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hatchway


def test_three_lists_agree() -> None:
    """What type checkers see, what is exported and what loads on use are the same names from the same modules."""
    tree = ast.parse(Path(hatchway.__file__).read_text("utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == hatchway._HOME_OF
    assert sorted(seen) == hatchway.__all__ == sorted(hatchway.__all__)


@pytest.mark.parametrize("name", hatchway.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    """Each exported name loads, is the thing of that name, and says what it is."""
    value = getattr(hatchway, name)
    assert value.__name__ == name
    assert value.__doc__
    assert name in dir(hatchway)


def test_an_unknown_name_is_refused() -> None:
    """A misspelt name is an AttributeError that lists what there is."""
    with pytest.raises(AttributeError, match=r"'train'; it has Bundle, .*train_run"):
        _ = hatchway.train


def test_the_front_door_is_light() -> None:
    """Importing the package imports nothing heavy."""
    code = "import sys, hatchway; print(*{'torch', 'polars', 'numpy', 'faiss', 'pydantic'} & sys.modules.keys())"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""
