"""Which seller offers each item: what the positive's seller offers is most likely the same thing, listed again."""

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.engagements import Int64

_FEW = 20
"""A seller of no more listings than this is none too large, however small the catalogue."""


def seller_rows(sellers: pl.Series) -> Int64:
    """Number the sellers, in the order in which they first come.

    Args:
        sellers: [N] ids of any type.

    Returns:
        [N] int64, −1 where the seller is not known: nothing is offered by the same unknown seller.

    >>> seller_rows(pl.Series(["anna", None, "bert", "anna", ""])).tolist()
    [0, -1, 1, 0, -1]
    """
    if sellers.dtype == pl.String:
        sellers = sellers.set(sellers == "", None)
    known = sellers.drop_nulls().unique(maintain_order=True)
    numbers = pl.DataFrame({"seller": known, "row": np.arange(len(known))})
    found = pl.DataFrame({"seller": sellers}).join(numbers, on="seller", how="left", maintain_order="left")
    rows: Int64 = found["row"].fill_null(-1).to_numpy().astype(np.int64)
    return rows


def without_shops(rows: Int64, share: float) -> tuple[Int64, Int64]:
    """Set the largest sellers aside: a shop's things are no relists of each other.

    Without this a catalogue of a single seller would have no negatives left.

    Args:
        rows: [N] int64, as :func:`seller_rows` returns them.
        share: a seller of more than this share of the N items (and more than twenty) is a shop.

    Returns:
        The rows with −1 at the shops' items, and the shops' numbers of items, largest first.

    >>> kept, shops = without_shops(np.array([0] * 30 + [1] * 5 + [2] * 65), 0.25)
    >>> np.unique(kept).tolist(), shops.tolist()
    ([-1, 1], [65, 30])
    """
    counts = np.bincount(rows[rows >= 0], minlength=1)
    shops: npt.NDArray[np.bool_] = counts > max(share * len(rows), _FEW)
    kept = np.where((rows >= 0) & shops[np.maximum(rows, 0)], -1, rows).astype(np.int64)
    return kept, np.sort(counts[shops])[::-1].astype(np.int64)
