"""Losses that ask of each candidate alone: positive or negative? Word2vec's negative sampling, BCE and gBCE.

With σ the logistic function, s a score divided by the temperature, K candidates and a weight v_k of each,

    negative_sampling       −ln σ(s_p) − Σ_k v_k ln σ(−s_k)                       (Mikolov et al. 2013)
    binary_cross_entropy    the same over 1 + K                                   (SASRec and its kin)
    gbce                    [−β ln σ(s_p) − Σ_k v_k ln σ(−s_k)] / (1 + K)         (Petrov & Macdonald 2023)

Without a correction (v = 1) the best score is ln[P(item | query) / n(item)], n the expected number of copies of the
item among the row's candidates: popularity is divided out, and more candidates lower every score. Two corrections
restore it, and with either the best score is ln P(item | query) + (alpha − 1)·ln n(item):

    ``weight``    v_k = n_k^(−alpha): with alpha 1 the sum over candidates stands for the sum over the catalogue, each
                  item once
    ``logit``     s − alpha·ln n in place of s, for the positive too: noise-contrastive estimation (Gutmann & Hyvärinen
                  2010); a candidate that is seldom drawn weighs no more than another, so its noise is smaller

(Where copies of the positive are masked, read the odds P/(1 − P) for P.)

gBCE mends the overconfidence that BCE with few candidates has by weakening the positive: β = 1 + t·(K/(N − 1) − 1) for
a catalogue of N, from t = 0 (BCE) to t = 1 (the probabilities that BCE over the whole catalogue would have). Its
authors transform the positive's score in float64, to ln(1/(σ(s)^(−β) − 1)); −ln σ of that is −β·ln σ(s), which is
stable as it stands and is what is computed here.
"""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import softplus

from hatchway.errors import DataError, SettingsError
from hatchway.losses.candidates import Scores, counts, score
from hatchway.losses.checks import Reduction, check_alpha, check_range, check_shape, reduced
from hatchway.losses.temperature import Tempered

CountCorrection = Literal["weight", "logit"]
"""How expected counts enter; see the module."""


def negative_sampling(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Tensor | float = 1.0,
    present: Tensor | None = None,
    log_count: Tensor | None = None,
    positive_log_count: Tensor | None = None,
    correction: CountCorrection = "weight",
    alpha: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Word2vec's negative sampling: the positive's binary loss plus the sum of the candidates'.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d], each row's own candidates, or [K, d], the same for all rows; K may be 0.
        temperature: divides every score; a number, or a scalar tensor that is learned.
        present: [B, K] bool, False where a row has no candidate there or it is masked.
        log_count: ln n of the candidates, [B, K] or [K]; None corrects nothing.
        positive_log_count: [B] ln n of the positives' items *as candidates*; needed by ``logit`` alone.
        correction: how the counts enter, where they are given.
        alpha: weight of the correction.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).

    Returns:
        A scalar, or [B]; float64 for float64 queries, else float32. Can be differentiated twice.

    Raises:
        DataError: shapes disagree, the weights do not sum to more than 0, or a count is 0.
        SettingsError: the temperature is not above 0, alpha is negative or NaN, or ``logit`` lacks a count.
    """
    scores = score(query, positive, negatives, present, temperature)
    one, others = _terms(scores, log_count, positive_log_count, correction, alpha)
    return reduced(one + others, weight, reduction)


def binary_cross_entropy(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Tensor | float = 1.0,
    present: Tensor | None = None,
    log_count: Tensor | None = None,
    positive_log_count: Tensor | None = None,
    correction: CountCorrection = "weight",
    alpha: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Binary cross-entropy: :func:`negative_sampling` divided by 1 + K, K the candidates that the row has.

    The arguments, what is returned and what is raised are those of :func:`negative_sampling`.
    """
    scores = score(query, positive, negatives, present, temperature)
    one, others = _terms(scores, log_count, positive_log_count, correction, alpha)
    return reduced((one + others) / (1 + scores.count), weight, reduction)


