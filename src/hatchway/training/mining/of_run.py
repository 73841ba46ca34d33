"""The mined set of a run: mined once, kept in the run's folder, and read again when the run is resumed."""

from pathlib import Path

import pydantic

from hatchway.artefacts.atomic import write_text
from hatchway.artefacts.manifest import sha256_of
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import ArtefactError, SettingsError
from hatchway.training.mining.mine_log import MiningRecord, Wanted, mine_log
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.mined_set import read_mined, write_mined
from hatchway.training.run_folder import RunFolder, relative_to_run

SET, RECORD = "mined.parquet", "mining.json"


class RunMining(pydantic.BaseModel):
    """What ``mining.json`` of a run says.

    Attributes:
        record: how the mining went.
        from_step: the step from which the mined set is used.
        set_sha256: of ``mined.parquet``; empty where mining was skipped.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    record: MiningRecord
    from_step: int
    set_sha256: str = ""


def check_mining(wanted: Wanted, *, from_step: int, steps: int) -> None:
    """Refuse to mine what no step would use.

    Raises:
        SettingsError: the run uses no mined items, or ends before it would.
    """
    if not wanted.columns:
        raise SettingsError(
            "negatives.mined = 0 uses none of what is mined; set negatives.mined to 1 or more, or do not mine"
        )
    if from_step >= steps:
        raise SettingsError(
            f"mined items would be used from step {from_step:,} on, and the run has {steps:,}; train for more "
            "epochs, or lower mining.warm_up_epochs (0 begins with them)"
        )


def mining_models(
    there: RunFolder | None, out: Path, mine_from: Path | str | None, judge: Path | str | None
) -> tuple[str | None, str | None]:
    """Return with which earlier models a run mines, and is judged, relative to its folder.

    Args:
        there: the run that is continued, None for a new one.
        out: the run's folder.
        mine_from: what was asked for; None for what the run was begun with.
        judge: likewise.

    Raises:
        SettingsError: a run that is continued was begun with others.
    """
    now = [None if path is None else relative_to_run(Path(path), out) for path in (mine_from, judge)]
    if there is None:
        return now[0], now[1]
    begun = there.record.mine_from, there.record.mine_judge
    for name, was, told in zip(("--mine-from", "--mine-judge"), begun, now, strict=True):
        if told is not None and told != was:
            how = "without it" if was is None else f"with {was}"
            raise SettingsError(
                f"{out} is told {name} {told} (as seen from it) and was begun {how}; a resumed run must be the same "
                f"run: leave {name} out, or choose another --out"
            )
    return begun


def mined_of_run(folder: Path, log: Log, wanted: Wanted | None, from_step: int) -> RowTable | None:
    """Return the run's mined table, mining it where that was not done yet; None where there is none.

    The earlier model is asked once, whatever becomes of it afterwards: a resumed run has the same negatives.

    Args:
        folder: the run's.
        log: what it trains on.
        wanted: what is to be mined, None for nothing.
        from_step: the step from which it will be used.

    Raises:
        ArtefactError: what was mined is damaged.
    """
    if wanted is None:
        return None
    if (folder / RECORD).exists():
        mined, _ = kept_mining(folder)
    else:
        mined, record = mine_log(log, wanted)
        about = RunMining(record=record, from_step=from_step)
        if mined is not None:
            write_mined(folder / SET, mined)
            about = about.model_copy(update={"set_sha256": sha256_of(folder / SET)})
        write_text(folder / RECORD, about.model_dump_json(indent=1) + "\n")  # the last: where it is, mining is done
    return None if mined is None else mined.table(len(log.engagements))


def kept_mining(folder: Path) -> tuple[Mined | None, RunMining]:
    """Read what a run mined.

    Raises:
        ArtefactError: it is missing or damaged.
    """
    try:
        about = RunMining.model_validate_json((folder / RECORD).read_bytes())
    except (OSError, pydantic.ValidationError) as error:
        raise ArtefactError(
            f"{folder / RECORD} is missing, damaged or of another version ({error}); train again"
        ) from None
    if not about.set_sha256:
        return None, about
    path = folder / SET
    if not path.is_file() or sha256_of(path) != about.set_sha256:
        raise ArtefactError(
            f"{path} is not the file that was written; a run cannot go on with other negatives: train again"
        )
    return read_mined(path), about
