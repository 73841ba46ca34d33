"""Titles as the screen reads them: words without case, accents, order and slips of the pen; measures in one unit.

>>> read = read_titles(pl.Series(["Café-table, Oak (3ft)", "OAK cafe table 90 cm"]))
>>> [read.text(row) for row in range(2)], read.measures[:, 0].round(1).tolist()
(['cafe oak table', 'cafe oak table'], [91.4, 90.0])
"""

import re
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import polars as pl
from rapidfuzz.distance import OSA

from hatchway.data.engagements import Int64

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Scripts that are written without spaces: each character is taken as a word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[{_UNSPACED}]|\d+\.\d+|[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]+"
_NUMBER = r"\d+(?:\.\d+)?"
# "in" is a word too, so it is inches only where no thing follows it.
_UNITS = (
    r"(?:centimet(?:er|re)s?|millimet(?:er|re)s?|met(?:er|re)s?|inch(?:es)?|feet|foot|cms?|mm|m|ft|kilos?|kgs?|grams?|g|"
    r"lbs?|pounds?|ounces?|oz|lit(?:er|re)s?|ltr|ml|l|gal(?:lon)?s?)\b|''|[\"'″′”’]|"
    r"in\b\.?(?:\s*(?:$|[^\w\s]|x\b|wide\b|high\b|tall\b|long\b|deep\b|diameter\b))"
)
_FEET_AND_INCHES = r"\d+\s*(?:ft|feet|foot|['′’])\s*\d{1,2}\s*(?:''|[\"″”]|in(?:ch(?:es)?)?\b)"
_MEASURE = rf"{_FEET_AND_INCHES}|(?:{_NUMBER}\s*[x×]\s*)*{_NUMBER}\s*(?:{_UNITS})"

_KINDS = 3
_FACTORS = MappingProxyType(
    # To centimetres, grams and millilitres, by how the unit begins.
    {
        "centi": (0, 1.0), "cm": (0, 1.0), "milli": (0, 0.1), "mm": (0, 0.1), "met": (0, 100.0), "m": (0, 100.0),
        "in": (0, 2.54), '"': (0, 2.54), "''": (0, 2.54), "″": (0, 2.54), "”": (0, 2.54), "f": (0, 30.48),
        "'": (0, 30.48), "′": (0, 30.48), "’": (0, 30.48), "kilo": (1, 1000.0), "kg": (1, 1000.0), "g": (1, 1.0),
        "lb": (1, 453.6), "pound": (1, 453.6), "o": (1, 28.35), "l": (2, 1000.0), "ml": (2, 1.0), "gal": (2, 3785.0),
    }
)  # fmt: skip

_DIGITS = MappingProxyType(
    {
        "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
        "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
    }
)  # fmt: skip
_SLIPS = 10  # a word is a slip of another that is this many times as frequent
_SHORTEST = 4  # letters of a word that is taken for a slip


@dataclass(frozen=True, eq=False)
class Titles:
    """What N titles say.

    Attributes:
        words: [V] the vocabulary, in the order of the alphabet.
        begin: [N + 1] int64; title i has the words ``codes[begin[i]:begin[i + 1]]``.
        codes: [W] int64 positions in the vocabulary, ascending within a title, each once.
        measures: [N, 3] float64, the largest length in centimetres, weight in grams and volume in millilitres that the
            title states; NaN where it states none.
    """

    words: list[str]
    begin: Int64
    codes: Int64
    measures: Float64

    def __len__(self) -> int:
        """N."""
        return len(self.begin) - 1

    @cached_property
    def numeric(self) -> Bools:
        """[V] bool, words with a digit in them: 3, 60s, ps5."""
        return np.array([any(letter.isdigit() for letter in word) for word in self.words], np.bool_)

    def text(self, row: int) -> str:
        """Return a title's words in the order of the alphabet."""
        return " ".join(self.words[code] for code in self.codes[self.begin[row] : self.begin[row + 1]])


