"""Runs on public data: what is read, how a model is trained on it, and what is measured of it.

Sequences (Amazon Beauty, MovieLens-1M) are split leave-one-out: the last item of every buyer is what the model is asked
for, among all items but those of the buyer's own sequence. MIND's impressions are parted at random, a fifth for the
test, anew for every seed: of a sample that is drawn from six days, four clicks in five on the last day are on articles
that nobody clicked before, about which a model that knows articles by their ids alone can say nothing.
"""

import gzip
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import polars as pl
import torch
from torch import Tensor

from hatchway.artefacts.atomic import write_text
from hatchway.config import RunSettings, load_recipe
from hatchway.data.contexts import contexts_of
from hatchway.data.engagements import Part, training_counts
from hatchway.data.importers.mind import import_mind
from hatchway.data.importers.sequences import import_sequences
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.store import Store, write_store
from hatchway.evaluation.baselines import baseline_ranks
from hatchway.evaluation.cases import Cases, cases_for
from hatchway.evaluation.metrics import recall
from hatchway.evaluation.ranking import rank_by_item, rank_cases
from hatchway.evaluation.ranks import Ranks
from hatchway.evaluation.scoring import TowerScorer
from hatchway.evaluation.slices import POPULARITY, popularity_classes
from hatchway.losses.full_softmax import full_softmax
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.ledger import Ledger
from hatchway.negatives.queue import Queue
from hatchway.negatives.settings import NegativesSettings
from hatchway.randomness import stream
from hatchway.towers.build import build_model
from hatchway.towers.two_tower import TwoTower
from hatchway.training import loop
from hatchway.training.batches import Batch
from hatchway.training.fitting import fitting_model
from hatchway.training.loop import train

RECIPE = Path(__file__).parent.parent / "recipes" / "ml-1m.toml"
K, ASKED = 20, 1_000
"""The length of a row; the cases that rows and scores are looked at for."""

LAST = 30
"""Of MovieLens-1M, the ratings of each buyer that are used, counted from the last."""

BATCH, UNIFORM, EPOCHS = 1024, 1000, 2
"""About 300 steps: little, so that all variants with five seeds take half an hour of one core."""

BUYERS = 10_000
"""The test items of the first so many buyers of Amazon Beauty are asked for."""


@dataclass(frozen=True)
class Variant:
    """What a run differs in from all others.

    Attributes:
        negatives: changes to ``[negatives]``; the recipe has in-batch and uniform ones.
        training, model: changes to these tables.
        full: train by the exact softmax over the whole catalogue instead.
        around: within which the run is trained, for what settings cannot say.
    """

    negatives: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    full: bool = False
    around: Callable[[], AbstractContextManager[None]] | None = None

    def settings(self, split: str, training: Mapping[str, Any], seed: int) -> RunSettings:
        """Return the complete settings of a run on data that are split so, and trained on so."""
        table = load_recipe(RECIPE).model_dump(mode="json")
        context = table["model"]["context"] | {"history": 20, "hidden": 64}  # as experiments/schedule cuts the recipe
        table["seed"] = seed
        table["split"] = {"protocol": split}
        table["model"] |= {"dimension": 32, "context": context} | dict(self.model or {})
        table["negatives"] |= {"uniform": UNIFORM, "mined": 0} | dict(self.negatives or {})
        table["training"] |= {"batch": BATCH, "epochs": EPOCHS, "validate_epochs": 0, "select": "last", "auc_pairs": 0}
        table["training"] |= {"checkpoint_steps": 10**9} | dict(training) | dict(self.training or {})
        return RunSettings.parse(table)


