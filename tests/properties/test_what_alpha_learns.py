"""What alpha learns: scores of log P + (alpha − 1) log Q, so that popular items sink at 0 and flood above 1."""

import pytest
import torch

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.negatives.counting import PositiveCorrection
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.randomness import torch_stream

COUNTS = (4_096 / torch.arange(1, 17)).long()
LOG = torch.repeat_interleave(torch.arange(16), COUNTS)
BATCH, STEPS = 1_024, 250


def slope(alpha: float, correction: PositiveCorrection) -> float:
    """Learn one score an item, all in the same context, and return its slope on the logarithm of the popularity."""
    scores = torch.zeros(16, 1, requires_grad=True)
    optimiser = torch.optim.Adam([scores], lr=0.1)
    query = torch.ones(BATCH, 1)
    source = InBatch(ExactCounts(COUNTS))
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = 0.1 * (1 - step / STEPS)
        positives = LOG[torch.randperm(len(LOG), generator=torch_stream(5, step))[:BATCH]]
        ledger = draw_ledger(positives, [source], torch_stream(5), correction)
        vectors = scores[positives]
        optimiser.zero_grad()
        sampled_softmax(query, vectors, vectors, ledger, alpha=alpha).backward()
        optimiser.step()
    popular = COUNTS.double().log()
    learned = scores.detach()[:, 0].double()
    centred = popular - popular.mean()
    return float((centred * learned).sum() / (centred**2).sum())


@pytest.mark.parametrize(
    ("alpha", "correction", "wanted"),
    [(0.0, "uncorrected", 0.0), (1.0, "uncorrected", 1.0), (1.0, "count", 1.0), (1.0, "yi", 1.0), (2.0, "count", 2.0)],
)
def test_the_slope_on_popularity_is_alpha(alpha: float, correction: PositiveCorrection, wanted: float) -> None:
    """One context, so P is the popularity itself: alpha 0 learns (next to) nothing of it, 1 all, 2 twice as much."""
    assert slope(alpha, correction) == pytest.approx(wanted, abs=0.2)
