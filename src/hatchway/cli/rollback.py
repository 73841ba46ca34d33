"""``hatchway rollback``: serve an earlier night again."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit
from hatchway.errors import UsageError


def run(
    nights: Annotated[Path, typer.Argument(metavar="NIGHTS", help="Folder of the nights.")],
    to: Annotated[
        str | None, typer.Option(metavar="DAY", help="The night to serve. [default: the published one before]")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go back to an earlier night.

    The link NIGHTS/current moves back in one step, and a server that follows it answers from that night's bundle. The
    nights after it are withdrawn: the next night goes on from the one that is served, and a withdrawn day is run anew.
    """
    begin(quiet)
    from hatchway.artefacts.alone import alone_in
    from hatchway.nightly.pointer import pointed_at, roll_back

    if not nights.is_dir():
        what = "a file" if nights.exists() else "not there"
        raise UsageError(f"{nights} is {what}; name a folder of nights, as hatchway nightly makes them")
    with alone_in(nights, "filled"):
        before = pointed_at(nights)
        now = roll_back(nights, to)
    emit(
        {"nights": str(nights), "served": now, "before": before}, f"{nights}: {now} is served, before it {before}", json
    )
