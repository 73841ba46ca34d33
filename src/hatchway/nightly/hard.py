"""Hard negatives of a night: mined with yesterday's index, or the reason why not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.nightly.alarms import above
from hatchway.nightly.material import Bools, Material
from hatchway.nightly.repair import has_its_manifest, repaired
from hatchway.progress import note
from hatchway.screening.screen import Screen
from hatchway.training.mining.earlier import EarlierFacts, Skipped, open_earlier
from hatchway.training.mining.mine import Earlier, mine
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings

MINED = "mined.safetensors"


def mine_night(material: Material, bundle: Path | None, work: Path, crowd: float | None) -> dict[str, Any]:
    """Mine hard negatives for the positives of the night, or say why there are none.

    A bundle that is not what was published is mended from what lies beside it, where that gives the same bytes.

    Args:
        material: what the night works with.
        bundle: yesterday's bundle; None on the first night.
        work: the folder of the night's working files.
        crowd: as for the training.
    """
    if bundle is None or material.previous is None:
        return {"mined": False, "skipped": "first", "message": "there is no index yet"}
    recipe = material.recipe
    if not recipe.negatives.mined:
        return {"mined": False, "skipped": "off", "message": "negatives.mined is 0"}
    log = material.training_log(crowd)
    age = material.day - material.previous.manifest.day
    opened = _opened(bundle, log, recipe.mining)
    mended = False
    if _is_damaged(opened) and repaired(bundle, recipe.nightly.index):
        mended, opened = True, _opened(bundle, log, recipe.mining)
    alarms = [
        above(
            "index_age_days",
            float(age),
            float(recipe.mining.max_index_age_days),
            "days between the day and the index that is mined with",
            "nothing is mined; training falls back to in-batch and uniform negatives",
        ),
        above(
            "index_damaged",
            float(mended or _is_damaged(opened)),
            0.0,
            "whether yesterday's bundle is not what was published",
            "it was mended from what lies beside it, to the same bytes"
            if mended
            else "nothing is mined; training falls back to in-batch and uniform negatives",
        ),
    ]
    found: dict[str, Any] = {"index_age_days": age, "mended": mended}
    if isinstance(opened, Skipped):
        note(f"nothing is mined: {opened.message}")
        facts = {"mined": False, "skipped": opened.reason, "message": opened.message}
        return found | facts | {"alarms": [alarm.model_dump(mode="json") for alarm in alarms]}
    earlier, about = opened
    rows = log.engagements.positives(Part.TRAIN)
    rules = RowFilter(log.engagements, recipe.screening.engaged_days, material.offered, material.screen)
    result = mine(earlier, rows, rules, recipe.mining, material.seed)
    leaks = leaked(result, log, material.watched)
    share = max(leaks.values(), default=0.0)
    used = share <= recipe.nightly.most_leaked
    alarms.append(
        above(
            "leak_share",
            share,
            recipe.nightly.most_leaked,
            "share of mined negatives that look like the positive: its seller, or a near-identical photo",
            "they are not used tonight",
        )
    )
    if used:
        table = result.table(len(log.engagements))
        with replacing_file(work / MINED) as partial:
            safetensors.numpy.save_file({"begin": table.begin, "end": table.end, "items": table.items}, partial)
    figures = result.figures(recipe.negatives.mined)
    return found | {
        "mined": used,
        "skipped": None if used else "leaks",
        "message": None if used else f"{share:.1%} of what was mined looks like its positive",
        "recall": about.recall,
        "positives": figures.positives,
        "queries": figures.queries,
        "per_positive": figures.effective_per_positive if used else 0.0,
        "short": figures.short,
        "refused": figures.refused,
        "leaks": leaks,
        "alarms": [alarm.model_dump(mode="json") for alarm in alarms],
    }


def _opened(bundle: Path, log: Log, settings: MiningSettings) -> tuple[Earlier, EarlierFacts] | Skipped:
    """Open yesterday's bundle for mining, if it is there and is the one that was published."""
    back = f"to serve an earlier night: hatchway rollback {bundle.parent.parent}"
    if not has_its_manifest(bundle):  # first: what another manifest says of its age or recall is not to be believed
        return Skipped("damaged", f"{bundle} has no manifest, or not the one that was published; {back}")
    opened = open_earlier(bundle, log, settings)
    if isinstance(opened, Skipped) and opened.reason == "damaged":
        return Skipped("damaged", f"{opened.message.partition('; ')[0]}; {back}")
    return opened


def _is_damaged(opened: tuple[Earlier, EarlierFacts] | Skipped) -> bool:
    return isinstance(opened, Skipped) and opened.reason == "damaged"


def mined_table(facts: Mapping[str, Any], work: Path) -> RowTable | None:
    """Read back what was mined; None where nothing was, or it is not used."""
    if not facts["mined"]:
        return None
    arrays = safetensors.numpy.load_file(work / MINED)
    return RowTable(arrays["begin"], arrays["end"], arrays["items"])


def leaked(mined: Mined, log: Log, screen: Screen) -> dict[str, float]:
    """Return which share of what was mined looks like its positive all the same, by what shows it.

    It is measured on what came through the filter, and does not ask what the filter looked for.

    Args:
        mined: what was mined.
        log: its log.
        screen: knows sellers and photos, whatever the settings of the filter.
    """
    stand = np.flatnonzero(mined.reasons == 0)
    places = np.repeat(np.arange(len(mined)), np.diff(mined.offsets))[stand]
    negatives = mined.items[stand].astype(np.int64)
    positives = log.engagements.items[mined.rows[places]].astype(np.int64)
    found: dict[str, float] = {}
    if screen.sellers is not None:
        mine = screen.sellers[positives]
        found["seller"] = _share((mine >= 0) & (mine == screen.sellers[negatives]))
    if screen.photos is not None:
        found["photo"] = _share(screen.photos.contains(positives, negatives))
    return found


def _share(flags: Bools) -> float:
    return float(flags.mean()) if len(flags) else 0.0
