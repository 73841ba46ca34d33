"""Every source of negatives, and mixtures of them, through one suite: draws, support, frequencies as exp(log n) says.

Batches come from shuffled epochs, as in training. A row's columns are the shared ones and the row's own.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from hatchway.data.row_table import RowTable
from hatchway.errors import DataError, SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.impressions import Impressions
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, PositiveCorrection, draw_ledger
from hatchway.negatives.mined import Mined
from hatchway.negatives.per_row import PerRow
from hatchway.negatives.popularity import Popularity, PopularityDistribution
from hatchway.negatives.queue import Queue
from hatchway.negatives.sources import OwnSource, SharedSource, Source
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import stream, torch_stream

# Item 0 is most of the batch, item 11 was never engaged with.
COUNTS = torch.tensor([400, 200, 100, 50, 25, 12, 6, 3, 2, 1, 1, 0])
ITEMS = len(COUNTS)
POSITIVES = torch.repeat_interleave(torch.arange(ITEMS), COUNTS)
LIVING = torch.arange(ITEMS) % 3 != 1
BATCH = 32
BATCHES = len(POSITIVES) // BATCH
EXACT = ExactCounts(COUNTS)
# Engagement row r is positive r: it has the two items after its own on purpose, every fifth row has none.
TABLE = RowTable.from_offsets(
    np.concatenate([[0], np.cumsum(np.where(np.arange(len(POSITIVES)) % 5 == 0, 0, 2))]),
    np.concatenate([(POSITIVES.numpy()[r] + np.array([1, 2])) % ITEMS for r in range(len(POSITIVES)) if r % 5]),
)


@dataclass
class Mixture:
    """Sources as a training has them."""

    shared: Sequence[SharedSource] = ()
    own: Sequence[OwnSource] = field(default_factory=tuple)
    queue: Queue | None = None

    def reachable(self) -> Tensor:
        """Mark the items that some source draws at random."""
        everything = torch.arange(ITEMS)
        expected = sum((s.expected_on_average(everything, BATCH) for s in self.shared), torch.zeros(ITEMS))
        return sum((o.expected(everything) for o in self.own), expected) > 0


def queued() -> Mixture:
    """Two batches of the past, whose vectors nobody looks at here."""
    queue = Queue(EXACT, 2 * BATCH, 1, beside_in_batch=False)
    return Mixture([queue], queue=queue)


def everything() -> Mixture:
    """All sources at once."""
    queue = Queue(EXACT, 2 * BATCH, 1)
    return Mixture(
        [InBatch(EXACT), Uniform(ITEMS, 8), Popularity(COUNTS, 16, 0.75), queue],
        [
            Mined(TABLE, 1),
            Impressions(TABLE, 1, weight=0.5),
            PerRow(UniformDistribution(ITEMS), 3.5, Source.UNIFORM),
            PerRow(PopularityDistribution(COUNTS, 0.5), 2, Source.POPULARITY),
        ],
        queue,
    )


MIXTURES: dict[str, Callable[[], Mixture]] = {
    "in-batch": lambda: Mixture([InBatch(EXACT)]),
    "uniform": lambda: Mixture([Uniform(ITEMS, 48)]),
    "uniform over the living": lambda: Mixture([Uniform(ITEMS, 48, LIVING)]),
    "popularity": lambda: Mixture([Popularity(COUNTS, 48)]),
    "popularity itself, of the living": lambda: Mixture([Popularity(COUNTS, 48, 1.0, LIVING)]),
    "popularity to the power 0": lambda: Mixture([Popularity(COUNTS, 48, 0.0)]),
    "by row": lambda: Mixture([], [PerRow(UniformDistribution(ITEMS, LIVING), 5.25, Source.UNIFORM)]),
    "by row and popularity": lambda: Mixture([], [PerRow(PopularityDistribution(COUNTS), 0.5, Source.POPULARITY)]),
    "queue": queued,
    "mixed": lambda: Mixture([InBatch(EXACT), Uniform(ITEMS, 48)]),
    "mined and uniform": lambda: Mixture([Uniform(ITEMS, 48)], [Mined(TABLE)]),
    "both by a real number": lambda: Mixture([Uniform(ITEMS, 48)], [Mined(TABLE, 1.5), Impressions(TABLE, 0.5)]),
    "impressions and in-batch": lambda: Mixture([InBatch(EXACT)], [Impressions(TABLE, 2)]),
    "everything": everything,
}


UNLIKE_YI = {"popularity itself, of the living", "uniform over the living", "by row", "queue"}
"""Where some positives cannot be drawn at all, ``yi`` has no count for them."""


def steps(mixture: Mixture, number: int, every: int = 3) -> Iterator[tuple[int, Tensor]]:
    """Yield batches of shuffled epochs as engagement rows; the queue has seen what was before.

    Only every third batch is looked at: then no positive of one is in the queue of another.
    """
    for step in range(number * every):
        epoch, place = divmod(step, BATCHES)
        order = stream(3, "shuffle", epoch).permutation(len(POSITIVES))
        rows = torch.from_numpy(order[place * BATCH : (place + 1) * BATCH])
        if mixture.queue is not None:
            mixture.queue.begin_epoch(epoch)
        if step % every == every - 1:
            yield step, rows
        if mixture.queue is not None:
            mixture.queue.enqueue(POSITIVES[rows], torch.zeros(BATCH, 1))


def drawn(
    mixture: Mixture, step: int, rows: Tensor, correction: PositiveCorrection = "uncorrected", *, distinct: bool = False
) -> Ledger:
    """Draw one ledger."""
    generator = torch_stream(2, "negatives", step)
    return draw_ledger(
        POSITIVES[rows], mixture.shared, generator, correction, own=mixture.own, rows=rows, distinct=distinct
    )


def at_random(ledger: Ledger, row: int) -> tuple[Tensor, Tensor]:
    """Return the items of a row's columns that are drawn at random, and their log n; repeats of others left out."""
    chosen = (ledger.own_items[row] >= 0) & ~torch.isin(
        ledger.own_sources[row].long(), torch.tensor([Source.MINED, Source.IMPRESSIONS])
    )
    chosen &= ledger.own_masked[row] != 5
    items = torch.cat([ledger.items, ledger.own_items[row][chosen]])
    return items, torch.cat([ledger.log_count, ledger.own_log_count[row][chosen]])


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("distinct", [False, True])
def test_columns_are_items_of_the_catalogue_and_reproducible(name: str, distinct: bool) -> None:
    """The same stream draws the same columns, another stream others; rows are valid item rows."""
    mixture = MIXTURES[name]()
    ((_, rows),) = steps(mixture, 1)
    first, again, other = (drawn(mixture, step, rows, distinct=distinct) for step in (0, 0, 1))
    assert torch.equal(first.items, again.items)
    assert torch.equal(first.own_items, again.own_items)
    same = torch.equal(first.items, other.items) and torch.equal(first.own_items, other.own_items)
    assert same == (name in {"in-batch", "queue", "impressions and in-batch"})
    for ledger in (first, other):
        assert ledger.items.dtype == ledger.own_items.dtype == torch.int64
        assert bool(((ledger.items >= 0) & (ledger.items < ITEMS)).all())
        assert bool(((ledger.own_items >= -1) & (ledger.own_items < ITEMS)).all())


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("distinct", [False, True])
def test_frequencies_match_the_expected_counts(name: str, distinct: bool) -> None:
    """Over 250 batches the copies of each item, in rows whose positive is another, follow exp(log n): chi-square.

    De-duplicated columns hold an item at most once, and n is the chance that it is in.
    """
    mixture = MIXTURES[name]()
    seen = torch.zeros(ITEMS, dtype=torch.float64)
    wanted = torch.zeros(ITEMS, dtype=torch.float64)
    for step, rows in steps(mixture, 250):
        ledger = drawn(mixture, step, rows, distinct=distinct)
        items, log_count = at_random(ledger, 0)
        copies = torch.bincount(items, minlength=ITEMS).double()
        if distinct:
            stands = ledger.own_items[0][ledger.own_stands[0]]
            left = torch.cat([ledger.items[~torch.isin(ledger.items, stands)], stands])
            assert len(left.unique()) == len(left)
            copies.clamp_(max=1)  # what is masked for another reason is not masked as a repeat as well
        other = torch.arange(ITEMS) != ledger.positives[0]
        state = (0, 0) if mixture.queue is None else (mixture.queue.filled, mixture.queue.fresh)
        n = expected_counts(mixture, state, distinct=distinct)
        shown = other[items]
        torch.testing.assert_close(log_count[shown].exp().double(), n[items[shown]], rtol=1e-5, atol=0)
        seen[other] += copies[other]
        wanted[other] += n[other]
    present = wanted > 0
    assert torch.equal(present, mixture.reachable())
    assert float(seen[~present].sum()) == 0
    # Items are drawn together with a fixed total only within a batch; the variance of a count is at most its mean.
    statistic = float(((seen - wanted)[present] ** 2 / wanted[present]).sum())
    assert stats.chi2.sf(statistic, int(present.sum())) > 1e-4


