"""InfoNCE: the positive against K negatives of its row (van den Oord et al. 2018).

    loss_i = −[s_p − ln(exp(s_p) + Σ_k exp(s_k − alpha·ln n_k))],    s = q·v / temperature

Plain, it is the cross-entropy of picking the positive out of 1 + K; with counts (alpha 1, n_k the expected number of
copies of the candidate given the row) the candidates stand for the normaliser, as in the sampled softmax.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from hatchway.losses.candidates import counts, score
from hatchway.losses.checks import Reduction, check_alpha, reduced
from hatchway.losses.temperature import Tempered


def info_nce(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Tensor | float = 1.0,
    present: Tensor | None = None,
    log_count: Tensor | None = None,
    alpha: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross-entropy of each row's positive against K candidates.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d], each row's own candidates, or [K, d], the same for all rows; K may be 0.
        temperature: divides every score; a number, or a scalar tensor that is learned.
        present: [B, K] bool, False where a row has no candidate there or it is masked. A real-valued K is rows of
            ⌊K⌋ and of ⌊K⌋ + 1 candidates. A row without candidates has loss 0 and no gradient.
        log_count: ln n of the candidates, [B, K] or [K]; None corrects nothing.
        alpha: weight of the correction, where counts are given.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).

    Returns:
        A scalar, or [B]; float64 for float64 queries, else float32. Can be differentiated twice.

    Raises:
        DataError: shapes disagree, the weights do not sum to more than 0, or a count is 0.
        SettingsError: the temperature is not above 0, or alpha is negative or NaN.

    >>> same = torch.zeros(2, 4)
    >>> round(float(info_nce(same, same, torch.zeros(2, 3, 4)).exp()), 4)
    4.0
    """
    check_alpha(alpha)
    scores = score(query, positive, negatives, present, temperature)
    # Differences from the positive, so that the loss of large scores is not the difference of two large numbers.
    logits = scores.negatives - scores.positive[:, None] - alpha * counts(log_count, scores)
    logits = logits.masked_fill(~scores.present, float("-inf"))
    return reduced(torch.logsumexp(pad(logits, (1, 0)), 1), weight, reduction)


class InfoNCE(Tempered):
    """:func:`info_nce` with its settings kept, and the temperature learned if wished.

    Args:
        temperature: the fixed or the initial temperature.
        alpha: weight of the correction, where counts are given.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    def __init__(self, temperature: float = 0.1, alpha: float = 1.0, *, learn_temperature: bool = False) -> None:
        super().__init__(temperature, learn_temperature=learn_temperature)
        check_alpha(alpha)
        self.alpha = alpha

    def forward(
        self,
        query: Tensor,
        positive: Tensor,
        negatives: Tensor,
        *,
        present: Tensor | None = None,
        log_count: Tensor | None = None,
        weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the mean loss, a scalar; or, with ``reduction="none"``, that of every row, [B], weighted."""
        return info_nce(
            query,
            positive,
            negatives,
            temperature=self.temperature,
            present=present,
            log_count=log_count,
            alpha=self.alpha,
            weight=weight,
            reduction=reduction,
        )
