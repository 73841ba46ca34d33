"""AUCs at one random negative a positive: which pairs are asked, and what a model that knows the tastes has."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchway.data.contexts import Contexts
from hatchway.data.engagements import Part
from hatchway.data.log import Log
from hatchway.data.row_table import RowTable
from hatchway.errors import DataError
from hatchway.how_many.curves import read_run
from hatchway.how_many.estimator import ratio
from hatchway.negatives.settings import NegativesSettings
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings
from hatchway.towers.two_tower import TwoTower
from hatchway.training.aucs import AucMeter, AucPairs, auc_meter
from hatchway.training.loop import Validation, train
from hatchway.training.settings import TrainingSettings
from hatchway.training.sources import negatives_of


class Knowing(torch.nn.Module):
    """A model that scores an item by a table of buyers' tastes: [buyers, items]."""

    history_length, history_of, dimension = 4, "before", 40

    def __init__(self, taste: Tensor) -> None:
        super().__init__()
        self.taste = taste

    def query(self, contexts: Contexts) -> Tensor:
        """Return the buyer's row of tastes."""
        return self.taste[torch.from_numpy(contexts.buyers).long()]

    def item(self, rows: Tensor) -> Tensor:
        """Return unit vectors."""
        return torch.eye(self.taste.shape[1])[rows]


def two_tastes(log: Log) -> Tensor:
    """Return 1 where an item is of the buyer's half, else 0."""
    buyers = np.array([int(b) % 2 for b in log.buyers.external(np.arange(len(log.buyers)))])
    items = np.array([int(i) >= 20 for i in log.catalogue.external(np.arange(len(log.catalogue)))])
    return torch.from_numpy(buyers[:, None] == items[None]).float()


def meter_of(log: Log, settings: NegativesSettings, *, pairs: int = 10_000, mined: RowTable | None = None) -> AucMeter:
    """Choose the pairs for the knowing model."""
    sources = negatives_of(settings, log, seed=3, dimension=8, mined=mined)
    found = auc_meter(Knowing(two_tastes(log)), log, sources, pairs=pairs, seed=3)  # type: ignore[arg-type]
    assert found is not None
    return found


def drawn(pairs: AucPairs) -> tuple[Tensor, Tensor, Tensor]:
    """Return buyers, positives and negatives of the pairs that have a negative."""
    buyers = torch.cat([torch.from_numpy(batch.contexts.buyers) for batch in pairs.batches])
    positives = torch.cat([batch.positives for batch in pairs.batches])
    negatives = torch.cat(list(pairs.negatives))
    return buyers[negatives >= 0], positives[negatives >= 0], negatives[negatives >= 0]


def engaged(log: Log, parts: Sequence[Part]) -> set[tuple[int, int]]:
    """Return the (buyer, item) pairs of parts."""
    rows = np.isin(log.engagements.parts, [int(part) for part in parts])
    return set(zip(log.engagements.buyers[rows].tolist(), log.engagements.items[rows].tolist(), strict=True))


def test_half_the_negatives_are_of_the_other_taste(log: Log) -> None:
    """Who knows the tastes beats every negative of the other half and ties with his own: 1 − share of own / 2."""
    meter = meter_of(log, NegativesSettings(uniform=16))
    model = Knowing(two_tastes(log))
    for pairs, found in zip((meter.training, meter.validation), meter.measure(model), strict=True):  # type: ignore[arg-type]
        buyers, _, negatives = drawn(pairs)
        own = float(two_tastes(log)[buyers.long(), negatives].mean())
        assert found == pytest.approx(1 - own / 2)
        assert 0.6 < found < 0.95


def test_what_knows_nothing_has_one_half_and_what_is_wrong_less(log: Log) -> None:
    """A constant model ties everywhere; one of the opposite taste is the mirror image."""
    meter = meter_of(log, NegativesSettings())
    nothing = Knowing(torch.ones(len(log.buyers), len(log.catalogue)))
    assert meter.measure(nothing) == (0.5, 0.5)  # type: ignore[arg-type]
    right, wrong = (meter.measure(Knowing(sign * two_tastes(log))) for sign in (1, -1))  # type: ignore[arg-type]
    assert [a + b for a, b in zip(right, wrong, strict=True)] == pytest.approx([1, 1])


