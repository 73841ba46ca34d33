"""Every command has help, is documented, answers at once, and takes what all commands take."""

import importlib.util
import inspect
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hatchway.cli.main import app

REPOSITORY = Path(__file__).parents[2]
COMMANDS = [str(command.name) for command in app.registered_commands]
PROGRAM = Path(sys.executable).with_name("hatchway")


def generator() -> ModuleType:
    """Load docs/generate_cli.py."""
    spec = importlib.util.spec_from_file_location("generate_cli", REPOSITORY / "docs" / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, hatchway: Callable[..., Any]) -> None:
    """``hatchway COMMAND --help`` prints its usage on stdout and ends with 0; so does ``-h``."""
    ended = hatchway(command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: hatchway {command} ")
    assert hatchway(command, "-h").out == ended.out


def test_the_installed_program_lists_its_commands() -> None:
    """The program that pip installs starts, and lists every command with a line that is not cut short."""
    shown = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=1) for line in shown.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert [name for name, _ in lines] == COMMANDS
    assert not [line for _, line in lines if line.endswith("...")]


def test_the_document_is_fresh() -> None:
    """docs/cli.md says what the commands say; after a change: python docs/generate_cli.py."""
    written = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == generator().document(), "stale; run: .venv/bin/python docs/generate_cli.py"
    for command in COMMANDS:
        assert f"## hatchway {command}\n" in written


def test_a_stale_document_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text changes when a command's help does."""
    module = generator()
    before = module.document()
    monkeypatch.setattr(app.registered_commands[0], "help", "Something else.")
    assert module.document() != before


@pytest.mark.parametrize("command", app.registered_commands, ids=COMMANDS)
def test_shared_options(command: Any) -> None:
    """Every command ends with --json and --quiet, and every other parameter says what it is."""
    parameters = list(inspect.signature(command.callback).parameters.values())
    assert [parameter.name for parameter in parameters[-2:]] == ["json", "quiet"]
    assert all(parameter.default is False for parameter in parameters[-2:])
    for parameter in parameters:
        _, shown = typing.get_args(parameter.annotation)
        assert shown.help, f"{parameter.name} has no help"


def test_help_needs_nothing_heavy() -> None:
    """The program loads without torch, polars, faiss or matplotlib, so that help and mistakes answer at once."""
    code = (
        "import sys, hatchway.cli.main\n"
        "print(*sorted({'torch', 'polars', 'faiss', 'matplotlib', 'numpy', 'fastapi'} & sys.modules.keys()))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""
