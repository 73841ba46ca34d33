"""The identity that makes the correction right, with every draw of a small catalogue enumerated.

With alpha 1, the expected sum of exp(logit) over a row's columns is the sum of exp(score) over the items that the
columns stand for: all unmasked items with n > 0, and what the row has on purpose; without the positive
(``uncorrected``), with it (``count``), and with it on average over positives only (``yi``).
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor

from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.distribution import Distribution, UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import (
    Ledger,
    Masked,
    PositiveCorrection,
    account,
    first_of_each,
    with_masked,
    with_own_masked,
)
from hatchway.negatives.own_columns import OwnDraw
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity, PopularityDistribution
from hatchway.negatives.queue import Queue
from hatchway.negatives.sources import Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform

# Item 0 is popular (its copies are duplicates of the positive), item 3 was never engaged with.
COUNTS = torch.tensor([3, 2, 1, 0])
POSITIVES = (0, 0, 0, 1, 1, 2)
SCORES = torch.tensor([0.7, -0.4, 1.1, 0.2], dtype=torch.float64)
ITEMS = len(COUNTS)
EXACT = ExactCounts(COUNTS)
DISTRIBUTIONS: dict[str, Distribution] = {
    "uniform": UniformDistribution(ITEMS),
    "popularity": PopularityDistribution(COUNTS, 0.75),
}


@dataclass(frozen=True)
class Mixture:
    """How many of each source.

    Attributes:
        batch: rows of the batch; row ``row`` is looked at.
        fresh, past: past positives of this epoch and of the one before, in a queue.
        own: items that the row has on purpose, and whether a copy of them is drawn is not asked.
    """

    batch: int = 1
    in_batch: bool = False
    uniform: int = 0
    popularity: int = 0
    fresh: int = 0
    past: int = 0
    per_row: float = 0.0
    per_row_from: str = "uniform"
    own: tuple[int, ...] = ()
    row: int = 0

    def reachable(self) -> Tensor:
        """Mark the items with n > 0, and those on purpose."""
        everywhere = self.uniform or (self.per_row and self.per_row_from == "uniform")
        found = torch.ones(ITEMS, dtype=torch.bool) if everywhere else COUNTS > 0
        found = found.clone()
        found[list(self.own)] = True
        return found


MIXTURES = {
    "in-batch": Mixture(batch=3, in_batch=True),
    "uniform": Mixture(uniform=2),
    "popularity": Mixture(popularity=2),
    "mixed": Mixture(batch=3, in_batch=True, uniform=2),
    "uniform and popularity": Mixture(uniform=1, popularity=2),
    "queue": Mixture(fresh=2, past=1),
    "queue beside in-batch": Mixture(batch=2, in_batch=True, fresh=1, past=1),
    "by row": Mixture(per_row=1.5),
    "by row and popularity": Mixture(uniform=1, per_row=1.25, per_row_from="popularity"),
    "on purpose": Mixture(batch=2, in_batch=True, own=(3, 1)),
    "everything": Mixture(batch=2, in_batch=True, popularity=1, fresh=1, past=1, per_row=0.5, own=(1,)),
    "gathered": Mixture(batch=3, in_batch=True, uniform=1, per_row=0.5, row=2),
    "popularity and queue beside in-batch": Mixture(batch=2, in_batch=True, popularity=1, fresh=1, past=1),
}


@dataclass(frozen=True)
class Lists:
    """Own columns on purpose."""

    source: Source = Source.MINED
    on_purpose: bool = True
    log_weight: float = 0.0

    def draw(self, positives: Tensor, rows: Tensor | None, generator: torch.Generator) -> Tensor:
        """Nothing is drawn: the test lays the columns down."""
        raise NotImplementedError

    def expected(self, items: Tensor) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(items.shape, dtype=torch.float64)

    def log_absent(self, items: Tensor) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(items.shape, dtype=torch.float64)


@cache
def epochs(length: int, first: int | None, place: int) -> list[tuple[tuple[int, ...], float]]:
    """Enumerate the first positives of a shuffled epoch with their chances; one of them may be given."""
    found = Counter(
        tuple(POSITIVES[i] for i in order) for order in itertools.permutations(range(len(POSITIVES)), length)
    )
    kept = {order: number for order, number in found.items() if first is None or order[place] == first}
    total = sum(kept.values())
    return [(order, number / total) for order, number in kept.items()]


@cache
def draws(distribution: str, number: int) -> list[tuple[tuple[int, ...], float]]:
    """Enumerate independent draws with their chances."""
    chances = DISTRIBUTIONS[distribution].chance(torch.arange(ITEMS)).tolist()
    possible = [item for item in range(ITEMS) if chances[item] > 0]
    return [(items, math.prod(chances[item] for item in items)) for items in itertools.product(possible, repeat=number)]


@cache
def row_draws(distribution: str, k: float) -> list[tuple[tuple[int, ...], float]]:
    """Enumerate a real number of draws: the whole of it, or one more with the chance of the fraction."""
    whole = math.floor(k)
    if k == whole:
        return draws(distribution, whole)
    fewer = [((*items, -1), (1 - k + whole) * chance) for items, chance in draws(distribution, whole)]
    return fewer + [(items, (k - whole) * chance) for items, chance in draws(distribution, whole + 1)]


def ledgers(
    mixture: Mixture, correction: PositiveCorrection, first: int | None, *, distinct: bool = False
) -> Iterator[tuple[float, Ledger]]:
    """Enumerate every draw of a mixture with its chance, and account for it."""
    present, past = mixture.batch + mixture.fresh, mixture.past
    place = mixture.fresh + mixture.row
    uniform, popularity = Uniform(ITEMS, mixture.uniform), Popularity(COUNTS, mixture.popularity)
    per_row = PerRow(DISTRIBUTIONS[mixture.per_row_from], mixture.per_row, Source.UNIFORM)
    for (epoch, p_epoch), (before, p_before), (flat, p_flat), (popular, p_popular), (mine, p_mine) in itertools.product(
        epochs(present, first, place),
        epochs(past, None, 0),
        draws("uniform", mixture.uniform),
        draws("popularity", mixture.popularity),
        row_draws(mixture.per_row_from, mixture.per_row),
    ):
        batch = torch.tensor(epoch[mixture.fresh :])
        sources: list[SharedSource] = [InBatch(EXACT)] if mixture.in_batch else []
        columns = [*([batch] if mixture.in_batch else []), torch.tensor(flat), torch.tensor(popular)]
        sources += [uniform, popularity]
        if mixture.fresh or mixture.past:
            queue = queue_of(before, epoch[: mixture.fresh], beside_in_batch=mixture.in_batch)
            sources.append(queue)
            columns.append(queue.draw(batch, torch.Generator()))
        yield (
            p_epoch * p_before * p_flat * p_popular * p_mine,
            ledger_of(mixture, batch, sources, columns, OwnDraw(per_row, torch.tensor([mine])), correction, distinct),
        )


def ledger_of(
    mixture: Mixture,
    batch: Tensor,
    sources: Sequence[SharedSource],
    columns: Sequence[Tensor],
    drawn: OwnDraw,
    correction: PositiveCorrection,
    distinct: bool,
) -> Ledger:
    """Account for one outcome; the ledger has the one row that is looked at, where its columns are its own or gathered.

    The other rows of the batch are in-batch columns only, so the account of one rank with one row is enough.
    """
    items = torch.cat([column.long() for column in columns])
    kinds = torch.cat(
        [
            torch.full((len(column),), source.source, dtype=torch.int8)
            for source, column in zip(sources, columns, strict=True)
        ]
    )
    if distinct:
        kept = first_of_each(items)
        items, kinds = items[kept], kinds[kept]
    own = [OwnDraw(Lists(), torch.tensor([mixture.own], dtype=torch.int64).reshape(1, -1)), drawn]
    return account(
        batch[mixture.row : mixture.row + 1],
        items,
        kinds,
        sources,
        correction,
        own=[draw for draw in own if draw.items.shape[1]],
        distinct=distinct,
        global_batch=mixture.batch,
        first=mixture.row,
    )


def queue_of(past: Sequence[int], fresh: Sequence[int], *, beside_in_batch: bool) -> Queue:
    """Fill a queue with the end of one epoch and the beginning of the next."""
    queue = Queue(EXACT, len(past) + len(fresh), 1, beside_in_batch=beside_in_batch)
    for epoch, items in enumerate((past, fresh)):
        queue.begin_epoch(epoch)
        if items:
            queue.enqueue(torch.tensor(items), torch.zeros(len(items), 1))
    return queue


def exact_logits(ledger: Ledger) -> tuple[float, float]:
    """Return the sum of exp(logit) over the row's columns, and that of its positive, by the rules and nothing else."""
    masked = set(ledger.masked.columns.tolist())
    copies = set(ledger.copy_columns.tolist())
    positive_log = float(ledger.positive_log_count[0])
    columns = 0.0
    for column, item in enumerate(ledger.items.tolist()):
        log = positive_log if column in copies else float(ledger.log_count[column])
        columns += 0.0 if column in masked else math.exp(float(SCORES[item]) - log)
    for place, item in enumerate(ledger.own_items[0].tolist()):
        if item >= 0 and int(ledger.own_masked[0, place]) == 0:
            columns += math.exp(float(SCORES[item]) - float(ledger.own_log_count[0, place]))
    return columns, math.exp(float(SCORES[int(ledger.positives[0])]) - positive_log)