def read_titles(titles: pl.Series) -> Titles:
    """Read titles of any language.

    Accents and other marks above Latin, Greek and Cyrillic letters are dropped, case is folded, punctuation separates
    words. Number words up to twelve become digits, and numbers are read
    with their decimals. A word that one slip of the pen (a letter left out, added, changed,
    or two swapped) makes of one that is ten times as frequent is taken for it.

    Args:
        titles: [N] String, null where there is none.
    """
    plain = (
        pl.DataFrame({"title": titles.cast(pl.String).fill_null("")})
        .select(
            pl.col("title")
            .str.normalize("NFKD")
            .str.replace_all(r"[\u{0300}-\u{036f}]", "")
            .str.normalize("NFC")
            .str.to_lowercase()
            .str.replace_all("ß", "ss")
            # 1,200 is a thousand and two hundred (twice: a digit can stand between two commas), 1,2 is one and a fifth.
            .str.replace_all(r"(\d),(\d{3})\b", "$1$2")
            .str.replace_all(r"(\d),(\d{3})\b", "$1$2")
            .str.replace_all(r"(\d),(\d)", "$1.$2")
        )
        .with_columns(said=pl.col("title").str.extract_all(_MEASURE))
    )
    with_words = plain.select(words=pl.col("title").str.replace_all(_MEASURE, " ").str.extract_all(_WORD))
    rows = with_words.with_row_index("row").explode("words").drop_nulls()
    vocabulary = rows["words"].value_counts().sort("words")
    meant = _meant(vocabulary["words"].to_list(), vocabulary["count"].to_numpy())
    words = sorted(set(meant))
    place = {word: number for number, word in enumerate(words)}
    to_code = pl.DataFrame({"words": vocabulary["words"], "code": np.array([place[w] for w in meant], np.int64)})
    coded = rows.join(to_code, on="words", how="left").select("row", "code").unique().sort("row", "code")
    begin = np.zeros(len(titles) + 1, np.int64)
    np.cumsum(np.bincount(coded["row"].to_numpy(), minlength=len(titles)), out=begin[1:])
    return Titles(words, begin, coded["code"].to_numpy().astype(np.int64), _measures(plain["said"], len(titles)))


def _measures(said: pl.Series, size: int) -> Float64:
    """Return the largest measure of each kind that each title states."""
    found = np.full((size, _KINDS), np.nan)
    rows = pl.DataFrame({"row": np.arange(size), "said": said}).explode("said").drop_nulls()
    # The same few measures stand in many titles, and each is read once.
    read = {text: _measure(text) for text in rows["said"].unique().to_list()}
    for row, text in rows.iter_rows():
        kind, amount = read[text]
        found[row, kind] = np.fmax(found[row, kind], amount)
    return found


def _measure(text: str) -> tuple[int, float]:
    r"""Read one measure: its kind, and the largest number in it in the kind's unit.

    >>> _measure("3 ft"), _measure("200 x 90.5cm"), _measure("6'2\""), _measure("1.2 m")
    ((0, 91.44), (0, 200.0), (0, 187.96), (0, 120.0))
    """
    numbers = [float(number) for number in re.findall(_NUMBER, text)]
    unit = re.search(r"\d\s*([^\d\s.,x×]+)", text)
    name = unit[1] if unit else "cm"
    kind, factor = next(
        (_FACTORS[name[:length]] for length in range(len(name), 0, -1) if name[:length] in _FACTORS), (0, 1.0)
    )
    if re.search(r"(?:ft|feet|foot|['′’])\s*\d", text) and len(numbers) == 2:
        return 0, round(numbers[0] * 30.48 + numbers[1] * 2.54, 2)
    return kind, round(max(numbers) * factor, 2)


def _meant(words: list[str], counts: npt.NDArray[np.integer]) -> list[str]:
    """Return the word that each word is taken for: itself, a digit, or what it is a slip of."""
    number = dict(zip(words, counts.tolist(), strict=True))
    # Two words that are one slip apart agree when one letter is left out of each, or of the longer one.
    hosts: dict[str, list[str]] = {}
    usual = [word for word, count in number.items() if count >= _SLIPS and _may_slip(word)]
    for word in usual:
        for shorter in _shorter(word):
            hosts.setdefault(shorter, []).append(word)
    meant = []
    for word in words:
        found = _DIGITS.get(word, word)
        if found == word and _may_slip(word):
            near = {host for shorter in _shorter(word) for host in hosts.get(shorter, ())}
            near = {host for host in near if number[host] >= _SLIPS * number[word]}
            # The most frequent one; among equals the first in the alphabet.
            for host in sorted(near, key=lambda host: (-number[host], host)):
                if OSA.distance(word, host, score_cutoff=1) <= 1:
                    found = host
                    break
        meant.append(found)
    return meant


def _may_slip(word: str) -> bool:
    return len(word) >= _SHORTEST and not any(letter.isdigit() for letter in word)


def _shorter(word: str) -> set[str]:
    """Return a word and what it becomes where one letter is left out."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}