def expected_counts(mixture: Mixture, state: tuple[int, int], *, distinct: bool) -> Tensor:
    """Write n(j) out for rows whose positive is another item, source by source, from the design alone."""
    share = COUNTS.double()
    total = float(share.sum())
    n = torch.zeros(ITEMS, dtype=torch.float64)
    absent = torch.zeros(ITEMS, dtype=torch.float64)
    taken = 0
    for source in mixture.shared:
        if isinstance(source, InBatch):
            n += (BATCH - 1) * share / (total - 1)
            taken = BATCH - 1
        elif isinstance(source, Queue):
            filled, fresh = state
            n += fresh * share / (total - 1) + (filled - fresh) * share / total
            taken += fresh
            absent += hypergeometric(total, filled - fresh)
        else:
            assert isinstance(source, (Uniform, Popularity))
            p = source.distribution.chance(torch.arange(ITEMS))
            n += source.draws * p
            absent += source.draws * torch.log1p(-p)
    if taken:
        absent += hypergeometric(total - 1, taken)
    for own in mixture.own:
        if isinstance(own, PerRow):
            p = own.distribution.chance(torch.arange(ITEMS))
            n += own.draws * p
            absent += math.floor(own.draws) * torch.log1p(-p) + torch.log1p(-(own.draws % 1) * p)
    return -torch.expm1(absent) if distinct else n


