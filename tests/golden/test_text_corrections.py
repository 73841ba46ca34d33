"""The worked figures of the text on corrections, from the ledger itself."""

import math

import pytest
import torch

from hatchway.frequency.exact import ExactCounts
from hatchway.frequency.shares import powered_shares
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import account
from hatchway.negatives.sources import Source
from hatchway.negatives.uniform import Uniform

SOFA, PLAYER, REST = 0, 1, 2
"""A grey sofa drawn once in 1,000, a record player once in 1,000,000, and everything else."""
COUNTS = torch.tensor([1_000, 1, 998_999])


def corrected(item: int) -> float:
    """Correct the raw score 2.0 of an item by its chance per draw: the expected count in a batch of one."""
    ledger = account(
        torch.tensor([item]),
        torch.tensor([item]),
        torch.tensor([Source.IN_BATCH], dtype=torch.int8),
        [InBatch(ExactCounts(COUNTS))],
        "yi",
    )
    return 2.0 - float(ledger.log_count[0])


def test_logits_of_sofa_and_record_player() -> None:
    """8.91 and 15.82, 6.91 nats apart, a factor of about 1,000."""
    assert corrected(SOFA) == pytest.approx(8.91, abs=0.005)
    assert corrected(PLAYER) == pytest.approx(15.82, abs=0.005)
    assert corrected(PLAYER) - corrected(SOFA) == pytest.approx(6.91, abs=0.005)
    assert math.exp(corrected(PLAYER) - corrected(SOFA)) == pytest.approx(1_000, rel=1e-4)


def blended(item: int) -> float:
    """Return the chance per column of an item among 4,096 in-batch and 1,000 uniform columns over 20 million items."""
    positives = torch.full((4_096,), REST)
    items = torch.cat([positives, torch.full((1_000,), item)])
    kinds = torch.tensor([Source.IN_BATCH] * 4_096 + [Source.UNIFORM] * 1_000, dtype=torch.int8)
    ledger = account(positives, items, kinds, [InBatch(ExactCounts(COUNTS)), Uniform(20_000_000, 1_000)], "yi")
    return math.exp(float(ledger.log_count[-1])) / 5_096


def test_blended_chance_of_the_record_player() -> None:
    """About 1 / 1,230,000, and 1 / 1,244 for the sofa, which the text does not print."""
    assert 1 / blended(PLAYER) == pytest.approx(1_230_000, rel=2e-3)
    assert 1 / blended(PLAYER) == pytest.approx(1_229_137, rel=1e-5)
    assert 1 / blended(SOFA) == pytest.approx(1_244, abs=0.5)


def test_frequency_to_the_power_three_quarters() -> None:
    """The table of four listings: in-batch shares and flattened ones, in percent."""
    counts = torch.tensor([2_000, 1_000, 100, 10])
    plain = (100 * powered_shares(counts, 1.0)).tolist()
    flattened = (100 * powered_shares(counts, 0.75)).tolist()
    assert plain == pytest.approx([64.3, 32.2, 3.2, 0.32], abs=0.05)
    assert flattened == pytest.approx([58.2, 34.6, 6.2, 1.1], abs=0.05)
    assert (100 * powered_shares(counts, 0.0)).tolist() == pytest.approx([25.0] * 4)
