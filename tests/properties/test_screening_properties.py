"""What holds of near hashes and titles whatever they are."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchway.screening.hamming import near_pairs
from hatchway.screening.similar import SimilarItems
from hatchway.screening.titles import similar_titles
from hatchway.screening.wording import read_titles


@settings(max_examples=40, deadline=None)
@given(
    known=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 255), max_size=40),
    radius=st.integers(0, 16),
    most=st.integers(1, 10),
)
def test_near_pairs_are_those_of_a_full_comparison(known: list[int], radius: int, most: int) -> None:
    """Any hashes, also few-bit ones that fill single buckets; whoever is near more than ``most`` is left out."""
    hashes = np.array(known, np.uint64)
    near = np.bitwise_count(hashes[:, None] ^ hashes[None]) <= radius
    found = near_pairs(hashes, hashes, radius, most)
    assert found.crowded.tolist() == (near.sum(1) > most).tolist()
    near[found.crowded] = False
    assert np.stack([found.first, found.second], 1).tolist() == np.argwhere(near).tolist()


@settings(max_examples=60, deadline=None)
@given(titles=st.lists(st.none() | st.text(max_size=30), max_size=12))
def test_titles_of_any_text_are_read_and_compared(titles: list[str | None]) -> None:
    """Nothing that stands in a title breaks it; equal titles are read alike, and the lists are lists of these items."""
    series = pl.Series(titles, dtype=pl.String)
    read = read_titles(series)
    assert len(read) == len(titles)
    again = read_titles(pl.concat([series, series]))
    assert [again.text(row) for row in range(len(titles))] == [
        again.text(row + len(titles)) for row in range(len(titles))
    ]
    found = similar_titles(pl.concat([series, series]), margin=-100.0).similar
    assert len(found) == 2 * len(titles)
    # Every title that has a word says the same as its twin.
    worded = [row for row in range(len(titles)) if again.text(row)]
    assert found.contains(np.array(worded, np.int64), np.array(worded, np.int64) + len(titles)).all()


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40))
def test_lists_are_symmetric_and_hold_what_they_were_told(pairs: list[tuple[int, int]]) -> None:
    """Told in any order and direction."""
    first, second = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    lists = SimilarItems.from_pairs(15, first, second)
    told = {(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b}
    assert {(item, int(other)) for item in range(15) for other in lists.of(item)} == told