def expected(
    mixture: Mixture,
    correction: PositiveCorrection,
    first: int | None,
    *,
    distinct: bool = False,
    known: int | None = None,
) -> tuple[float, float]:
    """Return the expected sums: over the columns, and over columns and positive."""
    over_columns, whole, total = 0.0, 0.0, 0.0
    for chance, drawn in ledgers(mixture, correction, first, distinct=distinct):
        columns, positive = exact_logits(drawn if known is None else mask_of(drawn, known))
        over_columns += chance * columns
        whole += chance * (columns + positive)
        total += chance
    assert total == pytest.approx(1)
    return over_columns, whole


def mask_of(ledger: Ledger, item: int) -> Ledger:
    """Mask every column that holds an item, as a screen does."""
    columns = (ledger.items == item).nonzero()[:, 0]
    reasons = torch.full_like(columns, Reason.ENGAGED, dtype=torch.int8)
    masked = with_masked(ledger, Masked(torch.zeros_like(columns), columns, reasons))
    return with_own_masked(masked, ledger.own_items == item, Reason.ENGAGED)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("positive", [0, 1, 2])
def test_uncorrected_stands_for_all_other_items(name: str, positive: int, distinct: bool) -> None:
    """The columns stand for every reachable item but the positive, each once."""
    mixture = MIXTURES[name]
    others = mixture.reachable() & (torch.arange(ITEMS) != positive)
    over_columns, _ = expected(mixture, "uncorrected", positive, distinct=distinct)
    assert over_columns == pytest.approx(float(SCORES[others].exp().sum()), rel=1e-6)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("positive", [0, 1, 2])
