"""The sampled softmax with the ledger's correction: the loss that everything else here exists for.

For row i with positive p, columns c (shared by the batch and the row's own) and expected counts n
(:mod:`hatchway.negatives.ledger`)

    loss_i = −[x_p − ln(exp(x_p) + Σ_c exp(x_c))],    x = score / temperature − alpha·ln n,  masked x = −inf.

An own column may have a down-weight besides, whose logarithm is added to x and not scaled by alpha.

Alpha 1 learns scores that keep the items' popularity (log P up to a constant); alpha 0 learns scores from which it is
divided out, the pointwise mutual information with the sampling distribution (Bengio & Senécal 2008; Yi et al. 2019).
"""

import torch
from torch import Tensor

from hatchway.errors import DataError
from hatchway.losses.block_rows import Adjustments
from hatchway.losses.checks import Reduction, check_alpha, check_reduction, check_temperature, check_weight
from hatchway.losses.copies import gain_of_copies, own_copies
from hatchway.losses.row_blocks import Products, row_block_losses
from hatchway.losses.temperature import Tempered
from hatchway.negatives.ledger import Ledger


def sampled_softmax(
    query: Tensor,
    positive: Tensor,
    columns: Tensor,
    ledger: Ledger,
    *,
    own: Tensor | None = None,
    temperature: Tensor | float = 1.0,
    alpha: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    products: Products = "float32",
) -> Tensor:
    """Cross-entropy of each row's positive against the shared columns and the row's own.

    Args:
        query: [B, d] query vectors.
        positive: [B, d] item vectors of the rows' positives.
        columns: [C, d] item vectors of the ledger's columns, in its order.
        ledger: items, expected counts and masks of the columns.
        own: [B, H, d] item vectors of the ledger's own columns, any finite vector where one is absent; may be left out
            where H is 0.
        temperature: divides every score, before the correction; a scalar, or a scalar tensor that is learned.
        alpha: weight of the correction; 0 is none, 1 is the full one.
        weight: [B] weights of the rows, 0 or more; the mean is over the weights. None weighs all alike. They may be
            learned.
        reduction: ``"mean"``, or ``"none"`` for the rows' own losses (weighted, not averaged).
        products: ``"bf16"`` rounds the factors of matrix products where the processor multiplies those more quickly
            (gradients within .6 % in ordinary use); see :data:`~hatchway.losses.row_blocks.Products`.

    Returns:
        A scalar, or [B] float32. Computed in float32 whatever the inputs' type. A row whose every candidate is masked
        (:attr:`~hatchway.negatives.ledger.Ledger.rows_without_negatives`) has loss 0 and moves nothing.

    Raises:
        DataError: shapes disagree, or the weights do not sum to more than 0.
        SettingsError: the temperature is not above 0, alpha is negative or NaN, or ``products`` is none of the two.
    """
    _check(query, positive, columns, ledger, own)
    check_weight(weight, len(query))
    check_temperature(temperature)
    check_alpha(alpha)
    check_reduction(reduction)
    with torch.autocast(query.device.type, enabled=False):
        scaled = (query.float() / temperature).float()  # a temperature may be of float64
        extra = (scaled * positive.float()).sum(1, keepdim=True) - alpha * ledger.positive_log_count[:, None]
        gain = gain_of_copies(scaled, positive.float(), columns.float(), own, ledger, alpha)
        if gain is not None:
            extra = extra + gain[:, None]
        if own is not None and own.shape[1]:
            extra = torch.cat([extra, _own_logits(scaled, own.float(), ledger, alpha)], 1)
        bias = -alpha * ledger.log_count
        rows = torch.ones(len(query), device=query.device) if weight is None else weight.float()
        total = rows.sum()
        # Weights that are learned need the rows' losses; others are known before the loss is, which saves a pass.
        learned = weight is not None and weight.requires_grad and torch.is_grad_enabled()
        known = None if learned or reduction == "none" else rows / total
        summed, losses = row_block_losses(scaled, columns.float(), extra, bias, adjustments(ledger), known, products)
        if gain is not None:
            losses = losses + gain
            summed = summed if known is None else summed + torch.dot(known, gain)
        if known is not None:
            return summed
        return losses * rows if reduction == "none" else (losses * rows).sum() / total


def _own_logits(scaled: Tensor, own: Tensor, ledger: Ledger, alpha: float) -> Tensor:
    """Return the logits of the rows' own columns, [B, H]; −inf where absent or masked."""
    scores = (own * scaled[:, None]).sum(2)  # a batch of such small products takes far longer
    logits = scores - alpha * ledger.own_log_count + ledger.own_log_weight
    return logits.masked_fill(~ledger.own_stands | own_copies(ledger), -torch.inf)


def adjustments(ledger: Ledger) -> Adjustments:
    """Return what is added to single logits: −inf where masked, and where a copy of the positive stands for itself."""
    rows = torch.cat([ledger.masked.rows, ledger.copy_rows])
    columns = torch.cat([ledger.masked.columns, ledger.copy_columns])
    if len(ledger.copy_rows):
        rows, order = torch.sort(rows, stable=True)
        columns = columns[order]
    return Adjustments(rows, columns, torch.full(rows.shape, -torch.inf, device=rows.device))


class SampledSoftmax(Tempered):
    """:func:`sampled_softmax` with its settings kept, and the temperature learned if wished.

    Args:
        temperature: the fixed or the initial temperature.
        alpha: weight of the correction.
        learn_temperature: make the logarithm of the temperature a parameter.
        products: how matrix products are made.
    """

    def __init__(
        self,
        temperature: float = 0.1,
        alpha: float = 1.0,
        *,
        learn_temperature: bool = False,
        products: Products = "float32",
    ) -> None:
        super().__init__(temperature, learn_temperature=learn_temperature)
        check_alpha(alpha)
        self.alpha = alpha
        self.products: Products = products

    def forward(
        self,
        query: Tensor,
        positive: Tensor,
        columns: Tensor,
        ledger: Ledger,
        weight: Tensor | None = None,
        own: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the mean loss, a scalar; or, with ``reduction="none"``, that of every row, [B], weighted."""
        return sampled_softmax(
            query,
            positive,
            columns,
            ledger,
            own=own,
            temperature=self.temperature,
            alpha=self.alpha,
            weight=weight,
            reduction=reduction,
            products=self.products,
        )


def _check(query: Tensor, positive: Tensor, columns: Tensor, ledger: Ledger, own: Tensor | None) -> None:
    if query.dim() != 2:
        raise DataError(f"query has shape {tuple(query.shape)}; allowed: [B, d]")
    batch, width = query.shape
    most = ledger.own_items.shape[1]
    wanted = {
        "positive": (batch, width),
        "columns": (len(ledger.items), width),
        "own": (batch, most, width),
        "ledger.positives": (batch,),
    }
    got = {
        "positive": positive.shape,
        "columns": columns.shape,
        "own": (batch, 0, width) if own is None else own.shape,
        "ledger.positives": ledger.positives.shape,
    }
    for name, shape in wanted.items():
        if tuple(got[name]) != shape:
            raise DataError(
                f"{name} has shape {tuple(got[name])}, expected {shape}: query is [B, d] = {(batch, width)} and the "
                f"ledger has {len(ledger.items)} columns, and {most} own ones a row"
            )
