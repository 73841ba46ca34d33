"""``hatchway report``: one run, or the nights of a folder, as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit


def run(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run that was evaluated (hatchway evaluate RUN), or a folder of nights."),
    ],
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the report of a run, or the page of the nights.

    RUN/report.html is one file that needs nothing from elsewhere: the figures with their intervals beside the
    baselines, the slices, a few rows as the model fills them, the training curve, what the negatives were and what was
    masked, and every setting.

    Of a folder of nights NIGHTS/nights.html shows how each night ended, and what was watched: the honest number by
    slice, the age of index and sketch, leaks, negatives, and what the gate said.
    """
    begin(quiet)
    from hatchway.nightly.page import write_page
    from hatchway.nightly.pointer import night_folders
    from hatchway.report.page import write_report

    of_nights = path.is_dir() and not (path / "run.json").exists() and bool(night_folders(path))
    target = write_page(path) if of_nights else write_report(path)
    emit({"report": str(target)}, f"report: {target}", json)
