"""One block of a softmax: logits become exponentials in place; each row's peak, and sum beside its positive, are kept.

The plain path is six passes over the block; the compiled one adds, compares, takes the exponential and sums while a row
is in the first-level cache.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import CompiledInAnyOrder, exponential, suits, widest

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


def exponentials(
    logits: Tensor, own: Tensor, bias: Tensor, rows: Tensor, columns: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """Replace logits by ``exp(logit − peak)``, the peak being the row's largest, so that nothing overflows.

    Args:
        logits: [R, C], contiguous; changed in place.
        own: [R, 1 + H] further logits of each row, contiguous, not all −inf; changed in place.
        bias: [C], added to every row of ``logits`` first.
        rows: [M] int64, with ``columns`` coordinates in ``logits``, each at most once.
        columns: [M] int64.
        values: [M] added there first; −inf to mask, which leaves exactly 0.

    Returns:
        others: [R], the sum of a row's exponentials but for ``own[:, 0]``, the positive's: next to a positive that has
            nearly all of the row, they would be lost in a sum with it.
        peak: [R]. The sum of all, or the peak, is NaN where a logit is NaN or +inf.
    """
    if logits.dtype == torch.float32 and suits(logits):
        return _compiled(logits, own, bias, rows, columns, values)
    return _plain(logits, own, bias, rows, columns, values)


def _plain(
    logits: Tensor, own: Tensor, bias: Tensor, rows: Tensor, columns: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    logits += bias
    if len(rows):
        logits.index_put_((rows, columns), logits[rows, columns] + values)
    peak = own.amax(1)
    if logits.shape[1]:
        peak = torch.maximum(peak, logits.amax(1))
    logits.sub_(peak[:, None]).exp_()
    own.sub_(peak[:, None]).exp_()
    return logits.sum(1) + own[:, 1:].sum(1), peak


def _compiled(
    logits: Tensor, own: Tensor, bias: Tensor, rows: Tensor, columns: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    others, peak = logits.new_empty(len(logits)), logits.new_empty(len(logits))
    _in_one_pass(*(x.numpy() for x in (logits, own, bias, rows, columns, values, others, peak)))
    return others, peak


@CompiledInAnyOrder
def _in_one_pass(
    logits: Float32,
    own: Float32,
    bias: Float32,
    rows: Int64,
    columns: Int64,
    values: Float32,
    others: Float32,
    peak: Float32,
) -> None:
    """Work row by row.

    Largest values are found by comparing floats as integers (the bits of a negative one turned round), because a
    compiler may reorder whole numbers and not floats, whose NaNs it must respect.
    """
    widest()
    turned, last = np.int32(0x7FFFFFFF), np.int32(31)
    for at in range(len(rows)):
        logits[rows[at], columns[at]] += values[at]
    for i in range(len(logits)):
        row = logits[i]
        top = np.int32(-turned)  # a NaN of negative sign; below −inf
        for h in range(own.shape[1]):
            bits = np.float32(own[i, h]).view(np.int32)
            top = max(top, np.int32(bits ^ ((bits >> last) & turned)))
        for j in range(len(row)):
            value = row[j] + bias[j]
            row[j] = value
            bits = np.float32(value).view(np.int32)
            top = max(top, np.int32(bits ^ ((bits >> last) & turned)))
        largest = np.int32(top ^ ((top >> last) & turned)).view(np.float32)
        summed = np.float32(0.0)
        for j in range(len(row)):
            share = exponential(row[j] - largest)
            row[j] = share
            summed += share
        for h in range(own.shape[1]):
            share = np.exp(own[i, h] - largest)
            own[i, h] = share
            if h > 0:
                summed += share
        others[i] = summed
        peak[i] = largest
