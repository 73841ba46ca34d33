"""Yesterday's model, opened for today's log; or the reason why it is not asked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pydantic
import torch

from hatchway.artefacts.manifest import sha256_of
from hatchway.data.contexts import Contexts
from hatchway.data.days import day_name
from hatchway.data.engagements import Int64, last_training_day
from hatchway.data.log import Log
from hatchway.errors import ArtefactError, HatchwayError
from hatchway.index.bundle import Bundle, is_bundle
from hatchway.index.model_bundle import ServedTower, tower_of
from hatchway.progress import note
from hatchway.training.mining.mine import Earlier, Judge
from hatchway.training.mining.queries import ModelQueries, Reads
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.run_folder import BUNDLE, RunFolder

SkipReason = Literal[
    "missing", "damaged", "other_weights", "other_catalogue", "undated", "too_old", "later_data", "low_recall", "judge"
]
"""Why nothing is mined: no index is there; it is not what its manifest says; it was made of other weights, or of
another catalogue; nobody knows how old it is; it is too old; it has learned from what came after this log's training
part; it finds too little; the judge cannot be asked."""


@dataclass(frozen=True)
class Skipped:
    """Nothing is mined.

    Attributes:
        reason: one word, for programs.
        message: one sentence with the remedy, for people.
    """

    reason: SkipReason
    message: str


class EarlierFacts(pydantic.BaseModel):
    """What is known of the index that was asked.

    Attributes:
        digest: of its bundle.
        kind, vectors: of the index.
        recall, recall_at: as measured when it was built.
        day: of the last engagement that its model learned from, None where its log had no times.
        age_days: how many days that is before this log's last training engagement.
        step: of its weights, where the bundle says so.
        common_items: how many items it shares with this log.
        buyers: whether the buyers' own vectors are asked.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    digest: str
    kind: str
    vectors: int
    recall: float | None
    recall_at: int
    day: str | None
    age_days: int | None
    step: int | None
    common_items: int
    buyers: bool


def open_earlier(path: Path, log: Log, settings: MiningSettings) -> tuple[Earlier, EarlierFacts] | Skipped:
    """Open an earlier model for mining, if it can be believed.

    Args:
        path: a bundle, or a run or other folder with a bundle in it. Of a run the buyers' own vectors are asked, too,
            where its model has any; a bundle knows no buyers.
        log: what will be trained on.
        settings: how old, and how forgetful, an index may be.
    """
    try:
        bundle = _bundle_at(path)
        if bundle is None:
            return Skipped("missing", f"{path} has no bundle to mine with; make one with: hatchway index RUN")
        refusal = _of_its_run(bundle, path) or _of_its_time(bundle, log, settings) or _of_its_recall(bundle, settings)
        if refusal is not None:
            return refusal
        there = bundle.catalogue.rows(log.catalogue.ids)
        common = int((there >= 0).sum())
        if not common:
            return Skipped("other_catalogue", f"{path} shares no item with this log: it is of another catalogue")
        earlier, buyers = _opened(bundle, path, log, there)
    except ArtefactError as error:
        return Skipped("damaged", str(error))
    index, step = bundle.manifest.index, bundle.manifest.origin.get("step")
    return earlier, EarlierFacts(
        digest=bundle.digest,
        kind=index.kind,
        vectors=index.vectors,
        recall=index.recall,
        recall_at=index.recall_at,
        day=_day_of(bundle),
        age_days=_age(bundle, log),
        step=step if isinstance(step, int) else None,
        common_items=common,
        buyers=buyers,
    )


def open_judge(path: Path, log: Log) -> Judge | Skipped:
    """Open a stronger model as a judge: it scores with its own queries and its own item vectors.

    Args:
        path: as for :func:`open_earlier`; how old it is and how well its index finds does not matter.
        log: what will be trained on.
    """
    anything = MiningSettings(max_index_age_days=10**6, min_recall=0)
    found = open_earlier(path, log, anything)
    if isinstance(found, Skipped):
        return Skipped("judge", f"the judge: {found.message}")
    return scores_of(found[0])


def scores_of(earlier: Earlier) -> Judge:
    """Return an earlier model as a scorer of pairs of a row and an item; NaN where it does not know one of them."""

    def scores(rows: Int64, items: Int64) -> npt.NDArray[np.floating]:
        distinct, places = np.unique(rows, return_inverse=True)
        queries = earlier.queries.vectors(distinct)[places].astype(np.float64)
        there = earlier.there[items]
        known = (there >= 0) & (earlier.queries.groups(distinct) >= 0)[places]
        products = np.einsum("pd,pd->p", queries, earlier.vectors[np.maximum(there, 0)])
        return np.where(known, products, np.nan)

    return scores


def _bundle_at(path: Path) -> Bundle | None:
    """Open the bundle at a path, or in the folder there; None where nothing looks like one.

    Raises:
        ArtefactError: there is one, and it is damaged, its manifest lost or unreadable included.
    """
    places = (path, path / BUNDLE)
    for place in (*filter(is_bundle, places), *filter(_has_vectors, places)):
        return Bundle.open(place)
    return None


