"""Titles that say the same, against the rule applied to every two of them; what is too little, too much, or missing."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from rapidfuzz import fuzz

from hatchway.screening.titles import similar_titles

MAKERS = [
    "halden",
    "ostra",
    "linnea",
    "brackwell",
    "merrow",
    "tofta",
    "calder",
    "vesper",
    "arden",
    "sorrel",
    "kestrel",
    "junia",
]
THINGS = ["sofa", "armchair", "sideboard", "bookcase", "wardrobe", "mirror", "desk", "lamp"]
WOODS = ["teak", "walnut", "mahogany", "birch", "sheesham", "rattan"]
EXTRAS = ["buttoned", "carved", "folding", "padded", "striped", "lacquered", "woven", "polished"]


def catalogue(size: int, seed: int = 5) -> list[str]:
    """Return titles of a maker, a thing, a wood, an extra, a number of doors and a width, in any order."""
    random = np.random.default_rng(seed)
    titles = []
    for _ in range(size):
        words = [str(random.choice(some)) for some in (MAKERS, THINGS, WOODS, EXTRAS)]
        words.append(f"{random.integers(2, 4)}-door")
        random.shuffle(words)
        titles.append(" ".join(words) + (f", {random.integers(60, 70)} cm" if random.random() < 0.5 else ""))
    return titles


def pairs(
    titles: Sequence[str | None], threshold: float = 0.9, margin: float = -100.0, most: int = 1000
) -> set[tuple[int, int]]:
    """Return the pairs found, smaller row first; without a margin chance is no objection."""
    found = similar_titles(pl.Series(titles, dtype=pl.String), threshold, margin, most).similar
    first, second = found.first_of_pairs()
    return set(zip(first.tolist(), second.tolist(), strict=True))


def test_the_rule_holds_for_every_two_of_them() -> None:
    """All against all: the ratio of sorted words, equal numbers, widths within 8 %."""
    titles = catalogue(900)
    plain: list[tuple[str, set[str], float | None]] = []
    for title in titles:
        said, _, stated = title.partition(", ")
        parts = sorted(said.replace("-", " ").split())
        plain.append(
            (" ".join(parts), {part for part in parts if part.isdigit()}, float(stated[:2]) if stated else None)
        )
    wanted = set()
    for i, j in itertools.combinations(range(len(titles)), 2):
        (one, numbers, width), (other, others, wide) = plain[i], plain[j]
        apart = abs(math.log(width / wide)) if width and wide else 0.0
        if fuzz.ratio(one, other) >= 90 and numbers == others and apart <= 0.08:
            wanted.add((i, j))
    assert len(wanted) > 60
    assert pairs(titles) == wanted


def background() -> list[str]:
    """Return a thousand titles that all differ, in which the words of the relists occur too."""
    words = itertools.product(MAKERS, THINGS, ["velvet", "brass", "quilted", "painted", "feet", *EXTRAS[:5]])
    return [" ".join(some) for some in words]


@pytest.mark.parametrize(
    "other",
    [
        "BRASS feet: velvet Ottoman quilted (90 cm)",
        "quilted velvett ottoman brass feet",
        "quïlted velvet ottoman with brass feet",
        "quilted velvet ottoman brass feet 0.92m",
        "Quilted velvet ottoman, brass feet, 3ft",
    ],
)
def test_a_relist_is_found_under_another_wording(other: str) -> None:
    """Other order, a slip, an accent, another unit, a word more; the rest of the catalogue stays apart."""
    titles = [*background(), "Quilted velvet ottoman, brass feet, 3ft", other]
    assert pairs(titles, margin=2.0) == {(len(titles) - 2, len(titles) - 1)}


@pytest.mark.parametrize(
    "other",
    [
        "quilted velvet ottoman brass feet 120 cm",  # a third wider
        "quilted velvet ottoman silver legs 90 cm",  # other words
        "quilted velvet ottoman brass feet 2 kg 120 cm",
        "set of 4 quilted velvet ottoman brass feet",  # numbers on both sides that differ
    ],
)
def test_what_contradicts_is_not_the_same(other: str) -> None:
    """Numbers and measures decide, however like the words are."""
    titles = background()
    same = "of feet, set brass 2 quilted ottoman velvet"
    assert pairs([*titles, "set of 2 quilted velvet ottoman brass feet 90cm", same], margin=2.0)
    assert not pairs([*titles, "set of 2 quilted velvet ottoman brass feet 90cm", other], margin=2.0)


def test_titles_that_say_too_little_match_none() -> None:
    """Of a thousand listings a hundred are called ``sofa``: that singles nothing out; four rare words do."""
    titles = ["sofa"] * 100 + [f"thing{n} {n % 30}" for n in range(898)] + ["velvet ottoman brass feet"] * 2
    assert pairs(titles, margin=2.0) == {(998, 999)}


def test_words_that_always_come_together_are_one_word() -> None:
    """``very good condition`` a hundred times: shared by chance, though three words share it."""
    titles = [f"very good condition {MAKERS[n % 12]}" for n in range(100)] + [f"thing{n} {n % 30}" for n in range(900)]
    assert not pairs(titles, margin=2.0)
    # The same words apart from each other prove as much as they seem to.
    random = np.random.default_rng(1)
    titles = [" ".join(random.permutation(THINGS)[:3]) for _ in range(1000)] + ["zig zag quilt"] * 2
    assert (1000, 1001) in pairs(titles, margin=2.0)


def test_a_million_equal_titles_make_no_pairs() -> None:
    """A wording that everybody uses is counted, reported and matches none."""
    titles = pl.Series(["velvet ottoman brass feet quilted"]).new_from_index(0, 300_000)
    found = similar_titles(titles, margin=-100.0)
    assert found.similar.pairs == 0
    assert found.crowded.all()
    assert found.largest_group == 300_000


def test_the_limit_counts_equal_and_like_titles() -> None:
    """Twelve titles that are all alike, in two wordings: eleven others each."""
    titles = ["quilted velvet ottoman brass feet"] * 7 + ["quilted velvet ottoman brass foot"] * 5
    assert len(pairs(titles, most=11)) == 66
    assert not pairs(titles, most=10)


def test_missing_titles_match_none() -> None:
    """Null, empty and unreadable ones are like nothing, each other included."""
    found = similar_titles(pl.Series([None, "", "!!!", None, "velvet ottoman"]), margin=-100.0)
    assert found.similar.pairs == 0
    assert found.read == 1
    for nothing in (pl.Series([], dtype=pl.String), pl.Series([None, None], dtype=pl.String)):
        assert similar_titles(nothing).similar.pairs == 0


def test_titles_in_other_scripts_are_compared() -> None:
    """Cyrillic with a slip and another order, Japanese with another order of its words."""
    others = [f"{a} {b}" for a, b in itertools.product(MAKERS, THINGS)]
    same = ["бархатный пуф латунные ножки", "латунные ножки, пуф бархатныи", "木製テーブル丸型", "丸型木製テーブル"]
    assert pairs([*others, *same], margin=2.0) == {(96, 97), (98, 99)}


def test_long_titles_may_differ_in_two_words() -> None:
    """Fifteen words of which two differ at a lower threshold."""
    words = [*MAKERS, *WOODS[:3]]
    one, other = " ".join(words), " ".join([*words[:13], "zebra", "lemon"])
    assert pairs([one, other, *THINGS], 0.8) == {(0, 1)}
