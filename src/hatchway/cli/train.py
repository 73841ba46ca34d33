"""``hatchway train``: from a store to a run folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit
from hatchway.errors import UsageError


def run(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to train on (made by: hatchway import).")],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to write.")],
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings of the run, a TOML file; the defaults without.")
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One setting over the recipe's, e.g. training.epochs=3. Repeatable."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the run in OUT from its newest checkpoint, bit for bit, by its own settings."
        ),
    ] = False,
    mine_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Mine hard negatives with the bundle of an earlier run, or with a bundle (docs/mining.md).",
        ),
    ] = None,
    mine_judge: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="A stronger run or bundle that refuses mined items as good as the positive."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a two-tower model and write its run folder.

    The folder holds the settings, the checkpoints, the curves (tensorboard --logdir OUT/curves), the log and the model.
    A run that was interrupted continues with --resume and ends with the same weights as one that was not.

    With --mine-from an earlier model's near misses join the negatives after a warm-up; settings [mining] say which.
    Where it cannot be used, the run is trained without them: OUT/mining.json has the reason.
    """
    begin(quiet)
    check_place(out, f"--out {out}")
    if mine_judge is not None and mine_from is None and not resume:
        raise UsageError("--mine-judge refuses what is mined; say what to mine with, too: --mine-from RUN")
    from hatchway.config import load_recipe
    from hatchway.job import train_run
    from hatchway.progress import note
    from hatchway.training.memory import keep_freed_memory
    from hatchway.training.mining.of_run import kept_mining

    keep_freed_memory()
    if resume and recipe is None and not assign and (out / "settings.toml").is_file():
        recipe = out / "settings.toml"  # what the run was begun with need not be said again
    try:
        folder = train_run(
            store,
            out,
            load_recipe(recipe, assign or ()),
            resume=resume,
            mine_from=mine_from,
            mine_judge=mine_judge,
        )
    except KeyboardInterrupt:
        note(f"kept up to the last checkpoint; continue with: hatchway train {store} --out {out} --resume")
        raise
    about = folder.model_record()
    mining = kept_mining(out)[1] if folder.record.mine_from is not None else None
    payload: dict[str, object] = {
        "run": str(out),
        "step": about.step,
        "loss": about.loss,
        "validation": list(about.validation),
        "items": about.items,
        "buyers": about.buyers,
        **({} if mining is None else {"mining": mining}),
    }
    lines = [
        f"trained {out}: the weights of step {about.step:,} are kept; mean training loss at the end {about.loss:.4f}",
        *validation_line(about.validation, about.step),
        *([] if mining is None else [mining.record.said()]),
        f"next: hatchway evaluate {out}",
    ]
    emit(payload, "\n".join(lines), json)


def validation_line(history: Sequence[Mapping[str, float]], kept: int) -> list[str]:
    """Write the validation of the weights that were kept: with ``training.select`` best that is seldom the last one.

    Where those weights were never validated, it is the last validation before them, and the line names its step.

    >>> validation_line([{"step": 5, "recall@20": 0.27}, {"step": 10, "recall@20": 0.2}], kept=5)
    ['validation of step 5: recall@20 0.2700']
    """
    known = [judged for judged in history if judged["step"] <= kept]
    if not known:
        return []
    scores = ", ".join(f"{name} {value:.4f}" for name, value in known[-1].items() if name != "step")
    return [f"validation of step {known[-1]['step']:,.0f}: {scores}"]
