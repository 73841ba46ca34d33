"""Where a constant factor in all expected counts changes nothing, and where it does."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hatchway.data.row_table import RowTable
from hatchway.frequency.given import GivenFrequency
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.counting import PositiveCorrection
from hatchway.negatives.distribution import UniformDistribution
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import Ledger, draw_ledger
from hatchway.negatives.mined import Mined
from hatchway.negatives.shared_draws import SharedDraws
from hatchway.negatives.sources import Source
from hatchway.randomness import torch_stream

SHARES = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
POSITIVES = torch.tensor([0, 1, 0, 3, 2])


def gradients(correction: PositiveCorrection, factor: float, *, mined: bool) -> torch.Tensor:
    """Return the loss's gradients by row and item when every expected count is multiplied by ``factor``."""
    begin = np.arange(0, 10, 2)
    table = RowTable(begin, begin + 2, np.tile([4, 5], 5)) if mined else None
    ledger: Ledger = draw_ledger(
        POSITIVES,
        [
            InBatch(GivenFrequency.from_chances(chances=SHARES)),
            SharedDraws(UniformDistribution(6), 4, Source.UNIFORM),
        ],
        torch_stream(1, "constant"),
        correction,
        own=() if table is None else (Mined(table),),
        rows=torch.arange(5),
    )
    corrected = correction != "uncorrected"
    ledger = replace(
        ledger,
        log_count=ledger.log_count + math.log(factor),
        positive_log_count=ledger.positive_log_count + (math.log(factor) if corrected else 0.0),
    )
    items = torch.randn(6, 4, generator=torch_stream(2), requires_grad=True)
    query = torch.randn(5, 4, generator=torch_stream(3), requires_grad=True)
    own = items[ledger.own_items.clamp(min=0)] if mined else None
    sampled_softmax(query, items[POSITIVES], items[ledger.items], ledger, own=own).backward()
    assert items.grad is not None
    assert query.grad is not None
    return torch.cat([items.grad, query.grad])


@pytest.mark.parametrize("correction", ["count", "yi"])
def test_with_a_corrected_positive_and_shared_columns_alone_it_cancels(correction: PositiveCorrection) -> None:
    """Every logit of a row moves by the same number, which a softmax does not see."""
    assert torch.allclose(gradients(correction, 1.0, mined=False), gradients(correction, 50.0, mined=False), atol=1e-6)


@pytest.mark.parametrize(
    ("correction", "mined"), [("uncorrected", False), ("uncorrected", True), ("count", True), ("yi", True)]
)
def test_with_an_uncorrected_positive_or_columns_on_purpose_it_does_not(
    correction: PositiveCorrection, mined: bool
) -> None:
    """The raw positive, or a mined column with n = 1, stays where it is while the others move."""
    one, other = (gradients(correction, factor, mined=mined) for factor in (1.0, 50.0))
    assert float((one - other).abs().max()) > 0.01
