"""The example of docs/losses.md runs as it stands, and every loss of the package has its line in the table."""

import ast
import re
from pathlib import Path
from typing import Any

import torch

REPOSITORY = Path(__file__).parents[2]
DOCUMENT = (REPOSITORY / "docs" / "losses.md").read_text("utf-8")


def test_the_example_runs() -> None:
    """Both towers get a gradient, and the exact loss is of the same size as the sampled one."""
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        exec(compile(block, "docs/losses.md", "exec"), names)  # noqa: S102
    assert float(names["encoder"][0].weight.grad.abs().sum()) > 0
    assert names["exact"].dtype == torch.float64
    assert 0.5 < float(names["loss"].detach()) / float(names["exact"]) < 2


def test_every_loss_is_in_the_table() -> None:
    """A public function that takes a query and a reduction is a loss, and the table names it with its module."""
    rows = {
        name: module
        for names, module in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `losses\.(\w+)`", DOCUMENT, re.MULTILINE)
        for name in re.findall(r"\w+", names)
    }
    found = {}
    for path in (REPOSITORY / "src" / "hatchway" / "losses").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                arguments = {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
                if {"query", "reduction"} <= arguments:
                    found[node.name] = path.stem
    assert rows == found