@dataclass(frozen=True)
class PublicData:
    """A public data set and what is trained on it.

    Attributes:
        source: the folder of public data.
        work: the folder that keeps what was made.
        short: a small part of it only.
    """

    source: Path
    work: Path
    short: bool

    name: ClassVar[str]
    split: ClassVar[str] = "leave-one-out"
    training: ClassVar[Mapping[str, Any]] = {}

    def path(self) -> Path:
        """Return the file or folder that is read."""
        raise NotImplementedError

    def there(self) -> bool:
        """Whether it can be read."""
        return self.path().exists()

    def store(self, seed: int) -> Store:
        """Return the store of a seed."""
        raise NotImplementedError

    def log(self, seed: int, *, impressions: bool = False) -> Log:
        """Return the log of a seed."""
        settings = self.settings(Variant(), seed)
        return build_log(self.store(seed), settings.positives, settings.split, seed, impressions=impressions)

    def measures(self, name: str, variant: Variant, seed: int) -> dict[str, float]:
        """Return what was measured of a variant, trained now if it was not before."""
        settings = self.settings(variant, seed)
        kept = self.kept(name, seed)
        if kept.exists() and (found := json.loads(kept.read_text()))["settings"] == settings.model_dump(mode="json"):
            return {measure: float(value) for measure, value in found["measures"].items()}
        log = log_of(self, seed, impressions=settings.negatives.impressions > 0)
        with variant.around() if variant.around else nullcontext():
            model, seconds = trained(log, settings, full=variant.full)
        scorer = TowerScorer(model, len(log.catalogue), model.history_length)
        ranks, measured = self.measured(log, scorer, settings.training.temperature, seed)
        measured["seconds"] = seconds
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept.with_suffix(".npz"), offsets=ranks.offsets, better=ranks.better, tied=ranks.tied)
        found = {"settings": settings.model_dump(mode="json"), "measures": measured}
        write_text(kept, json.dumps(found, indent=1) + "\n")
        return measured

    def settings(self, variant: Variant, seed: int) -> RunSettings:
        """Return the settings of a variant on this data."""
        table = variant.settings(self.split, self.training, seed)
        if not self.short:
            return table
        return table.model_copy(update={"training": table.training.model_copy(update={"epochs": 1})})

    def kept(self, name: str, seed: int) -> Path:
        """Return where the measures of a variant are kept."""
        return self.work / self.name / f"{name}-{seed}.json"

    def ranks(self, name: str, variant: Variant, seed: int) -> Ranks:
        """Return where the test items stand in a variant's ranking."""
        self.measures(name, variant, seed)
        with np.load(self.kept(name, seed).with_suffix(".npz")) as found:
            return Ranks(found["offsets"], found["better"], found["tied"])

    def measured(self, log: Log, scorer: TowerScorer, temperature: float, seed: int) -> tuple[Ranks, dict[str, float]]:
        """Measure a trained model; return the ranks of the test items with it."""
        raise NotImplementedError


class Sequences(PublicData):
    """Sequences of items, leave-one-out."""

    last: ClassVar[int] = 0

    def store(self, seed: int) -> Store:
        """Return the store, which is the same for all seeds."""
        del seed
        path = self.work / self.name / "store"
        if not path.exists():
            with gzip.open(self.path(), "rt", encoding="utf-8") as lines, tempfile.TemporaryDirectory() as scratch:
                found: dict[str, list[str]] = {}
                for line in lines:
                    buyer, *items = line.split()
                    found.setdefault(buyer, []).extend(items)
                chosen = list(found.items())[: 1_500 if self.short else None]
                text = "\n".join(" ".join([buyer, *items[-self.last :]]) for buyer, items in chosen)
                write_text(Path(scratch) / "sequences.txt", text + "\n")
                import_sequences(Path(scratch) / "sequences.txt", path)
        return Store.open(path)

    def popularity(self, seed: int) -> Ranks:
        """Return where the test items stand when all are ranked by their training count."""
        log = self.log(seed)
        return baseline_ranks("popularity", asked(log), training_counts(log.engagements, len(log.catalogue)))

    def measured(self, log: Log, scorer: TowerScorer, temperature: float, seed: int) -> tuple[Ranks, dict[str, float]]:
        """Measure recall@20, of all and by training popularity; rows; and the score's slope on popularity.

        Returns:
            recall, recall_head, recall_torso, recall_tail, recall_new: of the test items, by the item's popularity;
            share_head, share_torso, share_tail, share_new: of the first 20, without what the buyer has; slope: of the
            score over the temperature on the logarithm of the training count, over items that have one.
        """
        del seed
        cases = asked(log)
        counts = training_counts(log.engagements, len(log.catalogue))
        classes = popularity_classes(counts, 1 / 3, 1 / 3)
        ranks = rank_cases(scorer, cases, log.engagements)
        found = {"cases": float(len(cases)), "recall": float(recall(ranks, K).mean())}
        for number, name in enumerate(POPULARITY):
            mine = classes[cases.relevant_items] == number
            if mine.any():
                found[f"recall_{name}"] = float(recall(ranks.only(mine)[0], K).mean())
        end = min(ASKED, len(cases))
        scores = scorer.scores(cases.contexts(log.engagements, 0, end, scorer.history_length)).clone()
        known = np.flatnonzero(counts > 0)
        popular = np.log(counts[known]) - np.log(counts[known]).mean()
        slopes = (scores[:, torch.from_numpy(known)].numpy() / temperature) @ popular / (popular @ popular)
        rows = np.repeat(np.arange(end), np.diff(cases.excluded_offsets[: end + 1]))
        out = cases.excluded_items[: cases.excluded_offsets[end]].astype(np.int64)
        scores[torch.from_numpy(rows), torch.from_numpy(out)] = -torch.inf
        top = classes[scores.topk(K, dim=1).indices.numpy()]
        shares = {f"share_{name}": float((top == number).mean()) for number, name in enumerate(POPULARITY)}
        return ranks, found | shares | {"slope": float(slopes.mean())}