@pytest.mark.parametrize(
    "settings",
    [
        NegativesSettings(),
        NegativesSettings(in_batch=False),
        NegativesSettings(uniform=0),
        NegativesSettings(in_batch=False, uniform=0, per_row=1.5, per_row_from="popularity"),
        NegativesSettings(queue=100, distinct=True),
    ],
)
def test_every_source_gives_pairs(log: Log, settings: NegativesSettings) -> None:
    """Most rows find a negative; it is never the positive, nor what the buyer is known for."""
    meter = meter_of(log, settings)
    for part, pairs in ((Part.TRAIN, meter.training), (Part.VALIDATION, meter.validation)):
        rows = len(log.engagements.positives(part))
        assert len(pairs) > 0.8 * rows
        buyers, positives, negatives = drawn(pairs)
        assert not bool((positives == negatives).any())
        taken = set(zip(buyers.tolist(), negatives.tolist(), strict=True))
        if part is Part.VALIDATION:  # a training row knows only what was before it
            assert not taken & engaged(log, [Part.TRAIN])


def test_mined_columns_are_left_out(log: Log) -> None:
    """They are hard on purpose; a run that has them measures what one without them measures."""
    table = RowTable.from_offsets(np.arange(len(log.engagements) + 1) * 2, np.tile([7, 8], len(log.engagements)))
    with_mined, without = (meter_of(log, NegativesSettings(mined=2), mined=mined) for mined in (table, None))
    for one, other in zip(with_mined.training.negatives, without.training.negatives, strict=True):
        assert torch.equal(one, other)


def test_pairs_are_a_function_of_the_seed(log: Log) -> None:
    """A resumed run asks the same pairs; so many as are wanted are asked."""
    one, other = (meter_of(log, NegativesSettings(), pairs=50) for _ in range(2))
    assert len(one.training) <= 50
    assert torch.equal(one.training.negatives[0], other.training.negatives[0])
    assert one.training.batches[0].rows.tolist() == other.training.batches[0].rows.tolist()


def test_nothing_to_measure(log: Log) -> None:
    """No pairs wanted: no meter."""
    sources = negatives_of(NegativesSettings(), log, seed=3, dimension=8)
    model: TwoTower = build_model(log.catalogue, len(log.buyers), ModelSettings(kind="factorisation"), seed=3)
    assert auc_meter(model, log, sources, pairs=0, seed=3) is None


def test_a_run_measures_before_its_first_step_and_with_every_validation(log: Log, tmp_path: Path) -> None:
    """From a half upwards, and where `hatchway ratio --run` looks; a run begun again has no line twice."""
    settings = TrainingSettings(epochs=3, batch=32, table_rate=0.3)
    for _ in range(2):
        model = build_model(log.catalogue, len(log.buyers), ModelSettings(kind="factorisation", dimension=8), seed=3)
        train(
            model,
            log,
            tmp_path,
            settings=settings,
            negatives=NegativesSettings(uniform=16),
            seed=3,
            validation=Validation(lambda _: {"nothing": 0.0}, "nothing"),
        )
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in lines if "auc" in line] == [0, 12, 24, 36]
    points = read_run(tmp_path)
    assert points[0] == pytest.approx((0.5, 0.5), abs=0.1)
    assert points[-1].training > 0.75
    assert points[-1].training > points[1].training > points[0].training
    assert ratio(measured=points).curve == "measured"


def test_a_run_without_validation_measures_nothing(log: Log, tmp_path: Path) -> None:
    """Neither does one whose settings say so."""
    for folder, validation, pairs in (("a", None, 4096), ("b", Validation(lambda _: {"nothing": 0.0}, "nothing"), 0)):
        (tmp_path / folder).mkdir()
        model = build_model(log.catalogue, len(log.buyers), ModelSettings(kind="factorisation", dimension=8), seed=3)
        train(
            model,
            log,
            tmp_path / folder,
            settings=TrainingSettings(epochs=1, batch=64, auc_pairs=pairs),
            negatives=NegativesSettings(uniform=16),
            seed=3,
            validation=validation,
        )
        with pytest.raises(DataError, match="has no AUCs"):
            read_run(tmp_path / folder)
