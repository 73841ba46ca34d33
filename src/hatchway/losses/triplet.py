"""The margin loss of embedding-based retrieval (Huang et al. 2020): the positive nearer than a negative, by a margin.

    loss_i = mean over the row's candidates k of max(0, D(q, v_p) − D(q, v_k) + margin)

with D = 1 − cosine, or D = −q·v for models whose score is the raw dot product. A candidate beyond the margin counts
nothing, so a row may have no gradient although it has candidates; the margin matters more than its simplicity suggests
(Huang et al. saw recall vary by 5 to 10 % with it).
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from hatchway.errors import SettingsError
from hatchway.losses.candidates import score
from hatchway.losses.checks import Reduction, check_range, reduced

Distance = Literal["cosine", "dot"]


def triplet(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    margin: float,
    distance: Distance = "cosine",
    hardest: int | None = None,
    present: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Margin loss of each row's positive against K candidates.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d], each row's own candidates, or [K, d], the same for all rows; K may be 0.
        margin: by how much the positive is to be nearer; 0 or more.
        distance: ``"cosine"`` (from 0 to 2; a zero vector has cosine 0 with everything, and no gradient) or ``"dot"``.
        hardest: average only this many of a row's candidates, those with the highest scores (online hard mining, where
            more than two did harm). None averages all.
        present: [B, K] bool, False where a row has no candidate there or it is masked. A row without candidates has
            loss 0 and no gradient.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).

    Returns:
        A scalar, or [B]; float64 for float64 queries, else float32.

    Raises:
        DataError: shapes disagree, or the weights do not sum to more than 0.
        SettingsError: the margin is negative or NaN, the distance unknown, or ``hardest`` below 1.
    """
    _check(margin, distance, hardest)
    if distance == "cosine":
        query, positive, negatives = (_directions(vectors) for vectors in (query, positive, negatives))
    scores = score(query, positive, negatives, present)
    losses = torch.relu(scores.negatives - scores.positive[:, None] + margin).masked_fill(~scores.present, 0.0)
    count = scores.count
    if hardest is not None and hardest < losses.shape[1]:
        # The loss rises with the score, so the highest losses are the highest scores (or all of them are 0).
        losses = losses.topk(hardest, dim=1, sorted=False).values
        count = count.clamp(max=hardest)
    return reduced(losses.sum(1) / count.clamp(min=1), weight, reduction)


class Triplet(nn.Module):
    """:func:`triplet` with its settings kept.

    Args:
        margin: by how much the positive is to be nearer.
        distance: ``"cosine"`` or ``"dot"``.
        hardest: average only this many of a row's candidates; None averages all.
    """

    def __init__(self, margin: float, distance: Distance = "cosine", hardest: int | None = None) -> None:
        super().__init__()
        _check(margin, distance, hardest)
        self.margin = margin
        self.distance = distance
        self.hardest = hardest

    def forward(
        self,
        query: Tensor,
        positive: Tensor,
        negatives: Tensor,
        *,
        present: Tensor | None = None,
        weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the mean loss, a scalar; or, with ``reduction="none"``, that of every row, [B], weighted."""
        return triplet(
            query,
            positive,
            negatives,
            margin=self.margin,
            distance=self.distance,
            hardest=self.hardest,
            present=present,
            weight=weight,
            reduction=reduction,
        )


def _check(margin: float, distance: Distance, hardest: int | None) -> None:
    check_range("margin", margin, 0, float("inf"), "0 or more (0.1 to 0.3 is usual for cosines)")
    if distance not in (allowed := get_args(Distance)):
        raise SettingsError(f"distance is {distance!r}; allowed: {', '.join(allowed)}")
    if hardest is not None and not hardest >= 1:
        raise SettingsError(f"hardest is {hardest}; allowed: 1 or more, or None for all candidates")


def _directions(vectors: Tensor) -> Tensor:
    """Scale the last dimension to length 1; zero vectors stay zero, and their gradient is 0 instead of undefined."""
    exact = vectors if vectors.dtype == torch.float64 else vectors.float()
    # The largest entry goes first, so that no square over- or underflows.
    largest = exact.detach().abs().amax(-1, keepdim=True)
    nothing = largest == 0
    moderate = exact / torch.where(nothing, 1.0, largest)
    length = torch.where(nothing, 1.0, (moderate * moderate).sum(-1, keepdim=True)).sqrt()
    return torch.where(nothing, 0.0, moderate / length)
