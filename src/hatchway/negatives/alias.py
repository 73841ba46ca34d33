"""Walker's alias tables: draws from any distribution over N items at the cost of one random number and one look-up.

The table has a bin for every item. A draw picks a bin, each alike, and a place in it: below the bin's threshold it
takes the bin's own item, above it the bin's other item (Walker 1977; Vose 1991). Thresholds are whole numbers of 31
bits, so no sum over the catalogue stands between an item and its chance, and no digits can get lost in such a sum.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hatchway.compiled import Compiled, ahead, available, suits

Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_ONE = 2**31
"""A threshold of 1; the largest that fits is one less."""


def build_alias(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Build the table of a distribution.

    Instead of Vose's two stacks the items are swept in order: those below the mean are filled up, one after another, by
    the first one above the mean that has something left, which becomes a bin to be filled itself when it has nothing
    left. Who fills whom is then a search in running sums (after Hübschle-Schneider and Sanders 2019).

    Args:
        weights: [N] 0 or more, finite, not all 0; they need not sum to 1.

    Returns:
        [N, 2] int32: threshold and other item of every bin. An item of weight 0 has threshold 0, and nobody's other
        item is of weight 0, so that it is never drawn.
    """
    scaled = weights * (len(weights) / weights.sum())
    table = np.empty((len(weights), 2), np.int32)
    table[:, 0] = _ONE - 1
    table[:, 1] = np.arange(len(weights), dtype=np.int32)
    if available():
        _sweep(scaled, table)
    else:
        _search(scaled, table)
    return table


def _search(scaled: Float64, table: Int32) -> None:
    """Fill a table whose bins are all their own; ``scaled`` has mean 1."""
    above = scaled > 1.0
    givers = np.flatnonzero(above).astype(np.int32)
    takers = np.flatnonzero(~above).astype(np.int32)
    if not len(givers):  # all alike
        return
    wanting = np.cumsum(1.0 - scaled[takers])
    spare = np.cumsum(scaled[givers] - 1.0)
    before = np.concatenate([[0.0], wanting[:-1]])[: len(takers)]
    # Rounding may leave the last ones without a giver; the last giver has what they want but for that rounding.
    by = np.minimum(np.searchsorted(spare, before, side="right"), len(givers) - 1)
    table[takers, 0] = np.minimum(np.rint(scaled[takers] * _ONE), _ONE - 1)
    table[takers, 1] = givers[by]
    # A giver is used up by the first taker with which all that was wanted exceeds all that could be spared.
    last = np.searchsorted(wanting, spare[:-1], side="left")
    used = np.flatnonzero(last < len(takers))
    left = 1.0 + spare[used] - wanting[last[used]]
    table[givers[used], 0] = np.clip(np.rint(left * _ONE), 0, _ONE - 1)
    table[givers[used], 1] = givers[used + 1]


@Compiled
def _sweep(scaled: Float64, table: Int32) -> None:
    """Fill the table as :func:`_search` does, with the two running sums kept on the way; the same to the last bit."""
    number, giver = len(scaled), 0
    while giver < number and scaled[giver] <= 1.0:
        giver += 1
    if giver == number:
        return
    wanting, spare = 0.0, scaled[giver] - 1.0
    for taker in range(number):
        if scaled[taker] > 1.0:
            continue
        table[taker, 0] = min(np.rint(scaled[taker] * _ONE), _ONE - 1.0)
        table[taker, 1] = giver
        wanting += 1.0 - scaled[taker]
        while spare <= wanting:
            following = giver + 1
            while following < number and scaled[following] <= 1.0:
                following += 1
            if following == number:
                spare = np.inf  # the last giver
            else:
                table[giver, 0] = min(max(np.rint((1.0 + spare - wanting) * _ONE), 0.0), _ONE - 1.0)
                table[giver, 1] = following
                giver = following
                spare += scaled[giver] - 1.0


def draw_alias(table: Tensor, places: Tensor) -> Tensor:
    """Draw from a table.

    Args:
        table: [N, 2] int32, as from :func:`build_alias`.
        places: [M] float64, uniform on [0, 1): which bin, and where in it.

    Returns:
        [M] int64 item rows.
    """
    if suits(table, places):
        return torch.from_numpy(look_up(table.view(-1).numpy(), places.contiguous().numpy()))
    scaled = places * len(table)
    bins = scaled.long()
    chosen = table[bins]
    return torch.where((scaled - bins) * _ONE < chosen[:, 0], bins, chosen[:, 1].long())


def _look_up(flat: Int32, places: Float64) -> Int64:
    """Draw from the table ``flat``, [2 N]: every bin is asked for first, so that many are on their way at once.

    Which of the two items a draw takes is computed and not asked: a processor cannot guess it.
    """
    bins, out = np.int64(len(flat) // 2), np.empty(len(places), np.int64)
    for k in range(len(places)):
        out[k] = np.int64(places[k] * bins)
        ahead(flat, 2 * out[k])
    for k in range(len(places)):
        own = out[k]
        threshold, other = flat[2 * own], flat[2 * own + 1]
        mine = np.int64((places[k] * bins - own) * _ONE < threshold)
        out[k] = other + (own - other) * mine
    return out


look_up = Compiled(_look_up)


def chances_of(table: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the chance of every item in a single draw from a table, [N] float64; for tests and doubts.

    >>> chances_of(build_alias(np.array([1.0, 2.0, 0.0, 5.0]))).round(6).tolist()
    [0.125, 0.25, 0.0, 0.625]
    """
    share = table[:, 0] / _ONE
    chances = share + np.bincount(table[:, 1], weights=1.0 - share, minlength=len(table))
    return np.asarray(chances / len(table))
