"""The examples run as they stand, warnings as errors, and each makes a model better than it was and than popularity."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# What an example needs beside Hatchway, and the warnings of other people's code that are let through, one by one.
NEEDS: dict[str, tuple[str, ...]] = {
    "plain_loop": (),
    "lightning_module": ("lightning",),
    "sentence_transformers_loss": ("sentence_transformers", "datasets", "accelerate"),
}
IGNORED: dict[str, tuple[str, ...]] = {
    "plain_loop": (),
    # Lightning writes PyTorch's old name for the leaf of a tree.
    "lightning_module": ("`isinstance(treespec, LeafSpec)` is deprecated",),
    "sentence_transformers_loss": (),
}


def test_every_example_is_run() -> None:
    """A file in examples/ is an example, or the shop that they share."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NEEDS, "small_shop"}
    assert NEEDS.keys() == IGNORED.keys()


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """It ends well, leaves nothing behind, and says a recall that rose from a tenth to more than popularity's .396."""
    for needed in NEEDS[name]:
        if find_spec(needed) is None:
            pytest.skip(f"needs {needed}; pip install 'hatchway[examples]'")
    warnings = [part for ignored in IGNORED[name] for part in ("-W", f"ignore:{ignored}")]
    ended = subprocess.run(
        [sys.executable, "-W", "error", *warnings, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = {
        label: float(value) for label, value in re.findall(r"^recall@10, (\w+): +([\d.]+)$", ended.stdout, re.MULTILINE)
    }
    assert said["untrained"] < 0.15
    assert said["trained"] > 0.45
    assert said.get("popularity", 0.396) == 0.396
    assert list(tmp_path.iterdir()) == []
