"""Sums of a block's rows while its tiles come and go: a register of them to a row, whose lanes are joined at the end.

See :func:`hatchway.compiled.register_exponentials.sum_exponentials`.
"""

import numpy as np
import numpy.typing as npt

from hatchway.compiled import exponential, written_out
from hatchway.compiled.llvm import REGISTER
from hatchway.losses.softmax_rows import back, ordered, own_exponentials_over

Float32 = npt.NDArray[np.float32]


@written_out
def begin_lanes(own: Float32, lane_peak: Float32, lane_total: Float32) -> None:
    """Begin the lanes of a block's rows with nothing, over the largest of the row's own logits."""
    lane_total[:] = np.float32(0.0)
    for i in range(len(own)):
        largest = ordered(own[i, 0])
        for h in range(1, own.shape[1]):
            largest = max(largest, ordered(own[i, h]))
        lane_peak[i * REGISTER : (i + 1) * REGISTER] = back(largest)


@written_out
def largest_of_lanes(lane_peak: Float32, row: int) -> np.float32:
    """Return the largest logit that a row has had so far."""
    top = ordered(lane_peak[row * REGISTER])
    for lane in range(row * REGISTER, (row + 1) * REGISTER):
        top = max(top, ordered(lane_peak[lane]))
    return back(top)


@written_out
def join_lanes(own: Float32, lane_peak: Float32, lane_total: Float32, others: Float32, peak: Float32) -> None:
    """Join the lanes of a block's rows, with the rows' own logits; ``peak`` is inf beyond the last row."""
    peak[len(own) :] = np.inf
    for i in range(len(own)):
        largest, summed = largest_of_lanes(lane_peak, i), np.float32(0.0)
        for lane in range(i * REGISTER, (i + 1) * REGISTER):
            summed += lane_total[lane] * exponential(lane_peak[lane] - largest)
        others[i], peak[i] = summed + own_exponentials_over(own[i], largest), largest