def gbce(
    query: Tensor,
    positive: Tensor,
    negatives: Tensor,
    catalogue: int,
    *,
    calibration: float = 0.75,
    temperature: Tensor | float = 1.0,
    present: Tensor | None = None,
    log_count: Tensor | None = None,
    positive_log_count: Tensor | None = None,
    correction: CountCorrection = "weight",
    alpha: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Generalised binary cross-entropy, whose positive counts β as much as BCE's.

    ``calibration`` supposes candidates that are drawn uniformly and are not corrected. The other arguments, what is
    returned and what is raised are those of :func:`negative_sampling`.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d] or [K, d] item vectors of the candidates.
        catalogue: N, the items that candidates are drawn from; 2 or more.
        calibration: t, from 0 (binary cross-entropy) to 1 (fully calibrated).
        temperature: as there.
        present: as there; K is the number of candidates that a row has.
        log_count: as there.
        positive_log_count: as there.
        correction: as there.
        alpha: as there.
        weight: as there.
        reduction: as there.
    """
    scores = score(query, positive, negatives, present, temperature)
    one, others = _terms(scores, log_count, positive_log_count, correction, alpha)
    beta = positive_power(scores.count, catalogue, calibration)
    return reduced((beta * one + others) / (1 + scores.count), weight, reduction)


def positive_power(negatives: Tensor, catalogue: int, calibration: float) -> Tensor:
    """Return gBCE's β for rows with so many candidates: ``1 + t·(K/(N − 1) − 1)``, not below 0.

    Args:
        negatives: [B] K of each row.
        catalogue: N.
        calibration: t.

    Raises:
        SettingsError: N is below 2, or t is not from 0 to 1.
    """
    _check_calibration(catalogue, calibration)
    # More draws than the catalogue has items are no reason to strengthen the positive.
    rate = (negatives / (catalogue - 1)).clamp(max=1.0)
    return 1 + calibration * (rate - 1)


def _terms(
    scores: Scores,
    log_count: Tensor | None,
    positive_log_count: Tensor | None,
    correction: CountCorrection,
    alpha: float,
) -> tuple[Tensor, Tensor]:
    """Return the positives' binary losses, [B], and the sums of the candidates', [B]."""
    check_alpha(alpha)
    _check_correction(correction)
    log = alpha * counts(log_count, scores)
    own, others = scores.positive, scores.negatives
    if correction == "logit" and log_count is not None:
        if positive_log_count is None:
            raise SettingsError(
                "correction 'logit' needs positive_log_count, ln n of the positives' items as candidates; "
                "correction 'weight' does not"
            )
        check_shape("positive_log_count", positive_log_count, (len(own),), "one for each row")
        if not bool(torch.isfinite(positive_log_count).all()):
            raise DataError(
                "positive_log_count is not finite: correction 'logit' needs candidates that could have been any "
                "positive, so that no count is 0; correction 'weight' does not"
            )
        own, others = own - alpha * positive_log_count.to(own.dtype), others - log
        log = torch.zeros_like(others)
    losses = (softplus(others) * torch.exp(-log)).masked_fill(~scores.present, 0.0)
    return softplus(-own), losses.sum(1)


class NegativeSampling(Tempered):
    """:func:`negative_sampling` with its settings kept, and the temperature learned if wished.

    Args:
        temperature: the fixed or the initial temperature.
        correction: how the counts enter, where they are given.
        alpha: weight of the correction.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    _loss = staticmethod(negative_sampling)

    def __init__(
        self,
        temperature: float = 1.0,
        correction: CountCorrection = "weight",
        alpha: float = 1.0,
        *,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature, learn_temperature=learn_temperature)
        check_alpha(alpha)
        _check_correction(correction)
        self.correction = correction
        self.alpha = alpha

    def forward(
        self,
        query: Tensor,
        positive: Tensor,
        negatives: Tensor,
        *,
        present: Tensor | None = None,
        log_count: Tensor | None = None,
        positive_log_count: Tensor | None = None,
        weight: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the mean loss, a scalar; or, with ``reduction="none"``, that of every row, [B], weighted."""
        return self._loss(
            query,
            positive,
            negatives,
            temperature=self.temperature,
            present=present,
            log_count=log_count,
            positive_log_count=positive_log_count,
            correction=self.correction,
            alpha=self.alpha,
            weight=weight,
            reduction=reduction,
        )


class BinaryCrossEntropy(NegativeSampling):
    """:func:`binary_cross_entropy` with its settings kept; they are those of :class:`NegativeSampling`."""

    _loss = staticmethod(binary_cross_entropy)


class GBCE(Tempered):
    """:func:`gbce` with its settings kept, without counts: it supposes candidates that are drawn uniformly.

    Args:
        catalogue: N, the items that candidates are drawn from.
        calibration: t, from 0 (binary cross-entropy) to 1 (fully calibrated).
        temperature: the fixed or the initial temperature.
        learn_temperature: make the logarithm of the temperature a parameter.
    """

    def __init__(
        self, catalogue: int, calibration: float = 0.75, temperature: float = 1.0, *, learn_temperature: bool = False
    ) -> None:
        super().__init__(temperature, learn_temperature=learn_temperature)
        _check_calibration(catalogue, calibration)
        self.catalogue = catalogue
        self.calibration = calibration

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
        return gbce(
            query,
            positive,
            negatives,
            self.catalogue,
            calibration=self.calibration,
            temperature=self.temperature,
            present=present,
            weight=weight,
            reduction=reduction,
        )


def _check_correction(correction: CountCorrection) -> None:
    if correction not in (allowed := get_args(CountCorrection)):
        raise SettingsError(f"correction is {correction!r}; allowed: {', '.join(allowed)}")


def _check_calibration(catalogue: int, calibration: float) -> None:
    if not catalogue >= 2:
        raise SettingsError(f"catalogue is {catalogue}; allowed: 2 items or more (one is the positive)")
    check_range("calibration", calibration, 0, 1, "from 0 (plain binary cross-entropy) to 1 (fully calibrated)")
