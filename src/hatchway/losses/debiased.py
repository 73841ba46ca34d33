"""Contrastive losses that allow for false negatives: debiased (Chuang 2020) and hard-weighted (Robinson 2021).

Candidates that are drawn from the data's own marginal are sometimes positives: a share τ of them. With N candidates and
s = q·v / temperature, what the true negatives contribute is estimated by taking that share out again,

    G = max( N·exp(lowest / temperature),  [ Σ_k w_k exp(s_k) − τ N exp(s_p) ] / (1 − τ) )
    loss_i = −ln [ exp(s_p) / (exp(s_p) + G) ]

with w_k = 1 (debiased), or w_k = N exp(β s_k) / Σ_l exp(β s_l) (hard-weighted: high scores weigh more, as if hard
negatives had been drawn; β 0 is debiased). ``lowest`` is the smallest score there can be: −1 for cosines, from which
the estimate, a difference that may come out negative, gets its floor. All of it is computed on logarithms.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from hatchway.losses.candidates import score
from hatchway.losses.checks import Reduction, check_range, reduced
from hatchway.losses.temperature import Tempered


def debiased_contrastive(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    positive_share: float,
    temperature: Tensor | float = 1.0,
    lowest: float = -1.0,
    present: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Contrastive loss with the expected share of false negatives taken out.

    Args:
        query: [B, d] query vectors, of length 1 (or see ``lowest``).
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d], each row's own candidates, or [K, d], the same for all rows; K may be 0. Drawn from the
            data's own marginal, as in-batch negatives are, and not corrected for it.
        positive_share: τ, the chance that a candidate is a positive of the row, from 0 (InfoNCE, but for the floor) to
            below 1.
        temperature: divides every score; a number, or a scalar tensor that is learned.
        lowest: the smallest dot product there can be, before the temperature.
        present: [B, K] bool, False where a row has no candidate there or it is masked. A row without candidates has
            loss 0 and no gradient.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).

    Returns:
        A scalar, or [B]; float64 for float64 queries, else float32.

    Raises:
        DataError: shapes disagree, or the weights do not sum to more than 0.
        SettingsError: the temperature is not above 0, τ not in [0, 1), or ``lowest`` not finite.
    """
    return hard_weighted_contrastive(
        query,
        positive,
        negatives,
        positive_share=positive_share,
        hardness=0.0,
        temperature=temperature,
        lowest=lowest,
        present=present,
        weight=weight,
        reduction=reduction,
    )


def hard_weighted_contrastive(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    positive_share: float,
    hardness: float,
    temperature: Tensor | float = 1.0,
    lowest: float = -1.0,
    present: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Debiased contrastive loss whose candidates weigh more the higher they score.

    The arguments, what is returned and what is raised are those of :func:`debiased_contrastive`, and

    Args:
        query: as there.
        positive: as there.
        negatives: as there.
        positive_share: as there.
        hardness: β, 0 or more; the weights are exp(β·score / temperature), scaled to an average of 1 over the row's
            candidates. As published the gradient flows through them too.
        temperature: as there.
        lowest: as there.
        present: as there.
        weight: as there.
        reduction: as there.
    """
    _check(positive_share, hardness, lowest)
    scores = score(query, positive, negatives, present, temperature)
    count = scores.count
    some = count > 0
    # Rows without candidates go through the logarithms as rows of one candidate, and are set to 0 at the end.
    absent = ~scores.present
    log_number = count.clamp(min=1).log()
    total = _log_sum(scores.negatives, absent, some)
    if hardness:
        total = (
            log_number
            + _log_sum((1 + hardness) * scores.negatives, absent, some)
            - _log_sum(hardness * scores.negatives, absent, some)
        )
    floor = log_number + lowest / (temperature if isinstance(temperature, Tensor) else float(temperature))
    if positive_share:
        total = _log_difference(total, scores.positive + log_number + math.log(positive_share)) - math.log1p(
            -positive_share
        )
    losses = softplus(torch.maximum(total, floor) - scores.positive)
    return reduced(losses.masked_fill(~some, 0.0), weight, reduction)


class HardWeightedContrastive(Tempered):
    """:func:`hard_weighted_contrastive` with its settings kept, and the temperature learned if wished.

    Args:
        positive_share: τ, the chance that a candidate is a positive of the row.
        hardness: β; 0 gives :func:`debiased_contrastive`.
        temperature: the fixed or the initial temperature.
        lowest: the smallest dot product there can be, before the temperature.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    def __init__(
        self,
        positive_share: float,
        hardness: float,
        temperature: float = 0.5,
        lowest: float = -1.0,
        *,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature, learn_temperature=learn_temperature)
        _check(positive_share, hardness, lowest)
        self.positive_share = positive_share
        self.hardness = hardness
        self.lowest = lowest

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
        return hard_weighted_contrastive(
            query,
            positive,
            negatives,
            positive_share=self.positive_share,
            hardness=self.hardness,
            temperature=self.temperature,
            lowest=self.lowest,
            present=present,
            weight=weight,
            reduction=reduction,
        )


class DebiasedContrastive(HardWeightedContrastive):
    """:func:`debiased_contrastive` with its settings kept, and the temperature learned if wished.

    Args:
        positive_share: τ, the chance that a candidate is a positive of the row.
        temperature: the fixed or the initial temperature.
        lowest: the smallest dot product there can be, before the temperature.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    def __init__(
        self,
        positive_share: float,
        temperature: float = 0.5,
        lowest: float = -1.0,
        *,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(positive_share, 0.0, temperature, lowest, learn_temperature=learn_temperature)


def _check(positive_share: float, hardness: float, lowest: float) -> None:
    check_range("positive_share", positive_share, 0, math.nextafter(1, 0), "from 0 to below 1")
    check_range("hardness", hardness, 0, math.inf, "0 or more")
    check_range("lowest", lowest, -math.inf, math.inf, "a finite number (-1 for vectors of length 1)")


def _log_sum(scores: Tensor, absent: Tensor, some: Tensor) -> Tensor:
    """Return [B] ln Σ exp over the present candidates; 0 for rows that have none."""
    logits = scores.masked_fill(absent, -torch.inf)
    none = torch.where(some, -torch.inf, 0.0).to(scores.dtype)
    return torch.logsumexp(torch.cat([logits, none[:, None]], 1), 1)


def _log_difference(large: Tensor, small: Tensor) -> Tensor:
    """Return ln(exp(large) − exp(small)), −inf where that is not above 0; the gradient is finite everywhere."""
    below = small < large
    gap = torch.where(below, small - large, -1.0)
    return torch.where(below, large + torch.log(-torch.expm1(gap)), -torch.inf)