class Beauty(Sequences):
    """Amazon Beauty, 5-core: 22,363 buyers, 12,101 items."""

    name = "Beauty"

    def path(self) -> Path:
        """Return the file."""
        return self.source / "amazon" / "Beauty.txt.gz"


class Films(Sequences):
    """The last thirty ratings of each buyer of MovieLens-1M: 6,040 buyers, 3,351 items."""

    name, last = "ML-1M", LAST

    def path(self) -> Path:
        """Return the file."""
        return self.source / "ml-1m" / "ml-1m_sasrec.txt.gz"


class News(PublicData):
    """5,000 impressions of MIND; clicks are positives, and what was read before is each buyer's history."""

    name, split, training = "MIND sample", "given", {"batch": 128, "epochs": 12}

    def path(self) -> Path:
        """Return the folder."""
        return self.source / "mind-sample"

    def store(self, seed: int) -> Store:
        """Return the store with a fifth of the impressions set aside."""
        path = self.work / self.name / f"store-{seed}"
        if not path.exists():
            with tempfile.TemporaryDirectory() as scratch:
                whole = import_mind(self.path(), Path(scratch) / "store")
                sessions = whole.events().select("session").drop_nulls().unique().collect()["session"].sort()
                aside = sessions.filter(stream(seed, "aside").random(len(sessions)) < 1 / 5)
                # In the test, what a buyer read before is known, as it is in training.
                of_test = pl.col("session").is_in(aside.implode()).fill_null(value=False)
                events = whole.events().with_columns(
                    pl.when(of_test).then(pl.lit("test")).otherwise(pl.lit("train")).alias("split")
                )
                write_store(path, events, whole.catalogue().frame)
        return Store.open(path)

    def log(self, seed: int, *, impressions: bool = False) -> Log:
        """Return the log, with what was read before as engagements that are not trained on, and what was shown."""
        del impressions
        read = PositivesSettings(events={"click": 1.0}, engagements=("view",))
        return build_log(self.store(seed), read, self.settings(Variant(), seed).split, seed, impressions=True)

    def slots(self, log: Log, buyers: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """Return, for each article that a test impression showed, its impression, buyer's place, item and click."""
        events = self.store(seed).events().filter(pl.col("split") == "test").collect()
        clicked = events.filter(pl.col("event") == "click").select("session", "item").unique()
        slots = events.filter(pl.col("event") == "impression").unique(["session", "item"], maintain_order=True)
        slots = slots.join(clicked.with_columns(clicked=True), on=["session", "item"], how="left").sort("session")
        places = np.full(len(log.buyers), -1)
        places[buyers] = np.arange(len(buyers))
        return (
            slots["session"].rank("dense").to_numpy(),
            places[log.buyers.rows(slots["buyer"])],
            log.catalogue.rows(slots["item"]),
            slots["clicked"].fill_null(value=False).to_numpy(),
        )

    def measured(self, log: Log, scorer: TowerScorer, temperature: float, seed: int) -> tuple[Ranks, dict[str, float]]:
        """Measure retrieval of the clicks of the test, and ranking on what was shown.

        Returns:
            recall: recall@20 of the clicked articles of each buyer, all articles candidates that the buyer does not
            have; recall_known: of those with a click in training; auc_random: the chance that a clicked article scores
            above any article; auc_shown: above one of the same impression that was not clicked, the mean over
            impressions; auc_trained: the same of impressions that were trained on.
        """
        del temperature
        cases, counts = asked(log), training_counts(log.engagements, len(log.catalogue))
        ranks = rank_cases(scorer, cases, log.engagements)
        scores = scorer.scores(cases.contexts(log.engagements, 0, len(cases), scorer.history_length)).numpy()
        found = of_news(ranks, cases, counts) | {"auc_shown": self.auc_shown(log, cases, scores, seed)}
        return ranks, found | {"auc_trained": auc_trained(log, scorer)}

    def auc_shown(self, log: Log, cases: Cases, scores: np.ndarray, seed: int) -> float:
        """Return the mean AUC over impressions, from the [cases, N] scores."""
        page, place, item, clicked = self.slots(log, cases.buyers, seed)
        own, found = scores[place, item], []
        for slots in np.split(np.arange(len(page)), np.flatnonzero(np.diff(page)) + 1):
            yes, no = own[slots][clicked[slots]], own[slots][~clicked[slots]]
            if len(yes) and len(no) and place[slots[0]] >= 0:
                found.append(float((yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2))
        return float(np.mean(found))

    def without_model(self, seed: int) -> dict[str, dict[str, float]]:
        """Measure two rankings of articles that are the same for everybody: by clicks, and by clicks a showing.

        Every article is given ten more showings, of which one in 25 was clicked, as of all showings.
        """
        log = self.log(seed)
        cases, counts = asked(log), training_counts(log.engagements, len(log.catalogue))
        events = self.store(seed).events().filter((pl.col("split") == "train") & (pl.col("event") == "impression"))
        shown = np.bincount(log.catalogue.rows(events.select("item").collect()["item"]), minlength=len(counts))
        found = {}
        for name, scores in (("clicks", counts.astype(float)), ("clicks a showing", (counts + 0.4) / (shown + 10))):
            ranks = rank_by_item(scores, cases)
            same = np.broadcast_to(scores, (len(cases), len(scores)))
            found[name] = of_news(ranks, cases, counts) | {"auc_shown": self.auc_shown(log, cases, same, seed)}
        return found


def auc_trained(log: Log, scorer: TowerScorer) -> float:
    """Return how often the click of a training impression scores above what was shown with it, of the first 1,000."""
    shown = log.impressions
    if shown is None:
        raise ValueError("the log was read without its impressions")
    rows = log.engagements.positives(Part.TRAIN)[:ASKED]
    scores = scorer.scores(contexts_of(log.engagements, rows, scorer.history_length)).numpy()
    found = []
    for place, row in enumerate(rows):
        others = scores[place, shown.items[shown.begin[row] : shown.end[row]]]
        own = scores[place, log.engagements.items[row]]
        if len(others):
            found.append(float((own > others).mean() + (own == others).mean() / 2))
    return float(np.mean(found))


def of_news(ranks: Ranks, cases: Cases, counts: np.ndarray) -> dict[str, float]:
    """Return what the ranks among all articles say."""
    known = counts[cases.relevant_items] > 0
    others = np.repeat(len(counts) - 1 - np.diff(cases.excluded_offsets), ranks.relevant)
    return {
        "cases": float(len(cases)),
        "recall": float(recall(ranks, K).mean()),
        "recall_known": float(recall(ranks.only(known)[0], K).mean()),
        "known": float(known.mean()),
        "auc_random": float((1 - (ranks.better + (ranks.tied - 1) / 2) / others).mean()),
    }


@lru_cache(maxsize=2)
def log_of(data: PublicData, seed: int, *, impressions: bool) -> Log:
    """Return the log of a seed, kept for the next variant."""
    return data.log(seed, impressions=impressions)


def asked(log: Log) -> Cases:
    """Return a case for every buyer of the test, of the first :data:`BUYERS`; what the buyer has is no candidate."""
    cases = cases_for(log.engagements, Part.TEST, grain="buyer", exclude_seen=True)
    end = min(BUYERS, len(cases))
    return Cases(
        cases.buyers[:end],
        cases.query_items[:end],
        cases.history_begin[:end],
        cases.history_end[:end],
        None,
        cases.relevant_offsets[: end + 1],
        cases.relevant_items[: cases.relevant_offsets[end]],
        cases.excluded_offsets[: end + 1],
        cases.excluded_items[: cases.excluded_offsets[end]],
    )


def trained(log: Log, settings: RunSettings, *, full: bool) -> tuple[TwoTower, float]:
    """Train a model; return it with the processor seconds that the training took."""
    made_of = fitting_model(settings.model, log)
    model = build_model(log.catalogue, len(log.buyers), made_of, settings.seed)
    negatives = settings.negatives
    if full:  # of the ledger nothing is used then
        negatives = NegativesSettings(in_batch=False, uniform=1, mined=0)
    exact = mock.patch.object(loop, "batch_loss", exact_loss) if full else nullcontext()
    with tempfile.TemporaryDirectory() as scratch, exact:
        start = time.process_time()
        train(model, log, Path(scratch), settings=settings.training, negatives=negatives, seed=settings.seed)
        seconds = time.process_time() - start
    return model.eval(), seconds


def exact_loss(
    model: TwoTower, loss: SampledSoftmax, batch: Batch, ledger: Ledger, hidden: Tensor | None, queue: Queue | None
) -> Tensor:
    """Return the mean loss of a batch by the exact softmax; what a buyer has counts for nothing, as when sampled."""
    del ledger, hidden, queue
    items = model.item(torch.arange(model.item_tower.own.weight.shape[0]))
    rows = torch.repeat_interleave(torch.arange(len(batch.positives)), batch.known_offsets.diff())
    masked = (rows, batch.known_items)
    return full_softmax(
        model.query(batch.contexts), items, batch.positives, temperature=loss.temperature, masked=masked
    )