def test_count_stands_for_the_whole_normaliser(name: str, positive: int, distinct: bool) -> None:
    """Columns and positive together stand for every reachable item once, the positive among them, for every row."""
    mixture = MIXTURES[name]
    _, whole = expected(mixture, "count", positive, distinct=distinct)
    present = mixture.reachable()
    present[positive] = True
    assert whole == pytest.approx(float(SCORES[present].exp().sum()), rel=1e-6)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", ["in-batch", "mixed", "queue beside in-batch", "gathered"])
def test_yi_stands_for_the_whole_normaliser_on_average_over_positives(name: str, distinct: bool) -> None:
    """Averaged over batches the sum is the normaliser; given a single positive it is not."""
    mixture = MIXTURES[name]
    _, whole = expected(mixture, "yi", None, distinct=distinct)
    right = float(SCORES[mixture.reachable()].exp().sum())
    assert whole == pytest.approx(right, rel=1e-6)
    by_positive = [expected(mixture, "yi", positive, distinct=distinct)[1] for positive in (0, 1, 2)]
    assert all(abs(of_one - right) / right > 0.01 for of_one in by_positive)
    assert by_positive[0] < right < by_positive[2], "a popular positive weighs too little, a rare one too much"


def weights_by_item(mixture: Mixture, correction: PositiveCorrection, *, distinct: bool) -> tuple[Tensor, Tensor]:
    """Return how often each item stands among the columns, and as the positive, on average; [ITEMS] each."""
    columns, positives = torch.zeros(ITEMS, dtype=torch.float64), torch.zeros(ITEMS, dtype=torch.float64)
    for chance, ledger in ledgers(mixture, correction, None, distinct=distinct):
        stands = torch.ones(len(ledger.items), dtype=torch.bool)
        stands[ledger.masked.columns] = False
        shared = torch.exp(-ledger.log_count.double())
        columns.index_add_(0, ledger.items[stands], chance * shared[stands])
        own = ledger.own_stands[0]
        columns.index_add_(0, ledger.own_items[0][own], chance * torch.exp(-ledger.own_log_count[0].double())[own])
        positives.index_add_(0, ledger.positives, chance * torch.exp(-ledger.positive_log_count.double()))
    return columns, positives


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", [name for name, mixture in MIXTURES.items() if mixture.in_batch])
def test_yi_weighs_every_item_once_beside_in_batch_columns(name: str, distinct: bool) -> None:
    """Item by item, so whatever the scores are; items on purpose apart, which count once in rows that have them."""
    mixture = MIXTURES[name]
    columns, positives = weights_by_item(mixture, "yi", distinct=distinct)
    drawn = mixture.reachable()
    drawn[list(mixture.own)] = False
    torch.testing.assert_close((columns + positives)[drawn], torch.ones(int(drawn.sum())).double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", [name for name, mixture in MIXTURES.items() if not mixture.in_batch])
def test_yi_without_in_batch_columns_has_the_positive_on_top(name: str) -> None:
    """No column is the row's own positive, so the columns alone stand for every item once; the positive is one more."""
    columns, positives = weights_by_item(MIXTURES[name], "yi", distinct=False)
    reachable = MIXTURES[name].reachable()
    torch.testing.assert_close(columns, reachable.double(), rtol=1e-6, atol=0)
    assert bool((positives[: len(set(POSITIVES))] > 0.1).all())


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", ["in-batch", "mixed", "queue", "by row and popularity", "on purpose"])
@pytest.mark.parametrize("correction", ["uncorrected", "count"])
def test_a_masked_item_is_in_neither_sum(name: str, correction: PositiveCorrection, distinct: bool) -> None:
    """Masking item 1 for the row takes exactly its share out, on purpose or not."""
    mixture = MIXTURES[name]
    without_mask, _ = expected(mixture, correction, 0, distinct=distinct)
    with_mask, _ = expected(mixture, correction, 0, distinct=distinct, known=1)
    assert without_mask - with_mask == pytest.approx(float(SCORES[1].exp()), rel=1e-6)


def test_in_batch_alone_never_reaches_what_nobody_engaged_with() -> None:
    """No draw holds item 3, and uniform draws do."""
    assert all(3 not in ledger.items.tolist() for _, ledger in ledgers(MIXTURES["in-batch"], "count", 0))
    assert any(3 in ledger.items.tolist() for _, ledger in ledgers(MIXTURES["mixed"], "count", 0))


def test_per_draw_chances_beside_columns_on_purpose_would_drown_them() -> None:
    """With chances per draw instead of counts, easy columns gain −ln n of everything: 8 nats for 4,096 of them.

    The share of two mined columns with logits of 14 among 5,095 easy ones at 0 (facts of the design): a tenth with
    counts, a fortieth of a thousandth with chances.
    """
    easy = torch.full((5_095,), 0.0, dtype=torch.float64)
    catalogue = 20_000_000
    hard = torch.full((2,), 14.0, dtype=torch.float64)
    shares = []
    for log_count in (math.log(5_095 / catalogue), math.log(1 / catalogue)):
        mass = torch.cat([easy - log_count, hard]).exp()
        shares.append(float(mass[-2:].sum() / mass.sum()))
    assert shares[0] == pytest.approx(0.107, abs=2e-3)
    assert shares[1] == pytest.approx(2.4e-5, rel=0.05)
