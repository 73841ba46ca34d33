"""Text as hashed words and character n-grams (Bojanowski et al. 2017, section 3), cut with Polars."""

import zlib

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.contexts import ragged_ranges

_SIZES = (3, 4)
_REMEMBERED = 100_000
"""Distinct texts whose n-grams a reader keeps: query texts repeat, and cutting them again is slow."""
_LONGEST_WORD = 24
"""A word's n-grams are taken from its first characters only: longer words are codes or noise."""


def hashed_grams(texts: pl.Series, buckets: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Hash each text's words and the 3- and 4-grams of its words to bucket numbers.

    Text is lower-cased; a word is a run of letters and digits, marked at both ends. The hash is CRC-32 of UTF-8,
    the same on every machine and under every library version, because bucket numbers are part of a trained model.

    Args:
        texts: [M] strings; null counts as empty.
        buckets: number of buckets.

    Returns:
        grams: [sum of lengths] int64 in ``0 .. buckets - 1``, one text after another.
        offsets: [M + 1] int64.

    >>> grams, offsets = hashed_grams(pl.Series(["sofa", "", "Sofa!"]), buckets=1000)
    >>> offsets.tolist(), bool((grams[:8] == grams[8:]).all())
    ([0, 8, 8, 16], True)
    """
    frame = pl.DataFrame({"row": pl.arange(len(texts), eager=True), "text": texts.cast(pl.String).fill_null("")})
    words = (
        frame.lazy()
        .select("row", gram=pl.col("text").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+"))
        .explode("gram")
        .drop_nulls("gram")
        .select("row", gram=pl.lit("<") + pl.col("gram") + pl.lit(">"))
        .collect()
    )
    pieces = [words]
    for size in _SIZES:
        for start in range(_LONGEST_WORD):
            longer = words.filter(pl.col("gram").str.len_chars() >= start + size)
            if longer.is_empty():
                break
            # A word of exactly this size is there as a word already.
            pieces.append(
                longer.filter(pl.col("gram").str.len_chars() > size).select(
                    "row", gram=pl.col("gram").str.slice(start, size)
                )
            )
    grams = pl.concat(pieces).sort("row", maintain_order=True)
    distinct = grams.select("gram").unique(maintain_order=True)
    bucket = np.fromiter((zlib.crc32(gram.encode()) % buckets for gram in distinct["gram"]), np.int64, len(distinct))
    numbered = grams.join(distinct.with_columns(bucket=pl.Series(bucket)), on="gram", how="left", maintain_order="left")
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.bincount(grams["row"].to_numpy(), minlength=len(texts)), out=offsets[1:])
    return numbered["bucket"].to_numpy(writable=True), offsets


class TextReader:
    """Reads batches of texts that repeat: each distinct text is cut once and remembered.

    Args:
        buckets: number of buckets.
    """

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._known: dict[str, npt.NDArray[np.int64]] = {}

    def read(self, texts: npt.NDArray[np.object_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return what :func:`hashed_grams` does for [M] texts."""
        distinct, which = np.unique(texts.astype(str), return_inverse=True)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        new = [text for text in distinct.tolist() if text not in self._known]
        if new:
            grams, offsets = hashed_grams(pl.Series(new, dtype=pl.String), self._buckets)
            self._known.update(zip(new, np.split(grams, offsets[1:-1]), strict=True))
        pieces = [self._known[text] for text in distinct.tolist()]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        begins = ends - np.array([len(piece) for piece in pieces], np.int64)
        index, flat_offsets = ragged_ranges(begins[which], ends[which])
        return np.concatenate([*pieces, np.empty(0, np.int64)])[index], flat_offsets
