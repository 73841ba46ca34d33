"""Neighbours of any number of queries, block after block: memory holds one block's answer, whatever their number."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from hatchway.errors import UsageError
from hatchway.index.protocol import Index, Mask, Neighbours


def neighbours(
    index: Index,
    queries: npt.NDArray[np.generic] | Iterable[npt.NDArray[np.generic]],
    k: int,
    *,
    without: Mask | None = None,
    at_once: int = 4096,
) -> Iterator[Neighbours]:
    """Search for the k best rows of many queries, and give the answers block after block.

    Args:
        index: what is searched.
        queries: [Q, d] in one array, which may be mapped from a file and is read as it is needed; or blocks [b, d] one
            after the other, of any sizes.
        k: how many rows each query gets.
        without: [N] bool, True for rows that must not be returned.
        at_once: how many queries of one array make a block.

    Yields:
        one :class:`~hatchway.index.protocol.Neighbours` for each block, in the order of the queries.

    Raises:
        UsageError: ``at_once`` or ``k`` is below 1.
        DataError: the queries are not [Q, d] numbers, or one is not finite; or ``without`` is not [N] bool.
    """
    if at_once < 1:
        raise UsageError(f"at_once = {at_once}: a block must have at least 1 query")
    blocks: Iterable[npt.NDArray[np.generic]] = queries
    if isinstance(queries, np.ndarray):
        blocks = (queries[begin : begin + at_once] for begin in range(0, len(queries), at_once))
    return (index.search(block, k, without=without) for block in blocks)