@cache
def hypergeometric(total: float, draws: int) -> Tensor:
    """Return ln of the chance that draws without replacement hold none of an item's copies."""
    return torch.tensor([stats.hypergeom(int(total), int(c), draws).logpmf(0) for c in COUNTS], dtype=torch.float64)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("distinct", [False, True])
def test_the_support_is_covered_and_nothing_else_is_drawn(name: str, distinct: bool) -> None:
    """In many batches every item that can be drawn is, rare ones too, and no other."""
    mixture = MIXTURES[name]()
    found: set[int] = set()
    for step, rows in steps(mixture, 200, every=1):
        ledger = drawn(mixture, step, rows, "count", distinct=distinct)
        found |= set(ledger.items.tolist())
        on_purpose = (ledger.own_sources == Source.MINED) | (ledger.own_sources == Source.IMPRESSIONS)
        found |= set(ledger.own_items[(ledger.own_items >= 0) & ~on_purpose].tolist())
    assert found == set(torch.nonzero(mixture.reachable())[:, 0].tolist())


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_batch_of_one(name: str, correction: PositiveCorrection, distinct: bool) -> None:
    """One row has no other rows, and everything stays finite and of its shape."""
    mixture = MIXTURES[name]()
    own = [source.draw(torch.tensor([2]), torch.tensor([651]), torch_stream(1)) for source in mixture.own]
    assert all(part.ndim == 2 and len(part) == 1 for part in own)
    if correction == "yi" and name in UNLIKE_YI:
        return  # nothing can draw this positive, or nothing is drawn yet: refused, see the ledger's own tests
    ledger = drawn(mixture, 0, torch.tensor([651]), correction, distinct=distinct)
    assert POSITIVES[651] == 2
    assert bool(torch.isfinite(ledger.log_count).all())
    assert bool(torch.isfinite(ledger.positive_log_count).all())
    assert bool(torch.isfinite(ledger.own_log_count).all())
    assert ledger.own_items.shape[0] == 1
    if name != "both by a real number":  # each draw has its own number there
        assert ledger.own_items.shape[1] == sum(part.shape[1] for part in own)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("correction", ["uncorrected", "count", "yi"])
