"""Scores of a row's positive and of its candidates, for the losses that look at each of them singly.

These losses build the matrix of scores, [B, K]: right for some hundreds of negatives a row. For thousands of shared
columns :mod:`hatchway.losses.sampled_softmax` never builds it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.losses.checks import check_shape, check_temperature
from hatchway.negatives.ledger import Ledger


@dataclass(frozen=True)
class Scores:
    """Scores of a batch, in float32 (float64 where the queries are).

    Attributes:
        positive: [B] score of each row's positive, divided by the temperature.
        negatives: [B, K] scores of the candidates, divided by the temperature; anything where none is present.
        present: [B, K] bool, True where there is a candidate.
    """

    positive: Tensor
    negatives: Tensor
    present: Tensor

    @property
    def count(self) -> Tensor:
        """How many candidates each row has, [B] in the scores' type."""
        return self.present.sum(1).to(self.positive.dtype)


def score(
    query: Tensor, positive: Tensor, negatives: Tensor, present: Tensor | None, temperature: Tensor | float = 1.0
) -> Scores:
    """Score the positives and the candidates by dot products.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        negatives: [B, K, d], each row's own candidates, or [K, d], the same for all rows; K may be 0.
        present: [B, K] bool, False where a row has no candidate there or it is masked; None where all are present.
            Vectors of absent candidates change nothing, but must be finite.
        temperature: divides every score.

    Raises:
        DataError: shapes disagree, or ``present`` is not boolean.
        SettingsError: the temperature is not above 0.
    """
    check_temperature(temperature)
    if query.dim() != 2:
        raise DataError(f"query has shape {tuple(query.shape)}; allowed: [B, d]")
    batch, width = query.shape
    shared = negatives.dim() == 2
    columns = negatives.shape[-2] if negatives.dim() > 1 else 0
    because = f"query is [B, d] = {(batch, width)}"
    check_shape("positive", positive, (batch, width), because)
    check_shape(
        "negatives",
        negatives,
        (columns, width) if shared else (batch, columns, width),
        f"{because}; negatives are [B, K, d], or [K, d] where all rows share them",
    )
    if present is None:
        present = torch.ones((batch, columns), dtype=torch.bool, device=query.device)
    check_shape("present", present, (batch, columns), f"there are {batch} rows and K = {columns} candidates")
    if present.dtype != torch.bool:
        raise DataError(f"present is {present.dtype}; allowed: torch.bool (weights of candidates go into log_count)")
    with torch.autocast(query.device.type, enabled=False):
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        scaled = (query.to(dtype) / temperature).to(dtype)  # a temperature may be of float64
        own = negatives.to(dtype)
        scores = scaled @ own.T if shared else (own @ scaled[:, :, None])[:, :, 0]
        return Scores((scaled * positive.to(dtype)).sum(1), scores, present)


def counts(log_count: Tensor | None, scores: Scores) -> Tensor:
    """Return [B, K] ln n of the candidates, 0 (n = 1) where none is given.

    Args:
        log_count: [B, K], or [K] where all rows share the candidates; None for no counts.
        scores: what they are counts of.

    Raises:
        DataError: the shape is neither, or a candidate that is present has a count of 0, infinity or NaN.
    """
    shape = tuple(scores.present.shape)
    if log_count is None:
        return torch.zeros((), dtype=scores.negatives.dtype, device=scores.negatives.device).expand(shape)
    if log_count.dim() != 1 or tuple(log_count.shape) != shape[1:]:
        check_shape("log_count", log_count, shape, "one for each candidate, [B, K], or [K] where all rows share them")
    spread = log_count.to(scores.negatives.dtype).expand(shape)
    if not bool((torch.isfinite(spread) | ~scores.present).all()):
        raise DataError(
            "log_count is not finite for a candidate that is present; allowed: the logarithm of an expected count "
            "above 0 (whoever drew the candidate could draw it, so its count is not 0)"
        )
    return spread.masked_fill(~scores.present, 0.0)


def unmasked(ledger: Ledger) -> Tensor:
    """Return [B, C] bool: which of the ledger's shared columns stand as negatives for which row.

    For the losses that take ``present``; :func:`hatchway.losses.sampled_softmax.sampled_softmax` reads the ledger
    itself and builds no such matrix.
    """
    present = torch.ones((len(ledger.positives), len(ledger.items)), dtype=torch.bool, device=ledger.positives.device)
    present[ledger.masked.rows, ledger.masked.columns] = False
    return present
