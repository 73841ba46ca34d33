"""One block of a softmax: logits become exponentials in place; each row's peak, and sum beside its positive, are kept.

The plain path is six passes over the block; the compiled one adds, compares, takes the exponential and sums while a row
is in the first-level cache.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import CompiledInAnyOrder, exponential, suits, widest, written_out

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


@written_out
def ordered(value: np.float32) -> np.int32:
    """Return a float's bits as a whole number of the same order, the bits of a negative one turned round.

    A compiler may reorder whole numbers and not floats, whose NaNs it must respect. A NaN is above all or below all.
    """
    bits = np.float32(value).view(np.int32)
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@written_out
def back(number: np.int32) -> np.float32:
    """Return the float that :func:`ordered` made a whole number of."""
    return np.int32(number ^ ((number >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


@written_out
def exponentials_over(row: Float32, largest: np.float32) -> np.float32:
    """Replace a row's logits by their exponentials over the largest; return the sum."""
    summed = np.float32(0.0)
    for j in range(len(row)):
        share = exponential(row[j] - largest)
        row[j] = share
        summed += share
    return summed


@written_out
def own_exponentials_over(own: Float32, largest: np.float32) -> np.float32:
    """Do the same for a row's own logits; return the sum of all but the first, the positive's."""
    for h in range(len(own)):
        own[h] = np.exp(own[h] - largest)
    return np.float32(own[1:].sum())


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
    """Work row by row; without a branch in the loops over columns, so that they become vector instructions."""
    widest()
    for at in range(len(rows)):
        logits[rows[at], columns[at]] += values[at]
    for i in range(len(logits)):
        row, top = logits[i], ordered(own[i, 0])
        for h in range(1, own.shape[1]):
            top = max(top, ordered(own[i, h]))
        for j in range(len(row)):
            row[j] += bias[j]
            top = max(top, ordered(row[j]))
        peak[i] = back(top)
        others[i] = exponentials_over(row, peak[i]) + own_exponentials_over(own[i], peak[i])