def test_no_item_stands_twice_where_it_must_not(name: str, correction: PositiveCorrection) -> None:
    """A row's own item on purpose has no other unmasked column, and the positive is no column on purpose."""
    mixture = MIXTURES[name]()
    if correction == "yi" and name in UNLIKE_YI:
        return
    for step, rows in steps(mixture, 5):
        ledger = drawn(mixture, step, rows, correction)
        masked = set(zip(ledger.masked.rows.tolist(), ledger.masked.columns.tolist(), strict=True))
        purpose = (ledger.own_sources == Source.MINED) | (ledger.own_sources == Source.IMPRESSIONS)
        for row in range(BATCH):
            stands = ledger.own_stands[row]
            mine = ledger.own_items[row][stands & purpose[row]].tolist()
            others = ledger.own_items[row][stands & ~purpose[row]].tolist()
            shared = [int(i) for c, i in enumerate(ledger.items) if (row, c) not in masked]
            assert len(set(mine)) == len(mine)
            assert int(ledger.positives[row]) not in mine
            assert not set(mine) & set(others)
            assert not set(mine) & set(shared)
            if correction == "uncorrected":
                assert int(ledger.positives[row]) not in others + shared


@pytest.mark.parametrize("name", [name for name in MIXTURES if "queue" not in name])
def test_a_batch_larger_than_the_catalogue(name: str) -> None:
    """Duplicates everywhere, and still every number finite."""
    ledger = drawn(MIXTURES[name](), 0, torch.arange(700))
    assert bool(torch.isfinite(ledger.log_count).all())
    assert len(ledger.positives) == 700


def test_epochs_steps_ranks_and_workers_draw_each_its_own() -> None:
    """A stream is its name: 81 names, 81 draws that share no more than chance gives them, in any order.

    A worker of somebody's own data loader is one more part of the name.
    """
    source = Uniform(10**6, 100)
    names = list(itertools.product(range(3), repeat=4))
    first = {name: source.draw(POSITIVES[:1], torch_stream(1, "negatives", *name)) for name in names}
    again = {name: source.draw(POSITIVES[:1], torch_stream(1, "negatives", *name)) for name in reversed(names)}
    assert all(torch.equal(first[name], again[name]) for name in names)
    # Of 8,100 draws from a million about 33 are equal to another.
    assert 8_100 - len(torch.cat(list(first.values())).unique()) < 70


def test_zero_draws_are_no_columns() -> None:
    """Zero shared draws, zero draws by row, and lists without items."""
    nothing = RowTable.from_offsets(np.zeros(2, np.int64), np.zeros(0, np.int64))
    shared: list[SharedSource] = [Uniform(3, 0), Popularity(COUNTS, 0), Queue(EXACT, 0, 4)]
    own: list[OwnSource] = [PerRow(UniformDistribution(3), 0, Source.UNIFORM), Mined(nothing), Mined(TABLE, 0)]
    ledger = draw_ledger(torch.tensor([0]), shared, torch_stream(1), "count", own=own, rows=torch.tensor([0]))
    assert ledger.items.shape == (0,)
    assert ledger.own_items.shape == (1, 0)
    assert ledger.rows_without_negatives.tolist() == [True]


