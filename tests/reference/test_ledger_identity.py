"""The identity that makes the correction right, with every draw of a small catalogue enumerated.

With alpha 1, the expected sum of exp(logit) over a row's columns is the sum of exp(score) over the items that the
columns stand for: all unmasked items with n > 0, without the positive (``uncorrected``), with it (``count``), and
with it on average over positives only (``yi``).
"""

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, Masked, PositiveCorrection, account, with_masked
from hatchway.negatives.sources import Reason, SharedSource, Source
from hatchway.negatives.uniform import Uniform

# Item 0 is popular (its copies are duplicates of the positive), item 3 was never engaged with.
COUNTS = torch.tensor([3, 2, 1, 0])
POSITIVES = [0, 0, 0, 1, 1, 2]
SCORES = torch.tensor([0.7, -0.4, 1.1, 0.2], dtype=torch.float64)
BATCH, DRAWS = 3, 2

MIXTURES = {"in-batch": (True, 0), "uniform": (False, DRAWS), "mixture": (True, DRAWS)}


def sources(in_batch: bool, draws: int) -> list[SharedSource]:
    """Make the sources of one mixture."""
    found: list[SharedSource] = [InBatch(ExactCounts(COUNTS))] if in_batch else []
    return [*found, Uniform(len(COUNTS), draws)] if draws else found


def batches(first: int | None) -> Iterator[list[int]]:
    """Enumerate every ordered batch out of the shuffled positives, all equally likely; row 0 holds item ``first``."""
    for places in itertools.permutations(range(len(POSITIVES)), BATCH):
        batch = [POSITIVES[place] for place in places]
        if first is None or batch[0] == first:
            yield batch


def exact_logits(ledger: Ledger, row: int) -> tuple[list[float], float]:
    """Return exp(logit) of each column for one row, and of the row's positive, by the rules and nothing else."""
    masked = {(int(r), int(c)) for r, c in zip(ledger.masked.rows, ledger.masked.columns, strict=True)}
    copies = {(int(r), int(c)) for r, c in zip(ledger.copy_rows, ledger.copy_columns, strict=True)}
    own_log = float(ledger.positive_log_count[row])
    columns = []
    for column, item in enumerate(ledger.items.tolist()):
        log = own_log if (row, column) in copies else float(ledger.log_count[column])
        columns.append(0.0 if (row, column) in masked else math.exp(float(SCORES[item]) - log))
    return columns, math.exp(float(SCORES[int(ledger.positives[row])]) - own_log)


def ledgers(mixture: str, correction: PositiveCorrection, first: int | None) -> Iterator[Ledger]:
    """Enumerate every draw of a mixture: each batch with each outcome of the uniform draws, all equally likely."""
    in_batch, draws = MIXTURES[mixture]
    for batch in batches(first):
        for drawn in itertools.product(range(len(COUNTS)), repeat=draws):
            items = [*(batch if in_batch else []), *drawn]
            kinds = [int(Source.IN_BATCH)] * (BATCH if in_batch else 0) + [int(Source.UNIFORM)] * draws
            yield account(
                torch.tensor(batch),
                torch.tensor(items),
                torch.tensor(kinds, dtype=torch.int8),
                sources(in_batch, draws),
                correction,
            )


def expected(
    mixture: str, correction: PositiveCorrection, first: int | None, known: int | None = None
) -> tuple[float, float]:
    """Return the expected sums of row 0: over the columns, and over columns and positive."""
    over_columns, whole, number = 0.0, 0.0, 0
    for drawn in ledgers(mixture, correction, first):
        ledger = drawn if known is None else with_masked(drawn, mask_of(drawn, known))
        columns, positive = exact_logits(ledger, 0)
        over_columns += sum(columns)
        whole += sum(columns) + positive
        number += 1
    return over_columns / number, whole / number


def mask_of(ledger: Ledger, item: int) -> Masked:
    """Mask every column of row 0 that holds an item."""
    columns = (ledger.items == item).nonzero()[:, 0]
    return Masked(torch.zeros_like(columns), columns, torch.full_like(columns, Reason.ENGAGED, dtype=torch.int8))


def reachable(mixture: str) -> Tensor:
    """Mark the items with n > 0."""
    return torch.ones(4, dtype=torch.bool) if MIXTURES[mixture][1] else COUNTS > 0


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("positive", [0, 1, 2])
def test_uncorrected_stands_for_all_other_items(mixture: str, positive: int) -> None:
    """The columns stand for every reachable item but the positive, each once."""
    others = reachable(mixture) & (torch.arange(4) != positive)
    over_columns, _ = expected(mixture, "uncorrected", positive)
    assert over_columns == pytest.approx(float(SCORES[others].exp().sum()), rel=1e-6)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("positive", [0, 1, 2])
def test_count_stands_for_the_whole_normaliser(mixture: str, positive: int) -> None:
    """Columns and positive together stand for every reachable item once, the positive among them, for every row."""
    _, whole = expected(mixture, "count", positive)
    present = reachable(mixture)
    present[positive] = True
    assert whole == pytest.approx(float(SCORES[present].exp().sum()), rel=1e-6)


@pytest.mark.parametrize("mixture", ["in-batch", "mixture"])
def test_yi_stands_for_the_whole_normaliser_on_average_over_positives(mixture: str) -> None:
    """Averaged over batches the sum is the normaliser; given a single positive it is not."""
    _, whole = expected(mixture, "yi", None)
    right = float(SCORES[reachable(mixture)].exp().sum())
    assert whole == pytest.approx(right, rel=1e-6)
    by_positive = [expected(mixture, "yi", positive)[1] for positive in (0, 1, 2)]
    assert all(abs(of_one - right) / right > 0.01 for of_one in by_positive)
    assert by_positive[0] < right < by_positive[2], "a popular positive weighs too little, a rare one too much"


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("correction", ["uncorrected", "count"])
def test_a_masked_item_is_in_neither_sum(mixture: str, correction: PositiveCorrection) -> None:
    """Masking item 1 for the row takes exactly its share out."""
    without_mask, _ = expected(mixture, correction, 0)
    with_mask, _ = expected(mixture, correction, 0, known=1)
    assert without_mask - with_mask == pytest.approx(float(SCORES[1].exp()), rel=1e-6)


def test_in_batch_alone_never_reaches_what_nobody_engaged_with() -> None:
    """No draw holds item 3, and uniform draws do."""
    assert all(3 not in ledger.items.tolist() for ledger in ledgers("in-batch", "count", 0))
    assert any(3 in ledger.items.tolist() for ledger in ledgers("mixture", "count", 0))
