"""``hatchway report``: one run as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run that was evaluated (hatchway evaluate RUN).")],
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the report of a run.

    RUN/report.html is one file that needs nothing from elsewhere: the figures with their intervals beside the
    baselines, the slices, a few rows as the model fills them, the training curve, what the negatives were and what was
    masked, and every setting.
    """
    begin(quiet)
    from hatchway.report.page import write_report

    target = write_report(path)
    emit({"report": str(target)}, f"report: {target}", json)
