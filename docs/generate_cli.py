"""Writes docs/cli.md from the commands' own help: ``python docs/generate_cli.py``; a test says when it is stale."""

from pathlib import Path

from typer.testing import CliRunner

from hatchway.cli.main import app

TARGET = Path(__file__).with_name("cli.md")

HEAD = """# The command line

Written by `python docs/generate_cli.py` from the commands' own help. Results go to stdout, progress and logs to stderr;
every command has `--json` and `--quiet`.
"""


def help_of(*command: str) -> str:
    """Return what ``hatchway COMMAND --help`` prints on a terminal of 80 columns or more."""
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="hatchway", env={"COLUMNS": "100"})
    if shown.exit_code:
        raise RuntimeError(f"hatchway {' '.join(command)} --help ended with {shown.exit_code}: {shown.output}")
    return shown.stdout.strip()


def commands() -> list[str]:
    """List the commands in the order of the program."""
    return [str(command.name) for command in app.registered_commands]


def document() -> str:
    """Return the text of docs/cli.md."""
    sections = [f"## hatchway\n\n```text\n{help_of()}\n```"]
    sections += [f"## hatchway {name}\n\n```text\n{help_of(name)}\n```" for name in commands()]
    return "\n".join([HEAD, "\n\n".join(sections), ""])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