@pytest.mark.parametrize("draws", [-1, -0.5, math.nan, math.inf])
def test_draws_that_are_no_number_of_draws_are_refused(draws: float) -> None:
    """The message says what is allowed."""
    with pytest.raises(SettingsError, match=r"draws a row .* allowed: 0 or more"):
        PerRow(UniformDistribution(10), draws, Source.UNIFORM)


def test_what_cannot_be_drawn_is_refused() -> None:
    """The message says what is allowed."""
    with pytest.raises(SettingsError, match="-1 uniform draws; allowed: 0 or more"):
        Uniform(10, -1)
    with pytest.raises(SettingsError, match="there is no item to draw"):
        Uniform(0, 5)
    with pytest.raises(SettingsError, match="one flag an item"):
        Uniform(5, 1, LIVING)
    with pytest.raises(SettingsError, match="at least one item"):
        PerRow(UniformDistribution(4, torch.zeros(4, dtype=torch.bool)), 1, Source.UNIFORM)
    for beta in (-0.1, 1.1, math.nan):
        with pytest.raises(SettingsError, match="allowed: 0"):
            Popularity(COUNTS, 5, beta)
    with pytest.raises(SettingsError, match="no living item has a count"):
        Popularity(torch.zeros(3, dtype=torch.int64), 5)
    with pytest.raises(SettingsError, match="one flag an item"):
        Popularity(COUNTS, 5, living=LIVING[1:])
    with pytest.raises(SettingsError, match="0 or more"):
        Mined(TABLE, -1)
    for weight in (0.0, -1.0, math.nan):
        with pytest.raises(SettingsError, match="above 0"):
            Impressions(TABLE, 1, weight)
    with pytest.raises(SettingsError, match="0 or more"):
        Queue(EXACT, -1, 4)


def test_tables_are_looked_up_by_engagement_row() -> None:
    """Without rows, or with a row that the table lacks, the message says what is missing."""
    positives = POSITIVES[:2]
    with pytest.raises(DataError, match="give rows, one for each of the 2 positives"):
        draw_ledger(positives, [Uniform(ITEMS, 3)], torch_stream(1), "count", own=[Mined(TABLE)])
    with pytest.raises(DataError, match="is not in the table of mined negatives"):
        draw_ledger(positives, [], torch_stream(1), "count", own=[Mined(TABLE)], rows=torch.tensor([0, len(POSITIVES)]))


def test_all_ranks_rows_are_one_batch() -> None:
    """Gathered over ranks B is the global batch: counts, carriers and chi-square are those of 32 rows, not of 8."""
    mixture = MIXTURES["in-batch"]()
    seen = torch.zeros(ITEMS, dtype=torch.float64)
    wanted = torch.zeros(ITEMS, dtype=torch.float64)
    for step, rows in steps(mixture, 400, every=1):
        everyone = POSITIVES[rows]
        first = 8 * (step % 4)
        mine = everyone[first : first + 8]
        ledger = draw_ledger(mine, mixture.shared, torch_stream(1), "uncorrected", gathered=everyone, first=first)
        carriers = ledger.masked.columns[ledger.masked.reasons == 1]
        assert carriers.tolist() == list(range(first, first + 8))
        assert ledger.carried
        other = torch.arange(ITEMS) != mine[0]
        seen[other] += torch.bincount(ledger.items, minlength=ITEMS).double()[other]
        wanted[other] += (31 * COUNTS / 799)[other]
        torch.testing.assert_close(ledger.log_count.exp(), 31 * COUNTS[ledger.items] / 799)
    present = wanted > 0
    assert stats.chi2.sf(float(((seen - wanted)[present] ** 2 / wanted[present]).sum()), int(present.sum())) > 1e-4
    with pytest.raises(DataError, match="do not hold this rank's 8"):
        draw_ledger(mine + 1, mixture.shared, torch_stream(1), "count", gathered=everyone, first=first)