def _has_vectors(place: Path) -> bool:
    """Say whether a folder without a manifest was a bundle: no other folder has item vectors."""
    return (place / "item_vectors.safetensors").is_file()


def _of_its_run(bundle: Bundle, path: Path) -> Skipped | None:
    """Refuse a bundle in a run that has other weights by now, or another store."""
    if not (path / "run.json").is_file() or bundle.path == path:
        return None
    run, said = RunFolder.open(path), bundle.manifest.origin
    weights = run.model_folder / "weights.safetensors"
    remedy = f"make the bundle again: hatchway index {path}"
    if not weights.is_file() or said.get("weights") != sha256_of(weights):
        return Skipped("other_weights", f"{bundle.path} was made of other weights than {path} has; {remedy}")
    if said.get("store") != run.record.store_digest:
        return Skipped("other_catalogue", f"{bundle.path} was made of another store than {path}; {remedy}")
    return None


def _of_its_time(bundle: Bundle, log: Log, settings: MiningSettings) -> Skipped | None:
    """Refuse what is too old, or knows what came later. Days are days of the data; no clock is asked."""
    last = last_training_day(log.engagements)
    if last is None:
        return None
    age, today = _age(bundle, log), day_name(last)
    if age is None:
        return Skipped(
            "undated",
            f"{bundle.path} does not say of which day its data are, so nobody knows how old it is; make it again "
            "from a log with times: hatchway index RUN",
        )
    if age < 0:
        return Skipped(
            "later_data",
            f"{bundle.path} has learned from engagements of {_day_of(bundle)}, after the last of this training part "
            f"({today}): its neighbours know what is to be found out; name an earlier one",
        )
    if age > settings.max_index_age_days:
        return Skipped(
            "too_old",
            f"the data of {bundle.path} end on {_day_of(bundle)}, {age} days before this training part ({today}); "
            f"mining.max_index_age_days = {settings.max_index_age_days}; name a newer one, or allow more days",
        )
    return None


def _of_its_recall(bundle: Bundle, settings: MiningSettings) -> Skipped | None:
    """Refuse an index that finds too little, or of which nobody knows."""
    index = bundle.manifest.index
    if not settings.min_recall or (index.recall is not None and index.recall >= settings.min_recall):
        return None
    found = "was never measured" if index.recall is None else f"is {index.recall:.4f}"
    return Skipped(
        "low_recall",
        f"the recall@{index.recall_at} of {bundle.path} {found}; mining.min_recall = {settings.min_recall}: its ranks "
        "are not those of the scores; build a better one: hatchway index RUN --recall-target",
    )


def _opened(bundle: Bundle, path: Path, log: Log, there: Int64) -> tuple[Earlier, bool]:
    """Put the parts together; say whether buyers are asked."""
    here = np.full(bundle.manifest.items, -1, np.int64)
    here[there[there >= 0]] = np.flatnonzero(there >= 0)
    served = tower_of(bundle)
    context = served.settings.model.context
    tower: Callable[[Contexts], torch.Tensor] | None = served.tower
    buyers = None
    of_run = _run_that_knows_buyers(path, served)
    if of_run is not None:
        its_log = of_run.log()
        tower, buyers = of_run.load_model(its_log).query, its_log.buyers.rows(log.buyers.ids)
    reads = Reads(buyer=buyers is not None)
    if served.settings.model.kind == "context":
        reads = Reads(buyers is not None, context.query_item, context.text, context.history, context.history_of)
    queries = ModelQueries(log.engagements, tower, reads, bundle.vectors, there, buyers, served.known)
    return Earlier(bundle.index.search, bundle.vectors, here, there, queries), buyers is not None


def _run_that_knows_buyers(path: Path, served: ServedTower) -> RunFolder | None:
    """Open the run at a path where its model has vectors of buyers, and its log still says whose they are."""
    model = served.settings.model
    if not (model.kind == "factorisation" or model.context.buyer):
        return None
    what = "buyers' own vectors are not asked, as they are not when a bundle is served"
    if not (path / "run.json").is_file():
        note(f"mining: {path} does not say which buyers its model knows; {what}")
        return None
    run = RunFolder.open(path)
    try:
        run.store()
    except HatchwayError as error:
        note(f"mining: {error}; {what}")
        return None
    return run


def _day_of(bundle: Bundle) -> str | None:
    day = bundle.manifest.origin.get("day")
    return day if isinstance(day, str) else None


def _age(bundle: Bundle, log: Log) -> int | None:
    """Return how many days the data of a bundle end before the training part of a log."""
    day, last = _day_of(bundle), last_training_day(log.engagements)
    if day is None or last is None:
        return None
    return last - int(np.datetime64(day, "D").astype(np.int64))
