"""``hatchway rollback``: serve an earlier night again."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit


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
    from hatchway.nightly.pointer import current, roll_back

    with alone_in(nights, "filled"):
        served = current(nights)
        now = roll_back(nights, to)
    before = None if served is None else served.name
    emit(
        {"nights": str(nights), "served": now, "before": before}, f"{nights}: {now} is served, before it {before}", json
    )
